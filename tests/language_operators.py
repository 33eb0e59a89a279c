"""Operators as a program calls them, with NumPy's answer for each."""
import math

import numpy as np

from snippets import Snippet, literal

F, D, H = np.float32, np.float64, np.float16
I, J, C, U = np.int64, np.int32, np.int8, np.uint8

x = F([[0.5, -1.25, 2, -0.0], [3.5, -2.5, 0.25, 1e-3], [-7, 0, 1.5, 2.5]])
y = F([[1, 2, -3, 4], [0.5, -0.5, 8, -8], [1, 1, 0.125, 3]])
u = F([[0.5, 1, 2, 4], [3, 0.125, 9, 1e-3], [7, 1, 1.5, 100]])
v = F([1, -2, 3, 0.5])
col = F([[2], [-1], [0.5]])
s = F(3)
i = I([[3, -7, 2, 0], [5, -5, 1, 9], [-1, 8, -8, 4]])
j = J([[2, 3, -4, 1], [1, -5, 7, 3], [2, 2, 3, -3]])
b = np.array([[True, False, True, True], [False, False, True, False],
              [True, True, True, True]])
e = np.array([[True, True, False, True], [False, True, True, False],
              [False, True, False, True]])
m = F(np.arange(20).reshape(4, 5) % 7 - 3)
t = F(np.arange(24).reshape(2, 3, 4) % 5 - 1.5)
t2 = F(np.arange(40).reshape(2, 4, 5) % 7 - 3)
nans = F([[1, np.nan, 3, np.nan], [np.inf, -np.inf, 0, 2],
          [np.nan, np.nan, -1, 5]])
h = H([[0.5, -1.25, 2, 3], [100, 0.1, 0.2, 0.3], [1, 2, 3, 4]])
d = D([[0.1, 0.2, 0.3, -0.4], [1, 2, 3, 4], [1e10, 1e-10, 0, 5]])
c = C([[1, -2, 127, -128], [5, 6, 7, 8], [100, 100, -100, 3]])
k = U([[0, 1, 255, 128], [5, 6, 7, 8], [100, 200, 100, 3]])
row = F([[1, 2, 3, 4, 5, 6, 7, 8]])
big = F([[1000, 1001, 1002, 999], [-1000, -1001, -999, -1000],
         [88, 89, 90, 0]])
infs = F([[-np.inf, 0, 1, -np.inf], [-np.inf] * 4, [np.inf, 0, 1, 2]])
wide = F([[1e10, -1e10, 3.99, -3.99], [np.nan, np.inf, -np.inf, 300],
          [-129, 128, 255.9, -0.9]])
index = I([[0, 2, 1, 0], [1, 1, 0, 2]])
ids = I([2, 0, 2, 1, 0])
q = F(np.sin(np.arange(96)).reshape(2, 4, 3, 4))
kk = F(np.cos(np.arange(160)).reshape(2, 4, 5, 4))
vv = F(np.sin(np.arange(240) * 0.7).reshape(2, 4, 5, 6))
mask = (np.arange(15).reshape(3, 5) % 4 != 1)
one = F([5])

ON_FIRST = dict(x=x, y=y, u=u, i=i, j=j, b=b, e=e, m=m, t=t, t2=t2,
                nans=nans, h=h, d=d, c=c, k=k, big=big, infs=infs, wide=wide,
                index=index, ids=ids, q=q, kk=kk, vv=vv, mask=mask,
                row=row)
ON_ALL = dict(v=v, col=col, s=s, one=one)
DTYPES = {"float32": "f32", "float64": "f64", "float16": "f16",
          "int64": "i64", "int32": "i32", "int8": "i8", "uint8": "u8",
          "bool": "bool"}


def declare(name, a, on):
    shape = ", ".join(str(n) for n in a.shape)
    return f"  const {name}: {DTYPES[a.dtype.name]}[{shape}]{on} = " \
           f"{literal(a)}"


HEAD = "\n".join(
    ["placement w = cpu[0..{ranks}]{shape}", "model m on w {{"] +
    [declare(n, a, " on ({first})") for n, a in ON_FIRST.items()] +
    [declare(n, a, "") for n, a in ON_ALL.items()] +
    ["  p = y on ({partial})",
     "  sin3 = cast(sin(reshape(arange(12, dtype = f32), [3, 4])), f16)",
     "  w16 = cast(x, bf16)", "  z16 = cast(sin3, bf16)"]) + "\n"

erf = np.vectorize(math.erf)


def softmax(a, axis=-1):
    a = a.astype(D)
    z = np.exp(a - a.max(axis, keepdims=True))
    return z / z.sum(axis, keepdims=True)


def logsumexp(a, axis=-1, keepdims=False):
    a = a.astype(D)
    top = a.max(axis, keepdims=True)
    top = np.where(np.isinf(top), 0, top)
    out = np.log(np.exp(a - top).sum(axis, keepdims=True)) + top
    return out if keepdims else out.squeeze(axis)


def attention(a, keys, values, scale=None, allowed=None):
    a, keys, values = (z.astype(D) for z in (a, keys, values))
    times = a.shape[-3] // keys.shape[-3]
    keys, values = (np.repeat(z, times, -3) for z in (keys, values))
    scores = a @ keys.swapaxes(-1, -2) * (scale or a.shape[-1] ** -0.5)
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    return F(softmax(scores) @ values)


def gelu(a):
    return F(0.5 * a * (1 + erf(a / math.sqrt(2))))


def gelu_tanh(a):
    a = a.astype(D)
    return F(0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) *
                                    (a + 0.044715 * a ** 3))))


def sigmoid(a):
    return F(1 / (1 + np.exp(-a.astype(D))))


def one_hot(a, n):
    return (a[..., None] == np.arange(n)).astype(I)


def elementwise():
    a = x
    yield from {
        "neg(x)": -a, "neg(x = x)": -a, "-x": -a, "abs(x)": np.abs(a),
        "exp(x)": np.exp(a), "log(u)": np.log(u), "log1p(u)": np.log1p(u),
        "sqrt(u)": np.sqrt(u), "rsqrt(u)": F(1 / np.sqrt(u.astype(D))),
        "square(x)": a * a, "reciprocal(y)": 1 / y, "sin(x)": np.sin(a),
        "cos(x)": np.cos(a), "tanh(x)": np.tanh(a), "sigmoid(x)": sigmoid(a),
        "erf(x)": F(erf(a)), "relu(x)": np.maximum(a, 0),
        "relu6(row)": np.clip(row, 0, 6), "relu6(x)": np.clip(a, 0, 6),
        "clamp(x, -1, 1)": np.clip(a, -1, 1),
        "clamp(x, min = 0)": np.maximum(a, 0),
        "clamp(x, max = 0.5)": np.minimum(a, F(.5)),
        "clamp(x, max = 1, min = -0.5)": np.clip(a, F(-.5), 1),
        "clamp(x, y, 2)": np.minimum(np.maximum(a, y), 2),
        "clamp(i, -2, 5)": np.clip(i, -2, 5),
        "gelu(x)": gelu(a), 'gelu(x, "tanh")': gelu_tanh(a),
        'gelu(x, approximate = "tanh")': gelu_tanh(a),
        'gelu(x, approximate = "none")': gelu(a),
        "silu(x)": F(a * sigmoid(a)),
        "softplus(x)": np.log1p(np.exp(a)),
        "softplus(big)": F(np.logaddexp(big.astype(D), 0)), "floor(x)": np.floor(a),
        "ceil(x)": np.ceil(a), "round(x)": np.rint(a),
        "sign(x)": np.sign(a), "sign(i)": np.sign(i),
        "floor(i)": i, "abs(i)": np.abs(i), "isnan(nans)": np.isnan(nans),
        "cast(x, i64)": np.trunc(a).astype(I), "cast(b, f32)": b.astype(F),
        "cast(x, dtype = f64)": a.astype(D), "cast(i, bool)": i != 0,
        "cast(h, f32)": h.astype(F), "cast(cast(x, bf16), f32)":
        F([[0.5, -1.25, 2, -0.0], [3.5, -2.5, 0.25, 0.00099945068359375],
           [-7, 0, 1.5, 2.5]]),
        "where(b, x, y)": np.where(b, a, y), "where(b, x, 0)":
        np.where(b, a, F(0)), "where(c = b, a = 1, b = x)":
        np.where(b, F(1), a), "where(b, i, 7)": np.where(b, i, 7),
        "where(b, x, i)": np.where(b, a, i).astype(F),
        "stop_gradient(x)": a, "exp(j)": np.exp(F(j)), "sqrt(k)":
        np.sqrt(F(k)), "sin(b)": np.sin(F(b)), "sigmoid(i)": sigmoid(F(i)),
        "logical_not(x)": ~(a != 0), "logical_and(x, i)":
        (a != 0) & (i != 0), "logical_or(x, b)": (a != 0) | b,
        "isnan(i)": np.zeros((3, 4), bool), "relu(i)": np.maximum(i, 0),
        "round(big / 3)": np.rint(big / F(3)),
        "neg(c)": -c, "abs(c)": np.abs(c),
        "square(i)": i * i, "reciprocal(j)": 1 / F(j), "exp(d)": np.exp(d),
        "log(abs(d))": np.log(np.abs(d)), "tanh(d)": np.tanh(d),
        "erf(d)": erf(d), "tanh(h)": np.tanh(h.astype(F)).astype(H),
        "exp(h)": np.exp(h.astype(F)).astype(H),
        "exp(h / 100)": np.exp((h / H(100)).astype(F)).astype(H),
        "gelu(d)": 0.5 * d * (1 + erf(d / math.sqrt(2))),
        "softmax(d)": softmax(d), "layer_norm(d, weight = cast(v, f64), "
        "bias = false)": (d - d.mean(1, keepdims=True)) /
        np.sqrt(d.var(1, keepdims=True) + 1e-5) * v,
    }.items()


def two_operands():
    yield from {
        "add(x, y)": x + y, "x + y": x + y, "sub(x, y)": x - y, "x - y":
        x - y, "mul(a = x, b = y)": x * y, "div(x, y)": x / y, "x / y":
        x / y, "pow(u, y)": np.power(u, y), "u ** y": np.power(u, y),
        "x ** 2": x * x, "2 ** x": np.exp2(x), "x ** 3": x ** 3,
        "maximum(x, y)": np.maximum(x, y), "minimum(x, 0)":
        np.minimum(x, 0), "maximum(nans, x)": np.maximum(nans, x),
        "minimum(nans, x)": np.minimum(nans, x), "relu(nans)":
        np.maximum(nans, 0), "clamp(nans, 0, 1)": np.clip(nans, 0, 1),
        "eq(x, y)": x == y, "x == y": x == y, "ne(x, 2)": x != 2,
        "x != x": x != x, "nans != nans": nans != nans, "lt(x, y)": x < y,
        "x < y": x < y, "x <= 2": x <= 2, "le(x, y)": x <= y, "gt(x, y)":
        x > y, "1 > x": 1 > x, "x >= y": x >= y, "ge(x, y)": x >= y,
        "nans < 1": nans < 1, "b == e": b == e,
        "logical_and(b, e)": b & e, "logical_or(b, e)": b | e,
        "logical_not(b)": ~b, "logical_and(a = b, b = true)": b,
        "x + v": x + v, "x + col": x + col, "v + col": v + col, "x * s":
        x * s, "s * s": s * s, "t + v": t + v, "one + x": one + x,
        "x + 1": x + 1, "1 - x": 1 - x, "2 * x": 2 * x, "1 / u": 1 / u,
        "x / 3": x / F(3), "i / 4": F(i / 4), "i / j": F(i / j),
        "i * 2 - 1": i * 2 - 1, "i ** 2": i ** 2, "j + j": j + j,
        "3 + -x": 3 + -x, "-x ** 2": -(x ** 2), "x - y - u": x - y - u,
        "x / y * u": x / y * u, "x + y * u": x + y * u,
        "x * p": x * y, "p + 1": y + 1, "p + x": y + x, "p * 2": y * 2,
        "relu(p)": np.maximum(y, 0), "p / 4": y / 4, "p * p": y * y,
        "sum(p, axis = 0)": y.sum(0), "p @ m": y @ m, "-p": -y,
        "2 / p": 2 / y, "p - x": y - x, "concat([p, x])":
        np.concatenate([y, x]), "transpose(p)": y.T, "p[1:, ::2]":
        y[1:, ::2], "where(b, p, x)": np.where(b, y, x), "max(p)": y.max(),
        "where(b, p, 0)": np.where(b, y, F(0)), "pad(p, [1, 2])":
        np.pad(y, [(0, 0), (1, 2)]), "pad(p, [-1, 2])":
        np.pad(y[:, 1:], [(0, 0), (0, 2)]), "pad(p, [1, 0], value = 2)":
        np.pad(y, [(0, 0), (1, 0)], constant_values=2),
        "p == y": y == y, "cast(p, f64)": y.astype(D), "cast(p, i32)":
        np.trunc(y).astype(J), "p * b": y * b,
    }.items()


def promotion():
    yield from {
        "b + 1": b + I(1), "b * 2.5": F(b * 2.5), "c + k": c.astype(J) + k,
        "c + 1": c + C(1), "k + 1": k + U(1), "c + j": c + j, "j + i": j + i,
        "c * c": c * c, "k * k": k * k, "k - 1": k - U(1), "-k": -k,
        "i + x": F(i + x.astype(D)), "i + h": (i.astype(H) + h),
        "x + d": x + d, "h + x": h + x, "h + 1": h + H(1),
        "h * 0.1": h * H(0.1), "h + d": h + d, "j * 0.5": F(j * 0.5),
        "c * 1.5": F(c * 1.5), "x + true": x + 1, "i + true": i + 1,
        "cast(x, bf16) + h": x.astype(H).astype(F) + h,
        "k + c": c.astype(J) + k,
        "c > k": c.astype(J) > k, "i == x": i == x, "b * x": b * x,
        "d * 2": d * 2, "d + 0.1": d + 0.1,
        "maximum(c, k)": np.maximum(c.astype(J), k),
        "maximum(i, 0.5)": F(np.maximum(i, 0.5)),
        "where(b, c, k)": np.where(b, c.astype(J), k),
        "where(b, i, x)": F(np.where(b, i, x)),
        "where(b, 1, 2)": np.where(b, 1, 2), "where(b, 1, 2.0)":
        np.where(b, F(1), F(2)), "where(b, true, false)": b,
        "sum(b)": I(b.sum()), "sum(c)": I(c.sum(dtype=I)), "sum(j, axis = 0)":
        j.sum(0, dtype=I), "prod(c[1])": I(5 * 6 * 7 * 8), "max(c)":
        C(127), "min(k)": U(0), "sum(h)": H(h.astype(F).sum()),
        "c / c": F(c / c), "k / 2": F(k / 2),
        "h @ cast(m, f16)": H(h.astype(F) @ m), "mean(h)":
        H(h.astype(F).mean()), "i @ cast(m, i64)": i @ m.astype(I),
        "d @ cast(m, f64)": d @ m.astype(D), "c @ cast(m, i8)":
        c @ m.astype(C), "x @ cast(m, f64)": x.astype(D) @ m.astype(D),
        "i @ m": F(i.astype(D) @ m),
        "argmax(x)": I(4), "one_hot(ids, 3)": one_hot(ids, 3),
        "arange(3) + 0.5": F([.5, 1.5, 2.5]),
        "cast(wide, i8)": C([[127, -128, 3, -3], [0, 127, -128, 127],
                             [-128, 127, 127, 0]]),
        "cast(wide, u8)": U([[255, 0, 3, 0], [0, 255, 0, 255],
                             [0, 128, 255, 0]]),
        "cast(wide, i32)": J([[2**31 - 1, -2**31, 3, -3],
                              [0, 2**31 - 1, -2**31, 300],
                              [-129, 128, 255, 0]]),
        "cast(wide, i64)": I([[10**10, -10**10, 3, -3],
                              [0, 2**63 - 1, -2**63, 300],
                              [-129, 128, 255, 0]]),
        "cast(i, u8)": i.astype(U), "cast(i * 100, i8)": (i * 100).astype(C),
        "cast(u * 100, f16)": (u * 100).astype(H),
        "cast(wide, bool)": wide != 0, "k + 300": (k.astype(I) + 300)
        .astype(U), "k * -1": -k, "c - 200": (c.astype(I) - 200).astype(C),
    }.items()


def reductions():
    yield from {
        "sum(x)": x.sum(), "sum(x, 0)": x.sum(0), "sum(x, axis = -1)":
        x.sum(-1), "sum(x, axis = [0, 1])": x.sum(), "sum(x, dim = 1)":
        x.sum(1), "sum(x, axis = 1, keepdim = true)":
        x.sum(1, keepdims=True), "sum(x, dim = 0, keepdims = true)":
        x.sum(0, keepdims=True), "sum(t, [0, 2])": t.sum((0, 2)),
        "sum(t, axis = [-1, 0], keepdim = true)":
        t.sum((0, 2), keepdims=True), "sum(t, dims = [1])": t.sum(1),
        "mean(x)": x.mean(), "mean(t, axis = [0, 1])": t.mean((0, 1)),
        "mean(x, 1, true)": x.mean(1, keepdims=True), "max(x)": x.max(),
        "max(x, axis = 0)": x.max(0), "min(x, 1)": x.min(1), "min(t)":
        t.min(), "max(t, axis = [0, 2])": t.max((0, 2)),
        "prod(u, axis = 1)": u.prod(1), "prod(y)": y.prod(),
        "var(x)": F(x.var(ddof=1, dtype=D)), "var(x, axis = 0)":
        F(x.var(0, ddof=1, dtype=D)), "var(x, 1, 0)":
        F(x.var(1, dtype=D)), "var(x, axis = 1, correction = 0)":
        F(x.var(1, dtype=D)), "var(x, axis = 1, correction = 2)":
        F(x.var(1, ddof=2, dtype=D)),
        "var(x, axis = 1, keepdim = true)":
        F(x.var(1, ddof=1, keepdims=True, dtype=D)),
        "var(x + 10000, axis = 1)":
        (x + F(10000)).var(1, ddof=1, dtype=D).astype(F),
        "any(b)": np.bool_(True), "any(b, axis = 1)": b.any(1),
        "all(b, axis = 1)": b.all(1), "all(b, 0, keepdim = true)":
        b.all(0, keepdims=True), "all(b)": np.bool_(False),
        "argmax(x, axis = 1)": x.argmax(1), "argmax(x, 0)": x.argmax(0),
        "argmax(x, axis = -1, keepdim = true)": x.argmax(1)[:, None],
        "argmax(i)": I(i.argmax()), "argmax(nans, axis = 1)":
        I([1, 0, 0]), "argmax(nans, axis = 0)": I([2, 0, 0, 0]),
        "argmax(nans)": I(1), "argmax(x * 0, axis = 1)": I([0, 0, 0]),
        "argmax(b, axis = 1)": b.argmax(1),
        "argmax(x, axis = 1, dtype = i32)": x.argmax(1).astype(J),
        "max(nans, axis = 1)": nans.max(1), "min(nans, axis = 1)":
        nans.min(1), "sum(nans, axis = 1)": F([np.nan] * 3),
        "max(nans, axis = 0)": nans.max(0),
        "softmax(x)": F(softmax(x)), "softmax(x, 0)": F(softmax(x, 0)),
        "softmax(x, axis = 0)": F(softmax(x, 0)), "softmax(big)":
        F(softmax(big)), "log_softmax(x)": F(np.log(softmax(x))),
        "log_softmax(x, dim = 0)": F(np.log(softmax(x, 0))),
        "log_softmax(big)":
        F(big.astype(D) - logsumexp(big, keepdims=True)),
        "softmax(s)": F(1), "softmax(s * inf, 0)": F(np.nan),
        "log_softmax(s)": F(0), "logsumexp(s)": F(3),
        "logsumexp(s, axis = 0, keepdim = true)": F(3),
        "logsumexp(x)": F(logsumexp(x)), "logsumexp(x, axis = 0)":
        F(logsumexp(x, 0)), "logsumexp(big)": F(logsumexp(big)),
        "logsumexp(infs)": F([np.log(1 + np.exp(D(1))), -np.inf, np.inf]),
        "logsumexp(x, axis = [0, 1])": F(logsumexp(x.ravel())),
        "logsumexp(x, keepdim = true)": F(logsumexp(x, keepdims=True)),
        "sum(x[:0])": F(0), "sum(x[:0], axis = 0)": np.zeros(4, F),
        "prod(x[:, 2:2], axis = 1)": np.ones(3, F), "mean(x[:0])":
        F(np.nan), "mean(x[3:], axis = 0)": F([np.nan] * 4),
        "all(b[:0])": np.bool_(True), "any(b[:0])": np.bool_(False),
        "sum(s)": s, "max(s)": s, "mean(s)": s, "sum(v)": v.sum(),
        "sum(x, axis = [])": x, "max(s, keepdim = true)": s,
        "sum(cast(s, i32))": I(3), "sum(x + 1, axis = []) * 2": (x + 1) * 2,
        "sum(sum(x, 0))": x.sum(),
        "softmax(h)": H(softmax(h)), "var(h, axis = 1)":
        H(h.astype(D).var(1, ddof=1)),
    }.items()


def algebra():
    yield from {
        "x @ m": x @ m, "matmul(x, m)": x @ m, "matmul(a = x, b = m)": x @ m,
        "v @ m": v @ m, "x @ v": x @ v, "v @ v": v @ v, "t @ m": t @ m,
        "t @ t2": t @ t2, "t @ v": t @ v, "v @ t2": v @ t2,
        "q @ transpose(kk)": q @ kk.swapaxes(-1, -2),
        "matmul(t, t2[:1])": t @ t2[:1], "x @ m[:, :0]":
        np.zeros((3, 0), F), "x[:, :0] @ m[:0]": np.zeros((3, 5), F),
        "transpose(x) @ y": x.T @ y, "transpose(x) @ transpose(transpose(x))":
        x.T @ x, "transpose(transpose(x)) @ transpose(x)": x @ x.T, "x @ m + 1": x @ m + 1,
        "2 * x @ m": 2 * x @ m, "x @ (m * 2)": x @ (m * 2),
        "-x @ m": -x @ m,
    }.items()


def movement():
    yield from {
        "reshape(x, [4, 3])": x.reshape(4, 3), "reshape(x, [-1])":
        x.reshape(-1), "reshape(x, shape = [2, -1])": x.reshape(2, -1),
        "reshape(s, [1, 1])": s.reshape(1, 1), "reshape(one, [])":
        F(5), "reshape(t, [6, 4])": t.reshape(6, 4),
        "reshape(t, [x.shape[0], -1])": t.reshape(3, -1),
        "flatten(t)": t.ravel(), "flatten(t, 1)": t.reshape(2, 12),
        "flatten(t, start = 0, end = 1)": t.reshape(6, 4),
        "flatten(t, 0, -2)": t.reshape(6, 4), "flatten(s)": s.reshape(1),
        "transpose(x)": x.T, "transpose(t)": t.swapaxes(1, 2),
        "transpose(t, 0, 2)": t.swapaxes(0, 2),
        "transpose(t, a = 0, b = 1)": t.swapaxes(0, 1),
        "permute(t, [2, 0, 1])": t.transpose(2, 0, 1),
        "permute(t, dims = [0, -1, 1])": t.transpose(0, 2, 1),
        "squeeze(col)": col.squeeze(), "squeeze(col, 1)": col.squeeze(1),
        "squeeze(one, axis = -1)": F(5), "squeeze(col, axis = [1])":
        col.squeeze(1), "unsqueeze(v, 0)": v[None], "unsqueeze(x, axis = 1)":
        x[:, None], "unsqueeze(x, -1)": x[..., None],
        "squeeze(x, axis = 0)": x,
        "expand(col, [3, 4])": np.broadcast_to(col, (3, 4)),
        "expand(v, [2, 3, 4])": np.broadcast_to(v, (2, 3, 4)),
        "expand(col, shape = [-1, 2])": np.broadcast_to(col, (3, 2)),
        "expand(s, [2])": F([3, 3]),
        "slice(x, 0, 1, 3)": x[1:3], "slice(x, axis = 1, start = 0, "
        "stop = 4, step = 2)": x[:, ::2], "slice(x, -1, -3, -1)":
        x[:, -3:-1], "slice(x, 0, 1, 100)": x[1:],
        "concat([x, y])": np.concatenate([x, y]),
        "concat([x, y], 1)": np.concatenate([x, y], 1),
        "concat([x, y], axis = -1)": np.concatenate([x, y], 1),
        "concat(xs = [x], axis = 0)": x, "concat([x, d])":
        np.concatenate([x, d]), "concat([i, x], dim = 1)":
        np.concatenate([i.astype(F), x], 1),
        "stack([x, y])": np.stack([x, y]), "stack([x, y], 1)":
        np.stack([x, y], 1), "stack([x, y], axis = -1)": np.stack([x, y], -1),
        "stack([s, s])": F([3, 3]),
        "split(x, 2)[0]": x[:2], "split(x, 2)[1]": x[2:],
        "split(x, [1, 2])[1]": x[1:], "split(x, 3, axis = 1)[1]": x[:, 3:],
        "split(x, size = [1, 1, 2], axis = -1)[2]": x[:, 2:],
        "concat(split(x, 1))": x, "repeat(v, [3])": np.tile(v, 3),
        "repeat(v, [2, 1])": np.tile(v, (2, 1)), "repeat(x, [2, 3])":
        np.tile(x, (2, 3)), "repeat(x, [2, 1, 2])": np.tile(x, (2, 1, 2)),
        "repeat(v, repeats = [0])": np.zeros(0, F),
        "pad(x, [1, 2])": np.pad(x, [(0, 0), (1, 2)]),
        "pad(x, [1, 2, 3, 0])": np.pad(x, [(3, 0), (1, 2)]),
        "pad(x, pad = [0, 1], value = -1.5)":
        np.pad(x, [(0, 0), (0, 1)], constant_values=-1.5),
        "pad(i, [0, 0, 1, 0], 7)":
        np.pad(i, [(1, 0), (0, 0)], constant_values=7),
        "pad(x, [-1, 0])": x[:, 1:], "pad(x, [-1, -2, 0, -1])": x[:2, 1:2],
        "pad(x, [-1, 2, 1, -1], value = 3)": np.pad(
            x[:2, 1:], [(1, 0), (0, 2)], constant_values=3),
        "pad(x, [-1, 1])": np.pad(x[:, 1:], [(0, 0), (0, 1)]),
        "pad(x, [-4, 0])": x[:, :0], "pad(x, [-3, 1, -3, 2])":
        np.zeros((2, 2), F), "pad(t, [0, 0, -1, -1])": t[:, 1:-1],
        "pad(b, [0, -1, -1, 0])": b[1:, :-1],
        "pad(t, [1, 1])": np.pad(t, [(0, 0), (0, 0), (1, 1)]),
        "x[0]": x[0], "x[-1]": x[-1], "x[1:3]": x[1:3], "x[:, 1]": x[:, 1],
        "x[::2]": x[::2], "x[1:, :-1]": x[1:, :-1], "x[..., 0]": x[..., 0],
        "x[0, ...]": x[0], "t[..., 1:3, -1]": t[..., 1:3, -1],
        "t[1, 2, 3]": t[1, 2, 3], "x[100:]": x[100:], "x[-100:2]":
        x[-100:2], "x[2:1]": x[2:1], "x[:, ::3]": x[:, ::3],
        "x[1:100:5]": x[1:100:5], "t[0, ::2, 1:]": t[0, ::2, 1:],
        "x[...]": x, "x[0][1]": x[0][1],
        "x[:][1:]": x[1:], "x[0:3, 0:4]": x, "x[::5, ::5]": x[::5, ::5],
        "t[-1, -2:, :2]": t[-1, -2:, :2], "x[1:1 + 1]": x[1:2],
        "x[x.rank]": x[2],
    }.items()


def indexing():
    add = x.copy()
    np.add.at(add, (index, np.arange(4)[None]), y[:2])
    yield from {
        "gather(x, 0, index)": np.take_along_axis(x, index, 0),
        "gather(x, axis = 0, index = index)":
        np.take_along_axis(x, index, 0),
        "gather(x, dim = 0, index = index[:, :2])":
        np.take_along_axis(x[:, :2], index[:, :2], 0),
        "gather(i, 1, index)": np.take_along_axis(i[:2], index, 1),
        "gather(x, -1, argmax(x, axis = 1, keepdim = true))":
        x.max(1, keepdims=True),
        "scatter_add(x, 0, index, y[:2])": add,
        "scatter_add(x, axis = 0, index = index, src = y)": add,
        "scatter_add(i * 0, 1, index, i)": scatter(i * 0, 1, index, i),
        "scatter_add(x, 1, index, y)": scatter(x, 1, index, y),
        "scatter_add(p, 0, index, y)": scatter(y, 0, index, y),
        "embedding(ids, weight = x)": x[ids], "embedding(index, weight = x)":
        x[index], "embedding(ids, 3, 4, weight = x)": x[ids],
        "embedding(cast(ids, i32), weight = x)": x[ids],
        "embedding(ids, weight = p)": y[ids],
        "one_hot(index, 3)": one_hot(index, 3), "one_hot(ids, n = 4)":
        one_hot(ids, 4), "one_hot(ids, 3, dtype = f32)":
        one_hot(ids, 3).astype(F), "arange(5)": np.arange(5),
        "arange(2, 7)": np.arange(2, 7), "arange(1, 8, 3)":
        np.arange(1, 8, 3), "arange(3, dtype = f32)": F([0, 1, 2]),
        "arange(5, 0, -2)": np.arange(5, 0, -2), "arange(0)":
        np.zeros(0, I), "tril(x)": np.tril(x), "tril(x, 1)": np.tril(x, 1),
        "tril(x, diagonal = -1)": np.tril(x, -1), "tril(t)": np.tril(t),
        "tril(i)": np.tril(i), "tril(b)": np.tril(b),
        "zeros([2, 3])": np.zeros((2, 3), F), "ones([2], dtype = i64)":
        np.ones(2, I), "zeros(x.shape)": np.zeros((3, 4), F),
        "zeros([])": F(0),
    }.items()


def scatter(a, axis, at, src):
    out = a.copy()
    for pos in np.ndindex(*at.shape):
        where = list(pos)
        where[axis] = at[pos]
        out[tuple(where)] += src[pos]
    return out


def network():
    mean = x.mean(1, keepdims=True, dtype=D)
    var = x.var(1, keepdims=True, dtype=D)
    square = (x.astype(D) ** 2).mean(1, keepdims=True)
    lower = np.tril(np.ones((3, 5), bool))
    keys2, values2 = kk[:, :2], vv[:, :2]
    yield from {
        "linear(x, 3, bias = false, weight = y)": x @ y.T,
        "linear(x, weight = y, bias = false)": x @ y.T,
        "linear(t, weight = y, bias = v[:3])": t @ y.T + v[:3],
        "linear(v, weight = y, bias = false)": y @ v,
        "layer_norm(x, bias = false, weight = v)":
        F((x - mean) / np.sqrt(var + 1e-5) * v),
        "layer_norm(x, 0.1, bias = v, weight = v)":
        F((x - mean) / np.sqrt(var + 0.1) * v + v),
        "rms_norm(x, eps = 1e-3, weight = v)":
        F(x / np.sqrt(square + 1e-3) * v),
        "rms_norm(x, weight = v)": F(x / np.sqrt(square + 2.0**-23) * v),
        "dropout(x)": x, "dropout(x, p = 0.1)": x,
        "attention(q, kk, vv)": attention(q, kk, vv),
        "attention(q, kk, vv, causal = true)":
        attention(q, kk, vv, allowed=lower),
        "attention(q, kk, vv, mask = mask)":
        attention(q, kk, vv, allowed=mask),
        "attention(q, kk, vv, scale = 0.3)": attention(q, kk, vv, 0.3),
        "attention(q, kk, vv, true, scale = 2)":
        attention(q, kk, vv, 2, lower),
        "attention(q, kk[:, :2], vv[:, :2])": attention(q, keys2, values2),
        "attention(q, kk[:, :1], vv[:, :1], causal = true)":
        attention(q, kk[:, :1], vv[:, :1], allowed=lower),
        "attention(q[0, 0], kk[0, 0], vv[0, 0])":
        attention(q[0, :1], kk[0, :1], vv[0, :1])[0],
        "attention(q = q, k = kk, v = vv)": attention(q, kk, vv),
    }.items()


def bf16(a):
    """As bf16 rounds, in float32."""
    bits = np.atleast_1d(F(a)).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000
    return bits.astype(np.uint32).view(F).reshape(np.shape(a))


def halves():
    """Each named operator rounds, fused or not."""
    g = np.sin(np.arange(12, dtype=F)).astype(H).reshape(3, 4)
    w, z = bf16(x), bf16(g.astype(F))
    yield from {
        "cast(sin3 * h + sin3, f32)": F(g * h + g),
        "(h + sin3) * (h - sin3)": (h + g) * (h - g),
        "h / 3 - sin3": h / H(3) - g, "(h + 0.1) * 3": (h + H(.1)) * H(3),
        "max(h * sin3, axis = 1)": (h * g).max(1),
        "h * 10000": h * H(10000), "where(h > sin3, h, sin3) + 1":
        np.maximum(h, g) + H(1),
        "cast(w16 * z16 + w16, f32)": bf16(bf16(w * z) + w),
        "cast((w16 + 0.1) * 3, f32)": bf16(bf16(w + bf16(F(.1))) * 3),
        "cast(w16 - z16 - z16, f32)": bf16(bf16(w - z) - z),
        "cast(sum(w16), f32)": bf16(w.astype(D).sum()),
    }.items()


def operators():
    groups = (elementwise, two_operands, promotion, reductions, algebra,
              movement, indexing, network, halves)
    with np.errstate(all="ignore"):
        for group in groups:
            for expression, want in group():
                yield Snippet(expression, "", {expression: np.asarray(want)})

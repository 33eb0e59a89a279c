"""The cases of oracle_ops_all.py: operators on operands, and what NumPy says."""
import itertools
import math

import numpy as np

HALF = ("f16", "bf16")
INTS = ("u8", "i8", "i32", "i64")
FLOATS = ("f16", "bf16", "f32", "f64")
NUMPY = {"bool": np.bool_, "u8": np.uint8, "i8": np.int8, "i32": np.int32,
         "i64": np.int64, "f16": np.float32, "bf16": np.float32,
         "f32": np.float32, "f64": np.float64}


# ---- numbers ----

def bf16_bits(x):
    x = np.asarray(x, np.float32)
    b = np.atleast_1d(x).view(np.uint32).astype(np.int64)
    even = (b + 0x7fff + ((b >> 16) & 1)) >> 16
    bits = np.where(np.isnan(np.atleast_1d(x)), (b >> 16) | 0x40, even)
    return bits.astype(np.uint16).reshape(x.shape)


def rounded(x, dtype):
    """X as DTYPE holds it; halves as float32."""
    with np.errstate(all="ignore"):
        if dtype == "f16":
            return np.asarray(x).astype(np.float16).astype(np.float32)
        if dtype == "bf16":
            bits = bf16_bits(np.asarray(x, np.float32))
            wide = np.atleast_1d(bits.astype(np.uint32)) << 16
            return wide.view(np.float32).reshape(bits.shape)
        return np.asarray(x).astype(NUMPY[dtype])


# ---- operands ----

class Spec:
    def __init__(self, dtype, shape, kind="any", n=0):
        self.dtype, self.shape, self.kind, self.n = dtype, shape, kind, n

    def make(self, rng, shape, partial):
        t = self.dtype
        if t == "bool":
            return rng.integers(0, 2, shape).astype(bool)
        if self.kind == "index":
            return rng.integers(0, self.n, shape).astype(NUMPY[t])
        if self.kind == "divisor":
            return rng.integers(1, 9, shape).astype(NUMPY[t])
        if partial or t not in FLOATS:
            low = 0 if t == "u8" or self.kind in ("positive", "power") else -7
            high = 4 if self.kind == "power" else 8
            return rounded(rng.integers(low, high, shape), t)
        if self.kind == "positive":
            return rounded(rng.uniform(0.1, 4, shape), t)
        if self.kind == "nonzero":
            sign = rng.choice([-1.0, 1.0], shape)
            return rounded(sign * rng.uniform(0.5, 3, shape), t)
        a = rng.uniform(-3, 3, shape)
        a[rng.random(shape) < 0.1] = -0.0
        if self.kind == "special":
            for x in (np.nan, np.inf, -np.inf):
                a[rng.random(shape) < 0.1] = x
        if self.kind == "halves":
            a = np.round(a * 2) / 2
        return rounded(a, t)

    def type(self):
        return type_text(self.dtype, self.shape)


def type_text(dtype, shape):
    return f"{dtype}[{', '.join(map(str, shape))}]"


class Case:
    """One operator on given operands. FN maps logical arrays to the result;
    number: an operand that the graph writes as a literal."""

    def __init__(self, op, ins, attrs, out, fn, number=None):
        self.op, self.ins, self.attrs, self.out, self.fn = (op, ins, attrs,
                                                            out, fn)
        self.number = number
        zeros = [np.ones(s.shape, NUMPY[s.dtype]) for s in ins]
        with np.errstate(all="ignore"):
            self.shape = np.shape(fn(*zeros))
        types = " ".join(s.type() for s in ins)
        self.name = f"{op}({types}){' {' + attrs + '}' if attrs else ''}"
        self.sigs = []

    def node(self, result, operands):
        attrs = f" {{{self.attrs}}}" if self.attrs else ""
        ins = ", ".join(operands)
        return (f"  {result}: {type_text(self.out, self.shape)} = "
                f"{self.op}({ins}){attrs} on p")


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def wide(x):
    return np.asarray(x).astype(np.float64)


def sigmoid(x):
    return 1 / (1 + np.exp(-wide(x)))


def to_int(x, dtype):
    """Truncates and saturates; nan gives 0."""
    info = np.iinfo(NUMPY[dtype])
    x = wide(x)
    y = np.where(np.isnan(x), 0, np.trunc(x))
    out = np.empty(y.shape, NUMPY[dtype])
    for i in np.ndindex(*y.shape):
        v = y[i]
        out[i] = (info.max if v >= float(info.max) else
                  info.min if v <= float(info.min) else int(v))
    return out


def cast(x, frm, to):
    if to == "bool":
        return x != 0
    if to in INTS and frm in FLOATS:
        return to_int(x, to)
    return x.astype(NUMPY[to]) if to not in HALF else wide(x)


SHAPES = [(5, 3), (1, 6), (37,)]


def unary_cases():
    fns = {
        "exp": (np.exp, "special"), "log": (np.log, "positive"),
        "log1p": (np.log1p, "positive"), "sqrt": (np.sqrt, "positive"),
        "rsqrt": (lambda x: 1 / np.sqrt(x), "positive"),
        "reciprocal": (lambda x: 1 / x, "nonzero"),
        "sin": (np.sin, "any"), "cos": (np.cos, "any"),
        "tanh": (np.tanh, "special"), "sigmoid": (sigmoid, "special"),
        "erf": (erf, "any"),
    }
    for op, (fn, kind) in fns.items():
        for t in FLOATS:
            for shape in SHAPES if t == "f32" else SHAPES[:1]:
                yield Case(op, [Spec(t, shape, kind)], "", t,
                           lambda x, fn=fn: fn(wide(x)))
    exact = {"neg": np.negative, "abs": np.abs,
             "relu": lambda x: np.where(x < 0, x.dtype.type(0), x),
             "floor": np.floor, "ceil": np.ceil, "round": np.rint,
             "sign": np.sign}
    for op, fn in exact.items():
        for t in FLOATS + INTS:
            f = fn
            if t in INTS and op in ("floor", "ceil", "round"):
                f = np.array
            for shape in SHAPES if t == "f32" else SHAPES[:1]:
                kind = "halves" if op == "round" else "special"
                yield Case(op, [Spec(t, shape, kind)], "", t, f)
    for t in FLOATS + ("i32", "bool"):
        yield Case("isnan", [Spec(t, (5, 3), "special")], "", "bool",
                   lambda x: np.isnan(wide(x)))
    for shape in SHAPES:
        yield Case("logical_not", [Spec("bool", shape)], "", "bool", np.invert)
        yield Case("stop_gradient", [Spec("f32", shape)], "", "f32", np.array)
    for a, b in itertools.product(NUMPY, NUMPY):
        yield Case("cast", [Spec(a, (5, 3), "special" if b in FLOATS + INTS
                                 else "any")], f"dtype = {b}", b,
                   lambda x, a=a, b=b: cast(x, a, b))


def wrapping(fn):
    def f(*x, **kw):
        with np.errstate(all="ignore"):
            return fn(*x, **kw)
    return f


def divisor_cases():
    for t in INTS:
        yield Case("divisor", [Spec(t, (5, 3), "divisor")], "", t, np.array)


PAIRS = [((5, 3), (5, 3)), ((5, 3), (3,)), ((5, 1), (5, 3)), ((), (5, 3)),
         ((2, 1, 6), (5, 1)), ((1, 6), (4, 6)), ((3, 40), (40,))]


def binary_cases():
    fns = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
    for op, fn in fns.items():
        for t in FLOATS + INTS:
            for a, b in PAIRS if t == "f32" else PAIRS[:2]:
                yield Case(op, [Spec(t, a), Spec(t, b)], "", t, wrapping(fn))
    for t in FLOATS:
        for a, b in PAIRS if t == "f32" else PAIRS[:2]:
            yield Case("div", [Spec(t, a), Spec(t, b, "nonzero")], "", t,
                       lambda x, y: wide(x) / wide(y))
            yield Case("pow", [Spec(t, a, "positive"), Spec(t, b)], "", t,
                       lambda x, y: np.power(wide(x), wide(y)))
    for t in INTS:
        yield Case("pow", [Spec(t, (5, 3)), Spec(t, (3,), "power")], "", t,
                   wrapping(np.power))
    for t in FLOATS + INTS + ("bool",):
        for a, b in PAIRS if t == "f32" else PAIRS[:2]:
            kind = "special" if t in FLOATS else "any"
            for op, fn in (("maximum", np.maximum), ("minimum", np.minimum)):
                yield Case(op, [Spec(t, a, kind), Spec(t, b, kind)], "", t,
                           fn)
            for op, fn in (("eq", np.equal), ("ne", np.not_equal),
                           ("lt", np.less), ("le", np.less_equal),
                           ("gt", np.greater), ("ge", np.greater_equal)):
                yield Case(op, [Spec(t, a, "halves"), Spec(t, b, "halves")],
                           "", "bool", fn)
    for a, b in PAIRS:
        for op, fn in (("logical_and", np.logical_and),
                       ("logical_or", np.logical_or)):
            yield Case(op, [Spec("bool", a), Spec("bool", b)], "", "bool", fn)
        for t in FLOATS + ("i64", "i8", "bool"):
            yield Case("where", [Spec("bool", (5, 3) if a == b else b),
                                 Spec(t, a), Spec(t, b)], "", t, np.where)
    for t in ("f32", "f64", "i64"):
        for x in (2.0, -3.0):
            for left in (True, False):
                yield Case("mul", [Spec(t, (5, 3))], "", t,
                           lambda a, x=x: a * a.dtype.type(x),
                           number=(t, x, left))


AXES = [((5, 3), [0]), ((5, 3), [1]), ((5, 3), [0, 1]), ((2, 3, 5), [1]),
        ((2, 3, 5), [0, 2]), ((1, 6), [1]), ((4, 70), [1]), ((40, 20), [0]),
        ((7,), [0])]


def sum_type(t):
    return t if t in FLOATS else "i64"


def reduction_cases():
    for t in FLOATS + INTS + ("bool",):
        for shape, axis in AXES if t == "f32" else AXES[:4]:
            for keep in (False, True):
                attrs = f"axis = {axis}, keepdim = {str(keep).lower()}"
                kw = {"axis": tuple(axis), "keepdims": keep}
                out = sum_type(t)
                acc = np.float64 if t in FLOATS else np.int64
                yield Case("sum", [Spec(t, shape)], attrs, out,
                           lambda x, kw=kw, acc=acc:
                           np.sum(x.astype(acc), **kw))
                yield Case("prod", [Spec(t, shape, "nonzero")], attrs, out,
                           lambda x, kw=kw, acc=acc:
                           wrapping(np.prod)(x.astype(acc), **kw))
                kind = "special" if t in FLOATS else "any"
                yield Case("max", [Spec(t, shape, kind)], attrs, t,
                           lambda x, kw=kw: np.max(x, **kw))
                yield Case("min", [Spec(t, shape, kind)], attrs, t,
                           lambda x, kw=kw: np.min(x, **kw))
                if t == "bool":
                    yield Case("any", [Spec(t, shape)], attrs, t,
                               lambda x, kw=kw: np.any(x, **kw))
                    yield Case("all", [Spec(t, shape)], attrs, t,
                               lambda x, kw=kw: np.all(x, **kw))
    for t in FLOATS + INTS + ("bool",):
        kind = "special" if t in FLOATS else "any"
        for shape, axis in (((5, 3), 0), ((5, 3), 1), ((2, 3, 5), 1)):
            yield Case("argmax", [Spec(t, shape, kind)],
                       f"axis = {axis}, keepdim = false, dtype = i64", "i64",
                       lambda x, axis=axis: np.argmax(x, axis))
    yield Case("argmax", [Spec("f32", (5, 3), "special")],
               "keepdim = false, dtype = i32", "i32", np.argmax)


def matmul_cases():
    shapes = [((5, 4), (4, 3)), ((2, 5, 4), (4, 3)), ((2, 5, 4), (2, 4, 3)),
              ((2, 1, 5, 4), (3, 4, 2)), ((5, 4), (2, 4, 3)),
              ((1, 7), (7, 1))]
    for t in FLOATS + INTS:
        for a, b in shapes if t in ("f32", "i64") else shapes[:2]:
            acc = np.float64 if t in FLOATS else np.int64
            yield Case("matmul", [Spec(t, a), Spec(t, b)], "", t,
                       lambda x, y, acc=acc:
                       np.matmul(x.astype(acc), y.astype(acc)))


def pad_like(x, pad, value=0):
    """Pairs for the last axis first; negative numbers crop."""
    for i in range(0, len(pad), 2):
        axis = x.ndim - 1 - i // 2
        lo, hi = pad[i:i + 2]
        keep = [slice(None)] * x.ndim
        keep[axis] = slice(max(-lo, 0), x.shape[axis] - max(-hi, 0))
        pairs = [(0, 0)] * x.ndim
        pairs[axis] = (max(lo, 0), max(hi, 0))
        x = np.pad(x[tuple(keep)], pairs, constant_values=value)
    return x


def movement_cases():
    for t in ("f32", "f16", "f64", "i64", "u8", "bool"):
        yield from moves_of(t)


def moves_of(t):
    zero = "value = 0.0"
    for shape, to in (((6, 2), (12,)), ((5, 4), (5, 2, 2)), ((4, 6), (2, 12)),
                      ((5, 3), (5, 1, 3)), ((12,), (2, 6))):
        yield Case("reshape", [Spec(t, shape)], f"shape = {list(to)}", t,
                   lambda x, to=to: np.reshape(x, to))
    for shape, dims in (((5, 3), [1, 0]), ((2, 3, 5), [0, 2, 1]),
                        ((2, 3, 5), [1, 0, 2]), ((2, 3, 5), [2, 0, 1]),
                        ((1, 6), [1, 0])):
        yield Case("permute", [Spec(t, shape)], f"dims = {dims}", t,
                   lambda x, dims=dims: np.transpose(x, dims))
    for shape, to in (((3,), (5, 3)), ((5, 1), (5, 3)), ((), (5,)),
                      ((1, 6), (2, 3, 6))):
        yield Case("expand", [Spec(t, shape)], f"shape = {list(to)}", t,
                   lambda x, to=to: np.broadcast_to(x, to))
    for axis, a, b, s in ((0, 1, 4, 1), (1, 0, 3, 2), (0, 2, 2, 1),
                          (1, 1, 3, 1), (0, 0, 5, 3)):
        index = [slice(None)] * 2
        index[axis] = slice(a, b, s)
        yield Case("slice", [Spec(t, (5, 3))],
                   f"axis = {axis}, start = {a}, stop = {b}, step = {s}", t,
                   lambda x, index=tuple(index): x[index])
    for shapes, axis in ((((5, 3), (5, 2)), 1), (((5, 3), (1, 3), (2, 3)), 0),
                         (((5, 0), (5, 2)), 1)):
        yield Case("concat", [Spec(t, s) for s in shapes], f"axis = {axis}",
                   t, lambda *x, axis=axis: np.concatenate(x, axis))
    for shape, pad in (((5, 3), [1, 2]), ((5, 3), [0, 0, 2, 1]),
                       ((2, 3, 4), [1, 0, 0, 2, 1, 1]), ((5, 3), [-1, 1]),
                       ((2, 3, 4), [-1, -2, 2, -1])):
        yield Case("pad", [Spec(t, shape)], f"pad = {pad}, {zero}", t,
                   lambda x, pad=pad: pad_like(x, pad))
    for pad in ([1, 2], [2, -1, -3, 0]) if t == "f32" else ():
        yield Case("pad", [Spec(t, (5, 3))], f"pad = {pad}, value = -1.5", t,
                   lambda x, pad=pad: pad_like(x, pad, -1.5))


def scatter_add(x, index, src, axis):
    y = wide(x) if x.dtype.kind == "f" else x.astype(np.int64)
    for at in np.ndindex(*index.shape):
        to = list(at)
        to[axis] = index[at]
        y[tuple(to)] += src[at]
    return y


def gather(x, index, axis):
    y = np.empty(index.shape, x.dtype)
    for at in np.ndindex(*index.shape):
        frm = list(at)
        frm[axis] = index[at]
        y[at] = x[tuple(frm)]
    return y


def index_cases():
    for t in ("f32", "bf16", "f64", "i64", "u8"):
        for shape, index, axis in (((5, 3), (4, 3), 0), ((5, 3), (5, 4), 1),
                                   ((5, 3), (4, 2), 0), ((7,), (5,), 0),
                                   ((2, 5, 3), (2, 4, 3), 1)):
            i = Spec("i64", index, "index", min(shape[axis], 3))
            yield Case("gather", [Spec(t, shape), i], f"axis = {axis}", t,
                       lambda x, i, axis=axis: gather(x, i, axis))
            yield Case("scatter_add", [Spec(t, shape), i, Spec(t, index)],
                       f"axis = {axis}", t,
                       lambda x, i, s, axis=axis: scatter_add(x, i, s, axis))
        for table, ids in (((7, 3), (5,)), ((7, 3), (2, 3)), ((7,), (5,)),
                           ((5, 1, 6), (2,)), ((7, 3), ())):
            i = Spec("i32", ids, "index", table[0])
            yield Case("take", [Spec(t, table), i], "", t,
                       lambda x, i: x[i])
        yield Case("one_hot", [Spec("i64", (5,), "index", 7)],
                   f"n = 7, dtype = {t}", t,
                   lambda i: np.eye(7)[i].astype(int))
        yield Case("one_hot", [Spec("u8", (2, 3), "index", 4)],
                   f"n = 4, dtype = {t}", t,
                   lambda i: np.eye(4)[i].astype(int))


MASK = (1 << 64) - 1


def mix(x):
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb & MASK
    return x ^ (x >> 31)


def philox(stream, index, step):
    k0, k1 = stream & 0xffffffff, stream >> 32
    a, b, c, d = index & 0xffffffff, index >> 32, step, 0
    for _ in range(10):
        p, q = 0xd2511f53 * a, 0xcd9e8d57 * c
        a, c, b, d = ((q >> 32) ^ b ^ k0, (p >> 32) ^ d ^ k1,
                      q & 0xffffffff, p & 0xffffffff)
        k0, k1 = (k0 + 0x9e3779b9) & 0xffffffff, (k1 + 0xbb67ae85) & 0xffffffff
    return a, b


def random_array(shape, key, fn):
    stream = mix((mix(0x9e3779b97f4a7c15) + key) & MASK)
    n = int(np.prod(shape))
    return np.array([fn(*philox(stream, i, FIRST_STEP))
                     for i in range(n)]).reshape(shape)


FIRST_STEP = 0      # of a step's random numbers, as sbp_model counts


def create_cases():
    for t in NUMPY:
        for x in (1 if t == "bool" else 3, 0):
            whole = "" if t in FLOATS else f"int = {x}, "
            yield Case("fill", [], f"shape = [5, 3], value = {float(x)}, "
                       f"{whole}dtype = {t}", t,
                       lambda x=x, t=t: np.full((5, 3), x).astype(NUMPY[t]))
        if t == "bool":
            continue
        for shape, axis in (((7,), 0), ((5, 3), 1), ((5, 3), 0)):
            along = [-1 if i == axis else 1 for i in range(len(shape))]
            yield Case("iota", [], f"shape = {list(shape)}, axis = {axis}, "
                       f"start = 2.0, step = 3.0, dtype = {t}", t,
                       lambda shape=shape, axis=axis, along=along:
                       np.broadcast_to((2 + 3 * np.arange(shape[axis]))
                                       .reshape(along), shape))
    for t in FLOATS:
        yield Case("uniform", [], "shape = [5, 3], low = -1.0, high = 2.0, "
                   f"key = 5, dtype = {t}", t, lambda t=t: random_array(
                       (5, 3), 5, (lambda a, b: -1 + 3 * ((
                           (a << 32 | b) >> 11) * 2.0 ** -53)) if t == "f64"
                       else (lambda a, b: -1 + 3 * ((a >> 8) * 2.0 ** -24))))
        yield Case("normal", [], "shape = [5, 3], mean = 1.0, std = 2.0, "
                   f"key = 6, dtype = {t}", t, lambda: random_array(
                       (5, 3), 6, lambda a, b: 1 + 2 * math.sqrt(
                           -2 * math.log((a + 1) * 2.0 ** -32)) *
                       math.cos(b * (2.0 ** -32 * 6.283185307179586))))
    for t in ("f32", "bool", "i64"):
        yield Case("bernoulli", [], f"shape = [5, 3], p = 0.4, key = 7, "
                   f"dtype = {t}", t, lambda: random_array(
                       (5, 3), 7, lambda a, b:
                       ((a << 32 | b) >> 11) * 2.0 ** -53 < 0.4))


def all_cases():
    return list(itertools.chain(unary_cases(), divisor_cases(), binary_cases(),
                                reduction_cases(), matmul_cases(),
                                movement_cases(), index_cases(),
                                create_cases()))

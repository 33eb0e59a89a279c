"""Values of the random programs: NumPy arrays with a bound of their error.

An integer or bool value is what the program must have. A float one is
computed in float64; `err` bounds, element by element, what the program's own
rounding may add. While every element is a multiple of `quantum` and small
enough, no operation rounds and `err` is 0: such values must agree exactly,
and only they may enter an operator that jumps (floor, a comparison, argmax).
"""
import math

import numpy as np

DIGITS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 50}
SMALLEST = {"f16": 2.0 ** -24, "bf16": 1e-37, "f32": 1e-37, "f64": 1e-300}
LARGEST = {"f16": 3e4, "bf16": 1e30, "f32": 1e30, "f64": 1e200}
INTS = {"bool": np.bool_, "u8": np.uint8, "i8": np.int8, "i32": np.int32,
        "i64": np.int64}
ORDER = ["bool", "u8", "i8", "i32", "i64", "f16", "bf16", "f32", "f64"]
# Partial sums of up to so many ranks are rounded each.
RANKS = 8


class Invalid(Exception):
    """An operation that the oracle cannot or need not judge."""


class T:
    """mag bounds the parts that the value may be the sum of, where it lies as
    P: these are rounded each, and may cancel."""

    def __init__(self, dtype, val, err=0.0, quantum=None, mag=0.0):
        self.dtype = dtype
        top = np.abs(np.asarray(val, np.float64)).max(initial=0)
        self.mag = max(mag, top)
        self.ratio = self.mag / top if top else 1.0
        if dtype in INTS:
            self.val = np.asarray(val).astype(INTS[dtype])
            self.err, self.quantum = 0.0, None
            return
        self.val = np.asarray(val, np.float64)
        self.err = np.broadcast_to(np.asarray(err, np.float64),
                                   self.val.shape)
        self.quantum = quantum
        self.judge()

    def judge(self):
        if not np.isfinite(self.val).all() or not np.isfinite(
                self.err).all():
            raise Invalid("not finite")
        if self.val.size == 0:
            return
        top = np.abs(self.val).max()
        if top > LARGEST[self.dtype]:
            raise Invalid("too large")
        if self.err.max() > 0.03 * top + 1e-3:
            raise Invalid("too inexact")

    @property
    def shape(self):
        return self.val.shape

    @property
    def exact(self):
        return self.dtype in INTS or self.quantum is not None

    def bound(self):
        return np.zeros(self.shape) if self.exact else \
            2 * self.err + SMALLEST[self.dtype]

    def differs(self, got):
        """Where GOT, as a file has it, is wrong."""
        if self.dtype in INTS:
            return got != self.val
        got = got.astype(np.float64)
        with np.errstate(invalid="ignore"):
            return ~(np.abs(got - self.val) <= self.bound())


def is_float(t):
    return t.dtype not in INTS


def rounding(dtype, size):
    """What one rounding to DTYPE adds to numbers of at most SIZE."""
    return np.abs(size) * 2.0 ** -DIGITS[dtype] + SMALLEST[dtype]


def make(dtype, val, err, quantum, size=None, roundings=1, mag=0.0):
    """A float result: exact where it can be. SIZE and MAG bound what was
    rounded on the way."""
    size = np.maximum(np.abs(val) if size is None else size, mag)
    mag = np.max(size, initial=0) if mag else 0.0
    if quantum is not None and quantum > 2.0 ** -100:
        top = np.max(size) if np.size(size) else 0
        if top / quantum < 2.0 ** DIGITS[dtype] and top < LARGEST[dtype] \
                and (dtype != "f16" or quantum >= 2.0 ** -20):
            return T(dtype, val, 0.0, quantum, mag)
    return T(dtype, val, err + roundings * rounding(dtype, size), mag=mag)


def cancels(*ts):
    """Whether parts of these may be larger than they are."""
    return any(t.mag > 0 and t.ratio > 1 for t in ts)


def both(a, b):
    return None if a.quantum is None or b.quantum is None else \
        min(a.quantum, b.quantum)


def need_exact(*ts):
    if not all(t.exact for t in ts):
        raise Invalid("jumps")


# ---- types ----

def promoted(a, b):
    """The dtype of a and b together."""
    if a == b:
        return a
    if {a, b} == {"u8", "i8"}:
        return "i32"
    if {a, b} == {"f16", "bf16"}:
        return "f32"
    a, b = sorted((a, b), key=ORDER.index)
    return "f32" if a == "i64" and b in ("f32",) else b


def cast(x, dtype):
    if x.dtype == dtype:
        return x
    if dtype == "bool":
        need_exact(x)
        return T("bool", x.val != 0)
    if dtype in INTS:
        need_exact(x)
        return T(dtype, saturated(x, dtype))
    if x.dtype in INTS:
        val = x.val.astype(np.float64)
        return make(dtype, val, 0.0, 1.0)
    return make(dtype, x.val, x.err, x.quantum,
                mag=x.mag if cancels(x) else 0.0)


def saturated(x, dtype):
    if x.dtype in INTS:
        return x.val.astype(INTS[dtype])
    info = np.iinfo(INTS[dtype])
    if x.val.size and np.abs(x.val).max() > 2.0 ** 60:
        raise Invalid("a large one")
    whole = np.trunc(x.val).astype(np.int64)
    return np.clip(whole, info.min, info.max).astype(INTS[dtype])


def wide(x):
    return cast(x, "f32") if x.dtype in ("f16", "bf16") else x


def like(x, number):
    """A literal beside x."""
    if is_float(x):
        return make(x.dtype, np.float64(number), 0.0,
                    2.0 ** -8 if number * 256 == int(number * 256) else None)
    return T(x.dtype, number)


# ---- elementwise ----

def ints(fn, *ts):
    with np.errstate(all="ignore"):
        return T(ts[0].dtype, fn(*(t.val for t in ts)))


def add(a, b):
    if not is_float(a):
        return ints(np.add, a, b)
    return make(a.dtype, a.val + b.val, a.err + b.err, both(a, b),
                np.abs(a.val) + np.abs(b.val),
                mag=a.mag + b.mag if cancels(a, b) else 0.0)


def sub(a, b):
    return add(a, neg(b)) if is_float(a) else ints(np.subtract, a, b)


def mul(a, b):
    if not is_float(a):
        return ints(np.multiply, a, b)
    q = None if both(a, b) is None else a.quantum * b.quantum
    return make(a.dtype, a.val * b.val, np.abs(a.val) * b.err
                + np.abs(b.val) * a.err + a.err * b.err, q,
                mag=a.mag * b.mag if cancels(a, b) else 0.0)


def div(a, b):
    if not is_float(a):
        a, b = cast(a, "f32"), cast(b, "f32")
    low = np.abs(b.val) - b.err
    if b.val.size and low.min() <= 0.05:
        raise Invalid("a small divisor")
    val = a.val / b.val
    return make(a.dtype, val, (a.err + np.abs(val) * b.err) / low, None,
                mag=a.mag / low.min(initial=np.inf) if cancels(a) else 0.0)


def neg(a):
    if not is_float(a):
        return ints(np.negative, a)
    return T(a.dtype, -a.val, a.err, a.quantum, a.mag)


def absolute(a):
    if not is_float(a):
        return ints(np.abs, a)
    return T(a.dtype, np.abs(a.val), a.err, a.quantum)


def select(fn):
    """maximum or minimum"""
    def apply(a, b):
        if not is_float(a):
            return ints(fn, a, b)
        return T(a.dtype, fn(a.val, b.val), np.maximum(a.err, b.err),
                 both(a, b))
    return apply


maximum, minimum = select(np.maximum), select(np.minimum)


def relu(a):
    if not is_float(a):
        return ints(lambda x: np.where(x < 0, x.dtype.type(0), x), a)
    return T(a.dtype, np.maximum(a.val, 0), a.err, a.quantum)


def smooth(fn, low=None, high=None, steep=None):
    """A map; its error by its values beside. STEEP: its greatest slope."""
    def apply(a):
        if not is_float(a):
            raise Invalid("floats only")
        if a.val.size and ((low is not None and (a.val - a.err).min() < low)
                           or (high is not None
                               and (a.val + a.err).max() > high)):
            raise Invalid("outside")
        val = fn(a.val)
        if steep is not None:
            err = steep * a.err
        else:
            err = 1.5 * np.maximum(np.abs(fn(a.val + a.err) - val),
                                   np.abs(fn(a.val - a.err) - val))
        return make(a.dtype, val, err, None, np.abs(val), 3)
    return apply


erf = np.vectorize(math.erf, otypes=[np.float64])
UNARY = {
    "exp": smooth(np.exp, -60, 8),
    "log": smooth(np.log, 0.1),
    "log1p": smooth(np.log1p, -0.5),
    "sqrt": smooth(np.sqrt, 0.1),
    "rsqrt": smooth(lambda x: 1 / np.sqrt(x), 0.1),
    "sin": smooth(np.sin, -50, 50, 1),
    "cos": smooth(np.cos, -50, 50, 1),
    "tanh": smooth(np.tanh),
    "sigmoid": smooth(lambda x: 1 / (1 + np.exp(-x)), -60, 60),
    "erf": smooth(erf, -50, 50, 1.13),
}


def jump(fn):
    def apply(a):
        need_exact(a)
        if not is_float(a):
            return T(a.dtype, fn(a.val))
        return T(a.dtype, fn(a.val), 0.0, min(a.quantum, 1.0))
    return apply


def int_same(fn):
    def apply(a):
        return a if not is_float(a) else jump(fn)(a)
    return apply


UNARY.update(neg=neg, abs=absolute, relu=relu, floor=int_same(np.floor),
             ceil=int_same(np.ceil), round=int_same(np.rint),
             sign=jump(np.sign), square=lambda a: mul(a, a))


def compare(fn):
    def apply(a, b):
        need_exact(a, b)
        return T("bool", fn(a.val, b.val))
    return apply


COMPARE = {"==": compare(np.equal), "!=": compare(np.not_equal),
           "<": compare(np.less), "<=": compare(np.less_equal),
           ">": compare(np.greater), ">=": compare(np.greater_equal)}


def where(c, a, b):
    val = np.where(c.val, a.val, b.val)
    if not is_float(a):
        return T(a.dtype, val)
    return T(a.dtype, val, np.where(c.val, a.err, b.err), both(a, b),
             max(a.mag, b.mag))


def erf_gelu(x):
    u = wide(x)
    half = mul(like(u, 0.5), u)
    root = T(u.dtype, u.val * 0.5 ** 0.5, u.err + rounding(u.dtype, u.val))
    return cast(mul(half, add(like(u, 1), UNARY["erf"](root))), x.dtype)


def silu(x):
    u = wide(x)
    return cast(mul(u, UNARY["sigmoid"](u)), x.dtype)


# ---- reductions ----

def total(x, axis, keep):
    if not is_float(x):
        return T("i64", np.sum(x.val, axis, np.int64, keepdims=keep))
    val = np.sum(x.val, axis, keepdims=keep)
    size = np.sum(np.abs(x.val), axis, keepdims=keep)
    n = x.val.size // max(val.size, 1)
    steps = RANKS + 2 if x.dtype in ("f16", "bf16") else n + RANKS
    top = np.max(size, initial=0)
    return make(x.dtype, val, np.sum(x.err, axis, keepdims=keep), x.quantum,
                size, steps, max(top, n * x.mag) if cancels(x) else top)


def product(x, axis, keep):
    if not is_float(x):
        with np.errstate(all="ignore"):
            return T("i64", np.prod(x.val, axis, np.int64, keepdims=keep))
    need_exact(x)
    n = x.val.size
    top = np.maximum(np.abs(x.val), 1)
    size = np.prod(top, axis, keepdims=keep)
    quantum = min(x.quantum, 1.0) ** n if n <= 12 else None
    return make(x.dtype, np.prod(x.val, axis, keepdims=keep), 0.0,
                quantum, size, n + 2)


def extreme(fn):
    def apply(x, axis, keep):
        if x.val.size == 0:
            raise Invalid("nothing")
        val = fn(x.val, axis, keepdims=keep)
        if not is_float(x):
            return T(x.dtype, val)
        return T(x.dtype, val, np.max(x.err, axis, keepdims=keep), x.quantum)
    return apply


greatest, least = extreme(np.max), extreme(np.min)


def mean(x, axis, keep):
    u = wide(x)
    s = total(u, axis, keep)
    n = x.val.size // max(s.val.size, 1)
    if n == 0 or x.val.size == 0:
        raise Invalid("of nothing")
    y = make(u.dtype, s.val / n, s.err / n, None,
             mag=s.mag / n if cancels(s) else 0.0)
    return cast(y, x.dtype)


def var(x, axis, keep, correction):
    u = wide(x)
    m = mean(u, axis, True)
    d = sub(u, m)
    s = total(mul(d, d), axis, keep)
    n = x.val.size // max(s.val.size, 1) - correction
    if n <= 0:
        raise Invalid("of nothing")
    return cast(make(u.dtype, s.val / n, s.err / n, None), x.dtype)


def argmax(x, axis, keep):
    need_exact(x)
    if x.val.size == 0:
        raise Invalid("nothing")
    if axis is None:
        return T("i64", np.argmax(x.val))
    return T("i64", np.argmax(x.val, axis=axis, keepdims=keep))


def softmax(x, axis):
    if x.val.size == 0:
        return x
    u = wide(x)
    e = UNARY["exp"](sub(u, greatest(u, axis, True)))
    return cast(div(e, total(e, axis, True)), x.dtype)


def log_softmax(x, axis):
    if x.val.size == 0:
        return x
    u = wide(x)
    z = sub(u, greatest(u, axis, True))
    s = UNARY["log"](total(UNARY["exp"](z), axis, True))
    return cast(sub(z, s), x.dtype)


def logsumexp(x, axis, keep):
    u = wide(x)
    m = greatest(u, axis, True)
    s = UNARY["log"](total(UNARY["exp"](sub(u, m)), axis, True))
    y = add(s, m)
    if not keep:
        y = T(y.dtype, np.squeeze(y.val, axis), np.squeeze(y.err, axis))
    return cast(y, x.dtype)


def layer_norm(x):
    u = wide(x)
    d = sub(u, mean(u, -1, True))
    v = mean(mul(d, d), -1, True)
    return cast(mul(d, UNARY["rsqrt"](v)), x.dtype)


# ---- linear algebra ----

def matmul(a, b):
    if not is_float(a):
        with np.errstate(all="ignore"):
            return ints(np.matmul, a, b)
    size = np.matmul(np.abs(a.val), np.abs(b.val))
    err = np.matmul(np.abs(a.val), b.err) + np.matmul(
        a.err, np.abs(b.val)) + np.matmul(a.err, b.err)
    q = None if both(a, b) is None else a.quantum * b.quantum
    half = a.dtype in ("f16", "bf16")
    top = np.max(size, initial=0)
    if cancels(a, b):
        top = max(top, a.shape[-1] * a.mag * b.mag)
    return make(a.dtype, np.matmul(a.val, b.val), err, q, size,
                RANKS + 2 if half else a.shape[-1] + RANKS, top)


def attention(q, k, v, causal):
    scale = 1 / math.sqrt(q.shape[-1])
    u = wide(q)
    u = make(u.dtype, u.val * scale, u.err * scale, None)
    t = wide(k)
    t = move(lambda x: np.swapaxes(x, -1, -2))(t)
    s = matmul(u, t)
    if causal:
        low = np.tril(np.ones(s.shape[-2:], bool))
        s = T(s.dtype, np.where(low, s.val, -40.0),
              np.where(low, s.err, 0.0))
        top = greatest(s, -1, True)
        e = UNARY["exp"](sub(s, top))
        e = T(e.dtype, np.where(low, e.val, 0.0), np.where(low, e.err, 0.0))
        p = div(e, total(e, -1, True))
    else:
        p = softmax(s, -1)
    return cast(matmul(p, wide(v)), v.dtype)


# ---- movement ----

def move(fn):
    """What only moves elements: FN is applied to the values and errors."""
    def apply(*xs):
        x = xs[0]
        if not is_float(x):
            return T(x.dtype, fn(*(t.val for t in xs)))
        q = x.quantum
        for t in xs[1:]:
            q = None if q is None or t.quantum is None else \
                min(q, t.quantum)
        return T(x.dtype, fn(*(t.val for t in xs)),
                 fn(*(t.err for t in xs)), q, max(t.mag for t in xs))
    return apply


def scatter_add(x, axis, index, src):
    def places():
        grid = list(np.indices(index.shape))
        grid[axis] = index.val
        return tuple(grid)
    part = tuple(slice(0, n) for n in index.shape)
    val = x.val.copy()
    np.add.at(val, places(), src.val[part])
    if not is_float(x):
        return T(x.dtype, val)
    err, size = x.err.copy(), np.abs(x.val)
    np.add.at(err, places(), src.err[part])
    np.add.at(size, places(), np.abs(src.val[part]))
    n = index.shape[axis] if index.shape else 1
    return make(x.dtype, val, err, both(x, src), size, n + RANKS,
                x.mag + n * src.mag if cancels(x, src) else 0.0)

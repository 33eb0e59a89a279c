#!/usr/bin/python3
"""Every operator, every dtype, every signature that it claims, against NumPy.

usage: oracle_ops_all.py [-v] [-k WORD] [BIN]

Programs are written in the compiler's own graph text, so that each operand
has the distribution of one signature (`sbpc --list-signatures` lists them) and
the result is asked for in the signature's own. Operands are constants, one
piece a rank; P operands are parts of both signs. Results are read as --show
prints them, piece by piece: shapes, copies that must be equal and values are
all checked. BIN has sbpc and sbprun; $SBPC_BIN by default.
"""
import itertools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

TIMEOUT = 300
PER_PROGRAM = 250
MESHES = [(1,), (2,), (3,), (2, 2)]
HALF = ("f16", "bf16")
INTS = ("u8", "i8", "i32", "i64")
FLOATS = ("f16", "bf16", "f32", "f64")
NUMPY = {"bool": np.bool_, "u8": np.uint8, "i8": np.int8, "i32": np.int32,
         "i64": np.int64, "f16": np.float32, "bf16": np.float32,
         "f32": np.float32, "f64": np.float64}
# relative, absolute
CLOSE = {"f16": (2e-3, 1e-3), "bf16": (2e-2, 2e-2), "f32": (4e-6, 2e-6),
         "f64": (1e-13, 1e-13)}
COMBINE = {"P": np.add, "P(max)": np.maximum, "P(min)": np.minimum}


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


def element_text(x, dtype):
    if dtype == "f16":
        return f"0x{int(np.float16(x).view(np.uint16)):04x}"
    if dtype == "bf16":
        return f"0x{int(bf16_bits(np.float32(x))):04x}"
    if dtype == "f32":
        if np.isnan(x):
            return "0x7fc00000"
        return repr(float(x))
    if dtype == "f64":
        if np.isnan(x):
            return "0x7ff8000000000000"
        return repr(float(x))
    return str(int(x))


def data_text(a, dtype):
    return "[" + ", ".join(element_text(x, dtype) for x in a.ravel()) + "]"


# ---- distributions ----

def split(lo, hi, parts, i):
    q, r = divmod(hi - lo, parts)
    lo += q * i + min(i, r)
    return lo, lo + q + (i < r)


def piece(shape, mesh, terms, coord):
    axes = [(0, n) for n in shape]
    for k, term in enumerate(terms):
        if term[0] == "S":
            axis = int(term[2])
            axes[axis] = split(*axes[axis], mesh[k], coord[k])
    return tuple(slice(lo, hi) for lo, hi in axes)


def reduce_parts(parts, terms, dtype):
    """Mesh axes first; the last partial axis is reduced first."""
    for k in reversed(range(len(terms))):
        if terms[k][0] == "P":
            parts = COMBINE[terms[k]].reduce(parts, axis=k, keepdims=True)
            parts = rounded(parts, dtype)
    return parts


class Tensor:
    """A constant: its parts by device, and the logical value."""

    def __init__(self, spec, mesh, terms, rng):
        self.dtype, self.shape, self.terms = spec.dtype, spec.shape, terms
        room = tuple(n if t[0] == "P" else 1 for n, t in zip(mesh, terms))
        partial = any(t[0] == "P" for t in terms)
        parts = spec.make(rng, room + spec.shape, partial)
        self.parts = np.broadcast_to(parts, mesh + spec.shape)
        with np.errstate(all="ignore"):
            self.value = reduce_parts(parts, terms, spec.dtype)
        self.value = self.value.reshape(spec.shape)

    def text(self, mesh):
        pieces = [data_text(self.parts[c][piece(self.shape, mesh, self.terms,
                                                c)], self.dtype)
                  for c in np.ndindex(*mesh)]
        return "local(" + ", ".join(pieces) + ")"


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


def numpy_max(a, b):
    return np.maximum(a, b)


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


def pad_pairs(pad, rank):
    pairs = [(0, 0)] * rank
    for i in range(0, len(pad), 2):
        pairs[rank - 1 - i // 2] = (pad[i], pad[i + 1])
    return pairs


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
                       ((2, 3, 4), [1, 0, 0, 2, 1, 1])):
        pairs = pad_pairs(pad, len(shape))
        yield Case("pad", [Spec(t, shape)], f"pad = {pad}, {zero}", t,
                   lambda x, pairs=pairs: np.pad(x, pairs))
    if t == "f32":
        yield Case("pad", [Spec(t, (5, 3))], "pad = [1, 2], value = -1.5", t,
                   lambda x: np.pad(x, [(0, 0), (1, 2)],
                                    constant_values=-1.5))


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


# Leaves and what passes make have no element of their own to compute.
NO_CASE = {"input", "param", "state", "constant", "to", "move", "kernel"}


def missing(cases):
    """Operators of the table that have no case."""
    source = os.environ.get("SBPC_SOURCE") or os.path.dirname(
        os.path.dirname(os.path.abspath(__file__)))
    with open(f"{source}/ir/ops.def") as f:
        names = set(re.findall(r"^OP\((\w+)", f.read(), re.M))
    return names - NO_CASE - {c.op for c in cases}


# ---- programs ----

def placement_line(mesh):
    ranks = ", ".join(map(str, range(int(np.prod(mesh)))))
    return f"  placement p = cpu[{ranks}] as [{', '.join(map(str, mesh))}]"


def run(command):
    done = subprocess.run(command, capture_output=True, text=True,
                          timeout=TIMEOUT)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)[:200]}: exit "
                           f"{done.returncode}\n{done.stderr[:300]}")
    return done.stdout


def number_line(case, at):
    t, x, _ = case.number
    whole = f"int = {int(x)}, " if t in INTS else ""
    return (f"  %{at}: {t}[] = fill() {{shape = [], value = {x}, "
            f"{whole}dtype = {t}}} on p")


def operands_of(case, names, number):
    if case.number is None:
        return names
    return [number] + names if case.number[2] else names + [number]


def find_signatures(cases, folder, sbpc):
    """What the compiler says that each case may do."""
    lines, ids, at = ["graph s \"s.sbp\" {", placement_line((1,)), "  on p"], \
        {}, 0
    for case in cases:
        names = []
        for spec in case.ins:
            lines.append(f"  %{at}: {spec.type()} = input() on p")
            names.append(f"%{at}")
            at += 1
        if case.number:
            lines.append(number_line(case, at))
            at += 1
        lines.append(case.node(f"%{at}", operands_of(case, names,
                                                     f"%{at - 1}")))
        ids[at] = case
        at += 1
    path = f"{folder}/signatures.ir"
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n}\n")
    for line in run([sbpc, "--list-signatures", path]).splitlines():
        m = re.match(r"(\d+) \w+:(.*)->(.*)$", line)
        case = ids.get(int(m.group(1)))
        if case is None:
            continue
        ins = [s.strip() for s in m.group(2).split(",") if s.strip()]
        if case.number:
            left = case.number[2]
            if ins[0 if left else 1] != "B":
                continue
            ins = ins[1:] if left else ins[:1]
        case.sigs.append((ins, m.group(3).strip()))


def combinations(case, mesh, rng):
    """Signatures for all mesh axes at once: each alone, beside B and beside
    itself, and some that chance picks."""
    if len(mesh) == 1:
        return [[s] for s in case.sigs]
    b, found = case.sigs[0], []
    for s in case.sigs:
        found += [[s, b], [b, s], [s, s]]
    for _ in range(4):
        found.append([case.sigs[i]
                      for i in rng.integers(0, len(case.sigs), 2)])
    unique = []
    for f in found:
        if f not in unique:
            unique.append(f)
    return unique


class Instance:
    def __init__(self, case, sigs, mesh, rng, name):
        self.case, self.mesh, self.name = case, mesh, name
        self.tensors = [Tensor(spec, mesh, [s[0][i] for s in sigs], rng)
                        for i, spec in enumerate(case.ins)]
        self.terms = [s[1] for s in sigs]
        with np.errstate(all="ignore"):
            want = case.fn(*[t.value for t in self.tensors])
            self.want = rounded(want, case.out)

    def lines(self, at):
        out, names, case = [], [], self.case
        for t in self.tensors:
            out.append(f"  %{at}: {type_text(t.dtype, t.shape)} "
                       f"p({', '.join(t.terms)}) = constant() on p init data "
                       f"{t.text(self.mesh)}")
            names.append(f"%{at}")
            at += 1
        if case.number:
            out.append(number_line(case, at))
            at += 1
        out.append(case.node(f"%{at}", operands_of(case, names,
                                                   f"%{at - 1}")))
        out.append(f"  %{at + 1} {self.name}: "
                   f"{type_text(case.out, case.shape)} "
                   f"p({', '.join(self.terms)}) = to(%{at}) on p")
        return out, at + 2

    def label(self):
        ins = "; ".join(f"({', '.join(t.terms)})" for t in self.tensors)
        return f"{self.mesh} {self.case.name}: {ins} -> " \
               f"({', '.join(self.terms)})"


def read_show(text):
    """name -> rank -> (local shape, numbers)"""
    found, current = {}, None
    head = re.compile(r"\[rank (\d+)\] (\S+) \w+\[([^\]]*)\] of ")
    for line in text.splitlines():
        m = head.match(line)
        if m:
            shape = tuple(int(x) for x in m.group(3).split(",") if x.strip())
            current = (shape, [])
            found.setdefault(m.group(2), {})[int(m.group(1))] = current
        elif line.strip():
            current[1].extend(line.split())
    return found


def parse(word):
    if word in ("true", "false"):
        return word == "true"
    return float(word) if re.search(r"[.einfa]", word) else int(word)


def equal(got, want, dtype, parts):
    """PARTS of a sum are rounded each; they may be larger than it."""
    if dtype not in FLOATS:
        return np.array_equal(got, want)
    rel, absolute = CLOSE[dtype]
    finite = parts[np.isfinite(parts)]
    if finite.size:
        absolute = max(absolute, rel * float(np.max(np.abs(finite))))
    return np.allclose(wide(got), wide(want), rel, absolute, equal_nan=True)


def problem_of(inst, shown):
    """None, or what is wrong."""
    case, mesh = inst.case, inst.mesh
    kind = NUMPY[case.out]
    parts = np.zeros(mesh + case.shape, kind)
    for rank, coord in enumerate(np.ndindex(*mesh)):
        own = piece(case.shape, mesh, inst.terms, coord)
        want_shape = parts[coord][own].shape
        if rank not in shown:
            return f"rank {rank} shows nothing"
        shape, words = shown[rank]
        if shape != want_shape:
            return f"rank {rank} has {shape}, not {want_shape}"
        values = np.array([parse(w) for w in words], dtype=kind)
        parts[coord + (...,)][own] = values.reshape(shape)
    partial = any(t[0] == "P" for t in inst.terms)
    with np.errstate(all="ignore"):
        whole = reduce_parts(parts, inst.terms, case.out)
    for coord in np.ndindex(*mesh):
        mine = tuple(c if n > 1 else 0
                     for c, n in zip(coord, whole.shape))
        own = piece(case.shape, mesh, inst.terms, coord)
        got, want = whole[mine][own], inst.want[own]
        if not equal(got, want, case.out, parts if partial else parts[:0]):
            return f"at {coord}: {got.tolist()}, not {want.tolist()}"
    return None


class Tester:
    def __init__(self, folder, bin_folder, verbose):
        self.folder, self.verbose = folder, verbose
        self.sbpc = f"{bin_folder}/sbpc"
        self.sbprun = f"{bin_folder}/sbprun"
        self.passed = self.failed = 0

    def report(self, inst, problem):
        if problem is None:
            self.passed += 1
            if self.verbose:
                print("ok", inst.label())
            return
        self.failed += 1
        if self.failed <= 20:
            print(f"FAILED {inst.label()}\n  {problem[:400]}")

    def program(self, instances, mesh):
        lines = ["graph t \"t.sbp\" {", placement_line(mesh), "  on p"]
        at = 0
        for inst in instances:
            more, at = inst.lines(at)
            lines += more
        for inst, n in zip(instances, range(len(instances))):
            to = [x for x in lines if f" {inst.name}: " in x][-1]
            lines.append(f"  output {inst.name} = {to.split()[0]}")
        path = f"{self.folder}/t.ir"
        with open(path, "w") as f:
            f.write("\n".join(lines) + "\n}\n")
        exe = f"{self.folder}/t"
        if len(mesh) == 1 and instances[0].case.op != "reshape":
            self.converts(path)
        run([self.sbpc, path, "-o", exe, "-O1"])
        names = ",".join(i.name for i in instances)
        return run([self.sbprun, "-n", str(int(np.prod(mesh))), exe,
                    "--show", names])

    def converts(self, path):
        """Each operator must run on its operands as they lie. (Whether a
        reshape may depends on the pieces, so these are not asked.)"""
        boxing = json.loads(run([self.sbpc, path, "--emit=plan-json"]))[
            "boxing"]
        if boxing:
            raise RuntimeError(f"converts: {boxing[0]}")

    def halves(self, instances, mesh, problem):
        """Finds the instances that a program fails on."""
        failed, half = self.failed, len(instances) // 2
        if half == 0:
            self.report(instances[0], problem)
            return
        self.test(instances[:half], mesh)
        self.test(instances[half:], mesh)
        if self.failed == failed:
            print(f"FAILED {mesh}: only together: {problem[:400]}")
            self.failed += 1

    def test(self, instances, mesh):
        try:
            shown = read_show(self.program(instances, mesh))
        except (RuntimeError, subprocess.TimeoutExpired) as e:
            self.halves(instances, mesh, str(e))
            return
        for inst in instances:
            self.report(inst, problem_of(inst, shown.get(inst.name, {})))


def main():
    args = sys.argv[1:]
    verbose = "-v" in args
    word = args[args.index("-k") + 1] if "-k" in args else ""
    rest = [a for i, a in enumerate(args)
            if a not in ("-v", "-k") and (i == 0 or args[i - 1] != "-k")]
    bin_folder = rest[0] if rest else os.environ["SBPC_BIN"]
    folder = tempfile.mkdtemp(prefix="ops_all.")
    tester = Tester(folder, bin_folder, verbose)
    rng = np.random.default_rng(1)
    try:
        cases = all_cases()
        for op in sorted(missing(cases)):
            print(f"FAILED {op}: no case")
            tester.failed += 1
        cases = [c for c in cases if word in c.name]
        find_signatures(cases, folder, tester.sbpc)
        for case in cases:
            if not case.sigs:
                print(f"FAILED {case.name}: no signature")
                tester.failed += 1
        for mesh in MESHES:
            instances = [Instance(c, s, mesh, rng, f"o{i}_{k}")
                         for i, c in enumerate(cases)
                         for k, s in enumerate(combinations(c, mesh, rng))]
            for group in (False, True):
                chosen = [i for i in instances
                          if (i.case.op == "reshape") == group]
                for i in range(0, len(chosen), PER_PROGRAM):
                    tester.test(chosen[i:i + PER_PROGRAM], mesh)
    finally:
        shutil.rmtree(folder)
    print(f"ops_all: {tester.passed} passed, {tester.failed} failed")
    return tester.failed != 0


if __name__ == "__main__":
    sys.exit(main())

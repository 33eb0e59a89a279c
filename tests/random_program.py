"""Random programs: statements, their text, their making and their shrinking.

A program is a list of statements, each of which has a value; operands are
statements before it. Nothing here runs anything.
"""
import copy
import re

import numpy as np

import random_values as rv
from oracle_ops_all import COMBINE, element_text, piece, reduce_parts
from random_values import Invalid, T

DTYPES = ["f32"] * 6 + ["i32"] * 2 + ["i64", "f64", "f16", "bf16", "u8", "i8",
                                      "bool"]
EXTENTS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 13] * 3 + [0, 17]
LARGE = [1, 2, 17, 33, 64, 100, 257, 300]
MOST = 2000
# what makes tensors by itself
MADE_HERE = "arange|layer_norm|tril|causal|for i"


class Place:
    def __init__(self, name, ranks, mesh):
        self.name, self.ranks, self.mesh = name, ranks, tuple(mesh)

    def text(self, single):
        mesh = (1,) * len(self.mesh) if single else self.mesh
        ranks = [0] if single else self.ranks
        return f"placement {self.name} = " \
               f"cpu{nested(np.array(ranks).reshape(mesh), str)}"


def nested(a, fn):
    if a.ndim == 0:
        return fn(a[()])
    return "[" + ", ".join(nested(x, fn) for x in a) + "]"


def element(dtype):
    if dtype == "bool":
        return lambda x: "true" if x else "false"
    if dtype in rv.INTS:
        return lambda x: str(int(x))
    return lambda x: repr(float(x)) if "inf" not in repr(float(x)) else str(x)


class Stmt:
    """args: (index, annotation or None); note: the terms asked for; fn makes
    its T of the operands' or, with none, of the program's current value."""

    def __init__(self, kind, name, place, text="", args=(), fn=None):
        self.kind, self.name, self.place = kind, name, place
        self.text, self.args, self.fn = text, list(args), fn
        self.note = self.data = self.parts = self.update = None
        self.dtype = self.shape = None
        self.output = False


def terms_text(terms):
    return "(" + ", ".join(terms) + ")"


class Program:
    def __init__(self, places, world):
        self.places, self.world, self.stmts = places, world, []
        self.steps, self.result = 1, {}

    def outputs(self):
        return [s for s in self.stmts if s.output]

    def inputs(self):
        return [s for s in self.stmts if s.kind == "input"]

    # ---- text ----

    def arg(self, i, note, place):
        s = self.stmts[i]
        if note is None and s.place == place:
            return s.name
        on = self.places[place].name if place else ""
        if not note and not place:
            on = self.places[0].name
        return f"({s.name} on {on}{terms_text(note) if note else ''})"

    def line(self, s, single):
        head = f"{s.kind} {s.name}: {s.dtype}" \
               f"[{', '.join(map(str, s.shape))}]" if s.kind != "op" else ""
        on = ""
        if s.note or (s.kind != "op" and s.place):
            name = self.places[s.place].name if s.place else ""
            on = f" on {name}{terms_text(s.note) if s.note else ''}"
        if s.kind == "op":
            args = [self.arg(i, n, s.place) for i, n in s.args]
            text = f"{s.name} = {s.text.format(*args)}{on}"
            # its tensors have the enclosing placement
            if s.place and re.search(MADE_HERE, text):
                text = f"on {self.places[s.place].name} {{ {text} }}"
            return text
        if s.kind == "input":
            return head + on
        if s.parts is not None and not single:
            mesh = self.places[s.place].mesh
            pieces = [nested(s.parts[c][piece(s.shape, mesh, s.note, c)],
                             element(s.dtype)) for c in np.ndindex(*mesh)]
            return f"{head}{on} = local({', '.join(pieces)})"
        return f"{head}{on} = {nested(s.data, element(s.dtype))}"

    def text(self, single=False):
        lines = [p.text(single) for p in self.places]
        lines += ["", f"model m on {self.places[0].name} {{"]
        for s in self.stmts:
            lines.append("  " + self.line(s, single))
        for s in self.stmts:
            if s.kind == "state" and s.update is not None:
                lines.append(f"  update {s.name} = "
                             f"{self.arg(s.update, None, s.place)}")
            if s.output:
                lines.append(f"  output {s.name}")
        return "\n".join(lines + ["}", ""])

    # ---- values ----

    def evaluate(self):
        """Fills result with the values of the last step."""
        now = {s.name: start(s) for s in self.stmts if s.kind == "state"}
        for _ in range(self.steps):
            found = []
            for s in self.stmts:
                if s.kind == "op":
                    t = s.fn(*(found[i] for i, _ in s.args))
                else:
                    t = now[s.name] if s.kind == "state" else start(s)
                found.append(t)
            for s in self.stmts:
                if s.kind == "state" and s.update is not None:
                    now[s.name] = found[s.update]
        self.result = {s.name: t for s, t in zip(self.stmts, found)}
        return found


def start(s):
    """The value of a leaf: small multiples of 1/8, so that it is exact."""
    quantum, mag = None, 0.0
    if s.dtype not in rv.INTS:
        quantum = 0.125 if s.dtype != "bf16" else 0.25
        if not (s.data * 8 == np.round(s.data * 8)).all():
            return T(s.dtype, s.data, 0.0, None)
        if s.parts is not None:
            mag = rv.RANKS * np.abs(s.parts).max(initial=0)
    return T(s.dtype, s.data, 0.0, quantum, mag)


# ---- making ----

class Maker:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.large = self.chance(0.2)
        self.p = self.placements()
        self.values = []

    def chance(self, x):
        return self.rng.random() < x

    def pick(self, xs):
        return xs[int(self.rng.integers(len(xs)))]

    def number(self, lo, hi):
        return int(self.rng.integers(lo, hi + 1))

    def mesh(self, n):
        """N ranks as a mesh of one to three axes."""
        mesh = []
        while n > 1 and len(mesh) < 2:
            k = self.pick([d for d in range(1, n + 1) if n % d == 0])
            mesh.append(k)
            n //= k
            if self.chance(0.4):
                break
        return mesh + [n] if n > 1 or not mesh else mesh

    def placements(self):
        world = self.pick([1, 2, 2, 3, 4, 4, 4, 5, 6, 6, 8, 12])
        ranks = list(range(world))
        if self.chance(0.3):
            self.rng.shuffle(ranks)
        places = [Place("p0", [int(r) for r in ranks], self.mesh(world))]
        while self.chance(0.35) and len(places) < 3:
            n = self.number(1, world)
            own = self.rng.permutation(world)[:n]
            if self.chance(0.6):
                own = np.sort(own)
            places.append(Place(f"p{len(places)}", [int(r) for r in own],
                                self.mesh(n)))
        return Program(places, world)

    def terms(self, place, dtype, shape, partial=True):
        out = []
        for _ in self.p.places[place].mesh:
            kinds = ["B", "B"] + ["S"] * 4 * bool(shape)
            if partial and dtype != "bool":
                kinds += ["P", "P(max)", "P(min)"] if self.chance(
                    0.3) else ["P"]
            k = self.pick(kinds)
            out.append(f"S({self.number(0, len(shape) - 1)})" if k == "S"
                       else k)
        return out

    # ---- leaves ----

    def data(self, dtype, shape, low=None, high=None):
        if dtype == "bool":
            return self.rng.integers(0, 2, shape).astype(bool)
        if dtype in rv.INTS:
            lo = (0 if dtype == "u8" else -6) if low is None else low
            return np.asarray(self.rng.integers(
                lo, 7 if high is None else high, shape)).astype(
                    rv.INTS[dtype])
        grain = self.pick([1, 2, 4]) if dtype == "bf16" else \
            self.pick([1, 2, 8])
        return np.asarray(self.rng.integers(-4 * grain, 4 * grain + 1,
                                            shape)) / grain

    def append(self, s, t):
        s.dtype, s.shape = t.dtype, t.shape
        self.p.stmts.append(s)
        self.values.append(t)
        return len(self.values) - 1

    def leaf(self, dtype, shape, data=None, place=None, plain=False):
        place = self.number(0, len(self.p.places) - 1) if place is None \
            else place
        kinds = ["const"] * 3
        if np.prod(shape, dtype=int) > 500:
            kinds, dtype = ["input"], "f32" if dtype == "bf16" else dtype
        elif not plain:
            kinds += ["state"] * (data is None) + \
                ["input"] * (dtype != "bf16")
        s = Stmt(self.pick(kinds), f"v{len(self.values)}", place)
        s.dtype, s.shape = dtype, tuple(shape)
        s.data = self.data(dtype, s.shape) if data is None else data
        if self.chance(0.7):
            s.note = self.terms(place, dtype, s.shape,
                                s.kind != "state" and data is None)
        if s.kind == "const" and s.note and self.chance(0.5):
            self.local(s)
        return self.append(s, start(s))

    def local(self, s):
        """A piece for each rank: the parts of what is partial."""
        mesh = self.p.places[s.place].mesh
        partial = [t[0] == "P" for t in s.note]
        room = tuple(n if p else 1 for n, p in zip(mesh, partial))
        if any(partial):
            parts = np.round(self.data(s.dtype, room + s.shape))
            if s.dtype in rv.INTS:
                parts = parts.astype(rv.INTS[s.dtype])
        else:
            parts = np.asarray(s.data).reshape(room + s.shape)
        with np.errstate(all="ignore"):
            s.data = reduce_parts(parts, s.note, s.dtype).reshape(s.shape)
        if s.dtype not in rv.INTS:
            s.data = s.data.astype(np.float64)
        s.parts = np.broadcast_to(parts, mesh + s.shape)

    def shape(self, rank=None):
        rank = self.pick([0, 1, 1, 2, 2, 2, 2, 3, 3, 4]) if rank is None \
            else rank
        while True:
            shape = tuple(self.pick(LARGE if self.large else EXTENTS)
                          for _ in range(rank))
            if np.prod(shape, dtype=int) <= (60000 if self.large else 400):
                return shape

    # ---- statements ----

    def any(self, test=lambda t: True):
        """A value that passes; a new leaf where there is none."""
        good = [i for i, t in enumerate(self.values) if test(t)]
        if good and self.chance(0.93):
            late = good[-8:] if self.chance(0.6) else good
            return self.pick(late)
        for _ in range(30):
            i = self.leaf(self.pick(DTYPES), self.shape())
            if test(self.values[i]):
                return i
        raise Invalid("no operand")

    def near(self, dtype, shape, data=None):
        """A value of this type, by chance one that is there."""
        good = [i for i, t in enumerate(self.values)
                if t.dtype == dtype and t.shape == tuple(shape)]
        if data is None and good and self.chance(0.6):
            return self.pick(good)
        return self.leaf(dtype, shape, data)

    def op(self, text, fn, *operands):
        if not operands:
            raise Invalid("no operand")
        place = self.p.stmts[operands[0]].place
        if self.chance(0.08):
            place = self.number(0, len(self.p.places) - 1)
        args = []
        for i in operands:
            t, note = self.values[i], None
            if self.chance(0.1):
                note = self.terms(place, t.dtype, t.shape)
            args.append((i, note))
        t = fn(*(self.values[i] for i in operands))
        if t.val.size > (100 * MOST if self.large else MOST):
            raise Invalid("too large")
        s = Stmt("op", f"v{len(self.values)}", place, text, args, fn)
        if self.chance(0.35):
            s.note = self.terms(place, t.dtype, t.shape)
        return self.append(s, t)

    def broadcast(self, shape):
        """A shape that broadcasts against SHAPE."""
        out = [1 if self.chance(0.25) else n for n in shape]
        out = out[self.number(0, len(out)):] if self.chance(0.4) else out
        if self.chance(0.1) and np.prod(shape, dtype=int) < 100:
            out = [self.pick([1, 2, 3])] + [1] * (len(shape) - len(out)) + out
        return tuple(out)

    def mixed(self, i, fn):
        """The second operand and FN of both after promotion."""
        t = self.values[i]
        dtype = t.dtype
        if t.shape and self.chance(0.2):
            dtype = self.pick([d for d in DTYPES if d != "bool"])
        shape = self.broadcast(t.shape) if self.chance(0.6) else t.shape
        if dtype != t.dtype and not shape:
            shape = t.shape
        j = self.near(dtype, shape)

        def apply(a, b):
            d = rv.promoted(a.dtype, b.dtype)
            return fn(rv.cast(a, d), rv.cast(b, d))
        return j, apply

    def numeric(self):
        return self.any(lambda t: t.dtype != "bool")

    def floats(self, rank=0):
        return self.any(lambda t: rv.is_float(t) and t.val.ndim >= rank)

    def do_binary(self):
        i = self.numeric()
        sign, fn = self.pick([("{0} + {1}", rv.add), ("{0} - {1}", rv.sub),
                              ("{0} * {1}", rv.mul),
                              ("maximum({0}, {1})", rv.maximum),
                              ("minimum({0}, {1})", rv.minimum)])
        j, fn = self.mixed(i, fn)
        if self.chance(0.3):
            i, j = j, i
        return self.op(sign, fn, i, j)

    def do_divide(self):
        i = self.numeric()
        t = self.values[i]
        shape = self.broadcast(t.shape)
        j = self.leaf(t.dtype, shape, self.nonzero(t.dtype, shape))
        return self.op("{0} / {1}", rv.div, i, j)

    def nonzero(self, dtype, shape):
        a = self.data(dtype, shape, 1)
        return np.where(np.abs(a) < 0.5, a + 1, a).astype(a.dtype) \
            if dtype != "bool" else a

    def do_literal(self):
        i = self.numeric()
        t = self.values[i]
        n = self.pick([1, 2, 3, 5]) if not rv.is_float(t) else \
            self.pick([1, 2, 0.5, 3.5, 0.25])
        text, fn = self.pick([
            ("{0} + N", lambda a: rv.add(a, rv.like(a, n))),
            ("N - {0}", lambda a: rv.sub(rv.like(a, n), a)),
            ("{0} * N", lambda a: rv.mul(a, rv.like(a, n))),
            ("-N * {0}", lambda a: rv.mul(rv.neg(rv.like(a, n)), a)),
            ("{0} / N", lambda a: rv.div(a, rv.like(a, n))),
            ("clamp({0}, 0, N)", lambda a: rv.minimum(
                rv.maximum(a, rv.like(a, 0)), rv.like(a, n)))])
        if t.dtype in ("u8", "i8") and text[0] == "-":
            raise Invalid("wraps")
        return self.op(text.replace("N", str(n)), fn, i)

    def do_unary(self):
        name = self.pick(sorted(rv.UNARY))
        i = self.numeric() if self.chance(0.5) else self.floats()
        return self.op(f"{name}({{0}})", rv.UNARY[name], i)

    def do_activation(self):
        name, fn = self.pick([("gelu", rv.erf_gelu), ("silu", rv.silu)])
        return self.op(f"{name}({{0}})", fn, self.floats())

    def do_compare(self):
        i = self.any(lambda t: t.exact)
        sign = self.pick(sorted(rv.COMPARE))
        j, fn = self.mixed(i, rv.COMPARE[sign])
        return self.op(f"{{0}} {sign} {{1}}", fn, i, j)

    def do_logic(self):
        i = self.any(lambda t: t.dtype == "bool")
        if self.chance(0.3):
            return self.op("logical_not({0})",
                           lambda a: T("bool", ~a.val), i)
        name, fn = self.pick([("and", np.logical_and),
                              ("or", np.logical_or)])
        j = self.near("bool", self.broadcast(self.values[i].shape))
        return self.op(f"logical_{name}({{0}}, {{1}})",
                       lambda a, b: T("bool", fn(a.val, b.val)), i, j)

    def do_where(self):
        i = self.any()
        t = self.values[i]
        c = self.near("bool", self.broadcast(t.shape))
        j = self.near(t.dtype, self.broadcast(t.shape))
        return self.op("where({0}, {1}, {2})", rv.where, c, i, j)

    def do_cast(self):
        d = self.pick(DTYPES)
        i = self.any() if d not in rv.INTS else self.any(lambda t: t.exact)
        if d in rv.INTS and rv.is_float(self.values[i]) and \
                np.abs(self.values[i].val).max(initial=0) > 100:
            raise Invalid("saturates")
        return self.op(f"cast({{0}}, {d})", lambda a: rv.cast(a, d), i)

    def axes(self, t):
        """None, or a random axis list as text and tuple."""
        n = t.val.ndim
        if n == 0 or self.chance(0.2):
            return "", None
        k = self.number(1, n)
        axes = [int(a) for a in self.rng.permutation(n)[:k]]
        shown = [a - n if self.chance(0.3) else a for a in axes]
        if k == 1:
            return f", axis = {shown[0]}", tuple(axes)
        return f", axis = {shown}", tuple(axes)

    def do_reduce(self):
        name, fn = self.pick([
            ("sum", rv.total), ("sum", rv.total), ("prod", rv.product),
            ("max", rv.greatest), ("min", rv.least), ("mean", rv.mean),
            ("var", None), ("logsumexp", rv.logsumexp)])
        i = self.floats() if name in ("mean", "var", "logsumexp") else \
            self.numeric()
        text, axes = self.axes(self.values[i])
        if name == "logsumexp" and not axes:
            raise Invalid("it has the last axis by default")
        keep = self.chance(0.4)
        text += ", keepdim = true" if keep else ""
        if name == "var":
            c = self.number(0, 1)
            text += f", correction = {c}"
            return self.op(f"var({{0}}{text})",
                           lambda a: rv.var(a, axes, keep, c), i)
        return self.op(f"{name}({{0}}{text})", lambda a: fn(a, axes, keep), i)

    def do_any(self):
        i = self.any(lambda t: t.dtype == "bool")
        name, fn = self.pick([("any", np.any), ("all", np.all)])
        text, axes = self.axes(self.values[i])
        if self.chance(0.3):
            return self.op(f"sum({{0}}{text})",
                           lambda a: rv.total(a, axes, False), i)
        return self.op(f"{name}({{0}}{text})",
                       lambda a: T("bool", fn(a.val, axis=axes)), i)

    def do_argmax(self):
        i = self.any(lambda t: t.exact and t.dtype != "bool")
        t = self.values[i]
        if t.val.ndim == 0 or self.chance(0.2):
            return self.op("argmax({0})",
                           lambda a: rv.argmax(a, None, False), i)
        axis, keep = self.number(0, t.val.ndim - 1), self.chance(0.4)
        return self.op(f"argmax({{0}}, axis = {axis}, keepdim = "
                       f"{'true' if keep else 'false'})",
                       lambda a: rv.argmax(a, axis, keep), i)

    def do_softmax(self):
        i = self.floats(1)
        axis = self.number(0, self.values[i].val.ndim - 1)
        name, fn = self.pick([("softmax", rv.softmax),
                              ("log_softmax", rv.log_softmax)])
        return self.op(f"{name}({{0}}, axis = {axis})",
                       lambda a: fn(a, axis), i)

    def do_norm(self):
        i = self.floats(1)
        if self.chance(0.5):
            return self.op("layer_norm({0}, eps = 0, bias = false)",
                           rv.layer_norm, i)
        t = self.values[i]
        w = self.near(t.dtype, t.shape[-1:])

        def apply(x, w):
            y = rv.layer_norm(rv.wide(x))
            return rv.cast(rv.mul(y, rv.wide(w)), x.dtype)
        return self.op("layer_norm({0}, eps = 0, bias = false, weight = "
                       "{1})", apply, i, w)

    def do_linear(self):
        i = self.floats(1)
        t = self.values[i]
        n = self.pick(EXTENTS)
        w = self.near(t.dtype, (n, t.shape[-1]))
        b = self.near(t.dtype, (n,))

        def apply(x, w, b):
            y = rv.matmul(rv.wide(x), rv.move(np.transpose)(rv.wide(w)))
            return rv.cast(rv.add(y, rv.wide(b)), x.dtype)
        return self.op("linear({0}, weight = {1}, bias = {2})", apply, i, w,
                       b)

    def do_attention(self):
        i = self.floats(2)
        t = self.values[i]
        n, d = self.number(1, 5), self.number(1, 4)
        k = self.near(t.dtype, t.shape[:-2] + (n, t.shape[-1]))
        v = self.near(t.dtype, t.shape[:-2] + (n, d))
        causal = self.chance(0.4)
        if t.shape[-1] == 0:
            raise Invalid("no width")
        more = ", causal = true" if causal else ""
        return self.op(f"attention({{0}}, {{1}}, {{2}}{more})",
                       lambda a, b, c: rv.attention(a, b, c, causal),
                       i, k, v)

    def do_matmul(self):
        i = self.any(lambda t: t.dtype != "bool" and t.val.ndim >= 1)
        t = self.values[i]
        n = self.pick(EXTENTS)
        batch = self.broadcast(t.shape[:-2]) if t.val.ndim > 2 else ()
        if self.chance(0.2):
            shape = (t.shape[-1],)
        elif self.chance(0.5) or t.val.ndim == 1:
            shape = batch + (t.shape[-1], n)
        else:
            shape = batch + (n, t.shape[-2])
            return self.op("{1} @ {0}", lambda a, b: rv.matmul(b, a), i,
                           self.near(t.dtype, shape))
        return self.op("{0} @ {1}", rv.matmul, i, self.near(t.dtype, shape))

    def do_layers(self):
        """The same statements several times."""
        i = self.any(lambda t: t.dtype in ("f32", "f64")
                     and t.val.ndim >= 1 and 0 < t.shape[-1] < 40)
        t = self.values[i]
        d, n = t.shape[-1], self.number(2, 9)
        w = self.leaf(t.dtype, (d, d), np.asarray(
            self.rng.integers(-1, 2, (d, d)) / 2.0))
        on = self.pick(["", " on (S(0))", " on (B)"]) \
            if len(self.p.places[0].mesh) == 1 else ""

        def apply(x, w):
            for _ in range(n):
                x = rv.minimum(rv.maximum(rv.matmul(x, w), rv.like(x, -2)),
                               rv.like(x, 2))
            return x
        name = f"v{len(self.values)}"
        k = self.op(f"{{0}}; for i in 0..{n} {{{{ {name} = clamp({name} @ "
                    f"{{1}}, -2, 2){on} }}}}", apply, i, w)
        self.p.stmts[k].note = None
        if self.p.stmts[k].place:
            self.p.stmts[k].text = self.p.stmts[k].text.replace(on, "")
        return k

    # ---- movement ----

    def factors(self, n):
        """A random shape of N elements."""
        if n == 0:
            return [0, self.number(1, 4)]
        out = []
        while n > 1 and len(out) < 3 and self.chance(0.8):
            d = self.pick([d for d in range(1, n + 1) if n % d == 0])
            out.append(d)
            n //= d
        return out + [n] if n > 1 or not out else out

    def do_reshape(self):
        i = self.any()
        shape = self.factors(self.values[i].val.size)
        return self.op(f"reshape({{0}}, {shape})",
                       rv.move(lambda x: x.reshape(shape)), i)

    def do_permute(self):
        i = self.any(lambda t: t.val.ndim >= 2)
        n = self.values[i].val.ndim
        order = [int(a) for a in self.rng.permutation(n)]
        if self.chance(0.3):
            return self.op("transpose({0})", rv.move(
                lambda x: np.swapaxes(x, -1, -2)), i)
        return self.op(f"permute({{0}}, {order})",
                       rv.move(lambda x: x.transpose(order)), i)

    def do_flatten(self):
        i = self.any(lambda t: t.val.ndim >= 2)
        t = self.values[i]
        a = self.number(0, t.val.ndim - 1)
        b = self.number(a, t.val.ndim - 1)
        shape = t.shape[:a] + (int(np.prod(t.shape[a:b + 1])),) + \
            t.shape[b + 1:]
        return self.op(f"flatten({{0}}, {a}, {b})",
                       rv.move(lambda x: x.reshape(shape)), i)

    def do_squeeze(self):
        i = self.any()
        t = self.values[i]
        if 1 in t.shape and self.chance(0.6):
            return self.op("squeeze({0})", rv.move(np.squeeze), i)
        a = self.number(0, t.val.ndim)
        return self.op(f"unsqueeze({{0}}, {a})",
                       rv.move(lambda x: np.expand_dims(x, a)), i)

    def bounds(self, n):
        """One subscript: text and slice or index."""
        if n and self.chance(0.15):
            k = self.number(-n, n - 1)
            return str(k), k
        if self.chance(0.25):
            return ":", slice(None)
        lo = None if self.chance(0.3) else self.number(-n - 1, n)
        hi = None if self.chance(0.3) else self.number(-n, n + 1)
        step = None if self.chance(0.6) else self.number(1, 3)
        text = f"{'' if lo is None else lo}:{'' if hi is None else hi}"
        return text + (f":{step}" if step else ""), slice(lo, hi, step)

    def do_slice(self):
        i = self.any(lambda t: t.val.ndim >= 1)
        t = self.values[i]
        subs = [self.bounds(n) for n in t.shape]
        if len(subs) > 1 and self.chance(0.3):
            k = self.number(1, len(subs))
            subs = [("...", Ellipsis)] + subs[k:]
        cut = tuple(s for _, s in subs)
        return self.op(f"{{0}}[{', '.join(x for x, _ in subs)}]",
                       rv.move(lambda x: x[cut]), i)

    def do_split(self):
        i = self.any(lambda t: t.val.ndim >= 1)
        t = self.values[i]
        axis = self.number(0, t.val.ndim - 1)
        cut = self.number(0, t.shape[axis])
        sizes, k = [cut, t.shape[axis] - cut], self.number(0, 1)
        part = (slice(None),) * axis + (
            slice(cut * k, cut if k == 0 else None),)
        return self.op(f"split({{0}}, {sizes}, axis = {axis})[{k}]",
                       rv.move(lambda x: x[part]), i)

    def do_concat(self):
        i = self.any(lambda t: t.val.ndim >= 1)
        t = self.values[i]
        axis = self.number(0, t.val.ndim - 1)
        parts = [i]
        for _ in range(self.number(0, 2)):
            shape = list(t.shape)
            shape[axis] = self.pick([0, 1, 2, 3, t.shape[axis]])
            parts.append(self.near(t.dtype, shape))
        names = ", ".join(f"{{{k}}}" for k in range(len(parts)))
        return self.op(f"concat([{names}], axis = {axis})", rv.move(
            lambda *xs: np.concatenate(xs, axis)), *parts)

    def do_stack(self):
        i = self.any()
        t = self.values[i]
        axis = self.number(0, t.val.ndim)
        parts = [i] + [self.near(t.dtype, t.shape)
                       for _ in range(self.number(0, 2))]
        names = ", ".join(f"{{{k}}}" for k in range(len(parts)))
        return self.op(f"stack([{names}], axis = {axis})", rv.move(
            lambda *xs: np.stack(xs, axis)), *parts)

    def do_pad(self):
        i = self.any(lambda t: t.val.ndim >= 1 and t.dtype != "bool")
        t = self.values[i]
        k = self.number(1, min(t.val.ndim, 2))
        pads = [self.number(0, 3) for _ in range(2 * k)]
        value = self.pick([0, 0, 1, 3])
        width = [(0, 0)] * (t.val.ndim - k) + [
            (pads[2 * j], pads[2 * j + 1]) for j in reversed(range(k))]

        def apply(a):
            filler = rv.like(a, value)
            val = np.pad(a.val, width, constant_values=value)
            if not rv.is_float(a):
                return T(a.dtype, val)
            return T(a.dtype, val, np.pad(a.err, width),
                     rv.both(a, filler))
        return self.op(f"pad({{0}}, {pads}, value = {value})", apply, i)

    def do_expand(self):
        i = self.any(lambda t: t.val.ndim <= 3)
        t = self.values[i]
        shape = [self.pick([1, 2, 3, 5, 0]) if n == 1 else n
                 for n in t.shape]
        if self.chance(0.4):
            shape = [self.pick([1, 2, 3])] + shape
        return self.op(f"expand({{0}}, {shape})", rv.move(
            lambda x: np.broadcast_to(x, shape)), i)

    def do_repeat(self):
        i = self.any(lambda t: 1 <= t.val.ndim <= 3)
        t = self.values[i]
        times = [self.pick([1, 1, 2, 3, 0]) for _ in t.shape]
        if self.chance(0.3):
            times = [self.pick([1, 2])] + times
        return self.op(f"repeat({{0}}, {times})",
                       rv.move(lambda x: np.tile(x, times)), i)

    def do_tril(self):
        i = self.any(lambda t: t.val.ndim >= 2 and t.dtype != "bool")
        k = self.number(-2, 2)
        return self.op(f"tril({{0}}, {k})",
                       rv.move(lambda x: np.tril(x, k)), i)

    # ---- indices ----

    def index(self, n, shape):
        if n == 0 and np.prod(shape, dtype=int):
            raise Invalid("no index")
        dtype = self.pick(["i64", "i32", "u8"])
        data = self.rng.integers(0, max(n, 1), shape).astype(rv.INTS[dtype])
        return self.leaf(dtype, shape, np.asarray(data))

    def do_gather(self):
        i = self.any(lambda t: t.val.ndim >= 1)
        t = self.values[i]
        axis = self.number(0, t.val.ndim - 1)
        shape = [self.number(0, n) if self.chance(0.2) else n
                 for n in t.shape]
        shape[axis] = self.number(1, 5)
        part = tuple(slice(0, n) if k != axis else slice(None)
                     for k, n in enumerate(shape))

        def apply(a, b):
            take = b.val.astype(np.int64)
            return rv.move(lambda x: np.take_along_axis(
                x[part], take, axis))(a)
        return self.op(f"gather({{0}}, {axis}, {{1}})", apply, i,
                       self.index(t.shape[axis], shape))

    def do_take(self):
        i = self.any(lambda t: t.val.ndim == 2)
        t = self.values[i]
        ids = self.index(t.shape[0], self.shape(self.pick([0, 1, 2])))
        return self.op("embedding({1}, weight = {0})", lambda a, b: rv.move(
            lambda x: x[b.val.astype(np.int64)])(a), i, ids)

    def do_scatter(self):
        i = self.any(lambda t: t.val.ndim >= 1 and t.dtype != "bool")
        t = self.values[i]
        axis = self.number(0, t.val.ndim - 1)
        shape = [self.number(0, n) if self.chance(0.2) else n
                 for n in t.shape]
        shape[axis] = self.number(1, 5)
        if t.shape[axis] == 0:
            raise Invalid("no index")
        src = [n + self.number(0, 1) if self.chance(0.2) else n
               for n in shape]
        return self.op(f"scatter_add({{0}}, {axis}, {{1}}, {{2}})",
                       lambda a, b, c: rv.scatter_add(a, axis, b, c), i,
                       self.index(t.shape[axis], shape),
                       self.near(t.dtype, src))

    def do_one_hot(self):
        n = self.number(1, 9)
        i = self.index(n, self.shape(self.number(0, 2)))
        return self.op(f"one_hot({{0}}, {n})", lambda a: T(
            "i64", a.val.astype(np.int64)[..., None] == np.arange(n)), i)

    def do_arange(self):
        i = self.any(lambda t: t.dtype in ("i64", "i32", "f32") and
                     t.val.ndim >= 1)
        t = self.values[i]
        n, d = t.shape[-1], t.dtype
        lo, step = self.number(-3, 3), self.pick([1, 1, 2, -1])
        line = np.arange(n) * step + lo
        row = T(d, line, 0.0, None if d in rv.INTS else 1.0)
        return self.op(f"{{0}} * arange({lo}, {lo + n * step}, {step}, "
                       f"dtype = {d})", lambda a: rv.mul(a, row), i)

    # ---- programs ----

    def step(self):
        makers = [m for m in dir(self) if m.startswith("do_")]
        makers += ["do_binary", "do_reduce", "do_matmul"] * 3
        before = len(self.values)
        try:
            getattr(self, self.pick(makers))()
        except Invalid:
            # Leaves that were made for it may stay.
            assert len(self.values) >= before

    def program(self):
        p, size = self.p, self.number(8, 40)
        for _ in range(self.number(2, 5)):
            self.leaf(self.pick(DTYPES), self.shape())
        for _ in range(size):
            with np.errstate(all="ignore"):
                self.step()
        self.updates()
        self.choose_outputs()
        return clean(p)

    def updates(self):
        p = self.p
        for s in p.stmts:
            if s.kind != "state":
                continue
            good = [i for i, x in enumerate(p.stmts)
                    if x.kind == "op" and x.dtype == s.dtype
                    and x.shape == s.shape]
            if good and self.chance(0.8):
                s.update = self.pick(good)
        p.steps = self.number(2, 4)
        try:
            with np.errstate(all="ignore"):
                p.evaluate()
        except Invalid:
            p.steps = 1

    def choose_outputs(self):
        used = {i for s in self.p.stmts for i, _ in s.args}
        for i in range(len(self.values)):
            s = self.p.stmts[i]
            if s.kind != "op" or (i in used and not self.chance(0.3)):
                continue
            if s.dtype == "bf16":
                j = self.append(Stmt("op", f"v{len(self.values)}", s.place,
                                     "cast({0}, f32)", [(i, None)],
                                     lambda a: rv.cast(a, "f32")),
                                rv.cast(self.values[i], "f32"))
                s = self.p.stmts[j]
            s.output = True


def generate(seed):
    k = 0
    while True:
        p = Maker([seed, k]).program()
        if p.outputs():
            return p
        k += 1


# ---- smaller programs ----

def clean(p):
    """Without what no output needs."""
    need, todo = set(), [i for i, s in enumerate(p.stmts) if s.output]
    while todo:
        i = todo.pop()
        if i in need:
            continue
        need.add(i)
        s = p.stmts[i]
        todo += [j for j, _ in s.args]
        if s.update is not None:
            todo.append(s.update)
    order = sorted(need)
    at = {old: new for new, old in enumerate(order)}
    q = Program(p.places, p.world)
    q.steps = p.steps
    for i in order:
        s = copy.copy(p.stmts[i])
        s.args = [(at[j], note) for j, note in s.args]
        if s.update is not None:
            s.update = at[s.update]
        q.stmts.append(s)
    if not any(s.kind == "state" and s.update is not None for s in q.stmts):
        q.steps = 1
    return q


def changed(p, i, **fields):
    q = Program(p.places, p.world)
    q.steps = p.steps
    q.stmts = [copy.copy(s) for s in p.stmts]
    for name, value in fields.items():
        setattr(q.stmts[i], name, value)
    return q


def one_output(p, wrong):
    outs = [i for i, s in enumerate(p.stmts) if s.output]
    if len(outs) < 2:
        return
    for i in reversed(outs):
        if wrong is not None and p.stmts[i].name != wrong.name:
            continue
        q = changed(p, i)
        for s in q.stmts:
            s.output = False
        q.stmts[i].output = True
        yield clean(q)


def fewer_outputs(p, _):
    outs = [i for i, s in enumerate(p.stmts) if s.output]
    if len(outs) > 1:
        for i in outs:
            yield clean(changed(p, i, output=False))


def operand_as_output(p, _):
    """What an output is made of in its stead."""
    for i, s in enumerate(p.stmts):
        if s.output:
            for j, _ in s.args:
                if p.stmts[j].kind == "op" and p.stmts[j].dtype != "bf16":
                    q = changed(p, i, output=False)
                    q.stmts[j].output = True
                    yield clean(q)


def fewer_steps(p, _):
    if p.steps > 1:
        q = changed(p, 0)
        q.steps = p.steps - 1
        yield q
    for i, s in enumerate(p.stmts):
        if s.update is not None:
            yield clean(changed(p, i, update=None))


def values_for_ops(p, _):
    """A constant in place of an operator."""
    try:
        found = p.evaluate()
    except Invalid:
        return
    for i in reversed(range(len(p.stmts))):
        s = p.stmts[i]
        if s.kind in ("state", "input") and s.update is None:
            yield changed(p, i, kind="const")
        if s.kind != "op" or s.output:
            continue
        data = found[i].val
        if s.dtype not in rv.INTS:
            data = np.round(data * 4) / 4
        for note in {None, tuple(s.note or ())}:
            yield clean(changed(p, i, kind="const", args=[], data=data,
                                note=list(note) if note else None,
                                fn=None))


def fewer_notes(p, _):
    for i, s in enumerate(p.stmts):
        for k, (j, note) in enumerate(s.args):
            if note is not None:
                args = list(s.args)
                args[k] = (j, None)
                yield changed(p, i, args=args)
        if s.note is not None:
            yield changed(p, i, note=None, parts=None)
        if s.note is not None and s.parts is None:
            for k, term in enumerate(s.note):
                if term != "B":
                    note = list(s.note)
                    note[k] = "B"
                    yield changed(p, i, note=note)
        if s.parts is not None:
            yield changed(p, i, parts=None)


SMALLER = [one_output, fewer_outputs, operand_as_output, fewer_steps,
           values_for_ops, fewer_notes]

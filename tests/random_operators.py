"""Random programs: a do_... for each operator makes a statement whose operands
are values that are there, or are made for it. random_maker.py picks them.
"""
import numpy as np

import random_values as rv
from random_values import Invalid, T

DTYPES = ["f32"] * 6 + ["i32"] * 2 + ["i64", "f64", "f16", "bf16", "u8", "i8",
                                      "bool"]
EXTENTS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 13] * 3 + [0, 17]


class Operators:
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
        pads = [self.number(-1, 3) for _ in range(2 * k)]
        value = self.pick([0, 0, 1, 3])
        width, keep = [(0, 0)] * t.val.ndim, [slice(None)] * t.val.ndim
        for j in range(k):
            axis, (lo, hi) = t.val.ndim - 1 - j, pads[2 * j:2 * j + 2]
            if max(-lo, 0) + max(-hi, 0) > t.shape[axis]:
                raise Invalid("nothing is left to crop")
            width[axis] = max(lo, 0), max(hi, 0)
            keep[axis] = slice(max(-lo, 0), t.shape[axis] - max(-hi, 0))
        keep = tuple(keep)

        def apply(a):
            filler = rv.like(a, value)
            val = np.pad(a.val[keep], width, constant_values=value)
            if not rv.is_float(a):
                return T(a.dtype, val)
            return T(a.dtype, val, np.pad(a.err[keep], width),
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

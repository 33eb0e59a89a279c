#!/usr/bin/python3
"""Random programs against NumPy: operators of every kind between requests for
random distributions on several placements.

usage: oracle_random.py [-v] [-s SEED] [-n PROGRAMS]

All numbers are small integers, so every result is exact whatever the order of
its sums. A program is printed where it fails.
"""
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

from common import SBPRUN
from snippets import TIMEOUT, describe, literal, same

DTYPES = {"f32": np.float32, "f64": np.float64, "i64": np.int64,
          "i32": np.int32, "bool": np.bool_}
NAMES = {np.dtype(v): k for k, v in DTYPES.items()}
# name, declaration, axes, ranks that it needs
PLACEMENTS = [("line", "cpu[0..{n}]", 1), ("grid", "cpu[0..{n}] as [{p}, {q}]",
                                           2),
              ("back", "cpu[range({n} - 1, -1, -1)] as [{q}, {p}]", 2),
              ("last", "cpu[{n} - 1]", 1),
              ("cube", "cpu[0..{n}] as {cube}", 3)]
# ranks, the two axes of a grid, the three of a cube
WORLDS = [(1, 1, 1, [1, 1, 1]), (2, 1, 2, [2, 1, 1]), (3, 3, 1, [1, 3, 1]),
          (4, 2, 2, [2, 1, 2]), (6, 2, 3, [3, 1, 2]), (8, 4, 2, [2, 2, 2])]
LIMIT = 40


class Value:
    def __init__(self, name, array, on):
        self.name, self.array, self.on = name, array, on


class Generator:
    def __init__(self, seed, length):
        self.rng = np.random.default_rng(seed)
        self.n, self.p, self.q, self.cube = WORLDS[self.pick(len(WORLDS))]
        self.lines, self.values, self.count = [], [], 0
        self.outputs = []
        for _ in range(3):
            self.constant()
        for _ in range(length):
            self.step()
        for v in self.values:
            if self.chance(0.3) or v is self.values[-1]:
                self.output(v)

    # -- choices --

    def pick(self, n):
        return int(self.rng.integers(n))

    def one(self, items):
        return items[self.pick(len(items))]

    def chance(self, p):
        return self.rng.random() < p

    def axis(self, rank):
        a = self.pick(rank)
        return a if self.chance(0.7) else a - rank

    def terms(self, rank, naxes, partial=True):
        kinds = ["B"] + ["S"] * 2 * (rank > 0)
        if partial:
            kinds += ["P", "P(max)", "P(min)"]
        kinds += ["_"]
        out = [self.one(kinds) for _ in range(naxes)]
        return ", ".join(f"S({self.axis(rank)})" if t == "S" else t
                         for t in out)

    # -- statements --

    def add(self, text, array, on, prefix="v"):
        name = f"{prefix}{self.count}"
        self.count += 1
        self.lines.append(f"  {name} = {text}")
        array = np.asarray(array)
        v = Value(name, array, on)
        if array.dtype != np.bool_ and array.size and \
                np.abs(array).max() > LIMIT:
            return self.add(f"clamp({name}, -{LIMIT}, {LIMIT})",
                            np.clip(array, -LIMIT, LIMIT).astype(array.dtype), on)
        self.values.append(v)
        return v

    def shape(self):
        rank = self.one([0, 1, 1, 2, 2, 2, 3, 3, 4])
        return tuple(self.one([0, 1, 2, 3, 4, 5, 6, 7])
                     if self.chance(0.93) else self.one([17, 33, 70])
                     for _ in range(rank))

    def constant(self):
        dtype = self.one(["f32", "f32", "f64", "i64", "i32", "bool"])
        shape = self.shape()
        x = self.rng.integers(-6, 7, shape)
        x = (x > 0 if dtype == "bool" else x.astype(DTYPES[dtype]))
        x = np.asarray(x)
        on = self.one(PLACEMENTS)
        terms = self.terms(len(shape), on[2], False).replace("_", "B")
        name = f"c{self.count}"
        self.count += 1
        dims = ", ".join(map(str, shape))
        text = literal(x)
        if x.size == 0:
            text = "zeros()"
        self.lines.append(f"  const {name}: {dtype}[{dims}] on "
                          f"{on[0]}({terms}) = {text}")
        self.values.append(Value(name, x, on))

    def output(self, v):
        self.outputs.append(v)
        self.lines.append(f"  output {v.name}")

    def step(self):
        if self.chance(0.06):
            self.constant()
            return
        recent = self.values[-8:]
        v = self.one(recent if self.chance(0.8) else self.values)
        kinds = [self.unary, self.binary, self.binary, self.reduce,
                 self.move, self.move, self.request, self.request,
                 self.index, self.matmul]
        self.one(kinds)(v)

    def number(self, v):
        return v.array.dtype != np.bool_

    def request(self, v):
        on = v.on if self.chance(0.6) else self.one(PLACEMENTS)
        partial = self.number(v)
        terms = self.terms(v.array.ndim, on[2], partial)
        text = f"{v.name} on {on[0]}({terms})"
        if self.chance(0.1):
            text = f"{v.name} on {on[0]}"
        self.add(text, v.array, on)

    def unary(self, v):
        x, name = v.array, v.name
        if not self.number(v):
            text, y = self.one([
                (f"logical_not({name})", ~x),
                (f"cast({name}, f32)", x.astype(np.float32)),
                (f"{name} * 2", x.astype(np.int64) * 2)])
            self.add(text, y, v.on)
            return
        c = int(self.rng.integers(-3, 4))
        to = self.one(["f32", "f64", "i64", "i32"])
        choices = [(f"-{name}", -x), (f"abs({name})", np.abs(x)),
                   (f"relu({name})", np.maximum(x, 0)),
                   (f"sign({name})", np.sign(x)),
                   (f"square({name})", x * x),
                   (f"{name} + {c}", x + x.dtype.type(c)),
                   (f"{c} - {name}", x.dtype.type(c) - x),
                   (f"{name} * {c}", x * x.dtype.type(c)),
                   (f"clamp({name}, {-abs(c)}, 3)",
                    np.clip(x, -abs(c), 3).astype(x.dtype)),
                   (f"cast({name}, {to})", x.astype(DTYPES[to])),
                   (f"{name} > {c}", x > c),
                   (f"{name} == {c}", x == c),
                   (f"maximum({name}, {c})",
                    np.maximum(x, x.dtype.type(c)))]
        text, y = self.one(choices)
        if y.dtype != np.bool_ and "cast" not in text:
            y = y.astype(x.dtype)       # NumPy widens scalars
        self.add(text, y, v.on)

    def partner(self, v):
        """A value that broadcasts with V, on its placement."""
        def fits(w):
            if w.on is not v.on and w.array.ndim:
                return False
            if w.on is not v.on:
                return False
            try:
                return np.broadcast_shapes(w.array.shape,
                                           v.array.shape) is not None
            except ValueError:
                return False
        return self.one([w for w in self.values if fits(w)])

    def binary(self, v):
        w = self.partner(v)
        if self.chance(0.5):
            v, w = w, v
        x, y = v.array, w.array
        if x.dtype == np.bool_ and y.dtype == np.bool_:
            text, z = self.one([
                (f"logical_and({v.name}, {w.name})", x & y),
                (f"logical_or({v.name}, {w.name})", x | y),
                (f"{v.name} == {w.name}", x == y)])
            self.add(text, z, v.on)
            return
        to = self.promote(x.dtype, y.dtype)
        x, y = x.astype(to), y.astype(to)
        choices = [(f"{v.name} + {w.name}", x + y),
                   (f"{v.name} - {w.name}", x - y),
                   (f"{v.name} * {w.name}", x * y),
                   (f"maximum({v.name}, {w.name})", np.maximum(x, y)),
                   (f"minimum({v.name}, {w.name})", np.minimum(x, y)),
                   (f"{v.name} < {w.name}", x < y),
                   (f"where({v.name} > {w.name}, {v.name}, {w.name})",
                    np.where(x > y, x, y)),
                   (f"where({v.name} != 0, {w.name}, 0)",
                    np.where(v.array != 0, w.array, w.array.dtype.type(0))
                    if w.array.dtype != np.bool_ else None)]
        text, z = self.one(choices)
        if z is None:
            return
        if z.dtype != np.bool_ and "!= 0" not in text:
            z = z.astype(to)    # NumPy widens scalars
        self.add(text, z, v.on)

    def promote(self, a, b):
        if a == b:
            return a
        if a == np.bool_ or b == np.bool_:
            return a if b == np.bool_ else b
        if a.kind == b.kind:
            return max(a, b, key=lambda t: t.itemsize)
        return a if a.kind == "f" else b

    def reduce(self, v):
        x = v.array
        axes = sorted({self.pick(x.ndim) for _ in range(1 + self.pick(2))}
                      if x.ndim else [])
        keep = self.chance(0.3)
        tail = ", keepdim = true)" if keep else ")"
        spelled = f"axis = {axes}"
        if x.ndim and len(axes) == x.ndim and self.chance(0.5):
            spelled = "keepdim = false" if not keep else "axis = " + str(axes)
        at = tuple(axes)
        empty = any(x.shape[a] == 0 for a in axes)
        head = f"({v.name}, {spelled}"
        if "keepdim = false" in spelled:
            tail = ")"
        if x.dtype == np.bool_:
            text, y = self.one([
                ("any" + head + tail, x.any(axis=at, keepdims=keep)),
                ("all" + head + tail, x.all(axis=at, keepdims=keep)),
                ("sum" + head + tail, x.sum(axis=at, keepdims=keep,
                                            dtype=np.int64))])
        else:
            wide = x.dtype if x.dtype.kind == "f" else np.int64
            choices = [("sum" + head + tail,
                        x.sum(axis=at, keepdims=keep, dtype=wide))]
            if not empty:
                choices += [("max" + head + tail,
                             x.max(axis=at, keepdims=keep)),
                            ("min" + head + tail,
                             x.min(axis=at, keepdims=keep))]
                if x.ndim and x.shape[axes[0]]:
                    choices.append((f"argmax({v.name}, axis = {axes[0]})",
                                    x.argmax(axes[0])))
            text, y = self.one(choices)
        self.add(text, y, v.on)

    def move(self, v):
        x, name = v.array, v.name
        if x.ndim == 0:
            self.add(f"expand({name}, [2, 3])",
                     np.broadcast_to(x, (2, 3)), v.on)
            return
        a = self.axis(x.ndim)
        n = x.shape[a]
        lo, hi = sorted((self.pick(n + 1), self.pick(n + 1)))
        step = self.one([1, 1, 2, 3])
        cut = [slice(None)] * x.ndim
        cut[a] = slice(lo, hi, step)
        order = [int(k) for k in self.rng.permutation(x.ndim)]
        low, high = self.pick(3), self.pick(3)
        choices = [
            (f"slice({name}, {a}, {lo}, {hi}, {step})", x[tuple(cut)]),
            (f"permute({name}, {order})", x.transpose(order)),
            (f"unsqueeze({name}, {a})", np.expand_dims(x, a)),
            (f"pad({name}, [{low}, {high}])",
             np.pad(x, [(0, 0)] * (x.ndim - 1) + [(low, high)])),
            (f"concat([{name}, {name}], {a})", np.concatenate([x, x], a)),
            (f"stack([{name}, {name}], {a})", np.stack([x, x], a)),
            (f"flatten({name})", x.reshape(-1)),
            self.reshaped(v), self.reshaped(v), self.reshaped(v)]
        if x.ndim >= 2:
            choices += [(f"transpose({name})", x.swapaxes(-1, -2)),
                        (f"tril({name})", np.tril(x))]
        if x.size < 300:
            choices.append((f"repeat({name}, {[2] * x.ndim})",
                            np.tile(x, [2] * x.ndim)))
        parts = [self.pick(n + 1)]
        parts.append(n - parts[0])
        choices.append((f"split({name}, {parts}, {a})[1]",
                        np.split(x, [parts[0]], a)[1]))
        wide = (2,) + x.shape
        choices.append((f"expand({name}, {list(wide)})",
                        np.broadcast_to(x, wide)))
        if 1 in x.shape:
            choices.append((f"squeeze({name})", x.squeeze()))
        w = self.one(self.values)
        if w.on is v.on and w.array.ndim == x.ndim and \
                w.array.dtype == x.dtype:
            for k in range(x.ndim):
                if x.shape[:k] + x.shape[k + 1:] == \
                        w.array.shape[:k] + w.array.shape[k + 1:]:
                    choices += [(f"concat([{name}, {w.name}], {k})",
                                 np.concatenate([x, w.array], k))] * 5
        text, y = self.one(choices)
        if y.ndim <= 5 and y.size <= 4000:
            self.add(text, y, v.on)

    def reshaped(self, v):
        n = v.array.size
        if n == 0:
            return f"flatten({v.name})", v.array.reshape(-1)
        shape = []
        while n > 1 and len(shape) < 4:
            factor = self.one([d for d in range(1, n + 1) if n % d == 0])
            shape.append(factor)
            n //= factor
        shape.append(n)
        return f"reshape({v.name}, {shape})", v.array.reshape(shape)

    def index(self, v):
        x = v.array
        if x.ndim == 0 or 0 in x.shape:
            return
        a = self.pick(x.ndim)
        ids = self.rng.integers(0, x.shape[a], self.one([1, 2, 5]))
        name = f"at{self.count}"
        self.count += 1
        terms = self.terms(1, v.on[2], False).replace("_", "B")

        def constant(at):
            dims = ", ".join(map(str, at.shape))
            self.lines.append(f"  const {name}: i64[{dims}] on "
                              f"{v.on[0]}({terms}) = {literal(at)}")
        if x.ndim == 2 and self.chance(0.4):
            ids = ids % x.shape[0]
            constant(ids)
            self.add(f"embedding({name}, weight = {v.name})", x[ids], v.on)
            return
        shape = list(x.shape)
        shape[a] = len(ids)
        at = self.rng.integers(0, x.shape[a], shape)
        constant(at)
        if self.chance(0.5) or x.dtype == np.bool_:
            self.add(f"gather({v.name}, {a}, {name})",
                     np.take_along_axis(x, at, a), v.on)
            return
        y = x.copy()
        src = np.take_along_axis(x, at, a)
        for pos in np.ndindex(*at.shape):
            where = pos[:a] + (at[pos],) + pos[a + 1:]
            y[where] += src[pos]
        self.add(f"scatter_add({v.name}, {a}, {name}, "
                 f"gather({v.name}, {a}, {name}))", y, v.on)

    def batched(self, v):
        x = v.array
        ws = [w for w in self.values if w.on is v.on and
              w.array.dtype == x.dtype and w.array.ndim >= 2 and
              w.array.shape[-1] == x.shape[-2] and
              w.array.ndim == x.ndim and
              w.array.shape[:-2] == x.shape[:-2]]
        if not ws:
            self.add(f"transpose({v.name}) @ {v.name}",
                     x.swapaxes(-1, -2) @ x, v.on)
            return
        w = self.one(ws)
        self.add(f"transpose({v.name}) @ transpose({w.name})",
                 x.swapaxes(-1, -2) @ w.array.swapaxes(-1, -2), v.on)

    def matmul(self, v):
        x = v.array
        if x.dtype != np.bool_ and x.ndim >= 2 and self.chance(0.4):
            self.batched(v)
            return
        if x.dtype == np.bool_ or x.ndim < 1:
            return
        ws = [w for w in self.values if w.on is v.on and
              w.array.dtype == x.dtype and w.array.ndim in (1, 2) and
              w.array.shape[-1] == x.shape[-1]]
        w = self.one(ws or [v])
        if w.array.ndim == 1:
            self.add(f"{v.name} @ {w.name}", x @ w.array, v.on)
        elif w.array.ndim == 2:
            self.add(f"{v.name} @ transpose({w.name})",
                     x @ w.array.T, v.on)

    # -- the program --

    def text(self):
        head = [f"placement {p[0]} = " +
                p[1].format(n=self.n, p=self.p, q=self.q, cube=self.cube)
                for p in PLACEMENTS]
        return "\n".join(head + ["model m on line {"] + self.lines + ["}"])


def check(g, folder, options):
    """None, or what is wrong."""
    with open(f"{folder}/m.sbp", "w", encoding="utf-8") as f:
        f.write(g.text() + "\n")
    args = [a for v in g.outputs
            for a in ("--output", f"{v.name}={v.name}.npy")]
    done = subprocess.run([SBPRUN, "-n", str(g.n), *options, "m.sbp",
                           "--quiet", *args], cwd=folder, timeout=TIMEOUT,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, check=False)
    if done.returncode:
        return f"exit {done.returncode}: {done.stdout.strip()[:1500]}"
    for v in g.outputs:
        got = np.load(f"{folder}/{v.name}.npy")
        want = v.array
        if want.dtype.kind == "f":      # the sign of 0 is no matter here
            got, want = got + 0, want + 0
        if not same(got, want, True):
            return f"{v.name}: {describe(got)}, not {describe(want)}"
    return None


def main():
    args = sys.argv[1:]
    first = int(args[args.index("-s") + 1]) if "-s" in args else 0
    n = int(args[args.index("-n") + 1]) if "-n" in args else 40
    passed = failed = 0
    for seed in range(first, first + n):
        g = Generator(seed, 10 + seed % 7 * 12)
        folder = tempfile.mkdtemp(prefix="random.")
        try:
            problem = check(g, folder, ["-O0" if seed % 2 else "-O1"])
        except (subprocess.TimeoutExpired, OSError) as e:
            problem = str(e)
        shutil.rmtree(folder)
        passed += problem is None
        failed += problem is not None
        if problem:
            print(f"FAILED seed {seed}, {g.n} ranks: {problem}", flush=True)
            if failed <= 3 or "-v" in args:
                print(g.text(), flush=True)
    print(f"oracle_random: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Random programs: placements, leaves and distributions of a seed's program.
"""
import numpy as np

import random_values as rv
from oracle_ops_all import reduce_parts
from random_operators import DTYPES, EXTENTS, Operators
from random_program import Place, Program, Stmt, clean, start
from random_values import Invalid

LARGE = [1, 2, 17, 33, 64, 100, 257, 300]
MOST = 2000


class Maker(Operators):
    """A program of a seed, statement by statement."""

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

#!/usr/bin/env python3
"""Local slices that are read where they lie, against NumPy: every kind of
reader, pieces that are uneven and empty, meshes of one and two axes, slices of
what is split already, every dtype. All numbers are small integers, so results
are exact."""
import os
import re

import numpy as np

from common import SBPC, SBPRUN, expect, main, run

PROGRAMS = 20
STATEMENTS = 9
MESHES = [("cpu[0..2]", [2]), ("cpu[0..3]", [3]), ("cpu[0..4]", [4]),
          ("cpu[[0, 1], [2, 3]]", [2, 2]),
          ("cpu[[0, 1, 2], [3, 4, 5]]", [2, 3])]
DTYPES = ("f32", "f32", "f32", "f64", "f16", "bf16", "i64", "i32", "u8")


def take(t, i):
    return t[i.astype(int)]


# Operands by letters, as in einsum; a mesh axis may split one letter, which
# cuts the operands that have it. {ids} is an index below the first extent.
OPS = [
    ("{0} * 2 + 1", "ij->ij", lambda a: a * 2 + 1),
    ("{0} + {1}", "ij,ij->ij", np.add),
    ("{0} * {1}", "ijk,k->ijk", np.multiply),
    ("maximum({0}, {1}) - {0}", "ijk,jk->ijk",
     lambda a, b: np.maximum(a, b) - a),
    ("{0} * {1} + {2}", "ij,j,ij->ij", lambda a, b, c: a * b + c),
    ("where({0} > {1}, {0}, {1} * 2)", "ij,ij->ij",
     lambda a, b: np.where(a > b, a, b * 2)),
    ("sum({0} * 2, axis = 0)", "ij->j", lambda a: (a * 2).sum(0)),
    ("sum({0}, axis = 1)", "ij->i", lambda a: a.sum(1)),
    ("sum({0}, axis = 1)", "ijk->ik", lambda a: a.sum(1)),
    ("max({0}, axis = 2)", "ijk->ij", lambda a: a.max(2)),
    ("max({0}, axis = 1, keepdim = true) - {0}", "ij->ij",
     lambda a: a.max(1, keepdims=True) - a),
    ("sum({0})", "ijk->", np.sum),
    ("{0} @ {1}", "mk,kn->mn", np.matmul),
    ("{0} @ transpose({1}, 0, 1)", "mk,nk->mn", lambda a, b: a @ b.T),
    ("transpose({0}, 0, 1) @ {1}", "km,kn->mn", lambda a, b: a.T @ b),
    ("transpose({0}, 0, 1) @ transpose({1}, 0, 1)", "km,nk->mn",
     lambda a, b: a.T @ b.T),
    ("{0} @ {1}", "bmk,kn->bmn", np.matmul),
    ("{0} @ {1}", "bmk,bkn->bmn", np.matmul),
    ("{0} @ transpose({1}, 1, 2)", "bmk,bnk->bmn",
     lambda a, b: a @ b.transpose(0, 2, 1)),
    ("transpose({0}, 1, 2) @ {1}", "bkm,bkn->bmn",
     lambda a, b: a.transpose(0, 2, 1) @ b),
    ("{0} @ {1}", "cbmk,bkn->cbmn", np.matmul),
    ("embedding({ids}, 0, 0, weight = {0})", "rd,i->id", take),
    ("embedding({ids}, 0, 0, weight = {0})", "rd,ij->ijd", take),
    ("take({0}, {ids})", "rcd,i->icd", take),
    ("gather({0}, 0, {ids})", "rj,ij->ij",
     lambda t, i: np.take_along_axis(t, i.astype(int), 0)),
    ("permute({0}, [2, 0, 1])", "ijk->kij", lambda a: a.transpose(2, 0, 1)),
    ("permute({0}, [1, 0, 2])", "ijk->jik", lambda a: a.transpose(1, 0, 2)),
    ("permute({0}, [1, 0, 2, 3])", "ijkl->jikl",
     lambda a: a.transpose(1, 0, 2, 3)),
    ("concat([{0}, {1}], axis = 1)", "ij,ij->ij",
     lambda a, b: np.concatenate([a, b], 1)),
    ("{0}[:, 1:]", "ij->ij", lambda a: a[:, 1:]),
    ("pad({0}, [1, 2])", "ij->ij", lambda a: np.pad(a, ((0, 0), (1, 2)))),
    ("argmax({0}, axis = 1)", "ij->i", lambda a: a.argmax(1)),
    ("reshape({0}, [-1]) * 2", "ij->k", lambda a: a.reshape(-1) * 2),
    ("relu({0}[0])", "ij->j", lambda a: np.maximum(a[0], 0)),
]


def terms(letters, splits, keep):
    """S of the letters that mesh axes split; keep says which of them."""
    return "(" + ", ".join(
        f"S({letters.index(x)})" if x and x in letters and k else "B"
        for x, k in zip(splits, keep)) + ")"


class Program:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.mesh, self.extents = MESHES[seed % len(MESHES)]
        self.feed, self.want = {}, {}
        self.lines, self.inputs = [], []
        for i in range(STATEMENTS):
            self.statement(i)

    def chance(self, p):
        return bool(self.rng.random() < p)

    def operand(self, name, letters, size, splits, dtype, most):
        shape = [size[x] for x in letters]
        low = 0 if dtype == "u8" or most is not None else -3
        value = self.rng.integers(low, 3 if most is None else most, shape)
        self.feed[name] = value.astype("i8" if dtype == "i64" else "f4")
        fed = "i64" if dtype == "i64" else "f32"
        source = terms(letters, splits, [self.chance(0.3) for _ in splits])
        target = terms(letters, splits, [True for _ in splits])
        self.inputs.append(f"  input {name}: {fed}{shape} on {source}")
        if dtype != fed:
            self.lines.append(
                f"  {name} = cast({name}, {dtype}) on {source}")
        self.lines.append(f"  {name} = {name} on {target}")
        return value

    def statement(self, i):
        text, index, function = OPS[int(self.rng.integers(len(OPS)))]
        operands = index.split("->")[0].split(",")
        dtype = str(self.rng.choice(DTYPES))
        letters = sorted(set("".join(operands)))
        size = {x: int(self.rng.choice([1, 2, 3, 5, 8, 17, 40],
                                       p=[.08, .12, .2, .2, .2, .1, .1]))
                for x in letters}
        splits = [str(self.rng.choice(letters)) if self.chance(0.85) else None
                  for _ in self.extents]
        names, values = {}, []
        for k, own in enumerate(operands):
            name = f"x{i}_{k}"
            ids = k == 1 and "{ids}" in text
            names["ids" if ids else str(k)] = name
            values.append(self.operand(
                name, own, size, splits, "i64" if ids else dtype,
                size[operands[0][0]] if ids else None))
        args = [names.get(str(k), "") for k in range(len(operands))]
        text = text.format(*args, ids=names.get("ids"))
        if text.startswith("embedding"):
            text = text.replace("0, 0,", f"{size['r']}, {size['d']},")
        self.lines.append(f"  y{i} = cast({text}, f32) on "
                          f"({', '.join('B' for _ in self.extents)})")
        wide = [v.astype("i8" if v.ndim else float) for v in values]
        self.want[f"y{i}"] = function(*wide)

    def text(self):
        return "\n".join(
            [f"placement mesh = {self.mesh}", "model m on mesh {"] +
            self.inputs + self.lines +
            [f"  output {name}" for name in self.want] + ["}"]) + "\n"


def check(directory, seed, *command):
    """Runs the program of a seed by COMMAND, sbprun unless it is given."""
    p = Program(seed)
    with open(f"{directory}/m.sbp", "w") as f:
        f.write(p.text())
    files = []
    for name, array in p.feed.items():
        np.save(f"{directory}/{name}.npy", array)
        files += ["--input", f"{name}={name}.npy"]
    for name in p.want:
        files += ["--output", f"{name}={name}.npy"]
    run(*(command or [SBPRUN, "m.sbp"]), *files, cwd=directory)
    for name, want in p.want.items():
        got = np.load(f"{directory}/{name}.npy")
        want = np.asarray(want).astype("f4")
        expect(got.shape == want.shape and (got == want).all(),
               f"seed {seed}: {name} is wrong\n{p.text()}\n{got}\n{want}")
    return p


def random_readers(directory):
    for seed in range(PROGRAMS):
        check(directory, seed)


def reproducible(directory):
    for seed in range(PROGRAMS, PROGRAMS + 6):
        check(directory, seed, SBPRUN, "--reproducible", "m.sbp")


def simulated(directory):
    """No other rank writes what is read in place."""
    for seed in range(PROGRAMS + 6, PROGRAMS + 10):
        check(directory, seed, SBPC, "--simulate=3", "m.sbp", "--")


LARGE = """
placement mesh = cpu[0..3]
model large on mesh {
  input x: f32[257, 301]
  input w: f32[301, 130]
  a = (x on (S(1))) @ (w on (S(0)))
  b = (x on (S(0))) @ (w on (B))
  c = sum((x on (S(1))) * 2)
  d = sum(relu(x on (S(1))), axis = 0)
  e = transpose(w on (S(1))) @ transpose(x)
  f = (x on (S(1))) * 3 + 1
  g = permute(x on (S(1)), [1, 0])
  output a
  output b
  output c
  output d
  output e
  output f
  output g
}
"""


def large(directory):
    """Of sizes that threads share, and oneDNN's."""
    rng = np.random.default_rng(1)
    x = rng.integers(-3, 4, (257, 301)).astype("f4")
    w = rng.integers(-3, 4, (301, 130)).astype("f4")
    np.save(f"{directory}/x.npy", x)
    np.save(f"{directory}/w.npy", w)
    with open(f"{directory}/large.sbp", "w") as f:
        f.write(LARGE)
    want = {"a": x @ w, "b": x @ w, "c": 2 * x.sum(),
            "d": np.maximum(x, 0).sum(0), "e": w.T @ x.T, "f": x * 3 + 1,
            "g": x.T}
    for options in [], ["--reproducible"]:
        command = [SBPRUN, "-n", 3, *options, "large.sbp", "--input",
                   "x=x.npy", "--input", "w=w.npy"]
        for name in want:
            command += ["--output", f"{name}={name}.npy"]
        run(*command, cwd=directory, env={"OMP_NUM_THREADS": "2"})
        for name, value in want.items():
            got = np.load(f"{directory}/{name}.npy")
            expect(got.shape == value.shape and (got == value).all(),
                   f"{options}: {name} is wrong\n{got}\n{value}")


def emitted(directory, body, mesh="cpu[0..4]"):
    with open(f"{directory}/e.sbp", "w") as f:
        f.write(f"placement mesh = {mesh}\nmodel e on mesh {{\n"
                "  input x: f32[8, 12]\n  input w: f32[12, 16]\n"
                "  input q: f32[4, 8, 12]\n  input ids: i64[6]\n"
                f"{body}\n}}\n")
    run(SBPC, "e.sbp", "--emit=c", "-o", "e", cwd=directory)
    with open(f"{directory}/e.c") as f:
        return f.read()


IN_PLACE = [
    "x @ (w on (S(1)))",
    "(x on (S(1))) @ (w on (S(0)))",
    "x @ transpose(transpose(w) on (S(0)))",
    "(q on (S(1))) @ transpose(q, 1, 2)",
    "exp(x on (S(0)))",
    "exp(x on (S(1)))",
    "exp(q on (S(1))) + 1",
    "softmax(x on (S(0)))",
    "sum(x on (S(1)), axis = 0)",
    "embedding(ids, 12, 16, weight = w on (S(1)))",
    "embedding(ids, 12, 16, weight = w on (S(0)))",
    "permute(q on (S(1)), [1, 2, 0])",
    "concat([x on (S(0)), x on (S(0))], axis = 1)",
]
COPIED = [
    "reshape(x on (S(0)), [96])",
    "(q on (S(1))) @ w",
    "concat([x on (S(1)), x on (S(1))], axis = 0)",
    "x on (S(1))",
]


def in_place(directory):
    for body in IN_PLACE:
        text = emitted(directory, f"  y = {body}\n  output y")
        expect('"slice"' not in text, f"{body} copies a slice:\n{text}")
        expect(re.search(r"AT_\w+ \+ .*m->own", text),
               f"{body} reads no slice in place:\n{text}")
    for body in COPIED:
        text = emitted(directory, f"  y = {body}\n  output y")
        expect('"slice"' in text, f"{body} copies no slice:\n{text}")


def one_reader_copies(directory):
    """What all readers but one could read in place is copied, for all."""
    text = emitted(directory, "  h = x on (S(1))\n  y = exp(h)\n  output y\n"
                   "  output h")
    expect('"slice"' in text and not re.search(r"AT_x \+", text), text)


def states(directory):
    """A slice of a state is of the old value, whoever writes the new one."""
    with open(f"{directory}/s.sbp", "w") as f:
        f.write("placement mesh = cpu[0..3]\nmodel s on mesh {\n"
                "  state a: f32[5, 7] on (B) = 1\n"
                "  update a = a * 2 + 1\n"
                "  y = exp(log(a on (S(1)))) * 2\n  output y\n"
                "  z = sum((a on (S(0))) * 3, axis = 0)\n  output z\n}\n")
    run(SBPRUN, "-n", 3, "s.sbp", "--steps", 3, "--output", "y=y.npy",
        "--output", "z=z.npy", cwd=directory)
    y, z = np.load(f"{directory}/y.npy"), np.load(f"{directory}/z.npy")
    expect(np.allclose(y, np.full((5, 7), 14)), y)
    expect((z == np.full(7, 105)).all(), z)


if __name__ == "__main__":
    os.environ.setdefault("SBP_TIMEOUT", "60")
    main(random_readers, reproducible, simulated, large, in_place, one_reader_copies, states)

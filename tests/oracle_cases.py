#!/usr/bin/python3
"""Small programs with numbers that are known to be right.

usage: oracle_cases.py [-v]

Partial values, uneven and nested splits, conversions piece by piece, bytes
received, kinds of reductions, random masks.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from common import SBPC, SBPRUN
from oracle_conversions import PLACEMENTS, R0, R1
from snippets import TIMEOUT, Snippet, Tally, literal

HEAD = PLACEMENTS + "model m on line {\n"


def f32(x):
    return np.array(x, np.float32)


def i64(x):
    return np.array(x, np.int64)


def count(*shape):
    return f32(np.arange(np.prod(shape)).reshape(shape))


def everywhere(x, ranks=4):
    return {r: x for r in range(ranks)}


def parts(name, on, *local, kind="P"):
    """A partial value: one part a rank."""
    shape = ", ".join(str(n) for n in np.shape(local[0]))
    pieces = ", ".join(literal(f32(x)) for x in local)
    return f"const {name}: f32[{shape}] on {on}({kind}) = local({pieces})"


def value(name, on, x):
    """A logical value as it lies ON."""
    shape = ", ".join(str(n) for n in np.shape(x))
    return f"const {name}: f32[{shape}] on {on} = {literal(f32(x))}"


# ---- partial values ----

def partial_values():
    yield Snippet("P + 10 counts 10 once", value("x", "pair(S(0))",
                                                 range(10)) + """
        s = sum(x) on pair(P)
        y = s + 10""", {"y": f32(55)},
                  pieces={"s": {0: f32(10), 1: f32(35)}}, exact=True)
    yield Snippet("P + 10 stays P", value("x", "pair(S(0))", range(10)) + """
        s = sum(x) on pair(P)
        y = s + 10 on pair(P)
        z = y on pair(B)""",
                  pieces={"y": {0: f32(20), 1: f32(35)},
                          "z": {0: f32(55), 1: f32(55)}}, exact=True)
    yield Snippet("P * P", parts("x", "pair", 1, 1), {"x * x": f32(4)},
                  exact=True)
    for name, expression, a, b, want in (
            ("relu", "relu(x)", 3, -5, 0), ("abs", "abs(x)", 3, -5, 2),
            ("clamp", "clamp(x, -1, 1)", 3, -2.5, 0.5),
            ("square", "square(x)", 3, -5, 4),
            ("sign", "sign(x)", 3, -5, -1),
            ("equal", "cast(x == -2, f32)", 3, -5, 1),
            ("reciprocal", "reciprocal(x)", 3, -5, -0.5),
            ("negate", "-x", 3, -5, 2), ("double", "x * 2", 3, -5, -4),
            ("halve", "x / 2", 3, -5, -1), ("maximum", "maximum(x, 1)", 3,
                                            -5, 1),
            ("exp", "floor(exp(x))", 3, -3, 1)):
        yield Snippet(f"{name} of P", parts("x", "pair", a, b),
                      {expression: f32(want)}, exact=True)
    yield Snippet("max of P", parts("x", "pair", [3, -9], [-5, 9]),
                  {"max(x)": f32(0), "min(x)": f32(-2),
                   "argmax(x)": i64(1), "sum(x)": f32(-2)}, exact=True)
    yield Snippet("norm of P", parts("x", "pair", [1, 3], [2, 1]),
                  {"sqrt(sum(x * x))": f32(5)}, exact=True)
    yield Snippet("argmax over a split axis",
                  value("x", "pair(S(0))", [10, 5, 3, 8]) + "\n" +
                  value("tied", "pair(S(0))", [1, 7, 7, 2]) + "\n" +
                  value("late", "pair(S(1))", [[1, 2, 9, 3], [4, 4, 4, 4]]),
                  {"argmax(x)": i64(0), "argmax(tied)": i64(1),
                   "argmax(late, axis = 1)": i64([2, 0])}, exact=True)
    yield Snippet("mean of an uneven split",
                  value("x", "pair(S(0))", count(3, 4)),
                  {"mean(x)": f32(5.5), "mean(x[0])": f32(1.5),
                   "mean(x[0:1])": f32(1.5), "mean(x, axis = 1)":
                   f32([1.5, 5.5, 9.5])}, exact=True)
    yield Snippet("row-parallel bias once", """
        const x: f32[1, 2] on pair(S(1)) = [[1, 1]]
        const w: f32[2, 1] on pair(S(0)) = [[2], [3]]
        const b: f32[1] on pair(B) = [10]
        h = x @ w on pair(P)
        y = h + b""", {"y": f32([[15]])},
                  pieces={"h": {0: f32([[2]]), 1: f32([[3]])}}, exact=True)
    rng = np.random.default_rng(3)
    mixed = f32(rng.normal(size=(8, 41)) * 10.0 ** rng.integers(
        -6, 7, (8, 41)))
    yield Snippet("the parts of one P in one order",
                  parts("x", "grid", *mixed[:4], kind="P, P") +
                  "\ny = x on grid(B, B)", pieces={"y": everywhere(
                      (mixed[0] + mixed[1]) + (mixed[2] + mixed[3]))})


CUBE = """
placement cube = cpu[0..8] as [2, 2, 2]
model m on cube {
"""


def on_eight():
    rng = np.random.default_rng(4)
    parts_of = f32(rng.normal(size=(4, 37)) * 10.0 ** rng.integers(
        -6, 7, (4, 37)))
    local = [parts_of[r // 2] for r in range(8)]
    return Snippet("(P, P, B) to (B, B, B)",
                   parts("x", "cube", *local, kind="P, P, B") +
                   "\ny = x on cube(B, B, B)", pieces={
                       "y": everywhere(parts_of.astype(np.float64).sum(0)
                                       .astype(np.float32), 8)})


# ---- uneven and nested splits ----

def splits():
    yield Snippet("[5, 3] nested, gathered",
                  value("x", "grid(S(0), S(0))", count(5, 3)) +
                  "\ny = x on grid(B, B)",
                  pieces={"y": everywhere(count(5, 3))}, exact=True)
    yield Snippet("[8] nested, gathered",
                  value("x", "grid(S(0), S(0))", count(8)) +
                  "\ny = x on grid(B, B)",
                  pieces={"y": everywhere(count(8))}, exact=True)
    yield Snippet("reshape of a split trailing factor",
                  value("x", "pair(S(1))", count(2, 4)) + "\n" +
                  value("z", "line(S(1))", count(12, 8)) + """
        y = reshape(x, [8]) on pair(B)
        w = reshape(z, [16, 6]) on line(B)""",
                  pieces={"y": everywhere(count(8), 2),
                          "w": everywhere(count(16, 6))}, exact=True)
    yield Snippet("reshape of a nested split",
                  value("x", "grid(S(0), S(0))", count(12)) + """
        y = reshape(x, [6, 2]) on grid(S(0), S(0))""",
                  pieces={"y": {0: count(6, 2)[:2], 1: count(6, 2)[2:3],
                                2: count(6, 2)[3:5], 3: count(6, 2)[5:]}},
                  exact=True)
    for n, on, lengths in ((33, "line(S(0))", [9, 8, 8, 8]),
                           (13, "three(S(0))", [5, 4, 4]),
                           (17, "line(S(0))", [5, 4, 4, 4]),
                           (6, "grid(S(0), S(0))", [2, 1, 2, 1]),
                           (6, "line(S(0))", [2, 2, 1, 1]),
                           (3, "line(S(0))", [1, 1, 1, 0]),
                           (1, "grid(S(0), S(0))", [1, 0, 0, 0]),
                           (0, "line(S(0))", [0, 0, 0, 0])):
        at = np.cumsum([0] + lengths)
        x = count(n) if n else np.zeros(0, np.float32)
        yield Snippet(f"{n} over {on}", f"""
        const x: f32[{n}] on {on} = {literal(x)}
        y = x + 1 on {on}""",
                      pieces={"y": {r: x[at[r]:at[r + 1]] + 1
                                    for r in range(len(lengths))}},
                      exact=True)


# ---- conversions between placements ----

def conversions():
    total = f32(R0) + f32(R1)
    tall = np.concatenate([f32(R0), f32(R1)])
    yield Snippet("P to S(1) elsewhere", parts("x", "pair", R0, R1) +
                  "\ny = x on other(S(1))",
                  pieces={"y": {2: total[:, :2], 3: total[:, 2:]}},
                  exact=True)
    yield Snippet("B to S(1) elsewhere", value("x", "pair(B)", R0) +
                  "\ny = x on other(S(1))",
                  pieces={"y": {2: f32(R0)[:, :2], 3: f32(R0)[:, 2:]}},
                  exact=True)
    yield Snippet("S(0) to S(1) elsewhere", value("x", "pair(S(0))", tall) +
                  "\ny = x on other(S(1))",
                  pieces={"y": {2: tall[:, :2], 3: tall[:, 2:]}}, exact=True)
    for shape in (25, 33), (13, 17):
        yield Snippet(f"{shape} there and back on three",
                      value("x", "three(B)", count(*shape)) + """
        a = x on three(S(0))
        b = a on three(S(1))
        y = b on three(B)""",
                      pieces={"y": everywhere(count(*shape), 3)}, exact=True)
    yield Snippet("one rank to a mesh", value("x", "one(B)", [1, 2, 3, 4]) +
                  "\ny = x on grid(B, S(0))",
                  pieces={"y": {0: f32([1, 2]), 1: f32([3, 4]),
                                2: f32([1, 2]), 3: f32([3, 4])}}, exact=True)
    yield Snippet("a line to a mesh and back", """
        const x: f32[4, 8] on line(S(0)) = ones()
        y = x on grid(B, S(0))
        z = y on line(S(0))""",
                  pieces={"y": everywhere(np.ones((2, 8), np.float32)),
                          "z": everywhere(np.ones((1, 8), np.float32))},
                  exact=True)
    ones = np.ones((4, 4), np.float32)
    none = np.full((4, 4), -0.0, np.float32)
    yield Snippet("S(0) to P",
                  parts("x", "pair", ones, ones, kind="S(0)")
                  .replace("[4, 4]", "[8, 4]") + "\ny = x on pair(P)",
                  pieces={"y": {0: np.concatenate([ones, none]),
                                1: np.concatenate([none, ones])}},
                  exact=True)
    yield Snippet("(S(0), P) to (B, B)",
                  parts("x", "grid", ones, ones, ones, ones,
                        kind="S(0), P").replace("[4, 4]", "[8, 4]") +
                  "\ny = x on grid(B, B)",
                  pieces={"y": everywhere(np.full((8, 4), 2, np.float32))},
                  exact=True)


# ---- kinds of reductions, identities ----

def kinds():
    low = -np.inf
    yield Snippet("S(0) to P(max)", value("x", "pair(S(0))", [-3, -1]) + """
        p = x on pair(P(max))
        y = p on pair(B)""", pieces={
            "p": {0: f32([-3, low]), 1: f32([low, -1])},
            "y": everywhere(f32([-3, -1]), 2)}, exact=True)
    yield Snippet("S(0) to P(min)", value("x", "pair(S(0))", [3, 1]) + """
        p = x on pair(P(min))
        y = p on pair(B)""", pieces={
            "p": {0: f32([3, -low]), 1: f32([-low, 1])},
            "y": everywhere(f32([3, 1]), 2)}, exact=True)
    yield Snippet("the last axis first",
                  parts("x", "grid", [3], [-5], [1], [4],
                        kind="P, P(max)") + "\ny = x on grid(B, B)",
                  pieces={"y": everywhere(f32([7]))}, exact=True)
    yield Snippet("the last axis first, other way round",
                  parts("x", "grid", [3], [-5], [1], [4],
                        kind="P(max), P") + "\ny = x on grid(B, B)",
                  pieces={"y": everywhere(f32([5]))}, exact=True)
    yield Snippet("-1 * P(max)", parts("x", "pair", 1, 5, kind="P(max)") +
                  "\ny = -1 * x on pair(P(min))\nz = -1 * x",
                  {"z": f32(-5)},
                  pieces={"y": {0: f32(-1), 1: f32(-5)}}, exact=True)
    yield Snippet("P(max) + 2", parts("x", "pair", 1, 5, kind="P(max)") +
                  "\ny = x + 2 on pair(P(max))",
                  {"y": f32(7)},
                  pieces={"y": {0: f32(3), 1: f32(7)}}, exact=True)
    yield Snippet("relu of P(max)", parts("x", "pair", [-3, 4], [-1, 2],
                                          kind="P(max)") +
                  "\ny = relu(x) on pair(P(max))",
                  {"y": f32([0, 4])}, pieces={
                      "y": {0: f32([0, 4]), 1: f32([0, 2])}}, exact=True)
    yield Snippet("abs of P(max)", parts("x", "pair", [-3, 1], [-1, -7],
                                         kind="P(max)"),
                  {"abs(x)": f32([1, 1]), "x * x": f32([1, 1]),
                   "x - x": f32([0, 0]), "x + x": f32([-2, 2])}, exact=True)
    yield Snippet("P(max) of equal copies",
                  value("x", "pair(B)", [-2, 3]) +
                  "\np = x on pair(P(max))\ny = p on pair(B)",
                  pieces={"y": everywhere(f32([-2, 3]), 2)}, exact=True)
    yield Snippet("-0.0 through P",
                  "const x: f32[1] on pair(B) = [-0.0]\n"
                  "p = x on pair(P)\ny = p on pair(B)",
                  pieces={"y": everywhere(f32([-0.0]), 2)}, exact=True)
    yield Snippet("integers through P", """
        const x: i32[2] on pair(B) = [-7, 9]
        p = x on pair(P)
        q = x on pair(P(max))""", {"p": np.array([-7, 9], np.int32)},
                  pieces={"p": {0: np.array([-7, 9], np.int32),
                                1: np.array([0, 0], np.int32)}}, exact=True)
    yield Snippet("an input on P", """
        input fed: f32[2] on pair(P)
        y = fed on pair(B)""", pieces={
            "fed": {0: f32([5, -6]), 1: f32([-0.0, -0.0])},
            "y": everywhere(f32([5, -6]), 2)},
                  feeds={"fed": f32([5, -6])}, exact=True)


# ---- bytes that the busiest rank receives, as a part of the whole ----

FRACTIONS = [
    ("(B, S(0))", "(S(1), S(1))", .125, .0625, .0137),
    ("(S(0), S(0))", "(B, S(0))", .5, .5, .125),
    ("(S(0), S(0))", "(S(0), S(1))", .125, .0625, .0137),
    ("(B, S(0))", "(S(0), S(0))", .25, .125, .0156),
    ("(P, S(0))", "(B, B)", 1.0, 1.25, 1.094),
    ("(P, P)", "(B, B)", 1.5, 1.75, 1.969),
    ("(P, P)", "(S(0), S(0))", .75, .875, .984),
    ("(P, B)", "(B, B)", 1.0, 1.25, 1.094),
]
SIDE = 256


def plan_of(folder, p, q, rows):
    path = os.path.join(folder, f"{p}x{q}.sbp")
    lines = [f"placement grid = cpu[0..{p * q}] as [{p}, {q}]",
             "model m on grid {"]
    for i, row in enumerate(rows):
        lines.append(f"input x{i}: f32[{SIDE}, {SIDE}] on {row[0]}")
        lines.append(f"y{i} = x{i} on {row[1]}")
        lines.append(f"output y{i}")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n}\n")
    done = subprocess.run([SBPC, "--emit=plan-json", path], timeout=TIMEOUT,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, check=False)
    if done.returncode:
        return None, done.stderr
    return {b["line"]: b for b in json.loads(done.stdout)["boxing"]}, None


def bytes_received(tally, folder):
    for k, (p, q) in enumerate(((2, 2), (4, 2), (8, 8))):
        plans, problem = plan_of(folder, p, q, FRACTIONS)
        for i, row in enumerate(FRACTIONS):
            name = f"{row[0]} to {row[1]} on {p}x{q}"
            if problem:
                tally.add(name, problem)
                continue
            b = plans.get(4 + 3 * i)
            got = b["recv_busiest"] / (4 * SIDE * SIDE) if b else None
            wrong = got is None or abs(got - row[2 + k]) > 6e-4
            if b and not wrong and "P" not in row[0]:
                wrong = b["recv_busiest"] != b["lower_bound"]
            tally.add(name, f"{got}, not {row[2 + k]}: {b}" if wrong
                      else None)


# ---- random masks ----

MASKS = """
p = bernoulli([6, 10], 0.5, key = 5) on {terms}
u = uniform([6, 10], 0, 1, key = 6) on {terms}
n = normal([6, 10], 0, 1, key = 7) on {terms}
m = ones([6, 10]) * p
output p; output u; output n; output m
}}
"""


def masks(tally, folder):
    """Equal on 1, 2, 4 and 8 ranks under every distribution."""
    first = None
    for mesh, terms in (("[1]", "(B)"), ("[2]", "(B)"), ("[2]", "(S(0))"),
                        ("[2]", "(S(1))"), ("[4]", "(S(0))"),
                        ("[4]", "(S(1))"), ("[2, 2]", "(S(0), S(1))"),
                        ("[2, 2]", "(S(1), B)"), ("[2, 2]", "(S(1), S(1))"),
                        ("[8]", "(S(1))"), ("[2, 4]", "(S(0), S(1))")):
        world = int(np.prod(json.loads(mesh)))
        with open(f"{folder}/m.sbp", "w", encoding="utf-8") as f:
            f.write(f"placement w = cpu[0..{world}] as {mesh}\n"
                    "model m on w {" + MASKS.format(terms=terms))
        args = [a for n in "punm" for a in ("--output", f"{n}={n}.npy")]
        done = subprocess.run([SBPRUN, "m.sbp", *args], cwd=folder,
                              timeout=TIMEOUT, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        name = f"random values on {mesh}{terms}"
        if done.returncode:
            tally.add(name, done.stdout.decode()[:1000])
            continue
        got = {n: np.load(f"{folder}/{n}.npy") for n in "punm"}
        first = first or got
        wrong = [n for n in "punm" if not np.array_equal(first[n], got[n])]
        if not 10 < got["p"].sum() < 50 or not 0.3 < got["u"].mean() < 0.7:
            wrong.append("the share of ones")
        tally.add(name, f"differ: {wrong}" if wrong else None)


def main():
    tally = Tally("-v" in sys.argv[1:])
    for group in partial_values, splits, conversions, kinds:
        tally.snippets(list(group()), HEAD, ["-n", "4"])
    tally.snippets([on_eight()], CUBE, ["-n", "8"])
    with tempfile.TemporaryDirectory(prefix="cases.") as folder:
        bytes_received(tally, folder)
        masks(tally, folder)
    print(f"oracle_cases: {tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(main())

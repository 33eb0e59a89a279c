"""sbpc --simulate: all ranks in one process give the bits of the real run, in
any order; emitted code that was broken is found out; wrong options are
errors."""
import os
import re

import numpy as np
from common import SAMPLES, SBPC, SBPRUN, expect, main, run

FASHION = ["--load", os.path.join(SAMPLES, "fashion.safetensors"),
           "--data", "test=/usr/share/datasets/fashion-mnist"]
SEEDS = ("--simulate", "--simulate=1", "--simulate=77")


def save(directory, **arrays):
    for name, array in arrays.items():
        np.save(os.path.join(directory, name + ".npy"), array)
    return [word for name in arrays
            for word in ("--input", f"{name}={name}.npy")]


def normal(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype("f4")


def contents(directory, names):
    out = {}
    for name in names:
        path = os.path.join(directory, name)
        with open(path, "rb") as f:
            out[name] = f.read()
        os.remove(path)
    return out


def verdict(directory, options, model, arguments):
    """Simulates; what stdout has, and the line on stderr."""
    text = run("sh", "-c", 'exec "$@" 2>verdict', "sh", SBPC, *options, model,
               "--", *arguments, cwd=directory)
    with open(os.path.join(directory, "verdict")) as f:
        return text, f.read()


def same(directory, model, options, arguments, files, says, seeds=SEEDS):
    """The simulation prints and writes what the run does."""
    text = run(SBPRUN, *options, model, *arguments, cwd=directory)
    want = contents(directory, files)
    for seed in seeds:
        got, said = verdict(directory, [seed, *options], model, arguments)
        what = f"{model} {options} {seed}"
        expect(got == text, f"{what}: prints\n{got}\nnot\n{text}")
        expect(contents(directory, files) == want, f"{what}: other files")
        expect(says in said and
               said.endswith(": every rank in order, no race\n"), said)


def sample(directory, name, options, arguments, files, says, seeds=SEEDS):
    same(directory, os.path.join(SAMPLES, name + ".sbp"), options, arguments,
         files, says, seeds)


def test_small(directory):
    x = save(directory, x=normal(64, 32))
    sample(directory, "two", [], [*x, "--show", "h,y", "--output", "y=y",
                                  "--save", "w", "--summary"], ["y", "w"],
           "two: simulated 2 ranks, 1 step of 1 move:")
    x = save(directory, x=normal(2, 2, 8))
    sample(directory, "mlp2d", [], [*x, "--show", "y", "--output", "y=y"],
           ["y"], "mlp2d: simulated 4 ranks, 1 step of 0 moves:")
    xw = save(directory, x=normal(6, 5), w=normal(5, 4))
    sample(directory, "matmul2d", [], [
        *xw, "--show", "y", "--local-output", "y=y{rank}"],
           ["y0", "y1", "y2", "y3"], "matmul2d: simulated 4 ranks,")
    ids = save(directory, ids=np.arange(10).reshape(2, 5) * 100)
    sample(directory, "embedding", [], [*ids, "--output", "x=x"], ["x"],
           "embed: simulated 3 ranks,")


def test_compilers(directory):
    """The tables compile without a warning, with and without moves."""
    for name, x in (("mlp2d", normal(2, 2, 8)), ("two", normal(64, 32))):
        _, said = verdict(directory, [
            "--simulate", "--cc", "cc -Wall -Wextra -Werror"],
            os.path.join(SAMPLES, name + ".sbp"), save(directory, x=x))
        expect(f"{name}: simulated" in said, said)


def test_fashion(directory):
    for mesh, ranks in (([], "1 rank"), (["-D", "d=2"], "2 ranks"),
                        (["-D", "t=4"], "4 ranks"),
                        (["-D", "d=2", "-D", "t=2"], "4 ranks")):
        sample(directory, "fashion", mesh, [*FASHION, "--eval"], [],
               f"fashion: simulated {ranks}, 10 steps", SEEDS[:2])


def test_gpt2(directory):
    ids = save(directory, ids=np.arange(32).reshape(2, 16) * 30)
    for mesh in (["-D", "d=2", "-D", "t=2"], ["-D", "t=3"]):
        sample(directory, "gpt2", [
            *mesh, "-D", "width=48", "-D", "vocab=997"],
               [*ids, "--output", "logits=y"], ["y"], "gpt2: simulated")


STAGES = """let n = 3
placement a = cpu[0..n]
placement b = cpu[2, 3, 1]
placement c = cpu[[4, 0], [1, 2]]
model stages on a {
  state s: f32[7, 5] on a(S(0)) = normal(0, 1)
  input x: f32[7, 5] on b(S(1))
  h = (x on a(B)) + s
  update s = h
  g = h on c(S(0), S(1))
  e = sum(g, 0) on c(B, B)
  t = g @ transpose(g, 0, 1) on c(B, S(0))
  output t
  output e
  total = sum(h on b(S(0)))
  output total
}
"""


def test_placements(directory):
    """Ranks in other orders, empty and uneven pieces, states."""
    path = os.path.join(directory, "stages.sbp")
    with open(path, "w") as f:
        f.write(STAGES)
    arguments = [*save(directory, x=normal(7, 5)), "--steps", "4", "--show",
                 "t,e,s", "--output", "total=total", "--log", "log"]
    for options in ([], ["-D", "n=4", "--reproducible"], ["--auto"]):
        text = run(SBPRUN, *options, path, *arguments, cwd=directory)
        want = contents(directory, ["total"])
        expect(text.count("[rank ") > 20, text)
        for seed in range(6):
            got, said = verdict(directory, [f"--simulate={seed}", *options],
                                path, arguments)
            expect(got == text, f"{options} {seed}:\n{got}\n{text}")
            expect(contents(directory, ["total"]) == want, "total")
            expect("simulated 5 ranks, 4 steps of" in said, said)


# Each rank of a pair writes half of the other's sums, in the summands' place.
PAIR = """placement p = cpu[0..2]
model pair on p {
  input x: f32[96, 64] on (S(0))
  param w: f32[96, 64] on (S(0)) = normal(0, 1)
  g = transpose(x, 0, 1) @ w
  h = (g on (B)) + 1
  k = transpose(x, 0, 1) @ (w + 1)
  y = (k on (B)) * h
  output y
}
"""

# The first rank runs ahead of the second, as far as its messages have room.
AHEAD = """placement a = cpu[0]
placement b = cpu[1]
model ahead on a {
  input x: f32[96, 8] on a(B)
  s = x + 1 on a(B)
  t = s * 2 on a(B)
  u = s * 3 on a(B)
  y = (s on b(B)) * (t on b(B)) + (u on b(B))
  output y
}
"""


def test_two_ranks(directory):
    for name, text, x in (("pair", PAIR, normal(96, 64)),
                          ("ahead", AHEAD, normal(96, 8))):
        path = os.path.join(directory, name + ".sbp")
        with open(path, "w") as f:
            f.write(text)
        same(directory, path, [], [*save(directory, x=x), "--steps", "5",
                                   "--output", "y=y"], ["y"],
             f"{name}: simulated 2 ranks, 5 steps of",
             [f"--simulate={seed}" for seed in range(8)])


MANY = """placement line = cpu[0..300]
model many on line {
  input x: f32[300, 2] on (S(0))
  h = x on (B)
  y = sum(h * 2)
  output y
}
"""


def test_many_ranks(directory):
    path = os.path.join(directory, "many.sbp")
    with open(path, "w") as f:
        f.write(MANY)
    x = np.arange(600, dtype="f4").reshape(300, 2)
    _, said = verdict(directory, ["--simulate=3"], path, [
        *save(directory, x=x), "--output", "y=y.npy", "--steps", "2"])
    expect("simulated 300 ranks, 2 steps of 1 move:" in said, said)
    y = np.load(os.path.join(directory, "y.npy"))
    expect(y == x.sum() * 2, str(y))


# ---- what is broken is found ----

GATHER = """placement pair = cpu[0, 1, 2]
model broken on pair {
  input x: f32[96, 64] on (S(0))
  h = x * 2
  g = h on (B)
  s = g + 1
  output s
  z = sum(s)
  output z
}
"""

# A compiler that first replaces a line of what was emitted.
BROKEN = """import os, re, subprocess, sys
for path in sys.argv[3:]:
    if path.endswith(".c"):
        text = open(path).read()
        open(path, "w").write(re.sub(sys.argv[1], sys.argv[2], text))
sys.exit(subprocess.run(["cc"] + sys.argv[3:]).returncode)
"""


def broken(directory, old, new):
    """What the simulation says of a program in which OLD became NEW."""
    for name, text in (("m.sbp", GATHER), ("cc.py", BROKEN)):
        with open(os.path.join(directory, name), "w") as f:
            f.write(text)
    arguments = save(directory, x=normal(96, 64))
    return run(SBPC, "--simulate", "--cc",
               f"/usr/bin/python3 cc.py {old} {new}", "m.sbp", "--",
               *arguments, code=1, cwd=directory)


def expect_text(text, *parts):
    for part in parts:
        expect(re.search(part, text), f"no '{part}' in: {text}")
    expect(text.count("\n") == 1, f"more than one line: {text}")


def test_broken_programs(directory):
    text = broken(directory, r"SBP_TRY.sbp_move_run",
                  r"if(m->rank!=1)\g<0>")
    expect_text(text, "^broken: rank 1, step 1: wrong order: the step has "
                      "ended, and move 0 of the plan is next for this rank")
    text = broken(directory, r"AT_h,.AT_g", "AT_h,AT_h+64")
    expect_text(text, r"race: rank \d reads bytes \d+ to \d+ of rank \d's "
                r"arena in all-gather\(0\) of 'h' \(m.sbp:5\); rank \d has "
                r"written them in all-gather\(0\) of 'h' \(m.sbp:5\), and "
                "nothing orders the two")


# ---- the command line ----

def test_options(directory):
    two = os.path.join(SAMPLES, "two.sbp")
    others = (["-o", "m"], ["--emit=c"], ["--per-rank"], ["-MD"],
              ["-MF", "f"], ["-MT", "t"], ["--list-signatures"],
              ["--dump-before=fuse"], ["--dump-after=fuse"],
              ["--stop-after=fuse"], ["--passes=fuse"], ["--diff-pass=fuse"])
    for option in others:
        text = run(SBPC, "--simulate", *option, two, code=2, cwd=directory)
        name = option[0].split("=")[0]
        expect(text == "sbpc: error: --simulate runs the model and writes "
               f"nothing: it does not go with {name}\n", text)
    for seed in ("x", "-1", "1x", "99999999999999999999"):
        text = run(SBPC, "--simulate=" + seed, two, code=2)
        expect(f"as its seed, not '{seed}'" in text, text)
    text = run(SBPC, "--simulate", two, "3", code=2)
    expect("one model file a run, not 2; options of the program follow '--'"
           in text, text)
    text = run(SBPC, two, "--", "--steps", "3", code=2)
    expect("what follows '--' is for the program: use --simulate" in text,
           text)
    text = run(SBPC, "--simulate", "--", two, code=2)
    expect("which model file?" in text, text)
    text = run(SBPC, "--simulate", "no.sbp", code=2, cwd=directory)
    expect("no.sbp" in text, text)
    expect(not os.listdir(directory), str(os.listdir(directory)))


def test_program_options(directory):
    two = os.path.join(SAMPLES, "two.sbp")
    text = run(SBPC, "--simulate", two, "--", "--help")
    expect("--show NAME" in text, text)
    for arguments, says in (
            (["--nonsense"], "two: unknown option"),
            (["--bench", "3"], "two: --bench: a simulation takes other"),
            ([], "two: rank 0: input 'x' (two.sbp:9) has no data"),
            (["--output", "q=q.npy"], "two: --output"),
            (["--input", "x=no.npy"], "two: rank 0: no.npy: cannot open")):
        text = run(SBPC, "--simulate", two, "--", *arguments, code=2,
                   cwd=directory)
        expect(says in text and text.count("two: ") == 1, text)
    text = run(SBPC, "--simulate", two, code=2, env={"SBP_TIMEOUT": "soon"})
    expect(text.count("\n") == 1 and "SBP_TIMEOUT" in text, text)


def test_failing_step(directory):
    """An error of a kernel is said once, as by the rank that has it."""
    ids = save(directory, ids=np.full((2, 5), 1001))
    text = run(SBPC, "--simulate", os.path.join(SAMPLES, "embedding.sbp"),
               "--", *ids, code=1, cwd=directory)
    expect(text.startswith("embed: rank 0, step 1, ") and
           text.count("\n") == 1, text)


def test_cuda(directory):
    path = os.path.join(directory, "c.sbp")
    with open(path, "w") as f:
        f.write(GATHER.replace("cpu[", "cuda["))
    text = run(SBPC, "--simulate", path, code=2)
    expect("is for cuda" in text, text)


main(test_small, test_compilers, test_fashion, test_gpt2, test_placements,
     test_two_ranks, test_many_ranks, test_broken_programs, test_options,
     test_program_options, test_failing_step, test_cuda)

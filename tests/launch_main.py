"""What programs do with their options: files in and out, --show, --bench."""
import json
import os
import re

import numpy as np

from common import (SBPC, SBPRUN, expect, main, read_safetensors, run,
                    write_safetensors)

HEAD = "let n = 5\n"
GRID = "placement g = cpu[[0, 1], [2, 3]]\n"
LINE = "placement g = cpu[0, 1, 2]\n"
MODEL = """
model m on g {
  input x: f32[n, 3] on (%s)
  input k: i64[4] on (%s)
  param w: f32[n, 3] on (%s) = normal(0, 1)
  state count: i64[] = zeros()
  y = x * w
  total = sum(y)
  big = y > 0
  update count = count + 1
  output y
  output total
  output big
  output k as "k2"
}
"""


def build(d, placement=GRID, terms=("S(0), S(1)", "P, B", "S(1), B"), name="m"):
    path = os.path.join(d, name + ".sbp")
    with open(path, "w", encoding="utf-8") as f:
        f.write(HEAD + placement + MODEL % terms)
    program = os.path.join(d, name)
    run(SBPC, path, "-o", program)
    return program


def inputs(d):
    x = (np.arange(15, dtype="f4").reshape(5, 3) - 7) / 4
    k = np.array([1, -2, 3, 2 ** 40])
    np.save(os.path.join(d, "x.npy"), x)
    np.save(os.path.join(d, "k.npy"), k)
    return x, k, ["--input", "x=x.npy", "--input=k=k.npy"]


def test_files(d):
    program, (x, k, feed) = build(d), inputs(d)
    run(SBPRUN, "-n", 4, program, *feed, "--save", "w.safetensors",
        "--output", "y=y.npy", "--output", "k2=k2.npy", "--output",
        "total=t.npy", "--output", "big=b.npy", "--steps", 3, cwd=d)
    saved = read_safetensors(os.path.join(d, "w.safetensors"))
    load = lambda name: np.load(os.path.join(d, name))
    expect(set(saved) == {"w", "count"}, saved)
    expect(saved["count"] == 3, saved)
    expect((load("y.npy") == x * saved["w"]).all(), "y")
    expect((load("k2.npy") == k).all() and load("k2.npy").dtype == k.dtype, k)
    expect((load("b.npy") == (x * saved["w"] > 0)).all(), "big")
    expect(load("b.npy").dtype == bool and load("t.npy").shape == (), "types")


def test_other_mesh(d):
    """The same numbers on any mesh, from the seed and from a file."""
    a = build(d)
    b = build(d, LINE, ("B", "S(0)", "S(0)"), "b")
    _, _, feed = inputs(d)
    run(SBPRUN, "-n", 4, a, *feed, "--seed", 9, "--save", "a.st", cwd=d)
    run(SBPRUN, "-n", 3, b, *feed, "--seed", 9, "--save", "b.st", cwd=d)
    run(SBPRUN, "-n", 3, b, *feed, "--load", "a.st", "--save", "c.st", cwd=d)
    a, b, c = (read_safetensors(os.path.join(d, f"{n}.st")) for n in "abc")
    expect((a["w"] == b["w"]).all() and (a["w"] == c["w"]).all(), (a, b, c))
    expect(a["count"] == 1 and c["count"] == 2, (a, c))
    expect(len(np.unique(a["w"])) == 15, a)


def test_local(d):
    program, (x, k, _) = build(d), inputs(d)
    for rank, (rows, columns) in enumerate(
            [((0, 3), (0, 2)), ((0, 3), (2, 3)), ((3, 5), (0, 2)),
             ((3, 5), (2, 3))]):
        piece = x[slice(*rows), slice(*columns)]
        np.save(os.path.join(d, f"x.{rank}.npy"), piece)
        np.save(os.path.join(d, f"k.{rank}.npy"), k * (rank // 2 + 1))
    run(SBPRUN, "-n", 4, program, "--local-input", "x=x.{rank}.npy",
        "--local_input=k=k.{rank}.npy", "--output", "x=x2.npy", "--output",
        "k2=k2.npy", "--local-output", "x=out{rank}.npy", cwd=d)
    expect((np.load(os.path.join(d, "x2.npy")) == x).all(), "x")
    expect((np.load(os.path.join(d, "k2.npy")) == 3 * k).all(), "k is a sum")
    for rank in range(4):
        a, b = (np.load(os.path.join(d, n % rank))
                for n in ("x.%d.npy", "out%d.npy"))
        expect(a.shape == b.shape and (a == b).all(), rank)
    np.save(os.path.join(d, "x.2.npy"), x)
    out = run(SBPRUN, "-n", 4, program, "--local-input", "x=x.{rank}.npy",
              "--local_input=k=k.{rank}.npy", cwd=d, code=2)
    expect("rank 2: x.2.npy: f32[5, 3], but this rank's piece of 'x' is "
           "f32[2, 2]" in out, out)


def test_show(d):
    program, (_, k, feed) = build(d), inputs(d)
    out = run(SBPRUN, "-n", 4, program, *feed, "--show", "x,big", "--show=k",
              "--steps", 2, cwd=d)
    lines = out.splitlines()
    expect(lines[0] == "[rank 0] x f32[3, 2] of [5, 3] (S(0), S(1))", out)
    expect(lines[1:4] == ["-1.75 -1.5", "-1 -0.75", "-0.25 0"], out)
    expect("[rank 3] x f32[2, 1] of [5, 3] (S(0), S(1))\n1\n1.75\n" in out,
           out)
    expect(re.search(r"\[rank 2\] big bool\[[0-9, ]+\] of \[5, 3\] \(.*\)\n"
                     "(true|false)", out), out)
    expect("[rank 1] k i64[4] of [4] (P, B)\n1 -2 3 1099511627776\n" in out,
           out)
    expect("[rank 2] k i64[4] of [4] (P, B)\n0 0 0 0\n" in out, out)
    half = len(lines) // 2
    expect(lines[:half] == lines[half:], "once a step")


def test_show_many_axes(d):
    path = os.path.join(d, "v.sbp")
    with open(path, "w", encoding="utf-8") as f:
        f.write("placement p = cpu[0, 1, 2]\nmodel v on p {\n"
                "  const c: f32[2, 2, 2] on (S(0)) = "
                "[[[1, 0.5], [1e-5, nan]], [[inf, -inf], [100, 1e20]]]\n"
                "  y = c + 0\n  output y\n}\n")
    out = run(SBPRUN, path, "--show", "c")
    expect(out == "[rank 0] c f32[1, 2, 2] of [2, 2, 2] (S(0))\n1 0.5\n"
           "1e-05 nan\n[rank 1] c f32[1, 2, 2] of [2, 2, 2] (S(0))\n"
           "inf -inf\n100 1e+20\n"
           "[rank 2] c f32[0, 2, 2] of [2, 2, 2] (S(0))\n", out)
    with open(path, "w", encoding="utf-8") as f:
        f.write("placement p = cpu[0]\nmodel v on p {\n"
                "  y = reshape(arange(8), [2, 2, 2])\n  output y\n}\n")
    out = run(SBPRUN, path, "--show", "y")
    expect(out == "[rank 0] y i64[2, 2, 2] of [2, 2, 2] (B)\n"
           "0 1\n2 3\n\n4 5\n6 7\n", out)


def test_load_refusals(d):
    program, (x, _, feed) = build(d), inputs(d)
    one = np.array(1)

    def load(tensors, code):
        write_safetensors(os.path.join(d, "f.st"), tensors)
        return run(SBPRUN, "-n", 4, program, *feed, "--load", "f.st", cwd=d,
                   code=code)

    out = load({"count": one}, 2)
    expect("f.st lacks 'w'" in out, out)
    out = load({"w": x.T.copy(), "count": one}, 2)
    expect("'w' is f32[3, 5], the program's is f32[5, 3]" in out, out)
    out = load({"w": x.astype("i8"), "count": one}, 2)
    expect("'w' is i64[5, 3], the program's is f32[5, 3]" in out, out)
    out = load({"w": x, "count": one, "z": one}, 0)
    done = run(SBPRUN, "-n", 4, program, *feed, "--load", "no.st", cwd=d,
               code=2)
    expect("no.st" in done, done)


def test_bench(d):
    program, (_, _, feed) = build(d), inputs(d)
    out = run(SBPRUN, "-n", 4, program, *feed, "--bench", 20, "--output",
              "y=y.npy", cwd=d)
    line = json.loads(out.splitlines()[-1])
    plan = json.loads(run(SBPC, "--emit=plan-json", program + ".sbp"))
    expect(line["recv_bytes"] == plan["recv_busiest"], (line, plan))
    expect(set(line) == {"steps", "median_ms", "min_ms", "comm_ms",
                         "peak_rss_mib", "recv_bytes", "ranks", "threads"},
           line)
    expect(line["steps"] == 20 and line["ranks"] == 4, line)
    expect(0 < line["min_ms"] <= line["median_ms"], line)


def test_log(d):
    program, (_, _, feed) = build(d), inputs(d)
    run(SBPRUN, "-n", 4, program, *feed, "--steps", 3, "--log", "log", cwd=d)
    with open(os.path.join(d, "log"), encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    expect([line["step"] for line in lines] == [1, 2, 3], lines)
    expect(all(isinstance(line["total"], float) for line in lines), lines)


def write_idx(path, values):
    types = {"uint8": 8, "int32": 12, "float32": 13}
    with open(path, "wb") as f:
        f.write(bytes([0, 0, types[str(values.dtype)], values.ndim]))
        for n in values.shape:
            f.write(n.to_bytes(4, "big"))
        f.write(values.astype(values.dtype.newbyteorder(">")).tobytes())


def test_eval(d):
    images = np.arange(12 * 4, dtype="u1").reshape(12, 4)
    labels = (np.arange(12) % 3).astype("u1")
    write_idx(os.path.join(d, "images"), images)
    write_idx(os.path.join(d, "labels"), labels)
    path = os.path.join(d, "e.sbp")
    with open(path, "w", encoding="utf-8") as f:
        f.write("let b = 4\nplacement p = cpu[0, 1, 2]\n"
                'data t = idx("images", "labels")\nmodel e on p {\n'
                "  input x: f32[b, 4] on (S(0)) = t.image\n"
                "  input l: i64[b] on (S(0)) = t.label\n"
                "  brightness = mean(x)\n  labels = sum(l)\n"
                "  output brightness\n  output labels\n}\n")
    out = run(SBPRUN, path, "--data", f"t={d}", "--eval")
    mean, labels_sum = out.splitlines()
    expect(labels_sum == f"labels: {labels.sum()}", out)
    expect(mean.startswith("brightness: "), out)
    expect(abs(float(mean.split()[1]) - images.mean() / 255) < 1e-6, out)
    out = run(SBPRUN, "-D", "b=5", path, "--data", f"t={d}", "--eval", code=2)
    expect("12 samples are no multiple of the batch of 5" in out, out)
    out = run(SBPRUN, "-D", "b=13", path, "--data", f"t={d}", code=2)
    expect("fewer than a batch" in out or "12" in out, out)
    out = run(SBPRUN, path, "--data", "q=.", code=2)
    expect("--data: 'q' is not one of: t" in out, out)
    out = run(SBPRUN, path, code=2)
    expect("images" in out, out)


def test_help(d):
    program = build(d)
    out = run(program, "--help", env={"WORLD_SIZE": ""})
    expect("usage: " in out and "--local-output NAME=F.{rank}.npy" in out, out)
    out = run(SBPRUN, "-n", 4, program, "--help")
    expect(out.count("usage: ") == 1, out)


def test_show_rebound(d):
    """A name that an input has is the input, compiled before or in memory."""
    path = os.path.join(d, "r.sbp")
    with open(path, "w", encoding="utf-8") as f:
        f.write("placement g = cpu[0]\nmodel r on g {\n  input x: f32[2]\n"
                "  x = x + 100\n  h = x * 2\n  y = h + 1\n  output y\n}\n")
    np.save(os.path.join(d, "x.npy"), np.ones(2, "f4"))
    feed = ["--input", "x=x.npy", "--show", "x"]
    run(SBPC, path, "-o", "r", cwd=d)
    shown = run("./r", *feed, cwd=d)
    expect(shown.splitlines()[1] == "1 1", shown)
    expect(run(SBPRUN, path, *feed, cwd=d) == shown, "sbprun differs")
    out = run(SBPRUN, path, *feed[:2], "--show", "h", cwd=d)
    expect(out.splitlines()[1] == "202 202", out)
    run(SBPC, "--keep", "x", path, "-o", "r", cwd=d)
    out = run("./r", *feed, cwd=d)
    expect(out.splitlines()[1] == "101 101", out)


def test_outputs_first(d):
    """What could not be written ends a run before its steps."""
    program, (_, _, feed) = build(d), inputs(d)
    with open(os.path.join(d, "old.npy"), "w", encoding="utf-8") as f:
        f.write("old")
    os.mkdir(os.path.join(d, "folder"))
    before = sorted(os.listdir(d))
    for option, text in (
            (["--save", "no/w.st"], "no/w.st: cannot write: No such file"),
            (["--output", "y=folder"], "folder: not a regular file"),
            (["--output", "y=" + "y" * 250], "cannot write: File name too"),
            (["--output", "y=old.npy/y"], "cannot write: Not a directory"),
            (["--local-output", "x=no/{rank}"], "no/0: cannot write")):
        out = run(SBPRUN, "-n", 4, program, *feed, "--show", "y", "--output",
                  "y=old.npy", *option, cwd=d, code=2)
        expect(text in out and "[rank" not in out, out)
        expect(out.count("m: ") == 1, f"said more than once: {out}")
        expect(sorted(os.listdir(d)) == before, os.listdir(d))
    with open(os.path.join(d, "old.npy"), encoding="utf-8") as f:
        expect(f.read() == "old", "a file was changed")


def test_summary(d):
    """Alone it runs nothing, and so wants no input."""
    program, (_, _, feed) = build(d), inputs(d)
    alone = run(SBPRUN, "-n", 4, program, "--summary", "--quiet")
    expect(re.search(r"^m \(.*m.sbp\): 4 ranks, ", alone), alone)
    expect(re.search(r"\ninput +x +f32\[5, 3\] +g\(S\(0\), S\(1\)\)", alone),
           alone)
    out = run(SBPRUN, "-n", 4, program, "--summary", "--steps", 1, code=2)
    expect("'x'" in out, out)
    out = run(SBPRUN, "-n", 4, program, *feed, "--summary", "--show", "k",
              cwd=d)
    expect(out.startswith(alone) and "[rank 3] k" in out, out)


def test_said_once(d):
    """What all ranks see alike is said by one, which names itself rightly."""
    program = build(d)
    for name, value in (("SBP_TIMEOUT", "soon"), ("OMP_NUM_THREADS", "0")):
        out = run(SBPRUN, "-n", 4, program, "--summary", env={name: value},
                  code=2)
        expect(out.count(f"m: rank 0: {name} is '{value}'") == 1, out)
        expect(out.count(name) == 1, out)
    out = run(program, env={"SBP_TIMEOUT": "x", "RANK": "3",
                            "WORLD_SIZE": "4", "MASTER_ADDR": "localhost",
                            "MASTER_PORT": "1"}, code=2)
    expect("m: rank 3: SBP_TIMEOUT" in out, out)


main(test_files, test_other_mesh, test_local, test_show, test_show_many_axes,
     test_load_refusals, test_bench, test_log, test_eval, test_help,
     test_show_rebound, test_outputs_first, test_summary, test_said_once)

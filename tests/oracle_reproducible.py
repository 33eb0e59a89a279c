"""--reproducible: the same bits on any mesh and with any number of threads.

Without the option the same comparison mostly fails: sums that ranks share are
added in as many parts as there are ranks. No test depends on that."""
import os

import numpy as np
from common import SAMPLES, SBPC, SBPRUN, expect, main, plan, run

FASHION = os.path.join(SAMPLES, "fashion.sbp")
WEIGHTS = os.path.join(SAMPLES, "fashion.safetensors")
IMAGES = "/usr/share/datasets/fashion-mnist"
GPT2 = os.path.join(SAMPLES, "gpt2.sbp")

# Of d * t ranks: 1, 2, 3, 4, 2x2, 8.
MESHES = ((1, 1), (2, 1), (1, 2), (3, 1), (1, 3), (4, 1), (1, 4), (2, 2),
          (4, 2), (2, 4))


def on(mesh):
    d, t = mesh
    return ["--reproducible", "-D", f"d={d}", "-D", f"t={t}"]


def bits(directory, *command, name, threads):
    path = os.path.join(directory, "out.npy")
    run(SBPRUN, *command, "--output", f"{name}={path}", cwd=directory,
        env={"OMP_NUM_THREADS": str(threads)})
    with open(path, "rb") as f:
        return f.read()


def compare(directory, meshes, name, options, arguments):
    """Every mesh with one thread, some of them with two, against one rank."""
    want = None
    for i, mesh in enumerate(meshes):
        for threads in (1, 2) if i % 3 == 0 else (1,):
            got = bits(directory, *on(mesh), *options, *arguments, name=name,
                       threads=threads)
            want = want or got
            expect(got == want, f"{name} differs on {mesh[0]} x {mesh[1]} "
                                f"with {threads} threads")


def test_fashion(directory):
    compare(directory, MESHES, "logits", ["-D", "n=1000"],
            [FASHION, "--load", WEIGHTS, "--data", f"test={IMAGES}"])


def test_fashion_count(_):
    for mesh in ((1, 1), (2, 2)):
        out = run(SBPRUN, *on(mesh), FASHION, "--load", WEIGHTS, "--data",
                  f"test={IMAGES}", "--eval")
        expect(out == "correct: 8851\n", f"{mesh}: {out}")


def test_gpt2(directory):
    ids = np.random.default_rng(3).integers(0, 50257, (2, 16))
    np.save(os.path.join(directory, "ids.npy"), ids)
    weights = os.path.join(directory, "w.safetensors")
    command = [GPT2, "--input", "ids=ids.npy"]
    run(SBPRUN, *on((1, 1)), *command, "--save", weights, cwd=directory)
    meshes = [m for m in MESHES if m[0] <= 2]
    compare(directory, meshes, "logits", [], command + ["--load", weights])


SUMS = """
let p = 1
placement line = cpu[0..p]
model sums on line {
  input x: f32[24, 1, 37, 5]
  input m: f32[70000, 3]
  a = x on (S(0))
  all = sum(a)
  rows = sum(exp(a), 3)
  columns = sum(a, 0)
  middle = sum(a * 3, [0, 2])
  ends = sum(sum(a, [1, 3]), 1)
  one = sum(x on (S(1)), [2, 3])
  alone = sum(x on (S(1)), 2)
  most = max(a, 2)
  soft = softmax(reshape(a, [24, 185]), 1)
  normal = layer_norm(reshape(a, [24, 185]))
  tall = mean(m on (S(0)), 0)
  square = sum((m on (S(0))) * (m on (S(0))))
  gram = matmul(transpose(m, 0, 1) on (S(1)), m on (S(0)))
  output all
  output rows
  output columns
  output middle
  output ends
  output one
  output alone
  output most
  output soft
  output normal
  output tall
  output square
  output gram
}
"""
LOOK_UP = """
let p = 1
placement line = cpu[0..p]
model look_up on line {
  input table: f32[101, 16] on (S(0))
  input ids: i64[40]
  y = take(table, ids)
  output y
}
"""
OUTPUTS = ("all", "rows", "columns", "middle", "ends", "one", "alone", "most",
           "soft", "normal", "tall", "square", "gram")


def test_sums(directory):
    """Reductions of every kind, of what is split along reduced axes, others,
    and axes of extent 1."""
    rng = np.random.default_rng(5)
    for name, shape in (("x", (24, 1, 37, 5)), ("m", (70000, 3))):
        np.save(os.path.join(directory, name + ".npy"),
                rng.standard_normal(shape).astype("f4"))
    with open(os.path.join(directory, "sums.sbp"), "w") as f:
        f.write(SUMS)
    outputs = [w for o in OUTPUTS for w in ("--output", f"{o}={o}.npy")]
    want = {}
    for ranks, threads in ((1, 1), (1, 2), (2, 1), (3, 1), (4, 2), (5, 1),
                           (8, 1), (24, 1)):
        run(SBPRUN, "--reproducible", "-D", f"p={ranks}", "sums.sbp",
            "--input", "x=x.npy", "--input", "m=m.npy", *outputs,
            cwd=directory, env={"OMP_NUM_THREADS": str(threads)})
        for name in OUTPUTS:
            with open(os.path.join(directory, name + ".npy"), "rb") as f:
                got = f.read()
            expect(want.setdefault(name, got) == got,
                   f"{name} differs on {ranks} ranks, {threads} threads")


def test_look_up(directory):
    """Sums of one row and of nothing else: exact, with the signs of zeros."""
    rng = np.random.default_rng(6)
    table = rng.integers(-2, 3, (101, 16)).astype("f4") * np.float32(1e-40)
    table[table == 0] = -0.0
    ids = rng.integers(0, 101, 40)
    np.save(os.path.join(directory, "table.npy"), table)
    np.save(os.path.join(directory, "ids.npy"), ids)
    with open(os.path.join(directory, "look_up.sbp"), "w") as f:
        f.write(LOOK_UP)
    for ranks in (1, 2, 3, 4, 8):
        run(SBPRUN, "--reproducible", "-D", f"p={ranks}", "look_up.sbp",
            "--input", "table=table.npy", "--input", "ids=ids.npy",
            "--output", "y=y.npy", cwd=directory)
        got = np.load(os.path.join(directory, "y.npy"))
        expect(got.tobytes() == table[ids].tobytes(), f"{ranks} ranks differ")


def test_plan(_):
    """No float is in parts, but for what is looked up in a table whose rows
    are split; the program differs from the usual one."""
    found = plan(GPT2, "--reproducible", "-D", "t=2")
    for b in found["boxing"]:
        expect("P" not in b["from"] or b["dtype"][0] == "i" or
               b["value"] == "take", str(b))
    expect(found["plan_hash"] != plan(GPT2, "-D", "t=2")["plan_hash"],
           "equal hashes")
    text = run(SBPC, "--emit=c", "--reproducible", GPT2)
    expect(".reproducible = 1" in text, "the program does not say so")


def test_asked(directory):
    """What a program asks for in parts stays."""
    path = os.path.join(directory, "asked.sbp")
    with open(path, "w") as f:
        f.write("""
placement line = cpu[0..2]
model asked on line {
  input x: f32[4, 6] on (P)
  h = x * 2 on (P)
  y = relu(h)
  output y
}
""")
    found = plan(path, "--reproducible")
    expect(any("(P)" in b["from"] for b in found["boxing"]), str(found))


main(test_fashion, test_fashion_count, test_gpt2, test_sums, test_look_up,
     test_plan, test_asked)

#!/usr/bin/env python3
"""Fused kernels: right values at sizes that use vectors, tails and threads,
and the same bits on every processor, with every compiler and thread count."""
import math
import os
import re
import shutil

import numpy as np

from common import SBPC, SBPRUN, expect, main, run

ROWS, WIDTH = 211, 187

PROGRAM = f"""let p = 1
let rows = {ROWS}
let width = {WIDTH}
placement mesh = cpu[0..p]
model m on mesh {{
  input x: f32[rows, width] on (S(0))
  input w: f32[width]
  output soft = softmax(x)
  output norm = layer_norm(x)
  output rms = rms_norm(x, 1e-5) * w
  output bias = relu(x + w) * 2 - x
  output gelu = gelu(x)
  output tanh = tanh(x) * sigmoid(x) + sin(x) * cos(x)
  output all = sum(x * x)
  output most = max(abs(x)) - min(x)
  output columns = sum(exp(x), axis = 0)
  output lse = logsumexp(x)
  output power = pow(abs(x) + 0.5, w) + log1p(abs(x)) + log(abs(x) + 1)
  output steps = floor(x * 3) + ceil(x) - round(x * 2)
  output half = cast(cast(x, bf16) * 3 + cast(w, bf16), f32)
  output narrow = cast(softmax(cast(x, f16)), f32)
  output mask = sum(cast(x > w, i64))
  output turned = transpose(x) @ x
  output flipped = transpose(x) * 2
  output middle = permute(reshape(concat([x, x, x, x]), [4, rows, width]), [2, 0, 1])
}}
"""


def erf(x):
    return np.vectorize(math.erf)(x)


def bf16(x):
    b = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((b + 0x7fff + ((b >> 16) & 1)) & 0xffff0000).view(np.float32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def reference(x32, w32):
    x, w = x32.astype(float), w32.astype(float)
    centred = x - x.mean(-1, keepdims=True)
    f16 = x32.astype(np.float16).astype(float)
    return {
        "soft": softmax(x),
        "norm": centred / np.sqrt(
            (centred ** 2).mean(-1, keepdims=True) + 1e-5),
        "rms": x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w,
        "bias": np.maximum(x + w, 0) * 2 - x,
        "gelu": 0.5 * x * (1 + erf(x / math.sqrt(2))),
        "tanh": np.tanh(x) / (1 + np.exp(-x)) + np.sin(x) * np.cos(x),
        "all": (x * x).sum(),
        "most": np.abs(x).max() - x.min(),
        "columns": np.exp(x).sum(0),
        "lse": np.log(np.exp(x).sum(-1)),
        "power": (np.abs(x) + 0.5) ** w + np.log1p(np.abs(x)) +
        np.log(np.abs(x) + 1),
        "steps": np.floor(x32 * np.float32(3)) + np.ceil(x) - np.rint(x * 2),
        "half": bf16(bf16(bf16(x32) * np.float32(3)) + bf16(w32)),
        "narrow": softmax(f16),
        "mask": (x > w).sum(),
        "turned": x.T @ x,
        "flipped": x.T * 2,
        "middle": np.stack([x] * 4).transpose(2, 0, 1),
    }


LOOSE = {"narrow": 1e-3}


def feed(directory):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(ROWS, WIDTH)).astype("f4")
    w = rng.normal(size=WIDTH).astype("f4")
    np.save(f"{directory}/x.npy", x)
    np.save(f"{directory}/w.npy", w)
    with open(f"{directory}/m.sbp", "w") as f:
        f.write(re.sub(r"output (\w+) = (.*)", r"\1 = \2\n  output \1 on (B)",
                       PROGRAM).replace(" on (B)", ""))
    return x, w


def results(directory, *options, ranks=1, threads=1, names=None):
    run(SBPC, "m.sbp", "-o", "m", *options, cwd=directory)
    command = [SBPRUN, "-n", ranks, "./m", "--input", "x=x.npy", "--input",
               "w=w.npy"]
    for name in names:
        command += ["--output", f"{name}={name}.npy"]
    run(*command, cwd=directory, env={"OMP_NUM_THREADS": str(threads)})
    return {n: np.load(f"{directory}/{n}.npy") for n in names}


def against_numpy(directory):
    want = reference(*feed(directory))
    for ranks, threads in ((1, 1), (1, 3), (2, 1), (3, 2)):
        got = results(directory, "-D", f"p={ranks}", ranks=ranks,
                      threads=threads, names=list(want))
        for name, value in want.items():
            tolerance = LOOSE.get(name, 1e-5)
            error = np.abs(got[name] - value).max()
            bound = tolerance * max(1, np.abs(value).max())
            expect(error <= bound, f"{name} on {ranks} ranks of {threads} "
                   f"threads: off by {error}")


def same_bits(directory):
    names = [n for n in reference(*feed(directory)) if n != "turned"]
    variants = [[], ["--arch=x86-64-v3"], ["-O0"], ["-O3"]]
    if shutil.which("gcc"):
        variants += [["--cc=gcc"], ["--cc=gcc", "--arch=x86-64-v3"]]
    first = None
    for options in variants:
        for threads in (1, 2):
            got = results(directory, *options, threads=threads, names=names)
            first = first or got
            for n in names:
                expect(got[n].tobytes() == first[n].tobytes(),
                       f"{n} has other bits with {options}, {threads} "
                       "threads")


def without_fma(directory):
    want = reference(*feed(directory))
    got = results(directory, "--arch=x86-64", names=list(want))
    for name, value in want.items():
        error = np.abs(got[name] - value).max()
        expect(error <= LOOSE.get(name, 1e-5) * max(1, np.abs(value).max()),
               f"{name}: off by {error}")


def kernels_of(directory, body):
    with open(f"{directory}/k.sbp", "w") as f:
        f.write("placement one = cpu[0]\nmodel k on one {\n"
                "  input x: f32[64, 48]\n  input w: f32[48]\n"
                "  input q: f32[2, 64, 48]\n"
                f"  y = {body}\n  output y\n}}\n")
    text = run(SBPC, "--emit=plan-json", "k.sbp", cwd=directory)
    return int(re.search(r'"kernels": (\d+)', text).group(1))


def one_kernel_each(directory):
    for body in ("softmax(x)", "layer_norm(x)", "rms_norm(x, 1e-6)",
                 "log_softmax(x)", "gelu(x + w)", "relu(x + w)",
                 "softmax(x * 0.125, axis = 0)", "mean(x)",
                 "softmax(relu(x + w)) * 2 + x", "var(x, axis = 1)",
                 "x @ transpose(x)", "q @ transpose(q)",
                 "where(x > 0, x, 0.1 * x)"):
        n = kernels_of(directory, body)
        expect(n == 1, f"{body} takes {n} kernels")


def wrong_indices(directory):
    """Each names operator, line and value, also where the axis is split."""
    cases = [("embedding", "embedding(ids, weight = x)", 5),
             ("gather", "gather(x, 0, ids)", 5),
             ("one_hot", "one_hot(ids, 5)", 5),
             ("scatter_add", "scatter_add(x, 0, ids, x[:3, :2])", 5)]
    for name, body, extent in cases:
        for ranks, on in ((1, "B"), (2, "S(0)"), (3, "S(0)")):
            for wrong in (extent, -1):
                with open(f"{directory}/e.sbp", "w") as f:
                    f.write(f"placement mesh = cpu[0..{ranks}]\n"
                            "model e on mesh {\n"
                            f"  input x: f32[5, 2] on ({on})\n"
                            "  input ids: i64[3, 2]\n"
                            f"  y = {body}\n  output y\n}}\n")
                ids = np.array([[0, 1], [4, 2], [1, wrong]])
                np.save(f"{directory}/ids.npy", ids)
                np.save(f"{directory}/x.npy", np.ones((5, 2), "f4"))
                text = run(SBPRUN, "-n", ranks, "e.sbp", "--input",
                           "x=x.npy", "--input", "ids=ids.npy", code=1,
                           cwd=directory)
                for part in (name, "e.sbp:5", f"index {wrong} is outside"):
                    expect(part in text, f"{body} on {ranks}: '{part}' is "
                           f"not in {text}")


if __name__ == "__main__":
    os.environ.setdefault("SBP_TIMEOUT", "60")
    main(against_numpy, same_bits, without_fma, one_kernel_each,
         wrong_indices)

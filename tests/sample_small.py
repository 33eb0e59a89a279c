"""The small samples against NumPy: values, what lies where, what is sent."""
import os

import numpy as np
from common import (SAMPLES, SBPRUN, expect, main, plan, read_safetensors,
                    run, shown)

RNG = np.random.default_rng(7)


def close(got, want, what, tolerance=1e-5):
    got, want = np.asarray(got), np.asarray(want)
    expect(got.shape == want.shape, f"{what}: shape {got.shape}")
    worst = np.max(np.abs(got - want), initial=0)
    expect(worst < tolerance, f"{what}: differs by {worst}")


def sample(directory, name, inputs, outputs, *options):
    """Runs a sample; returns stdout, params and the outputs."""
    command = [SBPRUN, os.path.join(SAMPLES, name + ".sbp"),
               "--save", "params.safetensors", *options]
    for key, array in inputs.items():
        np.save(os.path.join(directory, key + ".npy"), array)
        command += ["--input", f"{key}={key}.npy"]
    for key in outputs:
        command += ["--output", f"{key}={key}_out.npy"]
    out = run(*command, cwd=directory)
    params = read_safetensors(os.path.join(directory, "params.safetensors"))
    return out, params, [np.load(os.path.join(directory, key + "_out.npy"))
                         for key in outputs]


def normal(*shape):
    return RNG.standard_normal(shape).astype("f4")


def test_mlp2d(directory):
    x = normal(2, 2, 8)
    out, p, (y,) = sample(directory, "mlp2d", {"x": x}, ["y"], "--show", "y")
    h = np.maximum(x @ p["0.weight"].T + p["0.bias"], 0)
    want = h @ p["2.weight"].T + p["2.bias"]
    close(y, want, "y")
    pieces = shown(out)
    for rank in range(4):
        header, rows = pieces["y", rank]
        expect(header == "f32[1, 2, 2] of [2, 2, 2] (B, S(0))", header)
        close(rows, want[rank % 2], f"rank {rank}")
    expect(pieces["y", 0] == pieces["y", 2], "ranks 0 and 2 differ")
    expect(pieces["y", 1] == pieces["y", 3], "ranks 1 and 3 differ")
    found = plan(os.path.join(SAMPLES, "mlp2d.sbp"))
    expect(found["recv_busiest"] == 0 and not found["boxing"], str(found))


def test_two(directory):
    x = normal(64, 32)
    _, p, (y,) = sample(directory, "two", {"x": x}, ["y"])
    h = np.maximum(x @ p["0.weight"].T + p["0.bias"], 0)
    close(y, h @ p["1.weight"].T, "y")
    found = plan(os.path.join(SAMPLES, "two.sbp"))
    expect([(b["value"], b["from"], b["to"], b["algorithm"],
             b["recv_busiest"]) for b in found["boxing"]] ==
           [("h", "pair(S(1))", "pair(B)", "all-gather(0)", 2048)],
           str(found["boxing"]))


def test_matmul2d(directory):
    x, w = normal(6, 5), normal(5, 4)
    out, _, (y,) = sample(directory, "matmul2d", {"x": x, "w": w}, ["y"],
                          "--show", "y")
    close(y, x @ w, "y")
    for rank in range(4):
        header, rows = shown(out)["y", rank]
        i, j = divmod(rank, 2)
        expect(header == "f32[3, 2] of [6, 4] (S(1), S(0))", header)
        close(rows, (x @ w)[3 * j:3 * j + 3, 2 * i:2 * i + 2], "piece")
    found = plan(os.path.join(SAMPLES, "matmul2d.sbp"))
    expect(not found["boxing"], str(found["boxing"]))


def test_embedding(directory):
    ids = RNG.integers(0, 1001, (2, 5))
    _, p, (x,) = sample(directory, "embedding", {"ids": ids}, ["x"])
    close(x, p["table"][ids], "x", 1e-30)
    found = plan(os.path.join(SAMPLES, "embedding.sbp"))
    expect(all(b["value"] != "table" for b in found["boxing"]),
           "the table moves")


def test_embedding_out_of_range(directory):
    ids = np.full((2, 5), 1001)
    np.save(os.path.join(directory, "ids.npy"), ids)
    out = run(SBPRUN, os.path.join(SAMPLES, "embedding.sbp"), "--input",
              "ids=ids.npy", code=1, cwd=directory)
    expect("1001" in out and "embedding.sbp:9" in out, out)


def test_softmax(directory):
    x = normal(64, 10000) * 5
    _, _, (y,) = sample(directory, "softmax", {"x": x}, ["y"])
    e = np.exp(x - x.max(1, keepdims=True))
    close(y, e / e.sum(1, keepdims=True), "y", 1e-6)
    found = plan(os.path.join(SAMPLES, "softmax.sbp"))
    expect([b["shape"] for b in found["boxing"]] == [[64, 1], [64, 1]],
           "more than a maximum and a sum of each row")


main(test_mlp2d, test_two, test_matmul2d, test_embedding,
     test_embedding_out_of_range, test_softmax)

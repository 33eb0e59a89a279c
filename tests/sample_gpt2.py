"""GPT-2's block and head against NumPy, in data, tensor and 2-D parallelism,
with 50257 rows of vocabulary, which divide by nothing."""
import os

import numpy as np
from common import SAMPLES, SBPRUN, expect, main, plan, read_safetensors, run

SAMPLE = os.path.join(SAMPLES, "gpt2.sbp")
HEADS = 12
MESHES = ({"d": 1, "t": 1}, {"d": 2, "t": 1}, {"d": 1, "t": 2},
          {"d": 1, "t": 4}, {"d": 2, "t": 2})


def layer_norm(x, p, name):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return ((x - mean) / np.sqrt(var + 1e-5) * p[name + ".weight"] +
            p[name + ".bias"])


def linear(x, p, name):
    return x @ p[name + ".weight"].T + p[name + ".bias"]


def attention(x, p, name):
    b, s, c = x.shape
    q, k, v = (linear(x, p, f"{name}.{part}").reshape(
        b, s, HEADS, c // HEADS).transpose(0, 2, 1, 3) for part in "qkv")
    score = q @ k.transpose(0, 1, 3, 2) / np.sqrt(c // HEADS)
    score = np.where(np.tril(np.ones((s, s), bool)), score, -np.inf)
    weight = np.exp(score - score.max(-1, keepdims=True))
    weight /= weight.sum(-1, keepdims=True)
    y = (weight @ v).transpose(0, 2, 1, 3).reshape(b, s, c)
    return linear(y, p, name + ".proj")


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) *
                                  (x + 0.044715 * x ** 3)))


def forward(ids, p):
    p = {name: array.astype("f8") for name, array in p.items()}
    x = p["wte"][ids] + p["wpe"]
    x = x + attention(layer_norm(x, p, "h.0.ln_1"), p, "h.0.attn")
    h = gelu(linear(layer_norm(x, p, "h.0.ln_2"), p, "h.0.mlp.fc"))
    x = x + linear(h, p, "h.0.mlp.proj")
    return layer_norm(x, p, "ln_f") @ p["wte"].T


def options(mesh):
    return [word for key, n in mesh.items() for word in ("-D", f"{key}={n}")]


def test_logits(directory):
    ids = np.random.default_rng(3).integers(0, 50257, (2, 16))
    np.save(os.path.join(directory, "ids.npy"), ids)
    weights = os.path.join(directory, "w.safetensors")
    want = None
    for mesh in MESHES:
        first = want is None
        run(SBPRUN, *options(mesh), SAMPLE, "--input", "ids=ids.npy",
            "--output", "logits=logits.npy",
            "--save" if first else "--load", weights, cwd=directory)
        if first:
            want = forward(ids, read_safetensors(weights))
        got = np.load(os.path.join(directory, "logits.npy"))
        expect(got.shape == (2, 16, 50257), str(got.shape))
        worst = np.abs(got - want).max()
        expect(worst < 2e-4, f"{mesh}: logits differ by {worst}")


def test_seed(directory):
    """The initial weights do not depend on the mesh."""
    ids = np.random.default_rng(3).integers(0, 100, (2, 16))
    np.save(os.path.join(directory, "ids.npy"), ids)
    small = ["-D", "vocab=101", "-D", "width=48"]
    saved = []
    for mesh in MESHES:
        run(SBPRUN, *options(mesh), *small, SAMPLE, "--input", "ids=ids.npy",
            "--seed", "5", "--save", "w.safetensors", cwd=directory)
        with open(os.path.join(directory, "w.safetensors"), "rb") as f:
            saved.append(f.read())
    expect(all(s == saved[0] for s in saved), "weights differ")


def test_plan(_):
    found = plan(SAMPLE, "-D", "t=2")
    sizes = [b["shape"] for b in found["boxing"] if b["recv_busiest"]]
    expect(all(shape == [2, 16, 768] for shape in sizes),
           f"something else than activations moves: {sizes}")


main(test_logits, test_seed, test_plan)

#!/usr/bin/env python3
"""The functions of the prelude against NumPy, whole and split."""
import os

import numpy as np

from common import SBPRUN, expect, main, run


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def erf(x):
    # Abramowitz and Stegun 7.1.5, summed until it stands still.
    term = total = x * 2 / np.sqrt(np.pi)
    for n in range(1, 200):
        term = -term * x * x / n
        total = total + term / (2 * n + 1)
    return total


def gelu(x, approximate="none"):
    if approximate == "none":
        return 0.5 * x * (1 + erf(x / np.sqrt(2)))
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)
    return 0.5 * x * (1 + np.tanh(inner))


def normed(x, eps):
    d = x - x.mean(axis=-1, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=-1, keepdims=True) + eps)


def attention(q, k, v, mask=None, scale=None):
    k = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3)
    v = np.repeat(v, q.shape[-3] // v.shape[-3], axis=-3)
    s = q @ np.swapaxes(k, -1, -2)
    s = s * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    return softmax(s) @ v


CAUSAL = np.tril(np.ones((5, 5), bool))

# What a program says of x f32[5, 7], z f32[3, 1, 5], q f32[2, 4, 5, 6],
# k f32[2, 2, 5, 6], m bool[5, 5], and what NumPy makes of it.
CASES = [
    ("square(x)", lambda x, z, q, k, m: x * x),
    ("relu6(x * 9)", lambda x, z, q, k, m: np.clip(x * 9, 0, 6)),
    ("clamp(x, -0.5, 0.25)", lambda x, z, q, k, m: np.clip(x, -0.5, 0.25)),
    ("clamp(x, max = 0)", lambda x, z, q, k, m: np.minimum(x, 0)),
    ("gelu(x)", lambda x, z, q, k, m: gelu(x)),
    ('gelu(x, approximate = "tanh")',
     lambda x, z, q, k, m: gelu(x, "tanh")),
    ("silu(x)", lambda x, z, q, k, m: x * sigmoid(x)),
    ("softplus(x * 50)", lambda x, z, q, k, m: np.logaddexp(0, x * 50)),
    ("mean(x)", lambda x, z, q, k, m: x.mean()),
    ("mean(q, axis = [0, -1], keepdim = true)",
     lambda x, z, q, k, m: q.mean(axis=(0, -1), keepdims=True)),
    ("var(x, 1)", lambda x, z, q, k, m: x.var(axis=1, ddof=1)),
    ("var(q, [1, 3], correction = 0)",
     lambda x, z, q, k, m: q.var(axis=(1, 3))),
    ("softmax(x)", lambda x, z, q, k, m: softmax(x)),
    ("softmax(x * 100, 0)", lambda x, z, q, k, m: softmax(x * 100, 0)),
    ("log_softmax(x)", lambda x, z, q, k, m: np.log(softmax(x))),
    ("logsumexp(x)", lambda x, z, q, k, m: np.log(np.exp(x).sum(-1))),
    ("logsumexp(x + 1000, 0, keepdim = true)",
     lambda x, z, q, k, m: np.log(np.exp(x).sum(0, keepdims=True)) + 1000),
    ("logsumexp(x - inf)",
     lambda x, z, q, k, m: np.full(5, -np.inf, "f4")),
    ("flatten(q, 1, 2)", lambda x, z, q, k, m: q.reshape(2, 20, 6)),
    ("transpose(q, 0, -1)", lambda x, z, q, k, m: np.swapaxes(q, 0, -1)),
    ("squeeze(z)", lambda x, z, q, k, m: z[:, 0]),
    ("unsqueeze(x, 1)", lambda x, z, q, k, m: x[:, None]),
    ("stack([x, -x], axis = -1)",
     lambda x, z, q, k, m: np.stack([x, -x], -1)),
    ("split(x, 3, axis = 1)[1]", lambda x, z, q, k, m: x[:, 3:6]),
    ("split(x, [1, 4])[1]", lambda x, z, q, k, m: x[1:]),
    ("repeat(x, [2, 1, 3])", lambda x, z, q, k, m: np.tile(x, (2, 1, 3))),
    ("tril(q, diagonal = 1)", lambda x, z, q, k, m: np.tril(q, 1)),
    ("tril(x, diagonal = -2)", lambda x, z, q, k, m: np.tril(x, -2)),
    ("cast(arange(2, 12, 3), f32)",
     lambda x, z, q, k, m: np.arange(2, 12, 3).astype("f4")),
    ("layer_norm(x)", lambda x, z, q, k, m: normed(x, 1e-5)),
    ("rms_norm(x, 1e-3)",
     lambda x, z, q, k, m:
     x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3)),
    ("linear(x, 3, bias = false, weight = z[:, 0] @ x)",
     lambda x, z, q, k, m: x @ (z[:, 0] @ x).T),
    ("linear(x, weight = z[:, 0] @ x, bias = z[:, 0, 0])",
     lambda x, z, q, k, m: x @ (z[:, 0] @ x).T + z[:, 0, 0]),
    ("embedding(argmax(x, 1), weight = stack([x[0], x[1], x[2], x[3], "
     "x[4], x[0], x[1]]))",
     lambda x, z, q, k, m: x[[0, 1, 2, 3, 4, 0, 1]][x.argmax(1)]),
    ("attention(q, q, q)", lambda x, z, q, k, m: attention(q, q, q)),
    ("attention(q, k, k, causal = true)",
     lambda x, z, q, k, m: attention(q, k, k, CAUSAL)),
    ("attention(q, k, k, mask = m, scale = 0.1)",
     lambda x, z, q, k, m: attention(q, k, k, m, 0.1)),
    ("dropout(x, p = 0.5)", lambda x, z, q, k, m: x),
    ("x[1:4, ::3] @ x[0, ::3]",
     lambda x, z, q, k, m: x[1:4, ::3] @ x[0, ::3]),
    ("x[0, :5] @ x[:, 1:]", lambda x, z, q, k, m: x[0, :5] @ x[:, 1:]),
]

PROGRAM = """placement mesh = cpu[0..{ranks}]
model m {{
  input x: f32[5, 7] on ({x})
  input z: f32[3, 1, 5] on ({z})
  input q: f32[2, 4, 5, 6] on ({q})
  input k: f32[2, 2, 5, 6] on ({k})
  input m: bool[5, 5]
{body}}}
"""


def compare(directory, ranks, **on):
    body = "".join(f"  v{i} = {text}\n  output v{i} on (B)\n"
                   for i, (text, _) in enumerate(CASES))
    with open(os.path.join(directory, "m.sbp"), "w") as f:
        f.write(PROGRAM.format(ranks=ranks, body=body, **on))
    rng = np.random.default_rng(1)
    feed = {"x": rng.normal(size=(5, 7)), "z": rng.normal(size=(3, 1, 5)),
            "q": rng.normal(size=(2, 4, 5, 6)),
            "k": rng.normal(size=(2, 2, 5, 6))}
    feed = {name: a.astype("f4") for name, a in feed.items()}
    feed["m"] = rng.random((5, 5)) < 0.6
    feed["m"][:, 2] = True
    command = [SBPRUN, "-n", ranks, "m.sbp"]
    for name, array in feed.items():
        np.save(os.path.join(directory, name + ".npy"), array)
        command += ["--input", f"{name}={name}.npy"]
    for i in range(len(CASES)):
        command += ["--output", f"v{i}=v{i}.npy"]
    run(*command, cwd=directory)
    wide = {n: a.astype("f8") if a.dtype == "f4" else a
            for n, a in feed.items()}
    for i, (text, right) in enumerate(CASES):
        found = np.load(os.path.join(directory, f"v{i}.npy"))
        want = right(**wide)
        expect(found.shape == want.shape,
               f"{text}: shape {found.shape}, expected {want.shape}")
        expect(np.allclose(found, want, rtol=2e-5, atol=2e-6),
               f"{text}:\n{found}\nexpected\n{want}")


def one_rank(directory):
    compare(directory, 1, x="B", z="B", q="B", k="B")


def split_outside(directory):
    compare(directory, 2, x="S(0)", z="S(0)", q="S(0)", k="S(0)")


def split_inside(directory):
    compare(directory, 3, x="S(1)", z="S(2)", q="S(3)", k="S(2)")


def partial(directory):
    compare(directory, 2, x="P", z="P", q="S(1)", k="P")


if __name__ == "__main__":
    main(one_rank, split_outside, split_inside, partial)

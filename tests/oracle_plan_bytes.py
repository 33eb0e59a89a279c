#!/usr/bin/python3
"""Bytes that the runtime counts (--bench, recv_bytes) are those of the plan.

Chains of conversions by chance on meshes of up to 8 ranks and between
placements, and the samples, also as the plan is along a topology.
"""
import json
import os
import random

import numpy as np
from common import SAMPLES, SBPC, SBPRUN, expect, main, run

CHANCE = random.Random(4)
TOPOLOGY = "* * 1us 10GB/s\n* 0 300us 1GB/s\nbetween 3us 5GB/s\n"


def declare(name, ranks, shape):
    ranks = ", ".join(map(str, ranks))
    shape = ", ".join(map(str, shape))
    return f"placement {name} = cpu[{ranks}] as [{shape}]\n"


def terms(shape):
    some = ["B", "S(0)", "S(1)", "P", "P(max)"]
    return f"({', '.join(CHANCE.choice(some) for _ in shape)})"


def chain(places, tensor, length):
    """x in one place, then on distributions of all, one after the other."""
    text = "".join(declare(name, *where) for name, where in places.items())
    first = next(iter(places))
    dims = ", ".join(map(str, tensor))
    text += f"model m on {first} {{\n  input x: f32[{dims}] on (S(0)"
    text += ", B" * (len(places[first][1]) - 1) + ")\n  y0 = x\n"
    for i in range(length):
        name = CHANCE.choice(list(places))
        text += f"  y{i + 1} = y{i} on {name}{terms(places[name][1])}\n"
    return text + f"  output y{length}\n}}\n"


def check(directory, model, inputs, *options):
    command = [f"--input={name}={name}.npy" for name in inputs]
    for name, array in inputs.items():
        np.save(os.path.join(directory, name + ".npy"), array)
    plan = json.loads(run(SBPC, "--emit=plan-json", model, *options,
                          cwd=directory))
    run(SBPC, model, "-o", "program", *options, cwd=directory)
    out = run(SBPRUN, "-n", plan["world"], "./program", "--bench", "2",
              "--quiet", *command, cwd=directory)
    bench = json.loads(out.strip().splitlines()[-1])
    total = sum(b["recv_total"] for b in plan["boxing"])
    expect(bench["recv_bytes"] == plan["recv_busiest"] and
           plan["recv_total"] == total and bench["ranks"] == plan["world"],
           f"{model} {options}: {bench['recv_bytes']} bytes received, "
           f"{plan['recv_busiest']} planned")


def check_chain(directory, places, tensor, length=8):
    with open(os.path.join(directory, "links.txt"), "w") as f:
        f.write(TOPOLOGY)
    with open(os.path.join(directory, "m.sbp"), "w") as f:
        f.write(chain(places, tensor, length))
    x = {"x": np.ones(tensor, "f4")}
    check(directory, "m.sbp", x)
    check(directory, "m.sbp", x, "--topology=links.txt")


def test_meshes(directory):
    for shape in (2,), (3,), (8,), (2, 2), (2, 3), (2, 4), (4, 2), (2, 2, 2):
        ranks = range(int(np.prod(shape)))
        for tensor in (16, 24), (5, 7):
            check_chain(directory, {"grid": (ranks, shape)}, tensor)


def test_placements(directory):
    for a, b in (([0, 1], [2, 3, 4]), ([0, 1, 2, 3], [1, 2]),
                 ([3, 1, 2], [0, 1, 2, 3])):
        places = {"first": (a, (len(a),)), "second": (b, (len(b),))}
        check_chain(directory, places, (9, 10))
    places = {"first": (range(8), (2, 4)), "second": ([5, 2, 7, 0], (2, 2))}
    check_chain(directory, places, (12, 11), 12)


def sample(directory, name, inputs, *options):
    check(directory, os.path.join(SAMPLES, name + ".sbp"), inputs, *options)


def test_samples(directory):
    sample(directory, "mlp2d", {"x": np.ones((2, 2, 8), "f4")})
    sample(directory, "matmul2d", {"x": np.ones((6, 5), "f4"),
                                   "w": np.ones((5, 4), "f4")})
    sample(directory, "softmax", {"x": np.ones((64, 10000), "f4")})
    sample(directory, "embedding", {"ids": np.ones((2, 5), "i8")})
    sample(directory, "two", {"x": np.ones((64, 32), "f4")})


def test_gpt2(directory):
    small = ["-D", "width=64", "-D", "heads=4", "-D", "vocab=101", "-D",
             "layers=2"]
    ids = {"ids": np.ones((2, 16), "i8")}
    for d, t in (1, 2), (2, 2), (2, 4):
        sample(directory, "gpt2", ids, *small, "-D", f"d={d}", "-D", f"t={t}")


if __name__ == "__main__":
    main(test_meshes, test_placements, test_samples, test_gpt2)

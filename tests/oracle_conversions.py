#!/usr/bin/python3
"""Conversions with known answers, piece by piece.

usage: oracle_conversions.py [BIN]

Each case is a program and what every rank must hold of its outputs; -0.0 and
0.0 differ here.
"""
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

R0 = [[4, 6, 5, 20], [6, 8, 9, 0], [3, 7, 5, 0], [6, 8, 9, 0]]
R1 = [[2, 10, 10, 7], [3, 9, 10, 5], [4, 6, 6, 9], [6, 8, 6, 4]]
ONES = np.ones((4, 4))
ZEROS = np.full((4, 4), -0.0)

PLACEMENTS = """
placement one = cpu[0]
placement pair = cpu[0, 1]
placement other = cpu[2, 3]
placement three = cpu[0, 1, 2]
placement line = cpu[0, 1, 2, 3]
placement grid = cpu[[0, 1], [2, 3]]
"""


def count(*shape):
    """A literal of 0, 1, 2, ..."""
    return np.arange(np.prod(shape)).reshape(shape).tolist()


# name, statements, {output: {rank: piece}}
CASES = [
    ("a partial value to other ranks",
     f"""const x: f32[4, 4] on pair(P) = local({R0}, {R1})
         y = x on other(S(1))""",
     {"y": {2: [[6, 16], [9, 17], [7, 13], [12, 16]],
            3: [[15, 27], [19, 5], [11, 9], [15, 4]]}}),
    ("copies to other ranks",
     f"""const x: f32[4, 4] on pair(B) = local({R0}, {R0})
         y = x on other(S(1))""",
     {"y": {2: [[4, 6], [6, 8], [3, 7], [6, 8]],
            3: [[5, 20], [9, 0], [5, 0], [9, 0]]}}),
    ("rows to columns of other ranks",
     f"""const x: f32[8, 4] on pair(S(0)) = local({R0}, {R1})
         y = x on other(S(1))""",
     {"y": {2: np.array(R0 + R1)[:, :2], 3: np.array(R0 + R1)[:, 2:]}}),
    ("one rank into a mesh",
     """const x: f32[4] on one(B) = [1, 2, 3, 4]
        y = x on grid(B, S(0))""",
     {"y": {0: [1, 2], 1: [3, 4], 2: [1, 2], 3: [3, 4]}}),
    ("a line to a mesh and back",
     """const x: f32[4, 8] on line(S(0)) = ones()
        y = x on grid(B, S(0))
        z = y on line(S(0))""",
     {"y": {r: np.ones((2, 8)) for r in range(4)},
      "z": {r: np.ones((1, 8)) for r in range(4)}}),
    ("shards among identities",
     f"""const x: f32[8, 4] on pair(S(0)) = ones()
         y = x on pair(P)""",
     {"y": {0: np.concatenate([ONES, ZEROS]),
            1: np.concatenate([ZEROS, ONES])}}),
    ("split and partial",
     f"""const x: f32[8, 4] on grid(S(0), P) = local({", ".join(
             [str(ONES.tolist())] * 4)})
         y = x on grid(B, B)""",
     {"y": {r: np.full((8, 4), 2) for r in range(4)}}),
    ("rows of an uneven nest",
     f"""const x: f32[5, 3] on grid(S(0), S(0)) = {count(5, 3)}
        y = x on grid(B, B)""",
     {"y": {r: np.arange(15).reshape(5, 3) for r in range(4)}}),
    ("order of a nest",
     f"""const x: f32[8] on grid(S(0), S(0)) = {count(8)}
        y = x on grid(B, B)""",
     {"y": {r: np.arange(8) for r in range(4)}}),
    ("a maximum made of shards",
     """const x: f32[2] on pair(S(0)) = [-3, -1]
        p = x on pair(P(max))
        y = p on pair(B)""",
     {"p": {0: [-3, -np.inf], 1: [-np.inf, -1]},
      "y": {0: [-3, -1], 1: [-3, -1]}}),
    ("kinds: the last axis first",
     """const x: f32[1] on grid(P, P(max)) = local([3], [-5], [1], [4])
        y = x on grid(B, B)""",
     {"y": {r: [7] for r in range(4)}}),
    ("a negative zero survives",
     """const x: f32[1] on pair(B) = [-0.0]
        p = x on pair(P)
        y = p on pair(B)""",
     {"p": {0: [-0.0], 1: [-0.0]}, "y": {0: [-0.0], 1: [-0.0]}}),
    ("pieces of 6 over 2x2 and over 4",
     f"""const x: f32[6] on grid(B, B) = {count(6)}
        y = x on grid(S(0), S(0))
        z = x on line(S(0))""",
     {"y": {0: [0, 1], 1: [2], 2: [3, 4], 3: [5]},
      "z": {0: [0, 1], 1: [2, 3], 2: [4], 3: [5]}}),
    ("there and back on three ranks",
     f"""const x: f32[25, 33] on three(B) = {count(25, 33)}
        a = x on three(S(0))
        b = a on three(S(1))
        y = b on three(B)
        const u: f32[13, 17] on three(B) = {count(13, 17)}
        c = u on three(S(0))
        d = c on three(S(1))
        z = d on three(B)""",
     {"y": {r: np.arange(825).reshape(25, 33) for r in range(3)},
      "z": {r: np.arange(221).reshape(13, 17) for r in range(3)}}),
]


def program(statements, outputs):
    lines = [s.strip() for s in statements.splitlines()]
    lines += [f"output {name}" for name in outputs]
    body = "\n  ".join(lines)
    return f"{PLACEMENTS}\nmodel m on line {{\n  {body}\n}}\n"


def same_bits(a, b):
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def check(bin_dir, folder, statements, outputs):
    """What is wrong, or None."""
    with open(f"{folder}/m.sbp", "w") as f:
        f.write(program(statements, outputs))
    args = [f"{bin_dir}/sbprun", "-n", "4", "m.sbp"]
    for name in outputs:
        args += ["--local-output", f"{name}={name}.{{rank}}.npy"]
    done = subprocess.run(args, cwd=folder, timeout=60, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        return f"exit {done.returncode}: {done.stdout.strip()}"
    for name, pieces in outputs.items():
        for rank, want in pieces.items():
            want = np.array(want, np.float32)
            got = np.load(f"{folder}/{name}.{rank}.npy")
            if not same_bits(got, want):
                return (f"{name} on rank {rank} is {got.tolist()}, not "
                        f"{want.tolist()}")
    return None


def check_same_bits(bin_dir, folder):
    """Sums of floats of mixed size have the same bits on all ranks, also in
    groups that reduce apart."""
    with open(f"{folder}/m.sbp", "w") as f:
        f.write("""placement cube = cpu[0..8] as [2, 2, 2]
model m on cube {
  input x: f32[5, 7] on (P, P, B)
  y = x on (B, B, B)
  z = x on (S(0), B, S(1)) on (B, B, B)
  output y
  output z
}
""")
    rng = np.random.default_rng(1)
    for rank in range(0, 8, 2):
        part = rng.normal(size=(5, 7)) * 10.0 ** rng.integers(-6, 6, (5, 7))
        for copy in rank, rank + 1:
            np.save(f"{folder}/x.{copy}.npy", part.astype(np.float32))
    args = [f"{bin_dir}/sbprun", "-n", "8", "m.sbp"]
    args += ["--local-input", "x=x.{rank}.npy"]
    for name in "yz":
        args += ["--local-output", f"{name}={name}.{{rank}}.npy"]
    done = subprocess.run(args, cwd=folder, timeout=60, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        return f"exit {done.returncode}: {done.stdout.strip()}"
    for name in "yz":
        first = np.load(f"{folder}/{name}.0.npy")
        for rank in range(1, 8):
            if not same_bits(first, np.load(f"{folder}/{name}.{rank}.npy")):
                return f"{name} differs on ranks 0 and {rank}"
    return None


def main(args):
    bin_dir = args[0] if args else os.environ.get("SBPC_BIN",
                                                  "build/release/bin")
    bin_dir = os.path.abspath(bin_dir)
    checks = [(name, lambda folder, s=statements, o=outputs:
               check(bin_dir, folder, s, o))
              for name, statements, outputs in CASES]
    checks.append(("bits of sums",
                   lambda folder: check_same_bits(bin_dir, folder)))
    failed = 0
    for name, test in checks:
        folder = tempfile.mkdtemp(prefix="conversions.")
        problem = test(folder)
        if problem:
            failed += 1
            print(f"{name}: {problem}")
        shutil.rmtree(folder)
    print(f"conversions: {len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

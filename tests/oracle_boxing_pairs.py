#!/usr/bin/python3
"""All pairs of distributions, end to end, against NumPy.

usage: oracle_boxing_pairs.py [-v] [-k NAME] [BIN]

One program for each case (a mesh, or two) holds many conversions: every input
is fed one piece a rank, every output is read back as one piece a rank. Values
are small integers of both signs, so sums are exact and results must be equal.
BIN has sbpc and sbprun; $SBPC_BIN by default.
"""
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

TERMS = ["B", "S(0)", "S(1)", "P", "P(max)"]
DTYPES = {"bool": np.bool_, "u8": np.uint8, "i8": np.int8, "i32": np.int32,
          "i64": np.int64, "f16": np.float16, "f32": np.float32,
          "f64": np.float64}
COMBINE = {"P": np.add, "P(max)": np.maximum, "P(min)": np.minimum}
TIMEOUT = 300
COUNTED = 400   # conversions of a case whose bytes are counted: four steps more


class Placement:
    def __init__(self, name, ranks):
        self.name = name
        self.mesh = np.array(ranks)
        self.shape = self.mesh.shape

    def declare(self):
        flat = ", ".join(str(r) for r in self.mesh.ravel())
        dims = ", ".join(str(n) for n in self.shape)
        return f"placement {self.name} = cpu[{flat}] as [{dims}]"

    def devices(self):
        """(rank, coordinates) in row-major order."""
        for coord in np.ndindex(*self.shape):
            yield int(self.mesh[coord]), coord


def split(interval, parts, i):
    lo, hi = interval
    q, r = divmod(hi - lo, parts)
    lo += q * i + min(i, r)
    return lo, lo + q + (i < r)


def piece(shape, on, terms, coord):
    """What the device at coord holds: a slice for each tensor axis."""
    axes = [(0, n) for n in shape]
    for k, term in enumerate(terms):
        if term.startswith("S"):
            axis = int(term[2])
            axes[axis] = split(axes[axis], on.shape[k], coord[k])
    return tuple(slice(lo, hi) for lo, hi in axes)


def reduce_parts(parts, on, terms):
    """The logical value of an array of values by device, mesh axes first: the
    last partial axis is reduced first. Other axes keep their extent."""
    for k in reversed(range(len(terms))):
        if terms[k].startswith("P"):
            parts = COMBINE[terms[k]].reduce(parts, axis=k, keepdims=True,
                                             dtype=parts.dtype)
    return parts


class Source:
    """A value that lies on a placement: its parts, and what they mean."""

    def __init__(self, name, dtype, shape, on, terms, rng):
        self.name, self.shape = name, shape
        self.on, self.terms = on, terms
        part_mesh = tuple(n if t.startswith("P") else 1
                          for n, t in zip(on.shape, terms))
        least = 0 if dtype in ("bool", "u8") else -40
        most = 2 if dtype == "bool" else 41
        parts = rng.integers(least, most, part_mesh + shape)
        parts = parts.astype(DTYPES[dtype])
        self.parts = np.broadcast_to(parts, on.shape + shape)
        whole = reduce_parts(parts, on, terms)
        self.value = whole.reshape(shape)

    def write(self, folder):
        for rank, coord in self.on.devices():
            own = piece(self.shape, self.on, self.terms, coord)
            np.save(f"{folder}/{self.name}.{rank}.npy",
                    np.ascontiguousarray(self.parts[coord][own]))


def assemble(source, folder, name, on, terms):
    """Pieces by device, each in its place of the whole tensor."""
    shape = source.shape
    out = np.zeros(on.shape + shape, source.value.dtype)
    for rank, coord in on.devices():
        own = piece(shape, on, terms, coord)
        got = np.load(f"{folder}/{name}.{rank}.npy")
        want = out[coord][own].shape
        if got.shape != want or got.dtype != out.dtype:
            return None, (f"rank {rank} has {got.dtype}{got.shape}, not "
                          f"{out.dtype}{want}")
        out[coord][own] = got
    return out, None


def difference(source, folder, name, on, terms):
    """None, or what is wrong with a result."""
    got, problem = assemble(source, folder, name, on, terms)
    if problem:
        return problem
    whole = reduce_parts(got, on, terms)
    for coord in np.ndindex(*whole.shape[:len(on.shape)]):
        mine = tuple(c if n > 1 else 0
                     for c, n in zip(coord, whole.shape))
        own = piece(source.shape, on, terms, mine)
        if not np.array_equal(whole[mine][own], source.value[own]):
            return (f"at {coord}: {whole[mine][own].tolist()}, "
                    f"not {source.value[own].tolist()}")
    return None


class Case:
    def __init__(self, name, pairs, shapes, placements, dtype="f32"):
        self.name, self.shapes, self.placements = name, shapes, placements
        self.dtype = dtype
        self.pairs = pairs      # [((placement, terms), (placement, terms))]
        self.world = max(int(p.mesh.max()) for p in placements) + 1

    def build(self, folder):
        """Writes the program and its inputs; fills self.results."""
        rng = np.random.default_rng(len(self.name))
        self.sources, self.results, lines = {}, [], []
        for shape, (source, target) in itertools.product(self.shapes,
                                                         self.pairs):
            x = self.source(shape, *source, rng, lines)
            y = f"y{len(self.results)}"
            on, terms = target
            lines += [f"  {y} = {x.name} on {on.name}({', '.join(terms)})",
                      f"  output {y}"]
            self.results.append((x, y, on, terms))
        for x in self.sources.values():
            x.write(folder)
        with open(f"{folder}/pairs.sbp", "w") as f:
            for p in self.placements:
                f.write(p.declare() + "\n")
            f.write(f"model pairs on {self.placements[0].name} {{\n")
            f.write("\n".join(lines) + "\n}\n")

    def source(self, shape, on, terms, rng, lines):
        key = shape, on.name, terms
        if key not in self.sources:
            x = Source(f"x{len(self.sources)}", self.dtype, shape, on, terms,
                       rng)
            self.sources[key] = x
            dims = ", ".join(str(n) for n in shape)
            lines.append(f"  input {x.name}: {self.dtype}[{dims}] on "
                         f"{on.name}({', '.join(terms)})")
        return self.sources[key]

    def run(self, bin_dir, folder):
        """A message for each conversion that went wrong."""
        self.build(folder)
        run([f"{bin_dir}/sbpc", "pairs.sbp", "-o", "pairs"], folder)
        args = [f"{bin_dir}/sbprun", "-n", str(self.world), "./pairs",
                "--quiet"]
        for x in self.sources.values():
            args += ["--local-input", f"{x.name}={x.name}.{{rank}}.npy"]
        for _, y, _, _ in self.results:
            args += ["--local-output", f"{y}={y}.{{rank}}.npy"]
        counted = None
        if len(self.results) <= COUNTED:
            out = run(args + ["--bench", "1"], folder)
            bench = json.loads(out.strip().splitlines()[-1])
            counted = bench["recv_bytes"]
        else:
            run(args, folder)
        return self.check_values(folder) + self.check_plan(bin_dir, folder,
                                                           counted)

    def check_values(self, folder):
        wrong = []
        for x, y, on, terms in self.results:
            problem = difference(x, folder, y, on, terms)
            if problem:
                wrong.append(f"{self.name}: {list(x.shape)} "
                             f"{x.on.name}{x.terms} -> {on.name}{terms}: "
                             f"{problem}")
        return wrong

    def check_plan(self, bin_dir, folder, counted):
        """Without P each conversion must meet the lower bound, and what the
        runtime counted must be what was planned."""
        run([f"{bin_dir}/sbpc", "--emit=plan-json", "pairs.sbp", "-o",
             "plan.json"], folder)
        with open(f"{folder}/plan.json") as f:
            plan = json.load(f)
        wrong = []
        if counted is not None and counted != plan["recv_busiest"]:
            wrong.append(f"{self.name}: {counted} bytes received, "
                         f"{plan['recv_busiest']} planned")
        for b in plan["boxing"]:
            free = "P" not in b["from"] + b["to"]
            if b["recv_busiest"] < b["lower_bound"] or (
                    free and b["recv_busiest"] != b["lower_bound"]):
                wrong.append(f"{self.name}: line {b['line']}: {b['from']} -> "
                             f"{b['to']} receives {b['recv_busiest']}, bound "
                             f"{b['lower_bound']}")
        return wrong


def run(args, folder):
    done = subprocess.run(args, cwd=folder, timeout=TIMEOUT,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace")
    if done.returncode:
        lines = done.stdout.strip().splitlines()[:8]
        raise RuntimeError(f"{os.path.basename(args[0])}: exit "
                           f"{done.returncode}: " + "\n".join(lines))
    return done.stdout


def all_terms(on):
    return [tuple(t) for t in itertools.product(TERMS, repeat=len(on.shape))]


def all_pairs(a, b):
    return [((a, x), (b, y)) for x in all_terms(a) for y in all_terms(b)]


def reducing_pairs(a):
    """Of B, S(0), S(1) and P to those without P."""
    def pick(some):
        return itertools.product(some, repeat=len(a.shape))
    return [((a, x), (a, y)) for x in pick(TERMS[:4])
            for y in pick(TERMS[:3])]


def some_pairs(a, n):
    """N pairs by chance, P(min) among them."""
    rng = np.random.default_rng(n)
    terms = TERMS + ["P(min)"]

    def pick():
        return tuple(terms[i] for i in rng.integers(0, len(terms),
                                                    len(a.shape)))
    return [((a, pick()), (a, pick())) for _ in range(n)]


def cases():
    sanitized = os.environ.get("SBPC_SANITIZED") == "ON"    # and so slow
    even, uneven, empty = (12, 12), (5, 7), (0, 3)
    small = (1, 2)
    for n in range(1, 6):
        line = Placement("line", list(range(n)))
        yield Case(f"{n} ranks", all_pairs(line, line),
                   [(60, 60), uneven, empty, small], [line])
    for p, q in (2, 2), (2, 3), (3, 1):
        grid = Placement("grid", np.arange(p * q).reshape(p, q))
        yield Case(f"{p}x{q}", all_pairs(grid, grid),
                   [uneven] if sanitized else [even, uneven, empty], [grid])
    for p, q in (2, 4), (4, 2):
        grid = Placement("grid", np.arange(8).reshape(p, q))
        yield Case(f"{p}x{q}", reducing_pairs(grid), [(16, 24), uneven],
                   [grid])
    for name, a, b in (
            ("disjoint", [0, 1], [2, 3]),
            ("disjoint of other size", [0, 1], [2, 3, 4]),
            ("overlapping", [0, 1, 2], [3, 1, 2]),
            ("nested", [0, 1, 2, 3], [1, 2]),
            ("into a larger one", [2], [0, 1, 2, 3]),
            ("2-D into 1-D", [[0, 1], [2, 3]], [1, 4, 2]),
            ("1-D into 2-D", [0, 1, 2, 3], [[0, 1], [2, 3]]),
            ("1-D into another 2-D", [0, 3], [[4, 1], [2, 3]])):
        a, b = Placement("first", a), Placement("second", b)
        yield Case(name, all_pairs(a, b), [even, uneven, small, empty],
                   [a, b])
    line = Placement("line", [0, 1, 2])
    for dtype in DTYPES:
        pairs = [pair for pair in all_pairs(line, line) if dtype != "bool" or
                 not any(t.startswith("P") for _, ts in pair for t in ts)]
        yield Case(f"3 ranks of {dtype}", pairs, [even, uneven], [line],
                   dtype)
    a = Placement("first", [[0, 1], [2, 3]])
    b = Placement("second", [[3, 2], [1, 0]])
    yield Case("2-D in another order", all_pairs(a, b), [uneven], [a, b])
    cube = Placement("cube", np.arange(8).reshape(2, 2, 2))
    yield Case("2x2x2", some_pairs(cube, 150), [(9, 8)], [cube])
    four = Placement("four", np.arange(6).reshape(1, 3, 2, 1))
    yield Case("1x3x2x1", some_pairs(four, 100), [(7, 13)], [four])


def attempt(case, bin_dir, verbose):
    folder = tempfile.mkdtemp(prefix="boxing_pairs.")
    try:
        wrong = case.run(bin_dir, folder)
    except (RuntimeError, subprocess.TimeoutExpired, OSError) as e:
        if isinstance(e, subprocess.TimeoutExpired):
            e = f"{e.cmd[0]} took longer than {TIMEOUT} s"
        wrong = [f"{case.name}: {e}"]
        wrong += [f"{case.name}: not run"] * (len(case.results) - 1)
    for message in wrong[:None if verbose else 5]:
        print(message)
    shutil.rmtree(folder)
    return len(case.results) - min(len(wrong), len(case.results)), len(wrong)


def main(args):
    verbose, only = False, None
    bin_dir = os.environ.get("SBPC_BIN", "build/release/bin")
    while args:
        arg = args.pop(0)
        if arg == "-v":
            verbose = True
        elif arg == "-k":
            only = args.pop(0)
        else:
            bin_dir = arg
    bin_dir = os.path.abspath(bin_dir)
    passed = failed = 0
    for case in cases():
        if only and only != case.name:
            continue
        good, bad = attempt(case, bin_dir, verbose)
        passed, failed = passed + good, failed + bad
        if verbose or bad:
            print(f"{case.name}: {good} passed, {bad} failed", flush=True)
    print(f"boxing_pairs: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

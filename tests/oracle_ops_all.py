#!/usr/bin/python3
"""Every operator, every dtype, every signature that it claims, against NumPy.

usage: oracle_ops_all.py [-v] [-k WORD] [BIN]

Programs are written in the compiler's own graph text, so that each operand
has the distribution of one signature (`sbpc --list-signatures` lists them) and
the result is asked for in the signature's own. Operands are constants, one
piece a rank; P operands are parts of both signs. Results are read as --show
prints them, piece by piece: shapes, copies that must be equal and values are
all checked. BIN has sbpc and sbprun; $SBPC_BIN by default.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

from ops_cases import (FLOATS, INTS, NUMPY, all_cases, bf16_bits, rounded,
                       type_text, wide)

TIMEOUT = 300
PER_PROGRAM = 250
MESHES = [(1,), (2,), (3,), (2, 2)]
# relative, absolute
CLOSE = {"f16": (2e-3, 1e-3), "bf16": (2e-2, 2e-2), "f32": (4e-6, 2e-6),
         "f64": (1e-13, 1e-13)}
COMBINE = {"P": np.add, "P(max)": np.maximum, "P(min)": np.minimum}


# ---- numbers as text ----

def element_text(x, dtype):
    if dtype == "f16":
        return f"0x{int(np.float16(x).view(np.uint16)):04x}"
    if dtype == "bf16":
        return f"0x{int(bf16_bits(np.float32(x))):04x}"
    if dtype == "f32":
        if np.isnan(x):
            return "0x7fc00000"
        return repr(float(x))
    if dtype == "f64":
        if np.isnan(x):
            return "0x7ff8000000000000"
        return repr(float(x))
    return str(int(x))


def data_text(a, dtype):
    return "[" + ", ".join(element_text(x, dtype) for x in a.ravel()) + "]"


# ---- distributions ----

def split(lo, hi, parts, i):
    q, r = divmod(hi - lo, parts)
    lo += q * i + min(i, r)
    return lo, lo + q + (i < r)


def piece(shape, mesh, terms, coord):
    axes = [(0, n) for n in shape]
    for k, term in enumerate(terms):
        if term[0] == "S":
            axis = int(term[2])
            axes[axis] = split(*axes[axis], mesh[k], coord[k])
    return tuple(slice(lo, hi) for lo, hi in axes)


def reduce_parts(parts, terms, dtype):
    """Mesh axes first; the last partial axis is reduced first."""
    for k in reversed(range(len(terms))):
        if terms[k][0] == "P":
            parts = COMBINE[terms[k]].reduce(parts, axis=k, keepdims=True)
            parts = rounded(parts, dtype)
    return parts


class Tensor:
    """A constant: its parts by device, and the logical value."""

    def __init__(self, spec, mesh, terms, rng):
        self.dtype, self.shape, self.terms = spec.dtype, spec.shape, terms
        room = tuple(n if t[0] == "P" else 1 for n, t in zip(mesh, terms))
        partial = any(t[0] == "P" for t in terms)
        parts = spec.make(rng, room + spec.shape, partial)
        self.parts = np.broadcast_to(parts, mesh + spec.shape)
        with np.errstate(all="ignore"):
            self.value = reduce_parts(parts, terms, spec.dtype)
        self.value = self.value.reshape(spec.shape)

    def text(self, mesh):
        pieces = [data_text(self.parts[c][piece(self.shape, mesh, self.terms,
                                                c)], self.dtype)
                  for c in np.ndindex(*mesh)]
        return "local(" + ", ".join(pieces) + ")"


# Leaves and what passes make have no element of their own to compute.
NO_CASE = {"input", "param", "state", "constant", "to", "move", "kernel"}


def missing(cases):
    """Operators of the table that have no case."""
    source = os.environ.get("SBPC_SOURCE") or os.path.dirname(
        os.path.dirname(os.path.abspath(__file__)))
    with open(f"{source}/ir/ops.def") as f:
        names = set(re.findall(r"^OP\((\w+)", f.read(), re.M))
    return names - NO_CASE - {c.op for c in cases}


# ---- programs ----

def placement_line(mesh):
    ranks = ", ".join(map(str, range(int(np.prod(mesh)))))
    return f"  placement p = cpu[{ranks}] as [{', '.join(map(str, mesh))}]"


def run(command):
    done = subprocess.run(command, capture_output=True, text=True,
                          timeout=TIMEOUT)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)[:200]}: exit "
                           f"{done.returncode}\n{done.stderr[:300]}")
    return done.stdout


def number_line(case, at):
    t, x, _ = case.number
    whole = f"int = {int(x)}, " if t in INTS else ""
    return (f"  %{at}: {t}[] = fill() {{shape = [], value = {x}, "
            f"{whole}dtype = {t}}} on p")


def operands_of(case, names, number):
    if case.number is None:
        return names
    return [number] + names if case.number[2] else names + [number]


def find_signatures(cases, folder, sbpc):
    """What the compiler says that each case may do."""
    lines, ids, at = ["graph s \"s.sbp\" {", placement_line((1,)), "  on p"], \
        {}, 0
    for case in cases:
        names = []
        for spec in case.ins:
            lines.append(f"  %{at}: {spec.type()} = input() on p")
            names.append(f"%{at}")
            at += 1
        if case.number:
            lines.append(number_line(case, at))
            at += 1
        lines.append(case.node(f"%{at}", operands_of(case, names,
                                                     f"%{at - 1}")))
        ids[at] = case
        at += 1
    path = f"{folder}/signatures.ir"
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n}\n")
    for line in run([sbpc, "--list-signatures", path]).splitlines():
        m = re.match(r"(\d+) \w+:(.*)->(.*)$", line)
        case = ids.get(int(m.group(1)))
        if case is None:
            continue
        ins = [s.strip() for s in m.group(2).split(",") if s.strip()]
        if case.number:
            left = case.number[2]
            if ins[0 if left else 1] != "B":
                continue
            ins = ins[1:] if left else ins[:1]
        case.sigs.append((ins, m.group(3).strip()))


def combinations(case, mesh, rng):
    """Signatures for all mesh axes at once: each alone, beside B and beside
    itself, and some that chance picks."""
    if len(mesh) == 1:
        return [[s] for s in case.sigs]
    b, found = case.sigs[0], []
    for s in case.sigs:
        found += [[s, b], [b, s], [s, s]]
    for _ in range(4):
        found.append([case.sigs[i]
                      for i in rng.integers(0, len(case.sigs), 2)])
    unique = []
    for f in found:
        if f not in unique:
            unique.append(f)
    return unique


class Instance:
    def __init__(self, case, sigs, mesh, rng, name):
        self.case, self.mesh, self.name = case, mesh, name
        self.tensors = [Tensor(spec, mesh, [s[0][i] for s in sigs], rng)
                        for i, spec in enumerate(case.ins)]
        self.terms = [s[1] for s in sigs]
        with np.errstate(all="ignore"):
            want = case.fn(*[t.value for t in self.tensors])
            self.want = rounded(want, case.out)

    def lines(self, at):
        out, names, case = [], [], self.case
        for t in self.tensors:
            out.append(f"  %{at}: {type_text(t.dtype, t.shape)} "
                       f"p({', '.join(t.terms)}) = constant() on p init data "
                       f"{t.text(self.mesh)}")
            names.append(f"%{at}")
            at += 1
        if case.number:
            out.append(number_line(case, at))
            at += 1
        out.append(case.node(f"%{at}", operands_of(case, names,
                                                   f"%{at - 1}")))
        out.append(f"  %{at + 1} {self.name}: "
                   f"{type_text(case.out, case.shape)} "
                   f"p({', '.join(self.terms)}) = to(%{at}) on p")
        return out, at + 2

    def label(self):
        ins = "; ".join(f"({', '.join(t.terms)})" for t in self.tensors)
        return f"{self.mesh} {self.case.name}: {ins} -> " \
               f"({', '.join(self.terms)})"


def read_show(text):
    """name -> rank -> (local shape, numbers)"""
    found, current = {}, None
    head = re.compile(r"\[rank (\d+)\] (\S+) \w+\[([^\]]*)\] of ")
    for line in text.splitlines():
        m = head.match(line)
        if m:
            shape = tuple(int(x) for x in m.group(3).split(",") if x.strip())
            current = (shape, [])
            found.setdefault(m.group(2), {})[int(m.group(1))] = current
        elif line.strip():
            current[1].extend(line.split())
    return found


def parse(word):
    if word in ("true", "false"):
        return word == "true"
    return float(word) if re.search(r"[.einfa]", word) else int(word)


def equal(got, want, dtype, parts):
    """PARTS of a sum are rounded each; they may be larger than it."""
    if dtype not in FLOATS:
        return np.array_equal(got, want)
    rel, absolute = CLOSE[dtype]
    finite = parts[np.isfinite(parts)]
    if finite.size:
        absolute = max(absolute, rel * float(np.max(np.abs(finite))))
    return np.allclose(wide(got), wide(want), rel, absolute, equal_nan=True)


def problem_of(inst, shown):
    """None, or what is wrong."""
    case, mesh = inst.case, inst.mesh
    kind = NUMPY[case.out]
    parts = np.zeros(mesh + case.shape, kind)
    for rank, coord in enumerate(np.ndindex(*mesh)):
        own = piece(case.shape, mesh, inst.terms, coord)
        want_shape = parts[coord][own].shape
        if rank not in shown:
            return f"rank {rank} shows nothing"
        shape, words = shown[rank]
        if shape != want_shape:
            return f"rank {rank} has {shape}, not {want_shape}"
        values = np.array([parse(w) for w in words], dtype=kind)
        parts[coord + (...,)][own] = values.reshape(shape)
    partial = any(t[0] == "P" for t in inst.terms)
    with np.errstate(all="ignore"):
        whole = reduce_parts(parts, inst.terms, case.out)
    for coord in np.ndindex(*mesh):
        mine = tuple(c if n > 1 else 0
                     for c, n in zip(coord, whole.shape))
        own = piece(case.shape, mesh, inst.terms, coord)
        got, want = whole[mine][own], inst.want[own]
        if not equal(got, want, case.out, parts if partial else parts[:0]):
            return f"at {coord}: {got.tolist()}, not {want.tolist()}"
    return None


class Tester:
    def __init__(self, folder, bin_folder, verbose):
        self.folder, self.verbose = folder, verbose
        self.sbpc = f"{bin_folder}/sbpc"
        self.sbprun = f"{bin_folder}/sbprun"
        self.passed = self.failed = 0

    def report(self, inst, problem):
        if problem is None:
            self.passed += 1
            if self.verbose:
                print("ok", inst.label())
            return
        self.failed += 1
        if self.failed <= 20:
            print(f"FAILED {inst.label()}\n  {problem[:400]}")

    def program(self, instances, mesh):
        lines = ["graph t \"t.sbp\" {", placement_line(mesh), "  on p"]
        at = 0
        for inst in instances:
            more, at = inst.lines(at)
            lines += more
        for inst, n in zip(instances, range(len(instances))):
            to = [x for x in lines if f" {inst.name}: " in x][-1]
            lines.append(f"  output {inst.name} = {to.split()[0]}")
        path = f"{self.folder}/t.ir"
        with open(path, "w") as f:
            f.write("\n".join(lines) + "\n}\n")
        exe = f"{self.folder}/t"
        if len(mesh) == 1 and instances[0].case.op != "reshape":
            self.converts(path)
        run([self.sbpc, path, "-o", exe, "-O1"])
        names = ",".join(i.name for i in instances)
        return run([self.sbprun, "-n", str(int(np.prod(mesh))), exe,
                    "--show", names])

    def converts(self, path):
        """Each operator must run on its operands as they lie. (Whether a
        reshape may depends on the pieces, so these are not asked.)"""
        boxing = json.loads(run([self.sbpc, path, "--emit=plan-json"]))[
            "boxing"]
        if boxing:
            raise RuntimeError(f"converts: {boxing[0]}")

    def halves(self, instances, mesh, problem):
        """Finds the instances that a program fails on."""
        failed, half = self.failed, len(instances) // 2
        if half == 0:
            self.report(instances[0], problem)
            return
        self.test(instances[:half], mesh)
        self.test(instances[half:], mesh)
        if self.failed == failed:
            print(f"FAILED {mesh}: only together: {problem[:400]}")
            self.failed += 1

    def test(self, instances, mesh):
        try:
            shown = read_show(self.program(instances, mesh))
        except (RuntimeError, subprocess.TimeoutExpired) as e:
            self.halves(instances, mesh, str(e))
            return
        for inst in instances:
            self.report(inst, problem_of(inst, shown.get(inst.name, {})))


def main():
    args = sys.argv[1:]
    verbose = "-v" in args
    word = args[args.index("-k") + 1] if "-k" in args else ""
    rest = [a for i, a in enumerate(args)
            if a not in ("-v", "-k") and (i == 0 or args[i - 1] != "-k")]
    bin_folder = rest[0] if rest else os.environ["SBPC_BIN"]
    folder = tempfile.mkdtemp(prefix="ops_all.")
    tester = Tester(folder, bin_folder, verbose)
    rng = np.random.default_rng(1)
    try:
        cases = all_cases()
        for op in sorted(missing(cases)):
            print(f"FAILED {op}: no case")
            tester.failed += 1
        cases = [c for c in cases if word in c.name]
        find_signatures(cases, folder, tester.sbpc)
        for case in cases:
            if not case.sigs:
                print(f"FAILED {case.name}: no signature")
                tester.failed += 1
        for mesh in MESHES:
            instances = [Instance(c, s, mesh, rng, f"o{i}_{k}")
                         for i, c in enumerate(cases)
                         for k, s in enumerate(combinations(c, mesh, rng))]
            for group in (False, True):
                chosen = [i for i in instances
                          if (i.case.op == "reshape") == group]
                for i in range(0, len(chosen), PER_PROGRAM):
                    tester.test(chosen[i:i + PER_PROGRAM], mesh)
    finally:
        shutil.rmtree(folder)
    print(f"ops_all: {tester.passed} passed, {tester.failed} failed")
    return tester.failed != 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
"""Random programs on random placements against NumPy.

usage: oracle_programs.py [--seed N] [--count N] [--seconds N] [--keep DIR]
                          [--thorough] [BIN]

A program is a graph of random expressions over random constants, inputs and
states, with random annotations, on one to three placements of up to eight
ranks. random_values.py computes the same graph, with a bound of the error of
each element: integers, bools and floats that are small multiples of a power
of two must agree exactly. Every program is also run on meshes of one rank,
and twice, and simulated; its plan must receive what the run receives; its
graph after boxing reads back; its C compiles without a warning under gcc and
clang. With --thorough all programs pass all checks, else one of them each.

A program that fails is made as small as possible, and printed with its seed.
BIN has sbpc and sbprun; $SBPC_BIN by default.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

import random_maker
import random_program
from common import BIN
from oracle_ops_all import NUMPY, parse, piece, read_show, reduce_parts
from random_values import Invalid

FILE = dict(NUMPY, f16=np.float16)
TIMEOUT = 100
SHRINK_SECONDS = 150


class Wrong(Exception):
    """What is wrong with a program: its kind, the text, and which output."""

    def __init__(self, kind, text, output=None):
        super().__init__(text)
        self.kind, self.output = kind, output


def call(kind, command, folder, threads=1):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), SBP_TIMEOUT="60")
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, cwd=folder,
                              stderr=subprocess.PIPE, timeout=TIMEOUT,
                              env=env, universal_newlines=True)
    except subprocess.TimeoutExpired:
        raise Wrong(kind, f"{' '.join(command)}: no end")
    if done.returncode != 0:
        raise Wrong(kind, f"{' '.join(command)}: exit {done.returncode}\n"
                    f"{done.stdout[-800:]}{done.stderr[-3000:]}")
    return done.stdout


class Checker:
    def __init__(self, bin_folder, folder):
        self.sbpc = os.path.join(bin_folder, "sbpc")
        self.sbprun = os.path.join(bin_folder, "sbprun")
        self.folder = folder

    def write(self, program, name, single=False):
        with open(f"{self.folder}/{name}.sbp", "w") as f:
            f.write(program.text(single))

    def input_options(self, program):
        options = []
        for s in program.inputs():
            t = random_program.start(s)
            np.save(f"{self.folder}/{s.name}.npy",
                    t.val.astype(FILE[s.dtype]))
            options += ["--input", f"{s.name}={s.name}.npy"]
        return options

    def values(self, program, start, more=()):
        """Runs; what each output is, and what was printed."""
        outputs = program.outputs()
        options = self.input_options(program)
        for s in outputs:
            options += ["--output", f"{s.name}={s.name}.out.npy"]
        if program.steps > 1:
            options += ["--steps", str(program.steps)]
        text = call("run", [*start, *options, *more], self.folder,
                    1 + program.world * len(program.stmts) % 3)
        return {s.name: np.load(f"{self.folder}/{s.name}.out.npy")
                for s in outputs}, text

    def ranks(self, exe, world):
        return [self.sbprun, "-n", str(world), exe]

    def compare(self, program, found, kind="value"):
        for s in program.outputs():
            got, want = found[s.name], program.result[s.name]
            if got.shape != want.val.shape or got.dtype != FILE[s.dtype]:
                raise Wrong(kind, f"{s.name} is {got.dtype}{got.shape}, not "
                            f"{want.dtype}{want.val.shape}", s)
            bad = want.differs(got)
            if bad.any():
                at = tuple(int(i) for i in np.argwhere(bad)[0])
                raise Wrong(kind, f"{s.name}{list(at)} is {got[at]}, not "
                            f"{want.val[at]} +- {want.bound()[at]}; "
                            f"{int(bad.sum())} of {bad.size} differ", s)

    def compare_pieces(self, program, text):
        """What --show prints: the shape of each piece, and its values."""
        shown = read_show(text)
        headers = dict(re.findall(
            r"^\[rank \d+\] (\S+) .* of \[.*?\] (\(.*\))$", text, re.M))
        for s in program.outputs():
            if s.dtype in ("f16", "bf16") or program.steps > 1:
                continue
            terms = ["P" if t == "P(sum)" else t for t in
                     re.findall(r"S\(\d+\)|P\(\w+\)|P|B", headers[s.name])]
            mesh = program.places[s.place].mesh
            if s.note and any(t != w and n > 1 for t, w, n in
                              zip(terms, s.note, mesh)):
                raise Wrong("piece", f"{s.name} lies as {terms}, not "
                            f"{s.note}", s)
            self.compare_piece(program, s, terms, shown[s.name])

    def compare_piece(self, program, s, terms, shown):
        want, place = program.result[s.name], program.places[s.place]
        shape, mesh = want.val.shape, place.mesh
        parts = np.zeros(mesh + shape, NUMPY[want.dtype])
        for i, coord in enumerate(np.ndindex(*mesh)):
            own = piece(shape, mesh, terms, coord)
            local, words = shown.get(place.ranks[i], (None, []))
            if local != parts[coord][own].shape:
                raise Wrong("piece", f"{s.name}: rank {place.ranks[i]} has "
                            f"{local}, not {parts[coord][own].shape}", s)
            parts[coord + (...,)][own] = np.array(
                [parse(w) for w in words],
                dtype=NUMPY[want.dtype]).reshape(local)
        with np.errstate(all="ignore"):
            whole = reduce_parts(parts, terms, want.dtype)
        for coord in np.ndindex(*mesh):
            mine = tuple(c if n > 1 else 0
                         for c, n in zip(coord, whole.shape))
            own = piece(shape, mesh, terms, coord)
            room = np.zeros(shape, bool)
            room[own] = True
            if (want.differs(whole[mine]) & room).any():
                raise Wrong("piece", f"{s.name}: the piece at {coord} is "
                            f"{whole[mine][own]}", s)

    def check(self, program, checks):
        with np.errstate(all="ignore"):
            program.evaluate()
        self.write(program, "m")
        call("compile", [self.sbpc, "m.sbp", "-o", "m", "-O1"], self.folder)
        names = ",".join(s.name for s in program.outputs())
        found, text = self.values(program, self.ranks("./m", program.world),
                                  ["--show", names])
        self.compare(program, found)
        self.compare_pieces(program, text)
        for name in checks:
            getattr(self, "check_" + name)(program, found)

    def check_again(self, program, found):
        again, _ = self.values(program, self.ranks("./m", program.world))
        self.same_bits("again", program, found, again)

    def check_simulate(self, program, found):
        for seed in range(3):
            again, _ = self.values(program, [
                self.sbpc, f"--simulate={seed}", "-O1", "m.sbp", "--"])
            self.same_bits("simulate", program, found, again)

    def same_bits(self, kind, program, found, again):
        for s in program.outputs():
            if again[s.name].tobytes() != found[s.name].tobytes():
                raise Wrong(kind, f"{s.name} has other bits the second time",
                            s)

    def check_single(self, program, _):
        self.write(program, "single", True)
        call("single", [self.sbpc, "single.sbp", "-o", "single", "-O1"],
             self.folder)
        found, _ = self.values(program, self.ranks("./single", 1))
        self.compare(program, found, "single")

    def check_bytes(self, program, _):
        plan = json.loads(call("bytes", [self.sbpc, "m.sbp",
                                         "--emit=plan-json"], self.folder))
        text = call("bytes", [self.sbprun, "-n", str(program.world), "./m",
                              "--bench", "1",
                              *self.input_options(program)], self.folder)
        bench = json.loads(text.strip().split("\n")[-1])
        if bench["recv_bytes"] != plan["recv_busiest"]:
            raise Wrong("bytes", f"the plan says {plan['recv_busiest']} "
                        f"bytes, the run {bench['recv_bytes']}")
        if plan["world"] != program.world:
            raise Wrong("bytes", f"a world of {plan['world']}, not "
                        f"{program.world}")
        for b in plan["boxing"]:
            if b["recv_busiest"] < b["lower_bound"]:
                raise Wrong("bytes", f"below the lower bound: {b}")
            if "P" not in b["from"] + b["to"] and \
                    b["recv_busiest"] != b["lower_bound"]:
                raise Wrong("bytes", f"above the lower bound: {b}")

    def check_dump(self, program, _):
        for name in ("boxing", "fuse"):
            text = call("dump", [self.sbpc, "m.sbp", f"--dump-after={name}",
                                 f"--stop-after={name}"], self.folder)
            if name == "boxing":
                with open(f"{self.folder}/dump.ir", "w") as f:
                    f.write(text)
            again = call("dump", [self.sbpc, "dump.ir", f"--passes={name}"],
                         self.folder)
            pairs = [re.sub(r"  # .*", "", t).split("\n")
                     for t in (text, again)]
            if pairs[0] != pairs[1]:
                line = next((x for x in zip(*pairs) if x[0] != x[1]), None)
                raise Wrong("dump", f"after {name} the dump reads back as "
                            f"another graph: {line}")

    def check_compilers(self, program, _):
        sources = f"{self.folder}/sources"
        shutil.rmtree(sources, ignore_errors=True)
        os.mkdir(sources)
        call("compilers", [self.sbpc, "../m.sbp", "--emit=c", "-o", "m"],
             sources)
        include = call("compilers", [self.sbpc, "--print-include-dir"],
                       sources).strip()
        files = [f for f in os.listdir(sources) if f.endswith(".c")]
        for cc in ("gcc", "clang"):
            if shutil.which(cc):
                call("compilers", [
                    cc, "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror",
                    "-march=native", "-fsyntax-only", "-ffp-contract=off",
                    f"-I{include}", *files], sources)


ALL = ["again", "single", "bytes", "dump", "compilers", "simulate"]


class Shrinker:
    """Makes a program smaller while it fails in the same way."""

    def __init__(self, checker, program, wrong, checks):
        self.checker, self.best, self.wrong = checker, program, wrong
        self.checks = checks
        self.end = time.time() + SHRINK_SECONDS

    def fails(self, program):
        if time.time() > self.end:
            return False
        try:
            self.checker.check(program, self.checks)
        except Wrong as e:
            if e.kind == self.wrong.kind:
                self.best, self.wrong = program, e
                return True
        except Invalid:
            pass
        return False

    def run(self):
        changed = True
        while changed and time.time() < self.end:
            changed = False
            for make in random_program.SMALLER:
                changed |= self.exhaust(make)
        return self.best, self.wrong

    def exhaust(self, make):
        """Tries what MAKE offers until it offers nothing that fails."""
        changed, skip = False, 0
        while True:
            offers = make(self.best, self.wrong.output)
            for _ in range(skip):
                next(offers, None)
            smaller = next(offers, None)
            if smaller is None:
                return changed
            if self.fails(smaller):
                changed = True
            else:
                skip += 1


def one(checker, seed, checks, keep):
    """Tests the program of SEED; True if it is right."""
    program = random_maker.generate(seed)
    try:
        checker.check(program, checks)
        return True
    except Wrong as e:
        wrong = e
    print(f"FAILED seed {seed}: {wrong.kind}: {str(wrong)[:1500]}")
    sys.stdout.flush()
    needed = [wrong.kind] if wrong.kind in checks else []
    small, wrong = Shrinker(checker, program, wrong, needed).run()
    text = f"# seed {seed}: {wrong.kind}: " + \
        str(wrong)[:3000].replace("\n", "\n# ") + "\n" + small.text(False)
    print(text)
    if keep:
        with open(os.path.join(keep, f"seed{seed}.sbp"), "w") as f:
            f.write(text)
    sys.stdout.flush()
    return False


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=0)
    p.add_argument("--seconds", type=float, default=40)
    p.add_argument("--keep")
    p.add_argument("--thorough", action="store_true")
    p.add_argument("bin", nargs="?", default=BIN)
    return p.parse_args()


def main():
    args = arguments()
    folder = tempfile.mkdtemp(prefix="sbpc-random.")
    checker = Checker(os.path.abspath(args.bin), folder)
    end = time.time() + args.seconds
    seed, count = args.seed, [0, 0]
    try:
        while time.time() < end if args.count == 0 else \
                seed < args.seed + args.count:
            checks = ALL if args.thorough else [ALL[seed % len(ALL)]]
            count[one(checker, seed, checks, args.keep)] += 1
            seed += 1
    finally:
        shutil.rmtree(folder)
    print(f"programs: {count[1]} passed, {count[0]} failed")
    return count[0] != 0


if __name__ == "__main__":
    sys.exit(main())

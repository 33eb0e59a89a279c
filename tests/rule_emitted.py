"""Emitted C is clean under -Wall -Wextra -Werror of gcc and Clang, the same
from run to run, and has lines of at most 100 columns."""
import glob
import os
import shutil
import subprocess

from common import SAMPLES, SBPC, SOURCE, expect, main, run

COMPILERS = [c for c in ("gcc", "clang", "clang-14") if shutil.which(c)]


def programs():
    tests = os.path.join(SOURCE, "tests")
    files = glob.glob(os.path.join(SAMPLES, "*.sbp"))
    for stage in ("codegen", "passes", "frontend"):
        files += glob.glob(os.path.join(tests, stage, "*.sbp"))
    return sorted(files)


def emit(path, directory, name):
    """The emitted files, by name; None if the program has errors."""
    os.makedirs(os.path.join(directory, name))
    out = os.path.join(directory, name, "m.c")
    done = subprocess.run([SBPC, "--emit=c", path, "-o", out], check=False,
                          stderr=subprocess.DEVNULL)
    if done.returncode:
        return None
    files = sorted(glob.glob(os.path.join(directory, name, "*")))
    return {os.path.basename(f): open(f, encoding="utf-8").read()
            for f in files if f.endswith((".c", ".h"))}


def check_lines(path, files):
    for name, text in files.items():
        for line in text.split("\n"):
            expect(len(line.expandtabs(8)) <= 100,
                   f"{path}: {name}: long line: {line}")


def test_emitted(directory):
    include = run(SBPC, "--print-include-dir").strip()
    checked = 0
    for path in programs():
        name = os.path.relpath(path, SOURCE).replace(os.sep, "_")
        one = emit(path, directory, name)
        if one is None or not any(f.endswith(".c") for f in one):
            continue
        expect(one == emit(path, directory, name + ".again"),
               f"{path}: another text in a second run")
        check_lines(path, one)
        sources = [f for f in one if f.endswith(".c")]
        for compiler in COMPILERS:
            run(compiler, "-std=c11", "-Wall", "-Wextra", "-Werror",
                "-Wno-psabi", "-march=x86-64-v3", "-ffp-contract=off",
                "-fsyntax-only", "-I", include, *sources,
                cwd=os.path.join(directory, name))
        checked += 1
    expect(checked > 20, f"only {checked} programs compile")


main(test_emitted)

"""What nobody should do: names that C cannot hold, streams that are closed
or full, folders that are not there, meshes that are too large."""
import os
import subprocess

import numpy as np
from common import SBPC, SBPRUN, expect, main, run

PROGRAM = """placement p = cpu[0, 1]
model {model} on p {{
  input {input}: f32[4] on (S(0))
  printf = {input} * 2
  while = sum(printf)
  output printf
  output while as "*/ ??/ %s \\"\\\\ ü"
}}
"""
NAMES = ['"q"', "new\nline", "x??'y", "back\\slash", "%s%n", "*", "ü",
         "$(false)", "sp ace"]
WORDS = ["main", "printf", "NULL", "errno", "at", "m", "moves", "float",
         "step", "SBP_OK", "sbp_model", "__x", "_X"]
FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-march=native",
         "-ffp-contract=off", "-fsyntax-only"]


def write(directory, name, text):
    path = os.path.join(directory, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def program(directory, name="m.sbp", model="m", feed="x"):
    np.save(os.path.join(directory, "x.npy"), np.ones(4, np.float32))
    return write(directory, name, PROGRAM.format(model=model, input=feed))


def test_file_names(directory):
    for name in NAMES:
        path = program(directory, name + ".sbp")
        run(SBPC, path, "-o", path + ".exe")
        run(SBPRUN, "-n", "2", path, "--input", "x=x.npy", cwd=directory)
        run(SBPC, path, "--emit=plan-json")
        bad = any(c in name for c in '"\n\\') or "??" in name
        run(SBPC, path, "--emit=c", "-o", path + ".src", code=2 * bad)
        left = [f for f in os.listdir(directory) if ".src" in f]
        expect(bool(left) != bad, f"{name!r}: {left}")
        for f in left:
            os.remove(os.path.join(directory, f))


def test_words(directory):
    include = run(SBPC, "--print-include-dir").strip()
    for word in WORDS:
        path = program(directory, "w.sbp", word, word)
        run(SBPC, path, "--emit=c", "-o", "w", cwd=directory)
        sources = [f for f in os.listdir(directory)
                   if f.startswith("w") and f.endswith(".c")]
        run("cc", *FLAGS, "-I", include, *sources, cwd=directory)


def status(command, directory, **streams):
    return subprocess.run(
        [str(c) for c in command], cwd=directory, stderr=subprocess.PIPE,
        timeout=60, universal_newlines=True, check=False, **streams)


def test_full_stdout(directory):
    program(directory)
    run(SBPC, "m.sbp", "-o", "m", cwd=directory)
    show = [SBPRUN, "-n", "2", "./m", "--input", "x=x.npy", "--show", "printf"]
    with open("/dev/full", "w", encoding="ascii") as full:
        for command, code in ((show, 1), ([SBPC, "--help"], 2),
                              ([SBPC, "m.sbp", "--emit=plan"], 2)):
            done = status(command, directory, stdout=full)
            expect(done.returncode == code and "written" in done.stderr
                   or code == 2, f"{command}: {done}")


def test_closed_streams(directory):
    program(directory)
    run(SBPC, "m.sbp", "-o", "m", cwd=directory)
    command = f"{SBPRUN} -n 2 ./m --input x=x.npy --output printf=y.npy"
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        run("sh", "-c", f"{command} {closed}", cwd=directory)
        y = np.load(os.path.join(directory, "y.npy"))
        expect((y == 2).all(), f"{closed}: {y}")
    run("sh", "-c", f"{command} --show printf >&-", cwd=directory, code=1)


def test_nowhere(directory):
    program(directory)
    out = run(SBPC, "m.sbp", "-o", "absent/m", code=2, cwd=directory)
    expect("cannot write 'absent/m': No such file" in out, out)
    run(SBPC, "m.sbp", "-o", "m", cwd=directory)
    for option in ("--output=printf=", "--save=", "--log="):
        name, _, rest = option[2:].partition("=")
        run(SBPRUN, "-n", "2", "./m", "--input", "x=x.npy", f"--{name}",
            rest + "absent/y", code=2, cwd=directory)


def test_small_files(directory):
    """A file that may not grow is an error, and nothing is left."""
    program(directory)
    run(SBPC, "m.sbp", "-o", "m", cwd=directory)
    before = sorted(os.listdir(directory))
    limits = "ulimit -f 0; "
    run("bash", "-c", f"{limits} {SBPC} m.sbp --emit=c -o n", code=2,
        cwd=directory)
    run("bash", "-c", f"{limits} {SBPRUN} -n 2 ./m --input x=x.npy "
        "--output printf=y.npy", code=1, cwd=directory)
    left = sorted(os.listdir(directory))
    expect(left == before, f"{left}")


def test_long_expressions(directory):
    """What is nested too deeply is said once."""
    for text in (" + ".join(["x"] * 20000), "-" * 3000 + "x",
                 "relu(" * 3000 + "x" + ")" * 3000):
        path = write(directory, "s.sbp", "placement p = cpu[0]\nmodel m on p "
                     "{\n  input x: f32[4]\n  y = " + text +
                     "\n  output y\n}\n")
        out = run(SBPC, path, code=1)
        expect(out.count("error:") == 1 and "nested deeper than" in out, out)


def test_large_mesh(directory):
    path = write(directory, "l.sbp", "placement p = cpu[0..100000000]\n"
                 "model m on p {\n  x = ones([2])\n  output x\n}\n")
    out = run(SBPC, path, code=1)
    expect("at most 1048576 ranks" in out, out)


main(test_file_names, test_words, test_full_stdout, test_closed_streams,
     test_nowhere, test_small_files, test_long_expressions, test_large_mesh)

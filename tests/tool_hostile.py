"""What nobody should do: names that C cannot hold, streams that are closed
or full, folders that are not there, outputs over inputs, options that do
nothing, edited plans, meshes that are too large."""
import json
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


def refused(directory, tool, arguments, text):
    out = run(tool, *arguments, code=2, cwd=directory)
    expect(text in out and out.count("error:") <= 1, f"{arguments}: {out}")


def test_files_kept(directory):
    """No output replaces what was read, nor another output."""
    path = program(directory)
    run(SBPC, "m.sbp", "--emit=ir", "-o", "m.ir", cwd=directory)
    os.symlink("m.sbp", os.path.join(directory, "link.sbp"))
    with open(path, encoding="utf-8") as f:
        before = f.read()
    for arguments, text in (
            (["-o", "m.sbp"], "'m.sbp' was read"),
            (["--emit=plan", "-o", "./link.sbp"], "'./link.sbp' was read"),
            (["--explain=m.sbp", "-o", "n"], "cannot write 'm.sbp'"),
            (["-MF", "n", "-o", "n"], "'n' would be written twice"),
            (["--explain=n", "-o", "n"], "'n' would be written twice")):
        refused(directory, SBPC, ["m.sbp", *arguments], text)
    refused(directory, SBPC, ["m.ir", "--emit=ir", "-o", "m.ir"], "was read")
    with open(path, encoding="utf-8") as f:
        expect(f.read() == before, "the source was changed")
    feed = ["m.sbp", "--input", "x=x.npy", "--output", "printf=y.npy"]
    for again in (["--output", "printf=y.npy"], ["--save", "y.npy"],
                  ["--log", "y.npy"]):
        refused(directory, SBPRUN, feed + again, "'y.npy' would be written")


def test_idle_options(directory):
    """An option that could do nothing is an error."""
    program(directory)
    run(SBPC, "m.sbp", "--emit=ir", "-o", "m.ir", cwd=directory)
    run(SBPC, "m.sbp", "-o", "m", cwd=directory)
    for arguments, text in (
            (["m.sbp", "--emit=c", "--per-rank"], "--per-rank is for"),
            (["m.sbp", "-MT", "m"], "-MT names the target of -MD or -MF"),
            (["m.sbp", "--cc="], "--cc wants a compiler"),
            (["m.sbp", "--cc=false"], "'false' failed"),
            (["m.sbp", "--keep="], "--keep wants a name"),
            (["m.sbp", "-D", "a=1", "-D", "a=2"], "no top-level let 'a'"),
            (["m.ir", "-D", "a=1"], "-D is for the source"),
            (["m.ir", "--auto"], "--auto is for the source")):
        refused(directory, SBPC, arguments, text)
    for option in (["-D", "a=1"], ["--memory=1MiB"], ["-O3"],
                   ["--topology=no"]):
        refused(directory, SBPRUN, [*option, "-n", "2", "./m"],
                "is for a .sbp file, and './m' is a program")


def test_edited_plans(directory):
    """A committed plan that lacks what is compared is refused."""
    program(directory)
    good = json.loads(run(SBPC, "--emit=plan-json", "m.sbp", cwd=directory))
    expect(good["boxing"], "nothing is compared")

    def check(text, code, said):
        write(directory, "p.json", text)
        out = run(SBPC, "--plan-check=p.json", "--emit=plan", "m.sbp",
                  code=code, cwd=directory)
        expect(said in out, f"{text}: {out}")

    check(json.dumps(good), 0, "m: plan")
    for text in ("", "null", "[]", "[" * 10000, "{}"):
        check(text, 2, "p.json")
    for key in ("boxing", "world", "recv_busiest", "peak_memory"):
        check(json.dumps({k: v for k, v in good.items() if k != key}), 2,
              "is not what --emit=plan-json writes")
        check(json.dumps(dict(good, **{key: "1"})), 2, "plan-json writes")
    for key in ("value", "phase", "from", "to", "recv_busiest", "recv_total"):
        bad = dict(good["boxing"][0])
        del bad[key]
        check(json.dumps(dict(good, boxing=[bad])), 2, "boxing 1 lacks")
    refused(directory, SBPC, ["--plan-check=.", "m.sbp"], "Is a directory")


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
     test_nowhere, test_small_files, test_files_kept, test_idle_options,
     test_edited_plans, test_long_expressions, test_large_mesh)

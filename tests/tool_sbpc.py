"""sbpc's command line: kinds of output, where they go, exit codes."""
import json
import os
import re
import shutil
import subprocess

import numpy as np
from common import SAMPLES, SBPC, SBPRUN, expect, main, run, shown

MLP = os.path.join(SAMPLES, "mlp2d.sbp")
X = os.path.join(SAMPLES, "mlp2d_x.npy")
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
TEXT_KINDS = ("c", "header", "ir", "plan", "plan-json", "dot")


def write(directory, name, text):
    path = os.path.join(directory, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def include_dir():
    return run(SBPC, "--print-include-dir").strip()


def library():
    return os.path.join(include_dir(), "../../lib/sbpc/libsbp.a")


def y_of(directory, *command):
    out = run(*command, "--input", f"x={X}", "--show", "y", cwd=directory)
    return [shown(out)["y", rank] for rank in range(4)]


def test_help(_):
    text = run(SBPC, "--help")
    dev = run(SBPC, "--help-dev")
    expect("--dump-after" not in text and "--dump-after" in dev, text)
    expect(all(len(line) <= 80 for line in dev.split("\n")), "long lines")
    expect(run(SBPC, "--version").startswith("sbpc "), "version")


def test_usage(directory):
    for args, part in ((["--emti=c", MLP], "did you mean '--emit'"),
                       (["--emit=x", MLP], "not 'x'"),
                       (["-O4", MLP], "-O wants"),
                       (["-O", MLP], "wants 0..3"),
                       (["-D", "n", MLP], "NAME=EXPR"),
                       (["-D", "nosuch=1", MLP], "nosuch"),
                       (["--model=other", MLP], "other"),
                       (["--keep=other", MLP], "other"),
                       (["-o"], "wants OUT"),
                       (["--stats=3", MLP], "takes no argument"),
                       (["--dump-after=x", MLP], "no pass 'x'"),
                       ([MLP, MLP], "one model file"),
                       ([], "which model file"),
                       (["absent.sbp"], "absent.sbp"),
                       ([directory], directory),
                       (["-o", "no/such/dir/x", MLP], "no/such/dir")):
        out = run(SBPC, *args, code=2, cwd=directory)
        expect(part in out, f"{args}: {out}")
    expect(not os.listdir(directory), "files are left")


def test_errors_leave_nothing(directory):
    path = write(directory, "m.sbp", "model m { output nosuch }\n")
    for kind in TEXT_KINDS + ("obj", "lib"):
        run(SBPC, f"--emit={kind}", "-o", "out", path, code=1, cwd=directory)
    run(SBPC, "-o", "out", "-MD", path, code=1, cwd=directory)
    expect(os.listdir(directory) == ["m.sbp"], str(os.listdir(directory)))


def test_text_kinds(directory):
    for kind in TEXT_KINDS:
        text = run(SBPC, f"--emit={kind}", MLP, cwd=directory)
        expect(text and not os.listdir(directory), f"{kind}: {text[:80]}")
        run(SBPC, f"--emit={kind}", "-o", "m", MLP, cwd=directory)
        names = os.listdir(directory)
        expect(names and all(n.startswith("m") for n in names), str(names))
        for name in names:
            os.unlink(os.path.join(directory, name))
    json.loads(run(SBPC, "--emit=plan-json", MLP))


def test_same_text_twice(directory):
    for i in "ab":
        os.mkdir(os.path.join(directory, i))
        run(SBPC, "--emit=c", "-o", f"{i}/gpt2", "-D", "d=2", "-D", "t=2",
            os.path.join(SAMPLES, "gpt2.sbp"), cwd=directory)
    for name in os.listdir(os.path.join(directory, "a")):
        texts = []
        for i in "ab":
            with open(os.path.join(directory, i, name), "rb") as f:
                texts.append(f.read())
        expect(texts[0] == texts[1], f"{name} differs")


def test_clean_under_compilers(directory):
    """The emitted C has no warnings, and computes the same."""
    for sample in ("mlp2d", "two", "matmul2d", "softmax", "embedding",
                   "fashion", "gpt2"):
        run(SBPC, "--emit=c", "-o", sample,
            os.path.join(SAMPLES, sample + ".sbp"), cwd=directory)
    names = sorted(n for n in os.listdir(directory) if n.endswith(".c"))
    for compiler in ("gcc", "clang-14"):
        if not shutil.which(compiler):
            continue
        run(compiler, *WARNINGS, "-O1", "-march=native",
            "-I", include_dir(), "-c", *names, cwd=directory)


def test_external_compilers(directory):
    want = y_of(directory, SBPRUN, MLP)
    for compiler in ("gcc", "clang-14", "gcc -O1"):
        if not shutil.which(compiler.split()[0]):
            continue
        run(SBPC, f"--cc={compiler}", "-o", "mlp", MLP, cwd=directory)
        expect(y_of(directory, SBPRUN, "-n", "4", "./mlp") == want,
               f"{compiler}: other values")
    out = run(SBPC, "--cc=nosuchcc", "-o", "x", MLP, code=2, cwd=directory)
    expect("nosuchcc" in out, out)


def test_per_rank(directory):
    run(SBPC, "--per-rank", "-o", "mlp", MLP, cwd=directory)
    expect(sorted(os.listdir(directory)) == [f"mlp{r}" for r in range(4)],
           str(os.listdir(directory)))
    path = write(directory, "start.sh", '#!/bin/sh\nexec ./mlp$RANK "$@"\n')
    os.chmod(path, 0o755)
    expect(y_of(directory, SBPRUN, "-n", "4", "./start.sh") ==
           y_of(directory, SBPRUN, MLP), "other values")


def test_depfile(directory):
    write(directory, "part.sbp", "def twice(x) { return x + x }\n")
    np.save(os.path.join(directory, "c.npy"), np.ones(3, "f4"))
    write(directory, "m.sbp", 'import "part.sbp"\nlet n = 1\n'
          'placement p = cpu[0]\n'
          'model m on p {\n const c: f32[3] = npy("c.npy")\n'
          ' y = twice(c)\n output y\n}\n')
    run(SBPC, "-MD", "-D", "n=2", "-o", "m", "m.sbp", cwd=directory)
    with open(os.path.join(directory, "m.d"), encoding="utf-8") as f:
        rule = f.read()
    expect(rule.startswith("m:"), rule)
    expect("-D" not in rule, f"{rule} has what is no file")
    for name in ("m.sbp", "part.sbp", "c.npy", "prelude.sbp"):
        expect(name in rule, f"{name} is not in {rule}")
    run(SBPC, "-MF", "x.dep", "-MT", "all things", "-o", "m", "m.sbp",
        cwd=directory)
    with open(os.path.join(directory, "x.dep"), encoding="utf-8") as f:
        expect(f.read().startswith("all things:"), "-MT")


def test_dump_reads_back(directory):
    """A dump compiles to the same plan and the same values."""
    run(SBPC, "--emit=ir", "-o", "mlp2d.ir", MLP, cwd=directory)
    run(SBPC, "-o", "mlp", "mlp2d.ir", cwd=directory)
    expect(y_of(directory, SBPRUN, "-n", "4", "./mlp") ==
           y_of(directory, SBPRUN, MLP), "other values")


EMBED = """
#include <stdio.h>
#include <sbp.h>
#include "two.h"

int main(void)
{
	static float x[64 * 32], y[64 * 8];
	sbp_model *m;

	for (int i = 0; i < 64 * 32; i++)
		x[i] = (float)(i % 7);
	if (sbp_open(&two_program, NULL, &m) != SBP_OK ||
	    sbp_set(m, "x", x) != SBP_OK || sbp_step(m) != SBP_OK ||
	    sbp_get(m, "y", y) != SBP_OK) {
		fprintf(stderr, "%s\\n", sbp_error(m));
		return 1;
	}
	printf("%.4f\\n", (double)y[100]);
	sbp_close(m);
	return 0;
}
"""


def test_embedding(directory):
    """--emit=obj and --emit=lib, linked into another program."""
    if not shutil.which("gcc"):
        return
    source = os.path.join(SAMPLES, "two.sbp")
    write(directory, "user.c", EMBED)
    for kind, name in (("header", "two.h"), ("obj", "two.o"),
                       ("lib", "libtwo.a")):
        run(SBPC, f"--emit={kind}", "-o", name, source, cwd=directory)
    outs = []
    for parts in (["two.o", library()], ["libtwo.a"]):
        run("gcc", *WARNINGS, "-I", include_dir(), "user.c", *parts,
            "-lm", "-ldl", "-lpthread", "-o", "user", cwd=directory)
        out = run(SBPRUN, "-n", "2", "./user", cwd=directory).split()
        expect(len(out) == 2 and out[0] == out[1], str(out))
        outs.append(out)
    expect(outs[0] == outs[1], "obj and lib differ")


def test_symbols(directory):
    """What is linked carries the model's prefix, or sbp_."""
    run(SBPC, "--emit=obj", "-o", "two.o", os.path.join(SAMPLES, "two.sbp"),
        cwd=directory)
    for path, prefix in (("two.o", "two_"), (library(), "sbp_")):
        out = subprocess.run(["nm", "-g", "--defined-only", path],
                             cwd=directory, stdout=subprocess.PIPE,
                             universal_newlines=True, check=True).stdout
        names = re.findall(r"^[0-9a-f]+ \S (\S+)$", out, re.M)
        wrong = [n for n in names if not n.startswith(prefix)]
        expect(names and not wrong, f"{path}: {wrong}")


def test_explain(directory):
    text = run(SBPC, "--explain", "--emit=plan", "-o", "p", MLP,
               cwd=directory)
    expect(text, "--explain prints nothing")
    run(SBPC, "--explain=why.txt", "--emit=plan", "-o", "p", MLP,
        cwd=directory)
    with open(os.path.join(directory, "why.txt"), encoding="utf-8") as f:
        expect(f.read() == text, "the file differs")


def test_arch(directory):
    run(SBPC, "--arch=x86-64-v3", "-O1", "-o", "mlp", MLP, cwd=directory)
    run(SBPRUN, "-n", "4", "./mlp", "--input", f"x={X}", cwd=directory)
    run(SBPC, "--emit=cuda", "--arch=sm_90", "-o", "mlp", MLP, code=2,
        cwd=directory)
    out = run(SBPC, "--arch=nosuch", "-o", "mlp", MLP, code=2, cwd=directory)
    expect("nosuch" in out, out)


main(test_help, test_usage, test_errors_leave_nothing, test_text_kinds,
     test_same_text_twice, test_clean_under_compilers,
     test_external_compilers, test_per_rank, test_depfile,
     test_dump_reads_back, test_embedding, test_symbols, test_explain,
     test_arch)

"""cmake --install: the tools find their files wherever the prefix lies, and a
CMake project finds the package."""
import os
import shutil

from common import BIN, SAMPLES, expect, main, run

X = os.path.join(SAMPLES, "mlp2d_x.npy")
BUILD = os.path.dirname(BIN)

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(sbpc REQUIRED)
sbpc_model(net {sample} DEFINES t=1)
add_executable(user user.c)
target_link_libraries(user PRIVATE net)
"""

USER = """
#include <stdio.h>
#include <sbp.h>
#include "net.h"

int main(void)
{
	sbp_model *m;

	if (sbp_open(&fashion_program, NULL, &m) != SBP_OK)
		return 1;
	printf("opened\\n");
	sbp_close(m);
	return 0;
}
"""


def install(directory):
    """A prefix that has moved since it was installed."""
    run("cmake", "--install", BUILD, "--prefix", "first", cwd=directory)
    os.rename(os.path.join(directory, "first"),
              os.path.join(directory, "prefix"))
    return os.path.join(directory, "prefix")


def test_tools(directory):
    prefix = install(directory)
    out = run(os.path.join(prefix, "bin/sbprun"),
              os.path.join(SAMPLES, "mlp2d.sbp"), "--input", f"x={X}",
              "--show", "y", cwd=directory)
    expect(out.count("[rank") == 4, out)
    where = run(os.path.join(prefix, "bin/sbpc"), "--print-include-dir")
    expect(where.strip() == os.path.join(prefix, "include/sbpc"), where)
    for root, _, names in os.walk(prefix):
        for name in names:
            path = os.path.join(root, name)
            expect(not os.path.islink(path), f"{path} is a link")
    alien = [n for n in os.listdir(os.path.join(prefix, "include/sbpc"))
             if not n.startswith("sbp")]
    expect(not alien, f"general names on users' include path: {alien}")


def test_page(directory):
    """The commands and the program of docs/embedding.md, as written."""
    if not shutil.which("cc"):
        return
    prefix = install(directory)
    page = os.path.join(SAMPLES, "..", "docs", "embedding.md")
    with open(page, encoding="utf-8") as f:
        text = f.read()
    program = text.split("```c\n")[1].split("```")[0]
    with open(os.path.join(directory, "user.c"), "w", encoding="utf-8") as f:
        f.write(program)
    part = text.split("## A model in a C or C++ program\n")[1]
    script = part.split("\n`--emit=lib`")[0].replace("/opt/sbpc", prefix)
    os.symlink(SAMPLES, os.path.join(directory, "samples"))
    path = os.path.join(prefix, "bin") + ":" + os.environ["PATH"]
    out = run("sh", "-ec", script, cwd=directory,
              env=dict(os.environ, PATH=path)).split()
    expect(len(out) == 2 and out[0] == out[1], str(out))


def test_package(directory):
    if not shutil.which("gcc"):
        return
    prefix = install(directory)
    sample = os.path.join(SAMPLES, "fashion.sbp")
    for name, text in (("CMakeLists.txt", PROJECT.format(sample=sample)),
                       ("user.c", USER)):
        with open(os.path.join(directory, name), "w", encoding="utf-8") as f:
            f.write(text)
    run("cmake", "-S", ".", "-B", "build", "-G", "Ninja",
        f"-DCMAKE_PREFIX_PATH={prefix}", cwd=directory)
    run("cmake", "--build", "build", cwd=directory)
    expect(run("build/user", cwd=directory) == "opened\n", "not opened")


main(test_tools, test_page, test_package)

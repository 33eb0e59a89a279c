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


main(test_tools, test_package)

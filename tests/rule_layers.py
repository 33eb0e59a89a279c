"""The layer rule: who may include whom."""
import glob
import os
import re

from common import SOURCE, expect, main

# ir includes nothing else; the compiler's folders include ir; the runtime
# includes only itself; tools may include all.
ALLOWED = {
    "ir": {"ir"},
    "frontend": {"frontend", "ir"},
    "passes": {"passes", "ir"},
    "codegen": {"codegen", "passes", "ir"},
    "runtime": {"runtime"},
    "tools": {"tools", "frontend", "codegen", "passes", "ir"},
}


def sources(folder):
    for ending in ("c", "h", "y", "l", "cc", "def"):
        yield from glob.glob(os.path.join(SOURCE, folder, "*." + ending))


def includes(path):
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            name = re.match(r'\s*#\s*include "([^"]+)"', line)
            if name:
                yield number, name[1]


def test_layers(_):
    wrong = []
    for folder, allowed in ALLOWED.items():
        for path in sources(folder):
            for number, name in includes(path):
                of = name.split("/")[0] if "/" in name else folder
                if of not in allowed:
                    wrong.append(f"{os.path.relpath(path, SOURCE)}:{number}: "
                                 f"{folder} must not include {name}")
    expect(not wrong, "\n".join(wrong))


def test_cpp_in_one_file(_):
    found = [os.path.relpath(p, SOURCE) for ending in ("cc", "cpp", "cxx")
             for folder in ALLOWED for p in
             glob.glob(os.path.join(SOURCE, folder, "*." + ending))]
    expect(found == ["codegen/clang.cc"], f"C++ in {found}")


def test_readmes(_):
    missing = [folder for folder in list(ALLOWED) + ["tests", "samples"]
               if not os.path.exists(os.path.join(SOURCE, folder,
                                                  "README.md"))]
    expect(not missing, f"no README.md in {missing}")


main(test_layers, test_cpp_in_one_file, test_readmes)

"""Runs all tests of a build tree: check.py BUILD [--none-skipped] [CTEST]...

The last line counts them; with --none-skipped a skipped test is a failure.
"""
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml


def results(path):
    """{status: names} of a JUnit file."""
    found = {"run": [], "fail": [], "notrun": [], "disabled": []}
    for case in xml.parse(path).getroot().iter("testcase"):
        found[case.get("status")].append(case.get("name"))
    return found


def cuda_configured(build):
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as f:
        return any(line.startswith("SBPC_NVCC:") and
                   "NOTFOUND" not in line for line in f)


def main():
    build, arguments = sys.argv[1], sys.argv[2:]
    strict = "--none-skipped" in arguments
    arguments = [a for a in arguments if a != "--none-skipped"]
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "results.xml")
        code = subprocess.call(
            ["ctest", "--test-dir", build, "-j", str(os.cpu_count()),
             "--output-on-failure", "--output-junit", path, *arguments])
        found = results(path)
    print()
    for name in found["fail"]:
        print(f"failed: {name}")
    for name in found["notrun"]:
        print(f"skipped: {name}")
    if not cuda_configured(build):
        print("cuda: not configured")
    print(f"{len(found['run'])} passed, {len(found['fail'])} failed, "
          f"{len(found['notrun'])} skipped")
    return 1 if code or found["fail"] or (strict and found["notrun"]) else 0


sys.exit(main())

#!/usr/bin/env python3
"""Every example of docs/language.md compiles, without a warning."""
import os
import re

from common import SBPC, SOURCE, expect, main, run


def examples():
    with open(os.path.join(SOURCE, "docs", "language.md")) as f:
        return re.findall(r"^```sbp\n(.*?)^```$", f.read(), re.M | re.S)


def compiles(directory):
    found = examples()
    expect(len(found) > 5, "no examples in docs/language.md")
    for i, text in enumerate(found):
        path = os.path.join(directory, f"example{i}.sbp")
        with open(path, "w") as f:
            f.write(text)
        warnings = run(SBPC, "--stop-after=boxing", path)
        expect(warnings == "", f"{text}\n{warnings}")


if __name__ == "__main__":
    main(compiles)

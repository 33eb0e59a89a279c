#!/usr/bin/python3
"""The language, promise by promise, against NumPy.

usage: oracle_language.py [-v] [-k WORD]

Tables of small programs: operators with their arguments on one and several
ranks under several distributions, then what the text of a program means, then
what must be refused. language_*.py hold the tables.
"""
import sys

from language_errors import errors
from language_operators import HEAD, operators
from language_statements import programs, statements, STATEMENTS
from snippets import Tally

# ranks, mesh, terms of the operands, and of one that may be partial
LAYOUTS = [("1", "", "B", "B"), ("2", "", "S(0)", "S(0)"),
           ("2", "", "S(-1)", "P"), ("3", "", "S(0)", "P"),
           ("4", " as [2, 2]", "S(0), S(-1)", "P, S(0)")]


def main():
    args = sys.argv[1:]
    tally = Tally("-v" in args)
    word = args[args.index("-k") + 1] if "-k" in args else ""
    for ranks, shape, first, partial in LAYOUTS:
        table = [s for s in operators() if word in s.name]
        if table:
            head = HEAD.format(ranks=ranks, shape=shape, first=first,
                               partial=partial)
            tally.snippets(table, head, ["-n", ranks],
                           f"{ranks} {first} {partial}: ")
    for ranks in "1", "2":
        table = [s for s in statements(int(ranks)) if word in s.name]
        if table:
            tally.snippets(table, STATEMENTS.format(ranks=ranks),
                           ["-n", ranks], f"{ranks}: ")
    programs(tally, word)
    errors(tally, word)
    print(f"oracle_language: {tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(main())

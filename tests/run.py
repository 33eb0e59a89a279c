#!/usr/bin/env python3
"""Golden tests: run.py FILE.sbp...

A file starts with lines "# run: COMMAND"; %s is the file, %t a directory for
outputs. The transcript (command, output, [exit N]) must equal NAME.out.
"#~ error: TEXT" on a line must agree with the errors that are reported there,
also while updating (SBPC_UPDATE=1), so that an update cannot bless a lost
error. "# needs: PROGRAM" skips where PROGRAM is not installed.
"""
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77


def environment():
    env = dict(os.environ, LC_ALL="C")
    if "SBPC_BIN" in env:
        env["PATH"] = env["SBPC_BIN"] + os.pathsep + env["PATH"]
    return env


def transcript(path, commands):
    """What the commands print, as it stands in NAME.out."""
    name = os.path.basename(path)
    out = []
    with tempfile.TemporaryDirectory() as temporary:
        for command in commands:
            real = command.replace("%s", name).replace("%t", temporary)
            done = subprocess.run(
                real, shell=True, cwd=os.path.dirname(path) or ".",
                env=environment(), stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                timeout=300)
            text = done.stdout.decode("utf-8", "replace")
            text = text.replace(temporary, "%t")
            if text and not text.endswith("\n"):
                text += "\n"
            out.append(f"$ {command}\n{text}[exit {done.returncode}]\n")
    return "\n".join(out)


def unexpected(path, lines, text):
    """Errors without a marker, and markers without an error."""
    name = re.escape(os.path.basename(path))
    found = set(re.findall(rf"^{name}:(\d+):\d+: error: (.*)$", text, re.M))
    found = {(int(line), message) for line, message in found}
    wanted = {(number, text.strip())
              for number, line in enumerate(lines, 1)
              for text in re.findall(r"#~ error: ([^#\n]*)", line)}
    wrong = []
    for line, message in sorted(found):
        if not any(line == at and part in message for at, part in wanted):
            wrong.append(f"line {line}: no marker for: {message}")
    for line, part in sorted(wanted):
        if not any(line == at and part in message for at, message in found):
            wrong.append(f"line {line}: no error with: {part}")
    return wrong


def run(path):
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    for line in lines:
        need = re.match(r"# needs: (\S+)", line)
        if need and not shutil.which(need[1]):
            print(f"{path}: skipped: needs {need[1]}")
            return SKIPPED
    commands = [line[len("# run:"):].strip() for line in lines
                if line.startswith("# run:")]
    text = transcript(path, commands)
    wrong = unexpected(path, lines, text)
    for message in wrong:
        print(f"{path}: {message}")
    out = os.path.splitext(path)[0] + ".out"
    old = ""
    if os.path.exists(out):
        with open(out, encoding="utf-8") as f:
            old = f.read()
    if wrong:
        print(text)
        return 1
    if text == old:
        return 0
    if os.environ.get("SBPC_UPDATE"):
        with open(out, "w", encoding="utf-8") as f:
            f.write(text)
        print(f"{out}: updated")
        return 0
    sys.stdout.writelines(difflib.unified_diff(
        old.splitlines(True), text.splitlines(True), out, "now"))
    return 1


def main():
    codes = [run(os.path.abspath(path)) for path in sys.argv[1:]]
    return next((c for c in codes if c not in (0, SKIPPED)),
                SKIPPED if codes and all(codes) else 0)


sys.exit(main())

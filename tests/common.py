"""What the Python tests share: running the tools, reading what they print."""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

SKIPPED = 77
SOURCE = os.environ.get("SBPC_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.abspath(__file__)))
BIN = os.environ.get("SBPC_BIN") or os.path.join(SOURCE, "build/release/bin")
SBPC = os.path.join(BIN, "sbpc")
SBPRUN = os.path.join(BIN, "sbprun")
SAMPLES = os.path.join(SOURCE, "samples")


class Failure(Exception):
    """A test's own failure: what was expected, what was found."""


def expect(condition, message):
    if not condition:
        raise Failure(message)


def run(*command, code=0, cwd=None, env=None, timeout=120, text=None):
    """Runs a command; returns stdout. Another exit code is a failure."""
    done = subprocess.run(
        [str(c) for c in command], cwd=cwd, timeout=timeout, input=text,
        env=dict(os.environ, **(env or {})), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode != code:
        raise Failure(f"{' '.join(map(str, command))}: exit "
                      f"{done.returncode}, expected {code}\n"
                      f"{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout if code == 0 else done.stdout + done.stderr


def plan(path, *options):
    """--emit=plan-json, read."""
    return json.loads(run(SBPC, "--emit=plan-json", *options, path))


def shown(text):
    """What --show printed: {(name, rank): header, rows}."""
    values = {}
    current = None
    for line in text.split("\n"):
        head = re.match(r"\[rank (\d+)\] (\S+) (.*)$", line)
        if head:
            current = []
            values[head[2], int(head[1])] = (head[3], current)
        elif current is not None and line.strip():
            current.append([float(x) for x in line.split()])
    return values


def write_safetensors(path, tensors):
    """{name: array} of f32 and i64."""
    import numpy as np
    names = {"float32": "F32", "int64": "I64"}
    header, data = {}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": names[str(array.dtype)],
                        "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    import numpy as np
    types = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4"}
    with open(path, "rb") as f:
        raw = f.read()
    n = struct.unpack("<Q", raw[:8])[0]
    out = {}
    for name, t in json.loads(raw[8:8 + n]).items():
        if name == "__metadata__":
            continue
        lo, hi = t["data_offsets"]
        out[name] = np.frombuffer(
            raw[8 + n + lo:8 + n + hi], types[t["dtype"]]).reshape(t["shape"])
    return out


def main(*tests):
    """Runs each test in a directory of its own; exits with the result."""
    failed = 0
    wanted = sys.argv[1:]
    for test in tests:
        if wanted and test.__name__ not in wanted:
            continue
        directory = tempfile.mkdtemp(prefix="sbpc-test-")
        try:
            test(directory)
            print(f"ok {test.__name__}")
        except (Failure, subprocess.TimeoutExpired) as e:
            failed += 1
            print(f"FAILED {test.__name__}: {e}")
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        sys.stdout.flush()
    sys.exit(failed > 0)

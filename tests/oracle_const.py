#!/usr/bin/env python3
"""Consts from .npy files: every dtype and order that NumPy writes, and files
that must be refused with the reason."""
import os
import struct

import numpy as np

from common import SBPC, SBPRUN, expect, main, run

TYPES = {"f16": "<f2", "f32": "<f4", "f64": "<f8", "i8": "|i1", "i32": "<i4",
         "i64": "<i8", "u8": "|u1", "bool": "|b1"}

PROGRAM = """placement here = cpu[0]
model m {{
{body}}}
"""


def program(directory, body):
    path = os.path.join(directory, "m.sbp")
    with open(path, "w") as f:
        f.write(PROGRAM.format(body=body))
    return path


def values(directory):
    rng = np.random.default_rng(3)
    arrays, body, command = {}, "", [SBPRUN, "-n", 1, "m.sbp"]
    for name, code in TYPES.items():
        a = rng.integers(0, 2 if name == "bool" else 100, (3, 1, 4))
        for kind, b in {"c": a.astype(code),
                        "fortran": np.asfortranarray(a.astype(code)),
                        "big": a.astype(code.replace("<", ">"))}.items():
            x = f"{name}_{kind}"
            arrays[x] = b
            np.save(os.path.join(directory, x + ".npy"), b)
            body += f'  const {x}: {name}[3, 1, 4] = npy("{x}.npy")\n'
            body += f"  output {x}\n"
            command += ["--output", f"{x}={x}.out.npy"]
    np.save(os.path.join(directory, "scalar.npy"), np.float32(7))
    body += '  const scalar: f32[] = npy("scalar.npy")\n  output scalar\n'
    arrays["scalar"] = np.float32(7)
    command += ["--output", "scalar=scalar.out.npy"]
    program(directory, body)
    run(*command, cwd=directory)
    for x, right in arrays.items():
        found = np.load(os.path.join(directory, x + ".out.npy"))
        expect(np.array_equal(found, right), f"{x}: {found}\n{right}")


def raw(header, data=b"\0" * 16, version=1):
    text = header.encode() + b"\n"
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + data


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"
REFUSED = [
    (b"", "not a .npy file"),
    (b"\x93NUMPX\x01\x00" + raw(GOOD)[8:], "not a .npy file"),
    (raw(GOOD, version=4), "a version of the format"),
    (raw(GOOD)[:9], "not a .npy file"),
    (raw(GOOD)[:40], "the header is cut short"),
    (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b"x" * 64, "cut short"),
    (raw(GOOD + " " * 20000), "longer than 10000 bytes"),
    (raw(GOOD, b"\0" * 15), "not as long as the shape says"),
    (raw(GOOD, b"\0" * 17), "not as long as the shape says"),
    (raw("{'descr': '<f4', 'shape': (4,)}"), "a key is missing"),
    (raw("{'descr': '<f4', 'descr': '<f4'}"), "a key stands twice"),
    (raw(GOOD.replace("}", "'x': 1}")), "a key that is not"),
    (raw(GOOD.replace("(4,)", "4")), "no tuple"),
    (raw(GOOD.replace("(4,)", "(4)")), "no tuple"),
    (raw(GOOD.replace("(4,)", "(-4,)")), "no tuple"),
    (raw(GOOD.replace("(4,)", "(10**9,)")), "no tuple"),
    (raw(GOOD.replace("(4,)", "(99999999999999999999,)")), "64 bits"),
    (raw(GOOD.replace("(4,)", "(1,1,1,1,1,1,1,1,4)")), "more than 8 axes"),
    (raw(GOOD.replace("'<f4'", "'|O'")), "does not know"),
    (raw(GOOD.replace("'<f4'", "'<c8'")), "a dtype that sbpc does not know"),
    (raw(GOOD.replace("'<f4'", "[('a', '<f4')]")), "no plain dtype"),
    (raw(GOOD.replace("False", "0")), "not True or False"),
    (raw(GOOD + " import os"), "text after the header's dictionary"),
    (raw(GOOD.replace("<f4", "<f8")), "it holds f64[4], not f32[4]"),
    (raw(GOOD.replace("(4,)", "(2, 2)")), "it holds f32[2, 2], not f32[4]"),
]


def refused(directory):
    path = program(directory, '  const x: f32[4] = npy("x.npy")\n  output x\n')
    npy = os.path.join(directory, "x.npy")
    for data, why in [(raw(GOOD), None)] + REFUSED:
        with open(npy, "wb") as f:
            f.write(data)
        said = run(SBPC, "--stop-after=sbp", path, code=1 if why else 0)
        expect(why is None or ("m.sbp:3:" in said and why in said),
               f"{data[:90]}: {said}")
    os.remove(npy)
    for make, why in ((os.mkdir, "not a regular file"),
                      (os.mkfifo, "not a regular file")):
        make(npy)
        said = run(SBPC, "--stop-after=sbp", path, code=1)
        expect(why in said, said)
        (os.rmdir if os.path.isdir(npy) else os.remove)(npy)
    said = run(SBPC, "--stop-after=sbp", path, code=1)
    expect("No such file" in said, said)


if __name__ == "__main__":
    main(values, refused)

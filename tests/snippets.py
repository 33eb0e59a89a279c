"""Many small programs in one: a snippet is some statements of a model and what
its values must be. They are compiled together; where that fails they are
halved until the one that fails stands alone.
"""
import os
import shutil
import subprocess
import tempfile

import numpy as np

from common import SBPC, SBPRUN

TIMEOUT = 240
CLOSE = {"float16": (2e-3, 1e-3), "float32": (4e-6, 2e-6),
         "float64": (1e-13, 1e-13)}


class Snippet:
    """WANTS are logical values, PIECES what each rank holds ({name: {rank:
    piece}}), FEEDS arrays of inputs. A name may be any expression. Exact
    values are compared by their bits; pieces that are wanted as one object
    must agree in their bits."""

    def __init__(self, name, text, wants=None, pieces=None, feeds=None,
                 exact=False):
        self.name, self.text, self.exact = name, text, exact
        self.wants, self.pieces = wants or {}, pieces or {}
        self.feeds = feeds or {}

    def outputs(self):
        return list(self.wants) + [n for n in self.pieces
                                   if n not in self.wants]


def literal(x):
    """An array as the language writes it."""
    x = np.asarray(x)
    if x.ndim:
        return "[" + ", ".join(literal(e) for e in x) + "]"
    if x.dtype == np.bool_:
        return "true" if x else "false"
    return repr(x.item())


def same(got, want, exact):
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if exact or want.dtype.name not in CLOSE:
        return np.ascontiguousarray(got).tobytes() == \
            np.ascontiguousarray(want).tobytes()
    rel, absolute = CLOSE[want.dtype.name]
    return np.allclose(got.astype(np.float64), want.astype(np.float64), rel,
                       absolute, equal_nan=True)


def describe(x):
    return f"{x.dtype}{list(x.shape)} {x.tolist()}"


class Program:
    """Snippets as one program in FOLDER."""

    def __init__(self, snippets, head, options, folder):
        self.snippets, self.options, self.folder = snippets, options, folder
        lines = [head]
        for i, s in enumerate(snippets):
            lines += [f"# {s.name}", s.text]
            for k, out in enumerate(s.outputs()):
                name = out
                if not out.isidentifier():
                    name = f"out{k}"
                    lines.append(f"{name} = {out}")
                lines.append(f'output {name} as "s{i}.{k}"')
        with open(f"{folder}/m.sbp", "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n}\n")

    def arguments(self):
        args = ["--quiet"]
        for i, s in enumerate(self.snippets):
            for name, array in s.feeds.items():
                np.save(f"{self.folder}/{name}.npy", array)
                args += ["--input", f"{name}={name}.npy"]
            for k, out in enumerate(s.outputs()):
                if out in s.wants:
                    args += ["--output", f"s{i}.{k}=s{i}.{k}.npy"]
                if out in s.pieces:
                    args += ["--local-output",
                             f"s{i}.{k}=s{i}.{k}.{{rank}}.npy"]
        return args

    def run(self):
        """None, or what sbprun said when it failed."""
        done = subprocess.run(
            [SBPRUN, *self.options, "-O1", "m.sbp", *self.arguments()],
            cwd=self.folder, timeout=TIMEOUT, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, universal_newlines=True, check=False)
        if done.returncode:
            return f"exit {done.returncode}: {done.stdout.strip()[:1500]}"
        return None

    def problem(self, i):
        s, copies = self.snippets[i], {}
        for k, out in enumerate(s.outputs()):
            found = [(f"s{i}.{k}.npy", s.wants[out], "")] \
                if out in s.wants else []
            found += [(f"s{i}.{k}.{rank}.npy", piece, f" on rank {rank}")
                      for rank, piece in s.pieces.get(out, {}).items()]
            for path, want, where in found:
                got = np.load(f"{self.folder}/{path}")
                first = copies.setdefault((k, id(want)), got)
                want = np.asarray(want)
                if not same(got, want, s.exact) or \
                        not same(got, first, True):
                    return (f"{out}{where}: {describe(got)}, not "
                            f"{describe(want)}")
        return None


class Tally:
    def __init__(self, verbose=False):
        self.passed = self.failed = 0
        self.verbose = verbose

    def add(self, name, problem):
        if problem is None:
            self.passed += 1
            if self.verbose:
                print("ok", name, flush=True)
            return
        self.failed += 1
        print(f"FAILED {name}: {problem}", flush=True)

    def snippets(self, snippets, head, options, label=""):
        """Runs them as one program, or in halves."""
        folder = tempfile.mkdtemp(prefix="snippets.")
        try:
            program = Program(snippets, head, options, folder)
            problem = program.run()
            if problem is None:
                for i, s in enumerate(snippets):
                    self.add(label + s.name, program.problem(i))
            elif len(snippets) == 1:
                self.add(label + snippets[0].name, problem)
        except (subprocess.TimeoutExpired, OSError, ValueError) as e:
            problem = str(e)
            if len(snippets) == 1:
                self.add(label + snippets[0].name, problem)
        finally:
            shutil.rmtree(folder)
        if problem is not None and len(snippets) > 1:
            half = len(snippets) // 2
            self.snippets(snippets[:half], head, options, label)
            self.snippets(snippets[half:], head, options, label)

    def error(self, name, text, code, part, run=None, args=()):
        """A whole program that must fail with CODE and say PART; RUN is the
        number of ranks where it fails at run time."""
        folder = tempfile.mkdtemp(prefix="snippets.")
        with open(os.path.join(folder, "m.sbp"), "w", encoding="utf-8") as f:
            f.write(text)
        command = [SBPRUN, "-n", str(run)] if run else [SBPC, "--emit=plan"]
        try:
            done = subprocess.run(
                [*command, "m.sbp", *args], cwd=folder, timeout=TIMEOUT,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                universal_newlines=True, check=False)
            problem = None
            if done.returncode != code or part not in done.stdout:
                problem = (f"exit {done.returncode}, not {code} with "
                           f"'{part}': {done.stdout.strip()[:1500]}")
        except subprocess.TimeoutExpired as e:
            problem = str(e)
        finally:
            shutil.rmtree(folder)
        self.add(name, problem)

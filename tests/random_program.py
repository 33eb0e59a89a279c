"""Random programs: their statements, text and values, and their shrinking.

A program is a list of statements, each of which has a value; operands are
statements before it. Nothing here runs anything.
"""
import copy
import re

import numpy as np

import random_values as rv
from oracle_ops_all import piece
from random_values import Invalid, T

# what makes tensors by itself
MADE_HERE = "arange|layer_norm|tril|causal|for i"


class Place:
    def __init__(self, name, ranks, mesh):
        self.name, self.ranks, self.mesh = name, ranks, tuple(mesh)

    def text(self, single):
        mesh = (1,) * len(self.mesh) if single else self.mesh
        ranks = [0] if single else self.ranks
        return f"placement {self.name} = " \
               f"cpu{nested(np.array(ranks).reshape(mesh), str)}"


def nested(a, fn):
    if a.ndim == 0:
        return fn(a[()])
    return "[" + ", ".join(nested(x, fn) for x in a) + "]"


def element(dtype):
    if dtype == "bool":
        return lambda x: "true" if x else "false"
    if dtype in rv.INTS:
        return lambda x: str(int(x))
    return lambda x: repr(float(x)) if "inf" not in repr(float(x)) else str(x)


class Stmt:
    """args: (index, annotation or None); note: the terms asked for; fn makes
    its T of the operands' or, with none, of the program's current value."""

    def __init__(self, kind, name, place, text="", args=(), fn=None):
        self.kind, self.name, self.place = kind, name, place
        self.text, self.args, self.fn = text, list(args), fn
        self.note = self.data = self.parts = self.update = None
        self.dtype = self.shape = None
        self.output = False


def terms_text(terms):
    return "(" + ", ".join(terms) + ")"


class Program:
    def __init__(self, places, world):
        self.places, self.world, self.stmts = places, world, []
        self.steps, self.result = 1, {}

    def outputs(self):
        return [s for s in self.stmts if s.output]

    def inputs(self):
        return [s for s in self.stmts if s.kind == "input"]

    # ---- text ----

    def arg(self, i, note, place):
        s = self.stmts[i]
        if note is None and s.place == place:
            return s.name
        on = self.places[place].name if place else ""
        if not note and not place:
            on = self.places[0].name
        return f"({s.name} on {on}{terms_text(note) if note else ''})"

    def line(self, s, single):
        head = f"{s.kind} {s.name}: {s.dtype}" \
               f"[{', '.join(map(str, s.shape))}]" if s.kind != "op" else ""
        on = ""
        if s.note or (s.kind != "op" and s.place):
            name = self.places[s.place].name if s.place else ""
            on = f" on {name}{terms_text(s.note) if s.note else ''}"
        if s.kind == "op":
            args = [self.arg(i, n, s.place) for i, n in s.args]
            text = f"{s.name} = {s.text.format(*args)}{on}"
            # its tensors have the enclosing placement
            if s.place and re.search(MADE_HERE, text):
                text = f"on {self.places[s.place].name} {{ {text} }}"
            return text
        if s.kind == "input":
            return head + on
        if s.parts is not None and not single:
            mesh = self.places[s.place].mesh
            pieces = [nested(s.parts[c][piece(s.shape, mesh, s.note, c)],
                             element(s.dtype)) for c in np.ndindex(*mesh)]
            return f"{head}{on} = local({', '.join(pieces)})"
        return f"{head}{on} = {nested(s.data, element(s.dtype))}"

    def text(self, single=False):
        lines = [p.text(single) for p in self.places]
        lines += ["", f"model m on {self.places[0].name} {{"]
        for s in self.stmts:
            lines.append("  " + self.line(s, single))
        for s in self.stmts:
            if s.kind == "state" and s.update is not None:
                lines.append(f"  update {s.name} = "
                             f"{self.arg(s.update, None, s.place)}")
            if s.output:
                lines.append(f"  output {s.name}")
        return "\n".join(lines + ["}", ""])

    # ---- values ----

    def evaluate(self):
        """Fills result with the values of the last step."""
        now = {s.name: start(s) for s in self.stmts if s.kind == "state"}
        for _ in range(self.steps):
            found = []
            for s in self.stmts:
                if s.kind == "op":
                    t = s.fn(*(found[i] for i, _ in s.args))
                else:
                    t = now[s.name] if s.kind == "state" else start(s)
                found.append(t)
            for s in self.stmts:
                if s.kind == "state" and s.update is not None:
                    now[s.name] = found[s.update]
        self.result = {s.name: t for s, t in zip(self.stmts, found)}
        return found


def start(s):
    """The value of a leaf: small multiples of 1/8, so that it is exact."""
    quantum, mag = None, 0.0
    if s.dtype not in rv.INTS:
        quantum = 0.125 if s.dtype != "bf16" else 0.25
        if not (s.data * 8 == np.round(s.data * 8)).all():
            return T(s.dtype, s.data, 0.0, None)
        if s.parts is not None:
            mag = rv.RANKS * np.abs(s.parts).max(initial=0)
    return T(s.dtype, s.data, 0.0, quantum, mag)


# ---- smaller programs ----

def clean(p):
    """Without what no output needs."""
    need, pending = set(), [i for i, s in enumerate(p.stmts) if s.output]
    while pending:
        i = pending.pop()
        if i in need:
            continue
        need.add(i)
        s = p.stmts[i]
        pending += [j for j, _ in s.args]
        if s.update is not None:
            pending.append(s.update)
    order = sorted(need)
    at = {old: new for new, old in enumerate(order)}
    q = Program(p.places, p.world)
    q.steps = p.steps
    for i in order:
        s = copy.copy(p.stmts[i])
        s.args = [(at[j], note) for j, note in s.args]
        if s.update is not None:
            s.update = at[s.update]
        q.stmts.append(s)
    if not any(s.kind == "state" and s.update is not None for s in q.stmts):
        q.steps = 1
    return q


def changed(p, i, **fields):
    q = Program(p.places, p.world)
    q.steps = p.steps
    q.stmts = [copy.copy(s) for s in p.stmts]
    for name, value in fields.items():
        setattr(q.stmts[i], name, value)
    return q


def one_output(p, wrong):
    outs = [i for i, s in enumerate(p.stmts) if s.output]
    if len(outs) < 2:
        return
    for i in reversed(outs):
        if wrong is not None and p.stmts[i].name != wrong.name:
            continue
        q = changed(p, i)
        for s in q.stmts:
            s.output = False
        q.stmts[i].output = True
        yield clean(q)


def fewer_outputs(p, _):
    outs = [i for i, s in enumerate(p.stmts) if s.output]
    if len(outs) > 1:
        for i in outs:
            yield clean(changed(p, i, output=False))


def operand_as_output(p, _):
    """What an output is made of in its stead."""
    for i, s in enumerate(p.stmts):
        if s.output:
            for j, _ in s.args:
                if p.stmts[j].kind == "op" and p.stmts[j].dtype != "bf16":
                    q = changed(p, i, output=False)
                    q.stmts[j].output = True
                    yield clean(q)


def fewer_steps(p, _):
    if p.steps > 1:
        q = changed(p, 0)
        q.steps = p.steps - 1
        yield q
    for i, s in enumerate(p.stmts):
        if s.update is not None:
            yield clean(changed(p, i, update=None))


def values_for_ops(p, _):
    """A constant in place of an operator."""
    try:
        found = p.evaluate()
    except Invalid:
        return
    for i in reversed(range(len(p.stmts))):
        s = p.stmts[i]
        if s.kind in ("state", "input") and s.update is None:
            yield changed(p, i, kind="const")
        if s.kind != "op" or s.output:
            continue
        data = found[i].val
        if s.dtype not in rv.INTS:
            data = np.round(data * 4) / 4
        for note in {None, tuple(s.note or ())}:
            yield clean(changed(p, i, kind="const", args=[], data=data,
                                note=list(note) if note else None,
                                fn=None))


def fewer_notes(p, _):
    for i, s in enumerate(p.stmts):
        for k, (j, note) in enumerate(s.args):
            if note is not None:
                args = list(s.args)
                args[k] = (j, None)
                yield changed(p, i, args=args)
        if s.note is not None:
            yield changed(p, i, note=None, parts=None)
        if s.note is not None and s.parts is None:
            for k, term in enumerate(s.note):
                if term != "B":
                    note = list(s.note)
                    note[k] = "B"
                    yield changed(p, i, note=note)
        if s.parts is not None:
            yield changed(p, i, parts=None)


SMALLER = [one_output, fewer_outputs, operand_as_output, fewer_steps,
           values_for_ops, fewer_notes]

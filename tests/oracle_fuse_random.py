#!/usr/bin/env python3
"""Random programs of elementwise operators, broadcasts and reductions against
NumPy: whatever fusion makes of them, every output must come out right."""
import numpy as np

from common import SBPRUN, expect, main, run

PROGRAMS = 24


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 *
                                  (x + 0.044715 * x ** 3)))


UNARY = {
    "tanh({})": np.tanh, "relu({})": lambda x: np.maximum(x, 0),
    "-{}": np.negative, "sin({})": np.sin, "abs({})": np.abs,
    "sigmoid({})": lambda x: 1 / (1 + np.exp(-x)),
    "exp(-abs({}))": lambda x: np.exp(-np.abs(x)),
    'gelu({}, approximate = "tanh")': gelu,
    "log1p(abs({}))": lambda x: np.log1p(np.abs(x)),
}
BINARY = {
    "{} + {}": np.add, "{} - {}": np.subtract, "tanh({}) * {}":
    lambda a, b: np.tanh(a) * b, "maximum({}, {})": np.maximum,
    "minimum({}, {})": np.minimum,
    "{} / (1 + abs({}))": lambda a, b: a / (1 + np.abs(b)),
}


class Program:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.rows = int(self.rng.choice([1, 3, 7, 40]))
        self.columns = int(self.rng.choice([1, 5, 16, 37, 64]))
        self.feed = {
            "x": self.rng.normal(size=(self.rows, self.columns)),
            "w": self.rng.normal(size=self.columns),
            "r": self.rng.normal(size=(self.rows, 1)),
        }
        self.feed = {k: v.astype("f4") for k, v in self.feed.items()}
        self.values = {k: v.astype(float) for k, v in self.feed.items()}
        self.lines, self.outputs = [], []
        for _ in range(int(self.rng.integers(6, 22))):
            self.step()
        names = [n for n in self.values if n[0] == "v"]
        chosen = [n for n in names if self.rng.random() < 0.3]
        self.outputs = sorted(set(chosen + names[-2:]))

    def pick(self, shape=None):
        names = [n for n, v in self.values.items()
                 if shape is None or v.shape == shape]
        # The newest are the likeliest, so that chains grow long.
        weight = np.arange(1, len(names) + 1) ** 2.0
        return str(self.rng.choice(names, p=weight / weight.sum()))

    def add(self, text, value):
        name = f"v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        self.values[name] = np.asarray(value)

    def reduce(self):
        a = self.pick()
        x = self.values[a]
        if x.ndim == 0:
            return
        axis = int(self.rng.integers(0, x.ndim))
        keep = bool(self.rng.random() < 0.7)
        n = x.shape[axis]
        op = str(self.rng.choice(["sum", "max", "min"]))
        text = f"{op}({a}, axis = {axis}, keepdim = {str(keep).lower()})"
        value = getattr(np, op)(x, axis=axis, keepdims=keep)
        if op == "sum":
            text, value = f"{text} / {n}", value / n
        self.add(text, value)

    def step(self):
        kind = self.rng.random()
        if kind < 0.3:
            text = str(self.rng.choice(list(UNARY)))
            a = self.pick()
            self.add(text.format(a), UNARY[text](self.values[a]))
        elif kind < 0.65:
            text = str(self.rng.choice(list(BINARY)))
            a, b = self.pick(), self.pick()
            try:
                value = BINARY[text](self.values[a], self.values[b])
            except ValueError:
                return
            if value.size <= self.rows * self.columns:
                self.add(text.format(a, b), value)
        elif kind < 0.75:
            shape = (self.rows, self.columns)
            a, b = self.pick(shape), self.pick(shape)
            x, y = self.values[a], self.values[b]
            self.add(f"where({a} > 0, {b}, {a} * 0.5)",
                     np.where(x > 0, y, x * 0.5))
        else:
            self.reduce()

    def text(self, ranks, terms):
        out = [f"placement mesh = cpu[0..{ranks}]", "model m on mesh {",
               f"  input x: f32[{self.rows}, {self.columns}] on ({terms[0]})",
               f"  input w: f32[{self.columns}] on ({terms[1]})",
               f"  input r: f32[{self.rows}, 1] on ({terms[2]})"]
        out += self.lines
        out += [f"  output {n}" for n in self.outputs]
        return "\n".join(out) + "\n}\n"


def check(directory, seed, ranks, terms):
    p = Program(seed)
    with open(f"{directory}/m.sbp", "w") as f:
        f.write(p.text(ranks, terms))
    command = [SBPRUN, "-n", ranks, "m.sbp"]
    for name, array in p.feed.items():
        np.save(f"{directory}/{name}.npy", array)
        command += ["--input", f"{name}={name}.npy"]
    for name in p.outputs:
        command += ["--output", f"{name}={name}.npy"]
    run(*command, cwd=directory)
    for name in p.outputs:
        got, want = np.load(f"{directory}/{name}.npy"), p.values[name]
        error = np.abs(got - want) / (1 + np.abs(want))
        expect(got.shape == want.shape and (error < 2e-5).all(),
               f"seed {seed}, {ranks} ranks: {name} is off by "
               f"{error.max() if error.size else got.shape}\n"
               + p.text(ranks, terms))


def one_rank(directory):
    for seed in range(PROGRAMS):
        check(directory, seed, 1, ("B", "B", "B"))


def rows(directory):
    for seed in range(PROGRAMS, 2 * PROGRAMS):
        check(directory, seed, 2, ("S(0)", "B", "S(0)"))


def columns(directory):
    for seed in range(2 * PROGRAMS, 3 * PROGRAMS):
        check(directory, seed, 3, ("S(1)", "S(0)", "B"))


if __name__ == "__main__":
    main(one_rank, rows, columns)

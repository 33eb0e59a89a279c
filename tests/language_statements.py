"""What the text of a program means: words and numbers, distributions in every
spelling, compile-time values, scopes, defs and their names, files.
"""
import os
import tempfile

import numpy as np

from common import SBPC, SBPRUN, Failure, read_safetensors, run
from common import write_safetensors
from snippets import Snippet

F, I, J = np.float32, np.int64, np.int32
A = F([[1, -2, 3, 4], [5, 6, -7, 8], [9, 10, 11, 12]])
V = F([1, 2, 3, 4])

STATEMENTS = """
let ranks = {ranks}
let D = (S(0), B)
placement w = cpu[0..ranks]
placement grid = cpu[0..ranks] as [ranks, 1]
placement named(dp, tp) = cpu[0..{ranks}] as [1, {ranks}]
placement listed = cpu[range(ranks)]
placement deep = cpu[[[0..ranks]]]
placement back = cpu[range(ranks - 1, -1, -1)]
let on_named = named(tp = S(1))
let file_level = 7

def twice(x) {{ return x * 2 }}
def affine(x, scale = 2, shift = scale + 1) {{
  y = x * scale
  return y + shift
}}
def both(x, y) {{ return x + y, x - y }}
def power(x, n) {{
  if n == 0 {{ return x * 0 + 1 }}
  return x * power(x, n - 1)
}}
def square(x) {{ return x * 0 + 42 }}
def local_only(x) {{
  file_level = x * 10
  return file_level
}}
def counter(n) {{
  let total = 0
  for i in 0..n {{ let total = total + i }}
  return total
}}
def weighted(x) {{
  param weight: f32[4] = ones()
  param shift: f32[4] = constant(0.5)
  return x * weight + shift
}}
def pair_of(x) {{
  return weighted(x) + (weighted(x) as "second")
}}
def early(x, flag) {{
  if flag {{
    return x
  }} else {{
    return -x
  }}
}}
def for_return(x, wanted) {{
  for i in 0..10 {{
    if i == wanted {{ return x + i }}
  }}
  return x
}}

model m on w {{
  const A: f32[3, 4] = [[1, -2, 3, 4], [5, 6, -7, 8], [9, 10, 11, 12]]
  const V: f32[4] = [1, 2, 3, 4]
"""


def words():
    yield Snippet("comments, semicolons, newlines", """
        a = A + 1; b = A * 2   # a comment; c = nothing
        c = (A
             + 1
        )
        d = A +
            1
        e = concat([A,
                    A,
                   ],
                   axis = 0)
        # only a comment
        ;;
        f = A -   # a comment after an operator

            1
        let list = [1,
                    2]
        if list == [1, 2] { g = A }
        else { g = -A }
        if false { g = -A } else if true { k = A } else { k = -A }
        h = where(A > 0,
                  A, -1)""",
                  {"a": A + 1, "b": A * 2, "c": A + 1, "d": A + 1,
                   "e": np.concatenate([A, A]), "f": A - 1, "g": A, "k": A,
                   "h": np.where(A > 0, A, F(-1))}, exact=True)
    yield Snippet("numbers", """
        n = V * 0 + 1_0
        a = V + .5; b = V + 0.; c = V * 1e-3; d = V + 1.5E+1; e = V * -2.
        f = V + inf; g = V * nan; h = V + 1_000.2_5
        total = 0
        for i in 0..3 { total = V * 0 + i }""",
                  {"n": F([10] * 4), "a": V + F(.5), "b": V, "c": V * F(1e-3),
                   "d": V + 15, "e": V * -2, "f": F([np.inf] * 4),
                   "g": F([np.nan] * 4), "h": V + F(1000.25),
                   "total": F([2] * 4)})
    yield Snippet("words as names", """
        let on = 2
        let as = 3
        const param: f32[4] = [1, 2, 3, 4]
        let for = [1]
        let in = 5
        state data: f32[4] = ones()
        let grad = 1; let from = 2; let every = 3; let train = 4
        let B = 10; let S = 20; let P = 30; let output = 1
        y = param + on * as + in + for[0] + data + train
        z = relu(param) + B + S + P + grad + from + every
        sum = sum(V) + 0
        s2 = sum(V) + sum""",
                  {"y": V + 6 + 5 + 1 + 1 + 4, "z": V + 60 + 6,
                   "sum": F(10), "s2": F(20)}, exact=True)
    yield Snippet("texts", r"""
        let i = 4
        let s = "a\"b\\c\n\t{i + 1}{{x}}"
        assert len(s) == 11, "length {len(s)}"
        assert "{1 + 1}" == "2" and "{[1, 2][0]}" == "1"
        assert "{true} {0.5} {f32} {[1, 2.5]}" == "true 0.5 f32 [1, 2.5]"
        y = V""", {"y": V})


def distributions():
    for spelled in ("w(S(0))", "(S(0))", "(S(-1))", "(split(0))", "(P)",
                    "(P(sum))", "(partial_sum)", "(P(max))", "(P(min))",
                    "(partial_max)", "(partial_min)", "(B)", "(broadcast)",
                    "(_)", "w", "grid(S(0), B)", "grid(B, S(0))",
                    "grid(_, _)", "grid(S(0), S(0))", "grid(P, S(0))",
                    "named(tp = S(0))", "named(dp = P, tp = S(0))",
                    "named(tp = P(max))", "named(B, P)", "named(tp = _)",
                    "listed(S(0))", "deep(B, B, S(0))", "back(S(0))",
                    "grid", "named(dp = S(0), tp = S(0),)", "w(S(0),)"):
        yield Snippet(f"on {spelled}",
                      f"y = V * 2 on {spelled}\nz = y on w(B)",
                      {"y": V * 2, "z": V * 2}, exact=True)
    yield Snippet("distributions of lets", """
        let E = (S(1))
        let G = grid(S(0), S(1))
        let dtype = f32
        let where_to = grid
        a = A on grid(S(0), B)
        b = A on E
        c = A on G
        d = A on on_named
        e = A on where_to
        f = A + (A * 2 on (S(1))) + relu(A on (S(0)))
        on grid { g = (A on grid) + 1 on D }
        h = A on w(S(0)) grad (B)
        const k: dtype[2, 2] on (S(0)) = [[1, 2], [3, 4]]""",
                  {n: A for n in "abcdeh"} |
                  {"f": A * 3 + np.maximum(A, 0), "g": A + 1,
                   "k": F([[1, 2], [3, 4]])}, exact=True)
    yield Snippet("blocks on placements", """
        on grid {
          param block_p: f32[4] on (S(0), B) = [1, 2, 3, 4]
          u = block_p * 2
        }
        t = (u on w) + V
        on back { s = (V on back) * 3 }
        r = (s on w(S(0))) + 1
        scalar = sum(V on grid)
        q = V * scalar
        low = tril(A on back) + attention(A on back, A on back, A on back,
                                          causal = true) * 0
        l = (low on w) + 0""",
                  {"l": np.tril(A), "t": V * 3, "r": V * 3 + 1, "q": V * 10}, exact=True)


def local_pieces(ranks):
    equal = ", ".join(["[1, 2]"] * ranks)
    rows = [[[float(r), 1.0, 2.0, 3.0]] for r in range(ranks)]
    all_rows = ", ".join(map(str, rows))
    yield Snippet("local pieces", f"""
        const part: f32[2] on grid(P, B) = local({equal})
        const copy: f32[2] on w(B) = local({equal})
        const shards: f32[{ranks}, 4] on w(S(0)) = local({all_rows})
        const most: f32[1, 4] on w(P(max)) = local({all_rows})
        const least: f32[1, 4] on w(P(min)) = local({all_rows})""",
                  {"part": F([1, 2]) * ranks, "copy": F([1, 2]),
                   "shards": F(np.concatenate(rows)), "most": F(rows[-1]),
                   "least": F(rows[0])}, exact=True)


COMPILE_TIME = """
7 // 2|-7 // 2|7 // -2|-7 % 3|7 % -3|7.5 // 2|-7.5 % 2|2 ** 10|2 ** -1
-2 ** 2|2 ** 3 ** 2|(-2) ** 3|1 + 2 * 3|10 - 4 - 3|2 * 3 % 4|-3 // 2 * 2
1 - -1|- 2 + 5|2 * -3|10 // 3 // 2|1 / 4.0|0.1 + 0.2|3 * 1.5|5 % 2.5
1 < 2|2 <= 1|3 == 3.0|1 != 2|not 1 < 2|not False == True|True and False or True
0 or 5|0 and 5|3 and 4|not (True and False)|1 + 1 == 2 and 2 < 3
min(3, 1, 2)|max(2.5, 1)|min([4, 2])|max([1, 9, 3])|floor(2.7)|floor(-2.7)
ceil(2.1)|ceil(-2.1)|sqrt(16)|sqrt(2)|log(1)|len([1, 2, 3])|len("abc")
[1, 2, 3][1]|[1, 2, 3][-1]|[1, 2, 3][1:]|[1, 2, 3][:-1]|[1, 2, 3, 4][::2]
[1] + [2]|[1, 2] * 2|[1, [2, 3]][1][0]|"a" + "b"|"abc" == "abc"|[1, 2] == [1, 2]
10 ** 3|6 // 4|1_000 + 1|2 ** 0.5|1e3|7 - 2 ** 2|-1 ** 2|4 - 3 - 2 + 1
True == True|[1, 2] != [1, 3]|0x1|max(1, min(5, 3))|floor(7 / 2.0)
""".replace("|0x1", "").strip().replace("\n", "|").split("|")


def python_value(text):
    import math
    names = {"sqrt": math.sqrt, "floor": math.floor, "ceil": math.ceil,
             "log": math.log}
    return eval(text, names)


def written(v):
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, list):
        return "[" + ", ".join(map(written, v)) + "]"
    if isinstance(v, str):
        return '"' + v.replace('"', '\\"') + '"'
    return repr(v)


def compile_time():
    lines = []
    for text in COMPILE_TIME:
        ours = text.replace("True", "true").replace("False", "false")
        lines.append(f"assert ({ours}) == {written(python_value(text))}, "
                     f"{written(ours)}")
    yield Snippet("compile-time arithmetic", "\n".join(lines) + "\ny = V",
                  {"y": V})
    yield Snippet("compile-time values", """
        assert 6 / 3 == 2 and A.shape == [3, 4] and A.rank == 2
        assert A.dtype == f32 and A.shape[-1] == 4 and len(A.shape) == 2
        assert len(0..5) == 5 and (2..5)[0] == 2 and range(5, 0, -2)[1] == 3
        let t = i32
        const c: t[A.shape[0], 2 ** 1] = [[1, 2], [3, 4], [5, 6]]
        let n = 1
        let n = n + 1
        let list = []
        for i in 0..4 { let list = list + [i * i] }
        assert list == [0, 1, 4, 9] and i == 3
        for pair in [[1, 2], [3, 4]] { let last = pair[0] * pair[1] }
        assert last == 12
        for name in ["x", "y"] { let text = "{name}!" }
        assert text == "y!"
        let cast_to = i64
        y = cast(V, cast_to) * n + list[-1]
        z = V * max(2, 3) + min(V) + max(V, axis = 0) + sqrt(4) + sqrt(V)
        k = c * n
        q = V / 2 + 7 / 2.0
        const scalar: f32[] = 6 / 3""",
                  {"y": I([2, 4, 6, 8]) + 9,
                   "z": V * 3 + 1 + 4 + 2 + np.sqrt(V),
                   "k": J([[2, 4], [6, 8], [10, 12]]), "q": V / 2 + F(3.5),
                   "scalar": F(2)})


def scopes():
    yield Snippet("defs", """
        a = twice(A)
        b = affine(A)
        c = affine(A, 3)
        d = affine(A, shift = 1)
        e = affine(scale = 5, x = A, shift = 0)
        f, g = both(A, V)
        h = power(V, 3)
        i = square(V)
        l = local_only(V)
        after = V + file_level
        n = V + counter(5)
        p = early(V, true) + 0; q = early(V, false) + 0
        r = for_return(V, 4)
        both_list = both(V, V)[0]
        t = twice(twice(V)) + twice(x = V)
        k = twice(3) + V""",
                  {"a": A * 2, "b": A * 2 + 3, "c": A * 3 + 4,
                   "d": A * 2 + 1, "e": A * 5, "f": A + V, "g": A - V,
                   "h": V ** 3, "i": F([42] * 4), "l": V * 10,
                   "after": V + 7, "n": V + 10, "p": V, "q": -V,
                   "r": V + 4, "both_list": V * 2, "t": V * 6,
                   "k": V + 6}, exact=True)
    yield Snippet("rebinding", """
        acc = V
        for i in 0..3 { acc = acc + i; inside = acc * 2 }
        if true { fresh = acc + 1 }
        h = V
        h = h + 1
        h = h * 2
        a, b = both(h, V)
        a, b = both(b, a)
        list = split(V, 2)
        first, second = split(V, [1, 3])
        last = list[1]""",
                  {"acc": V + 3, "inside": (V + 3) * 2, "fresh": V + 4,
                   "h": (V + 1) * 2, "a": 2 * ((V + 1) * 2) ,
                   "first": F([1]), "last": F([3, 4])}, exact=True)
    yield Snippet("states take effect at the end", """
        state s1: f32[4] = zeros()
        state s2: f32[4] on (S(0)) = [1, 2, 3, 4]
        update s1 = s2 + 1
        update s2 = s1 + 10
        y = s1 + s2""", {"y": V}, exact=True)
    yield Snippet("outputs by other names", """
        y = V
        output y as "other.name"
        output V as "copy" on (B)
        twelve = 12 + 0 * V""", {"y": V, "twelve": F([12] * 4)})


def statements(ranks):
    for group in words, distributions, compile_time, scopes:
        yield from group()
    yield from local_pieces(ranks)


# ---- whole programs ----

def file_level():
    """name, text before the model's statements, its snippets, options."""
    line = "placement w = cpu[0..2]\n"
    yield ("a model without on uses the only placement",
           line + "model m {",
           [Snippet("the only placement", "const a: f32[4] = [1, 2, 3, 4]\n"
                    "y = a * 2 on (S(0))", {"y": V * 2},
                    pieces={"y": {0: V[:2] * 2, 1: V[2:] * 2}})], "2", [])
    text = """
let p = 2
let n = p * 2
let name = "x"
let T = f32
placement w = cpu[0..p]
model m {
"""
    yield ("-D of an expression", text, [Snippet("-D", """
        y = arange(n, dtype = T) + len(name)""",
                                                 {"y": np.arange(6.) + 3})],
           "3", ["-D", "p=1 + 2", "-D", 'name="abc"', "-D", "T=f64"])
    yield ("without -D", text, [Snippet("no -D", """
        y = arange(n, dtype = T) + len(name)""",
                                        {"y": F(np.arange(4) + 1)})],
           "2", [])
    yield ("several models", line + """
model first on w { const a: f32[1] = [1]; output a }
model second on w {
""", [Snippet("--model", "const a: f32[2] = [1, 2]\ny = a + 1",
              {"y": F([2, 3])})], "2", ["--model", "second"])
    yield ("the world is what the model uses", line + """
placement more = cpu[0..7]
model m on w {
""", [Snippet("world", "const a: f32[2] = [1, 2]\ny = a + 1",
              {"y": F([2, 3])})], "2", [])
    yield ("def hides the prelude's", line + """
def relu(x) { return x * 100 }
def softmax(x) { return relu(x) + 1 }
model m on w {
""", [Snippet("hidden", "const a: f32[2] = [1, 2]\ny = relu(a)\n"
              "z = softmax(a)\ng = relu6(a)",
              {"y": F([100, 200]), "z": F([101, 201]), "g": F([1, 2])})],
           "2", [])
    yield ("deep recursion", line + """
def down(x, n) {
  if n == 0 { return x }
  return down(x, n - 1)
}
model m on w {
""", [Snippet("recursion", "const a: f32[2] = [1, 2]\ny = down(a, 900)",
              {"y": F([1, 2])})], "2", [])


NAMES = """
placement w = cpu[0..2]
def block(x, n) {
  h = relu(linear(x, n) as "in")
  return linear(h, 3, bias = false) as "out"
}
def tail(x) {
  h = linear(x, 3)
  h = linear(h, 3)
  return linear(h, 3)
}
def silent(x) { return layer_norm(x) }
def transparent(x) { return linear(x, 3) as "" }
"""

NAMES_MODEL = """
model m on w {
  distribute "h.*.in.weight" on (S(0))
  distribute "h.1.*.weight" on (S(1))
  distribute "h.1.in.?????t" on (B)
  const x: f32[2, 3] = [[1, 2, 3], [4, 5, 6]]
  y = x
  for i in 0..2 {
    y = block(y, 4) as "h.{i}"
  }
  y = tail(y)
  y = silent(y)
  y = transparent(y) as "t"
  y = transparent(y)
  param own: f32[3] on (S(0)) = ones()
  y = y * own
  param own3: f32[3, 3] = normal()
  tied = linear(x, 3, weight = own3, bias = false)
  output y; output tied
}
"""

FULL_NAMES = sorted(
    [f"h.{i}.{k}" for i in (0, 1)
     for k in ("in.bias", "in.weight", "out.weight")] +
    [f"tail.linear{k}.{x}" for k in ("", "_1", "_2")
     for x in ("bias", "weight")] +
    [f"silent.layer_norm.{x}" for x in ("bias", "weight")] +
    [f"{k}.{x}" for k in ("t", "transparent") for x in ("bias", "weight")] +
    ["own", "own3"])


def full_names(folder):
    """The names that --save writes, and that --load fills in."""
    with open(f"{folder}/m.sbp", "w", encoding="utf-8") as f:
        f.write(NAMES + NAMES_MODEL)
    run(SBPRUN, "-n", 2, "m.sbp", "--save", "a.safetensors", "--output",
        "y=y.npy", "--quiet", cwd=folder)
    got = read_safetensors(f"{folder}/a.safetensors")
    if sorted(got) != FULL_NAMES:
        raise Failure(f"names {sorted(got)}, not {FULL_NAMES}")
    write_safetensors(f"{folder}/b.safetensors",
                      {n: np.ascontiguousarray(x * 2) for n, x in
                       got.items()})
    run(SBPRUN, "-n", 2, "m.sbp", "--load", "b.safetensors", "--output",
        "y=z.npy", "--save", "c.safetensors", "--quiet", cwd=folder)
    again = read_safetensors(f"{folder}/c.safetensors")
    for n, x in got.items():
        if not np.array_equal(again[n], 2 * x):
            raise Failure(f"{n} is not what was loaded")
    text = run(SBPC, "--dump-after=sbp", "--stop-after=sbp", "m.sbp",
               cwd=folder)
    for name, terms in (("h.0.in.weight", "S(0)"), ("h.1.in.weight", "B"),
                        ("h.1.out.weight", "S(1)"), ("own", "S(0)"),
                        ("h.0.out.weight", "B")):
        line = [x for x in text.split("\n")
                if f" {name}: " in x]
        if not line or f" w({terms}) = " not in line[0]:
            raise Failure(f"{name} is not on ({terms}): {line}")


def imports(folder):
    """Files beside the source, from another directory."""
    os.makedirs(f"{folder}/src/lib")
    np.save(f"{folder}/src/lib/k.npy", F([10, 20]))
    np.save(f"{folder}/src/c.npy", I([[1, 2], [3, 4]]))
    files = {"src/lib/more.sbp": """
let width = 2
placement w = cpu[0..width]
def plus(x) {
  const k: f32[2] = npy("k.npy")
  return x + k + width
}
def hidden(x) { return x - 1 }
model unused on w { const a: f32[1] = [1]; output a }
""", "src/m.sbp": """
import "lib/more.sbp"
def hidden(x) { return x + 1 }
model m {
  const c: i64[width, 2] on (S(0)) = npy("c.npy")
  const a: f32[2] = [1, 2]
  y = plus(a); z = hidden(a)
  output y; output z; output c
}
"""}
    for path, text in files.items():
        with open(f"{folder}/{path}", "w", encoding="utf-8") as f:
            f.write(text)
    run(SBPRUN, "-n", 2, "src/m.sbp", "--output", "y=y.npy", "--output",
        "z=z.npy", "--output", "c=c.npy", "--quiet", cwd=folder)
    for name, want in (("y", F([13, 24])), ("z", F([2, 3])),
                       ("c", I([[1, 2], [3, 4]]))):
        got = np.load(f"{folder}/{name}.npy")
        if not np.array_equal(got, want):
            raise Failure(f"{name}: {got}, not {want}")


INITIALISERS = """
let p = 2
placement w = cpu[0..p]
model m on w {
  param ku: f32[200, 50] on (S(0)) = kaiming_uniform(a = sqrt(5))
  param kn: f32[200, 50] on (S(1)) = kaiming_normal()
  param ko: f32[200, 50] = kaiming_uniform(mode = "fan_out")
  param conv: f32[40, 3, 5, 5] = kaiming_uniform()
  param xu: f32[200, 50] = xavier_uniform()
  param xn: f32[200, 50] on (S(0)) = xavier_normal(gain = 2)
  param tn: f32[10000] on (S(0)) = trunc_normal(0, 1, -1, 0.5)
  param no: f32[10000] on (S(0)) = normal(1, 2)
  param un: f32[10000] = uniform(-1, 3)
  param co: f32[10] = constant(2.5)
  state ze: f32[3] = zeros()
  param on: f64[3] = ones()
  y = co[0] + 1
  output y
}
"""
# least, greatest, mean, standard deviation
MOMENTS = {"ku": (-.1414, .1414, 0, .0816), "kn": (-2, 2, 0, .2),
           "ko": (-.1732, .1732, 0, .1), "conv": (-.2829, .2829, 0, .1633),
           "xu": (-.1550, .1550, 0, .0894), "xn": (-2, 2, 0, .1789),
           "tn": (-1, .5, -.20, .42), "no": (-9, 11, 1, 2),
           "un": (-1, 3, 1, 1.1547), "co": (2.5, 2.5, 2.5, 0),
           "ze": (0, 0, 0, 0), "on": (1, 1, 1, 0)}


def initialisers(folder):
    """Moments, and the same bits on every mesh; another seed differs."""
    with open(f"{folder}/m.sbp", "w", encoding="utf-8") as f:
        f.write(INITIALISERS)
    files = []
    for p, seed in ((1, 0), (2, 0), (3, 0), (1, 7)):
        files.append(f"{folder}/{p}.{seed}.safetensors")
        run(SBPRUN, "-D", f"p={p}", "m.sbp", "--save", files[-1], "--quiet",
            "--seed", seed, cwd=folder)
    first, *rest = [read_safetensors(f) for f in files]
    for name, (least, most, mean, deviation) in MOMENTS.items():
        x = first[name].astype(np.float64)
        if x.min() < least - 1e-4 or x.max() > most + 1e-4 or \
                abs(x.mean() - mean) > 0.05 * (1 + deviation) or \
                abs(x.std() - deviation) > 0.05 * deviation:
            raise Failure(f"{name}: {x.min()} {x.max()} {x.mean()} "
                          f"{x.std()}")
        for other in rest[:2]:
            if other[name].tobytes() != first[name].tobytes():
                raise Failure(f"{name} depends on the mesh")
    if np.array_equal(rest[2]["no"], first["no"]):
        raise Failure("the seed changes nothing")


def states(folder):
    """Three steps: what each reads and what the last leaves."""
    with open(f"{folder}/m.sbp", "w", encoding="utf-8") as f:
        f.write("""
placement w = cpu[0..2]
model m on w {
  state a: i64[2] on (S(0)) = [1, 1]
  state b: i64[2] = [0, 1]
  state n: f32[] = 0
  old = a * 1
  update a = a + b
  update b = a
  update n = n + 1
  output old
}
""")
    run(SBPRUN, "-n", 2, "m.sbp", "--steps", 3, "--save", "s.safetensors",
        "--output", "old=old.npy", "--quiet", cwd=folder)
    got = read_safetensors(f"{folder}/s.safetensors")
    want = {"a": I([3, 5]), "b": I([2, 3]), "n": F(3)}
    for name, x in want.items():
        if not np.array_equal(got[name], x):
            raise Failure(f"{name}: {got[name]}, not {x}")
    if not np.array_equal(np.load(f"{folder}/old.npy"), I([2, 3])):
        raise Failure("an output is not what the last step computed")


def kept(folder):
    """--show and --keep of names; the last binding counts."""
    with open(f"{folder}/m.sbp", "w", encoding="utf-8") as f:
        f.write("""
placement w = cpu[0..2]
def f(x) { param k: f32[2] = [2, 3]; h = x * k; return h + 1 }
model m on w {
  input x: f32[2] on (S(0))
  h = x + 1
  h = h * 2
  y = f(h) as "blk"
  output y as "final"
}
""")
    np.save(f"{folder}/x.npy", F([1, 2]))
    text = run(SBPRUN, "m.sbp", "--input", "x=x.npy", "--show",
               "x,h,final,blk.k,blk.h", cwd=folder)
    for line in ("[rank 0] x f32[1] of [2] (S(0))", "[rank 1] h f32[1] of",
                 "final f32", "blk.k f32[2]", "blk.h f32"):
        if line not in text:
            raise Failure(f"no '{line}' in {text}")
    out = run(SBPRUN, "m.sbp", "--input", "x=x.npy", "--show", "nothing",
              code=2, cwd=folder)
    if "nothing" not in out:
        raise Failure(out)


def programs(tally, word):
    for name, head, snippets, ranks, options in file_level():
        if word in name:
            tally.snippets(snippets, head, ["-n", ranks, *options],
                           name + ": ")
    for test in full_names, imports, initialisers, states, kept:
        if word not in test.__name__:
            continue
        with tempfile.TemporaryDirectory(prefix="language.") as folder:
            problem = None
            try:
                test(folder)
            except (Failure, OSError, KeyError) as e:
                problem = str(e)
        tally.add(test.__name__, problem)

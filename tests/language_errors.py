"""What must be refused: at compile time with a place and a reason, or at run
time with the operator and the value.
"""
LINE = "placement w = cpu[0..2]\n"
X = "const x: f32[2, 3] = [[1, 2, 3], [4, 5, 6]]\n"
OUT = "\noutput x\n}\n"


def inside(text, head=LINE, out=OUT):
    return head + "model m on w {\n" + X + text + out


# text inside a model, part of the message
IN_MODEL = [
    ("y = z + 1", "unknown name 'z'"),
    ("y = rleu(x)", "did you mean 'relu'?"),
    ("y = x + reshape(x, [3, 2])", "add"),
    ("y = abs(x) as \"a\\nb\"", "a name of byte 0x0a"),
    ("output x as \"\\t\"", "a name of byte 0x09"),
    ("y = x @ x", "inner extents differ: 3 and 2"),
    ("y = x[2]", "index 2 is outside axis 0"),
    ("y = x[0, 0, 0]", "3 subscripts"),
    ("y = x[::-1]", "step"),
    ("y = x[::0]", "step"),
    ("y = x // 2", "'//'"),
    ("y = x % 2", "'%'"),
    ("y = not x", "compile"),
    ("y = x and x", "compile"),
    ("y = 1 < 2 < 3", "unexpected '<'"),
    ("let k = x", "a let binds a value known at compile time"),
    ("let k = 7 / 2", "7 does not divide by 2"),
    ("if x { y = x }", "compile time"),
    ("for i in x { y = x }", "range or list"),
    ('assert x.rank == 3, "rank {x.rank}"', "rank 2"),
    ('let why = "because"\nassert false, why', "because"),
    ('assert 1 > 2, "a" + "b"', "ab"),
    ("assert false", "assert"),
    ("y = mean(argmax(x, axis = 0))", "mean"),
    ("y = max(x[:0])", "max"),
    ("y = min(x[:, 1:1], axis = 1)", "min"),
    ("y = argmax(x[:0])", "argmax"),
    ("y = sum(x, axis = 2)", "axis"),
    ("y = sum(x, axis = [0, 0])", "twice"),
    ("y = sum(x, 0, axis = 1)", "twice"),
    ("y = sum(x, ax = 1)", "no argument 'ax'"),
    ("y = sum()", "lacks its argument"),
    ("y = relu(x, x)", "found more"),
    ("y = x on (S(2))", "S(2)"),
    ("y = x on (S(0), B)", "2 terms"),
    ("y = sum(x) on (S(0))", "S(0)"),
    ("y = x > 1 on (P)", "P"),
    ("param p: f32[2] on (P) = ones()", "cannot be P"),
    ("state s: f32[2] on (P) = ones()", "cannot be P"),
    ("state s: f32[2]", "needs '= ...'"),
    ("const c: f32[2] = [1, 2, 3]", "list of 2"),
    ("const c: i32[1] = [0.5]", "decimal number"),
    ("const c: u8[1] = [256]", "256 does not fit u8"),
    ("const c: f32[2] on (P) = local([1, 2])", "one piece for each"),
    ("const c: f32[2] on (B) = local([1, 2], [1, 3])", "copies"),
    ("const c: f32[3] on (S(0)) = local([1], [2, 3])", "list of 2"),
    ("update x = x", "no state"),
    ("state s: f32[2] = ones()\nupdate s = x", "but its update is"),
    ("state s: f32[2] = ones()\nupdate s = s\nupdate s = s",
     "second update"),
    ("state s: f32[2] = ones()\nupdate s = cast(s, f64)", "f64"),
    ("param p: f32[2] = ones()\nparam p: f32[3] = ones()", "taken"),
    ('y = linear(x, 2) as "a"\nz = linear(x, 2) as "a"', "taken"),
    ("output x", "second output 'x'"),
    ("a, b = x", "2 names"),
    ("a, b, c = split(x, 1)", "3 names"),
    ("y = linear(3, 2)", "expected a tensor"),
    ("y = concat(x)", "list of tensors"),
    ("y = concat([x, x[0]])", "concat"),
    ("y = reshape(x, [4])", "reshape"),
    ("y = reshape(x, [-1, -1])", "reshape"),
    ("y = expand(x, [3, 3])", "expand"),
    ("y = permute(x, [0])", "permute"),
    ("y = one_hot(x, 3)", "one_hot"),
    ("y = gather(x, 0, x)", "gather"),
    ("y = cross_entropy(x, x)", "not part of this version"),
    ("train x { }", "not part of this version"),
    ('report "x"', "not part of this version"),
    ("y = split(x, [1, 2])", "sizes sum to 3"),
    ("input n: f32[-1]", "extent of -1"),
    ("input n: f32[1.5]", "integer"),
    ("input n: f33[1]", "unknown dtype 'f33'"),
    ("y = (x", "unexpected"),
    ("y = x +", "unexpected"),
    ('y = "abc', "does not end"),
    ("return x", "inside a def"),
    ("y = 5(x)", "unexpected"),
    ("y = x.size", "no 'size'"),
    ("y = x.sum()", "no methods"),
    ("y = attention(x, x, x, causal = true, mask = x > 0)", "exclude"),
    ("y = -(x > 0)", "neg"),
    ("y = (x > 0) + (x > 0)", "add"),
    ("y = x ? x", "unexpected character '?'"),
    ("y = 9223372036854775808", "64 bits"),
    ("y = 3x", "not a number"),
    ("const k: u8[1] = [1]\ny = k > 300", "300 does not fit u8"),
    ("const k: u8[1] = [1]\ny = where(k > 0, k, -1)", "-1 does not fit u8"),
    ("state s: i8[1] = [1]\nupdate s = 128", "128 does not fit i8"),
]

# whole texts
AT_FILE = [
    (LINE, "no model"),
    ("model m { " + X + "output x }", "no placement"),
    ("placement w = cpu[0, 0]\nmodel m on w {" + X + OUT, "rank 0"),
    ("placement w = cpu[0, 2]\nmodel m on w {" + X + OUT, "rank 1"),
    ("placement w = cpu[[0, 1], [2]]\nmodel m on w {" + X + OUT, "rows"),
    ("placement w = cpu[0..4] as [3]\nmodel m on w {" + X + OUT, "fill"),
    ("placement w = gpu[0]\nmodel m on w {" + X + OUT, "device kind"),
    ("placement w = cpu[[[[[0]]]]]\nmodel m on w {" + X + OUT, "1 to 4"),
    (LINE + "placement v = cpu[0]\nmodel m {" + X + OUT,
     "several placements"),
    (LINE + "placement v = cpu[2, 3]\nmodel m on w {\n" + X +
     "y = x + (x on v)" + OUT, "different placements"),
    (LINE + "def f(x) { y = x }\nmodel m on w {\n" + X + "y = f(x)" + OUT,
     "return"),
    (LINE + "def f(x) { return f(x) }\nmodel m on w {\n" + X + "y = f(x)" +
     OUT, "deeper than 1000"),
    (LINE + "def f(x) { return x + q }\nmodel m on w {\n" + X +
     "let q = 1\ny = f(x)" + OUT, "unknown name 'q'"),
    (LINE + 'import "absent.sbp"\nmodel m on w {\n' + X + OUT,
     "absent.sbp"),
    (LINE + "x = 1\nmodel m on w {\n" + X + OUT, "inside a model or def"),
]

# statements that fail on both ranks counts, part of the message
AT_RUN = [
    ("y = gather(x, 0, far)", "gather", "const far: i64[1, 3] = [[0, 2, 1]]"),
    ("y = gather(x, 1, far)", "gather", "const far: i64[2, 1] = [[0], [-1]]"),
    ("y = gather(x on (S(0)), 0, far)", "gather",
     "const far: i64[1, 3] = [[0, 2, 1]]"),
    ("y = embedding(far, weight = x)", "embedding",
     "const far: i64[2] = [1, 2]"),
    ("y = embedding(far, weight = x on (S(0)))", "embedding",
     "const far: i64[2] = [1, -1]"),
    ("y = embedding(far, weight = x on (S(1)))", "embedding",
     "const far: i64[2] on (S(0)) = [7, 0]"),
    ("y = scatter_add(x, 0, far, x)", "scatter_add",
     "const far: i64[2, 3] = [[0, 1, 1], [1, 1, 2]]"),
    ("y = scatter_add(x on (S(0)), 0, far, x)", "scatter_add",
     "const far: i64[2, 3] = [[0, 1, 1], [1, 1, 2]]"),
    ("y = x[0, :2] + far / (far - 2)", "divided by 0",
     "const far: i64[2] on (S(0)) = [1, 2]"),
    ("y = far ** -1", "divided by 0", "const far: i64[2] on (S(0)) = [1, 0]"),
    ("y = one_hot(far, 3)", "one_hot", "const far: i64[2] = [1, 3]"),
]


def errors(tally, word):
    for text, part in IN_MODEL:
        if word in text:
            tally.error("refused: " + text, inside(text), 1, part)
    for text, part in AT_FILE:
        if word in text:
            tally.error("refused: " + text, text, 1, part)
    for text, part, index in AT_RUN:
        if word in text:
            text = inside(index + "\n" + text, out="\noutput y\n}\n")
            tally.error("at run time: " + text, text, 1, part, run=2)

"""What inference finds on GPT-2: Megatron's placement on a 2x4 mesh."""
import os
import re

from common import SBPC, expect, main, plan, run

LAYERS = 12
WIDTH = 768

GPT2 = """
let batch = 2
let time = 16
let width = 768
let heads = 12
placement mesh(data, model) = cpu[0..8] as [2, 4]

def split_heads(x) {
  let s = x.shape
  return transpose(reshape(x, [s[0], s[1], heads, s[2] / heads]), 1, 2)
}

def self_attention(x) {
  q = split_heads(linear(x, width) as "q")
  k = split_heads(linear(x, width) as "k")
  v = split_heads(linear(x, width) as "v")
  y = transpose(attention(q, k, v, causal = true), 1, 2)
  return linear(reshape(y, x.shape), width) as "proj"
}

def mlp(x) {
  h = gelu(linear(x, 4 * width) as "fc", approximate = "tanh")
  return linear(h, width) as "proj"
}

model gpt2 on mesh {
  %s
  input ids: i64[batch, time] on (S(0), B)
  param wte: f32[50257, width] = normal(0, 0.02)
  param wpe: f32[time, width] = normal(0, 0.02)
  x = embedding(ids, 50257, width, weight = wte) + wpe
  for i in 0..%d {
    x = x + self_attention(layer_norm(x) as "h.{i}.ln_1") as "h.{i}.attn"
    x = x + mlp(layer_norm(x) as "h.{i}.ln_2") as "h.{i}.mlp"
  }
  x = layer_norm(x) as "ln_f" on (S(0), B)
  output x
}
"""

COLUMNS = "\n  ".join(f'distribute "h.*.{name}.*" on (B, S(0))'
                      for name in ("q", "k", "v", "fc"))
PROJ = '\n  distribute "h.*.proj.weight" on (B, %s)'
WEIGHTS = {"q": "S(0)", "k": "S(0)", "v": "S(0)", "fc": "S(0)",
           "proj": "S(1)"}


def write(directory, rules):
    path = os.path.join(directory, "gpt2.sbp")
    with open(path, "w", encoding="utf-8") as f:
        f.write(GPT2 % (rules, LAYERS))
    return path


def boxings(path, *options):
    """Those that receive, after the embedding."""
    found = [b for b in plan(path, *options)["boxing"] if b["recv_busiest"] and
             b["value"] not in ("ids", "wte", "wpe", "take")]
    return found[1:] if found[0]["value"] == "x" else found


def lies(path, *options):
    """The distributions of the layers' weights, by name."""
    text = run(SBPC, path, *options, "--stop-after=sbp", "--dump-after=sbp")
    return {m[1]: m[2] for m in re.finditer(
        r" (h\.\d+\.\w+\.\w+)\.weight: \S+ ?\S* mesh\((.*?)\) = param", text)}


def size(batch, time):
    return "-D", f"batch={batch}", "-D", f"time={time}"


def all_reduces(found):
    """One after each attention and one after each MLP, and nothing else."""
    expect([(b["from"], b["to"]) for b in found] ==
           [("mesh(S(0), P)", "mesh(S(0), B)")] * (2 * LAYERS), found)


def sequence_parallel(found, batch, time):
    """The same bytes, each all-reduce in its halves."""
    scatters = [b for b in found if "P" in b["from"]]
    gathers = [b for b in found if "P" not in b["from"] and
               b["shape"] == [batch, time, WIDTH]]
    expect(len(scatters) == 2 * LAYERS, scatters)
    expect(all("P" not in b["to"] for b in scatters), scatters)
    expect(len(gathers) in (2 * LAYERS, 2 * LAYERS + 1), gathers)
    whole = batch // 2 * time * WIDTH * 4
    for b in scatters + gathers:
        expect(b["recv_busiest"] == whole * 3 // 4, b)
    rest = [b for b in found if b not in scatters and b not in gathers]
    expect(sum(b["recv_busiest"] for b in rest) < whole, rest)


def test_whole_projections(directory):
    """Projections without an annotation are whole, and each rank reads its
    columns of them where they lie: nothing else is converted or copied."""
    path = write(directory, COLUMNS)
    boxing = plan(path, *size(2, 16))["boxing"]
    all_reduces([b for b in boxing if b["recv_busiest"]])
    slices = [(b["value"].split(".")[-2:], b["from"], b["to"])
              for b in boxing if not b["recv_busiest"]]
    expect(slices == [(["proj", "weight"], "mesh(B, B)", "mesh(B, S(1))")] *
           (2 * LAYERS), slices)
    run(SBPC, path, *size(2, 16), "--emit=c", "-o", "gpt2", cwd=directory)
    with open(os.path.join(directory, "gpt2.c"), encoding="utf-8") as f:
        expect('"slice"' not in f.read(), "a slice is copied")


def test_annotated(directory):
    path = write(directory, COLUMNS + PROJ % "_")
    all_reduces(boxings(path, *size(2, 16)))
    expect(as_megatron(lies(path, *size(2, 16))) == 6 * LAYERS, "weights")
    path = write(directory, COLUMNS + PROJ % "S(1)")
    all_reduces(boxings(path, *size(2, 16)))
    for batch, time in ((2, 1024), (8, 1024)):
        sequence_parallel(boxings(path, *size(batch, time)), batch, time)


def test_exact(directory):
    path = write(directory, COLUMNS + PROJ % "_")
    for shape in (2, 16), (8, 1024):
        text = run(SBPC, path, *size(*shape), "--explain",
                   "--stop-after=sbp").split("\n")[0]
        expect(text.endswith("no choice is better"), text)


def as_megatron(weights):
    """How many of the weights lie as Megatron's do."""
    expect(len(weights) == 6 * LAYERS, weights)
    return sum(terms == f"B, {WEIGHTS.get(name.split('.')[-1], 'B')}"
               for name, terms in weights.items())


def test_auto(directory):
    """Only the batch has a distribution, and copies of weights do not fit.
    What the limit leaves after that is used: some may lie otherwise."""
    path = write(directory, "")
    options = *size(2, 16), "--auto", "--memory=128MiB"
    all_reduces(boxings(path, *options))
    expect(as_megatron(lies(path, *options)) == 6 * LAYERS, "weights")
    options = *size(2, 1024), "--auto", "--memory=126MiB"
    reduced = [b for b in boxings(path, *options) if "P" in b["from"]]
    expect(len(reduced) >= 2 * LAYERS - 2, reduced)
    megatron = [b for b in reduced if b["from"] == "mesh(S(0), P)"]
    expect(len(megatron) >= 2 * LAYERS - 4, reduced)
    expect(as_megatron(lies(path, *options)) >= 5 * LAYERS, "weights")


def test_memory(directory):
    path = write(directory, "")
    shape = size(2, 1024)
    free = plan(path, *shape, "--auto")["peak_memory"]["bytes"]
    for limit in 300, 200, 150:
        least = plan(path, *shape, "--auto", f"--memory={limit}MiB")
        expect(least["peak_memory"]["bytes"] <= min(free, limit << 20),
               least["peak_memory"])
    text = run(SBPC, path, *shape, "--auto", "--memory=32MiB", "--emit=plan",
               code=1)
    expect(re.search(r"gpt2\.sbp:\d+:\d+: error: a step needs \d+ bytes on "
                     r"rank 0, more than --memory=32MiB", text), text)
    expect("note: 'wte' is f32[50257, 768] on mesh(" in text, text)
    text = run(SBPC, path, "--memory=8gigs", "--emit=plan", code=2)
    expect("--memory wants bytes a rank" in text, text)


main(test_whole_projections, test_annotated, test_exact, test_auto, test_memory)

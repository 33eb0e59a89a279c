"""Programs for cuda, run on the host against tests/cuda_host: the samples give
what the cpu target gives, and all pairs of distributions convert exactly."""
import glob
import os

import numpy as np

from common import BIN, SAMPLES, SBPC, SBPRUN, SOURCE, main, run

SANITIZED = os.environ.get("SBPC_SANITIZED") in ("ON", "1", "TRUE")
CHECKS = ["-fsanitize=address,undefined"] if SANITIZED else []
CUDA_HOST = os.path.join(SOURCE, "tests", "cuda_host")
INCLUDES = ["-I", CUDA_HOST, "-I", SOURCE, "-I",
            os.path.join(SOURCE, "runtime"), "-I",
            os.path.join(SOURCE, "runtime", "cuda")]
C = ["cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
     *CHECKS, *INCLUDES]
CXX = ["c++", "-std=c++17", "-x", "c++", "-Wall", "-Wextra", "-Werror",
       *CHECKS, *INCLUDES]
TESTED = os.path.join(BIN, "..", "runtime", "libsbp_tested.a")


def compile_runtime(directory):
    """runtime/cuda and the stand-ins, as objects."""
    objects = []
    sources = glob.glob(os.path.join(SOURCE, "runtime", "cuda", "*.c*"))
    for source in sources + glob.glob(os.path.join(CUDA_HOST, "*.cc")):
        out = os.path.join(directory, os.path.basename(source) + ".o")
        compiler = C if source.endswith(".c") else CXX
        run(*compiler, "-c", source, "-o", out)
        objects.append(out)
    return objects


def build(directory, objects, text, name):
    """Emits, compiles and links; returns the path of the program."""
    base = os.path.join(directory, name)
    with open(base + ".sbp", "w", encoding="utf-8") as f:
        f.write(text.replace("= cpu[", "= cuda["))
    run(SBPC, "--emit=cuda", base + ".sbp", "-o", base + ".cu")
    run(*CXX, "-c", base + ".cu", "-o", base + ".o")
    for part in ("_tables", "_main"):
        run(*C, "-c", f"{base}{part}.c", "-o", f"{base}{part}.o")
    run("c++", *CHECKS, f"{base}.o", f"{base}_tables.o", f"{base}_main.o",
        *objects, TESTED, "-ljansson", "-lz", "-ldl", "-lpthread", "-lrt",
        "-o", base)
    return base


def feed(directory, shapes, seed):
    """Options that feed random inputs, and the inputs."""
    rng = np.random.default_rng(seed)
    options, arrays = [], {}
    for name, shape in shapes.items():
        arrays[name] = rng.standard_normal(shape).astype(np.float32)
        path = os.path.join(directory, name + ".in.npy")
        np.save(path, arrays[name])
        options += ["--input", f"{name}={path}"]
    return options, arrays


def outputs(directory, ranks, program, names, options):
    paths = {n: os.path.join(directory, n + ".out.npy") for n in names}
    for name, path in paths.items():
        options = options + ["--output", f"{name}={path}"]
    run(SBPRUN, "-n", ranks, program, *options)
    return {n: np.load(path) for n, path in paths.items()}


def check_sample(directory, objects, path, ranks, shapes, names):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    name = os.path.basename(path)[:-4]
    program = build(directory, objects, text, name)
    cpu = os.path.join(directory, name + "_cpu.sbp")
    with open(cpu, "w", encoding="utf-8") as f:
        f.write(text.replace("= cuda[", "= cpu["))
    run(SBPC, cpu, "-o", cpu[:-4])
    options, _ = feed(directory, shapes, 1)
    got = outputs(directory, ranks, program, names, options)
    want = outputs(directory, ranks, cpu[:-4], names, options)
    for n in names:
        np.testing.assert_allclose(got[n], want[n], rtol=1e-5, atol=1e-6)


def check_pairs(directory, objects, mesh, terms, ranks, shape):
    """x on each distribution to each other one."""
    lines = [f"placement p = cuda{mesh}", "model pairs on p {"]
    shapes, want = {}, {}
    for i, source in enumerate(terms):
        shapes[f"x{i}"] = shape
        lines.append(f"  input x{i}: f32{list(shape)} on ({source})")
        for k, target in enumerate(terms):
            lines.append(f"  y{i}_{k} = x{i} on ({target})")
            lines.append(f"  output y{i}_{k}")
            want[f"y{i}_{k}"] = f"x{i}"
    program = build(directory, objects, "\n".join(lines + ["}"]), "pairs")
    options, arrays = feed(directory, shapes, 2)
    got = outputs(directory, ranks, program, list(want), options)
    for name, source in want.items():
        np.testing.assert_array_equal(got[name], arrays[source], name)


def test_samples(directory):
    objects = compile_runtime(directory)
    for name, ranks, shapes in (
            ("mlp2d", 4, {"x": (2, 2, 8)}),
            ("two", 2, {"x": (64, 32)}),
            ("matmul2d", 4, {"x": (6, 5), "w": (5, 4)})):
        check_sample(directory, objects, os.path.join(SAMPLES, name + ".sbp"),
                     ranks, shapes, ["y"])
    check_sample(directory, objects,
                 os.path.join(SOURCE, "tests", "codegen", "cuda.sbp"), 2,
                 {"x": (6, 8)}, ["z", "t"])


def test_pairs(directory):
    objects = compile_runtime(directory)
    check_pairs(directory, objects, "[0, 1, 2]",
                ["B", "S(0)", "S(1)", "P", "P(max)"], 3, (5, 2))
    check_pairs(directory, objects, "[[0, 1], [2, 3]]",
                ["B, B", "S(0), S(0)", "S(0), S(1)", "B, S(1)", "P, S(0)",
                 "P, P", "P(max), P", "S(1), P(min)"], 4, (5, 3))


main(test_samples, test_pairs)

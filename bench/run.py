"""Speed beside its peers, all in one run, as ratios of medians.

    python3 bench/run.py [--torch PYTHON] [--rounds N] [cold] [mlp] [compile]
                         [collectives]

The peers take part where they are installed: NumPy always, PyTorch when
--torch names a Python that has it (its NumPy is the peer then: PyPI's OpenBLAS
knows more processors than Debian's), Open MPI when mpirun and mpicc are there.
Commands alternate A B A B, so that a machine that drifts drifts for both.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.path.join(HERE, "..", "build", "release", "bin")
SBPC, SBPRUN = os.path.join(BIN, "sbpc"), os.path.join(BIN, "sbprun")


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def seconds(command, **more):
    start = time.perf_counter()
    run(command, **more)
    return time.perf_counter() - start


def table(title, unit, samples):
    """SAMPLES: name -> figures; the first name is sbpc's."""
    print(f"\n{title}")
    ours = statistics.median(next(iter(samples.values())))
    for name, figures in samples.items():
        mid = statistics.median(figures)
        print(f"  {name:34} {mid:10.2f} {unit}  (min {min(figures):.2f}, "
              f"max {max(figures):.2f})  {mid / ours:8.2f} x")


def alternate(rounds, takers):
    samples = {name: [] for name in takers}
    for _ in range(rounds):
        for name, take in takers.items():
            samples[name].append(take())
    return samples


def bench_cold(args, folder):
    program = os.path.join(folder, "mlp2")
    run([SBPC, os.path.join(HERE, "mlp2.sbp"), "-o", program])
    x = os.path.join(folder, "x2.npy")
    np.save(x, np.ones((2, 2, 8), np.float32))
    command = [SBPRUN, "-n", "2", program, "--input", f"x={x}", "--quiet"]
    takers = {"sbprun": lambda: seconds(command) * 1e3}
    if shutil.which("mpicc") and shutil.which("mpirun"):
        mpi = os.path.join(folder, "mpi_start")
        run(["mpicc", os.path.join(HERE, "mpi_start.c"), "-o", mpi])
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n",
                  "2", mpi]
        takers["mpirun, an empty program"] = lambda: seconds(mpirun) * 1e3
    if args.torch:
        torchrun = [args.torch, "-m", "torch.distributed.run",
                    "--nproc-per-node=2",
                    os.path.join(HERE, "torch_start.py")]
        takers["torchrun"] = lambda: seconds(torchrun) * 1e3
    table("Cold start: launcher's exec to last exit, 2 ranks", "ms",
          alternate(args.rounds, takers))


def save_arrays(folder):
    rng = np.random.default_rng(0)
    arrays = {"x": rng.random((10000, 784), np.float32)}
    for i, (n, m) in enumerate(((784, 256), (256, 128), (128, 10)), 1):
        w = rng.standard_normal((m, n), np.float32) / np.float32(n ** 0.5)
        arrays[f"fc{i}.weight"] = w
        arrays[f"fc{i}.bias"] = rng.standard_normal(m, np.float32)
    for name, a in arrays.items():
        np.save(os.path.join(folder, f"{name}.npy"), a)
    return arrays


def save_safetensors(path, arrays):
    header, at = {}, 0
    for name, a in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(a.shape),
                        "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for a in arrays.values():
            f.write(a.tobytes())


def ours_ms(program, ranks, threads, folder, steps):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads))
    out = run([SBPRUN, "-n", str(ranks), program, "--input",
               f"x={folder}/x.npy", "--load", f"{folder}/w.safetensors",
               "--bench", str(steps)], env=env)
    return json.loads(out.strip().splitlines()[-1])["median_ms"]


def peer_ms(python, kind, threads, folder, steps):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads))
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        env.pop(name, None)
    out = run([python, os.path.join(HERE, "peer_mlp.py"), kind, folder,
               str(threads), str(steps)], env=env)
    return float(out.split()[0])


def bench_mlp(args, folder):
    arrays = save_arrays(folder)
    del arrays["x"]
    save_safetensors(f"{folder}/w.safetensors", arrays)
    steps, takers = 20, {}
    for ranks in (1, 2):
        program = os.path.join(folder, f"mlp{ranks}")
        run([SBPC, os.path.join(HERE, "fashion_mlp.sbp"), "-D",
             f"p={ranks}", "-o", program])
        takers[f"sbpc, {ranks} rank(s), {3 - ranks} thread(s)"] = (
            lambda p=program, r=ranks: ours_ms(p, r, 3 - r, folder, steps))
    takers["NumPy, 2 threads"] = lambda: peer_ms(
        args.torch or sys.executable, "numpy", 2, folder, steps)
    if args.torch:
        takers["PyTorch, 2 threads"] = lambda: peer_ms(
            args.torch, "torch", 2, folder, steps)
    table("784-256-128-10, batch 10,000, forward", "ms",
          alternate(args.rounds, takers))


def bench_compile(args, folder):
    deep = os.path.join(HERE, "deep_mlp.sbp")
    takers = {}
    for layers in (1000, 10000):
        for side in (2, 64):
            define = ["-D", f"n={layers}", "-D", f"side={side}"]
            what = f"{layers} layers, {side * side} ranks"
            for name, more in ((f"--emit=c, {what}", ["--emit=c"]),
                               (f"-o, {what}", [])):
                command = [SBPC, deep, *define, *more, "-o",
                           os.path.join(folder, "deep")]
                takers[name] = lambda c=command: seconds(c)
    gpt2 = [SBPC, os.path.join(HERE, "..", "samples", "gpt2.sbp")]
    for define in ("layers=12", "batch=8", "time=1024", "d=2", "t=4"):
        gpt2 += ["-D", define]
    takers["--emit=c, GPT-2, 12 blocks, 2x4"] = lambda: seconds(
        [*gpt2, "--emit=c", "-o", os.path.join(folder, "gpt2")])
    table("Compiling an MLP of 64x64 layers, split alternately; GPT-2", "s",
          alternate(min(args.rounds, 3), takers))


def collective_commands(folder):
    """Name -> the commands, by ranks, largest size and seconds: of an MPI with
    the operand in a buffer of its own, and in place."""
    lib = os.path.join(BIN, "..", "lib", "sbpc", "libsbp.a")
    include = os.path.join(BIN, "..", "include", "sbpc")
    flags = ["-O2", "-std=c11", "-D_GNU_SOURCE"]
    ours, takers = os.path.join(folder, "collectives"), {}
    run(["cc", *flags, "-I", include, os.path.join(HERE, "collectives.c"),
         lib, "-lm", "-ldl", "-lpthread", "-o", ours])
    takers["sbpc"] = lambda *more: [[SBPRUN, "-n", more[0], ours, *more[1:]]]
    for name, flavour, more in (
            ("Open MPI", "openmpi", ["--allow-run-as-root", "--oversubscribe"]),
            ("MPICH", "mpich", [])):
        if not shutil.which(f"mpicc.{flavour}"):
            continue
        out = f"{ours}_{flavour}"
        run([f"mpicc.{flavour}", *flags,
             os.path.join(HERE, "collectives_mpi.c"), "-o", out])
        takers[name] = lambda n, *given, out=out, f=flavour, m=more: [
            [f"mpirun.{f}", *m, "-n", n, out, *given, *how]
            for how in ([], ["in-place"])]
    return takers


def collective_figures(commands):
    """(operation, size) -> (median, least) in us, as far as it came, of the
    command that has the lesser median."""
    figures = {}
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True)
        for line in done.stdout.splitlines():
            word = line.split()
            if len(word) != 4 or not word[1].isdigit():
                continue
            key, taken = (word[0], int(word[1])), tuple(map(float, word[2:]))
            figures[key] = min(figures.get(key, taken), taken)
    return figures


def collective_table(ranks, runs):
    """RUNS: name -> the figures of each round."""
    print(f"\nCollectives, {ranks} ranks, us: median (min)")
    print(f"  {'':26}" + "".join(f"{name:>24}" for name in runs) +
          "   nearest peer / sbpc")
    for key in runs["sbpc"][0]:
        row, mids = f"  {key[0]:15}{key[1]:11}", {}
        for name, rounds in runs.items():
            taken = [r[key] for r in rounds if key in r]
            if not taken:
                row += f"{'-':>24}"
                continue
            mids[name] = statistics.median(mid for mid, _ in taken)
            row += (f"{mids[name]:12.2f} "
                    f"{'(%.2f)' % min(low for _, low in taken):>11}")
        peers = [mid for name, mid in mids.items() if name != "sbpc"]
        print(row + (f"{min(peers) / mids['sbpc']:12.2f} x" if peers else ""))


def bench_collectives(args, folder):
    takers = collective_commands(folder)
    for ranks, most, limit in ((2, 64 << 20, 60), (4, 1 << 20, 15),
                               (8, 1 << 20, 15)):
        runs = {name: [] for name in takers}
        for _ in range(args.rounds if ranks == 2 else 1):
            for name, command in takers.items():
                runs[name].append(collective_figures(
                    command(str(ranks), str(most), str(limit))))
        collective_table(ranks, runs)


BENCHES = {"cold": bench_cold, "mlp": bench_mlp, "compile": bench_compile,
           "collectives": bench_collectives}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", nargs="*", help=", ".join(BENCHES))
    parser.add_argument("--torch", help="a Python that has PyTorch")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    for name in args.which:
        if name not in BENCHES:
            parser.error(f"no bench '{name}': {', '.join(BENCHES)}")
    with tempfile.TemporaryDirectory() as folder:
        for name in args.which or BENCHES:
            BENCHES[name](args, folder)


try:
    import numpy as np
except ImportError:
    sys.exit("bench needs NumPy: apt-get install python3-numpy, and run it "
             "by /usr/bin/python3")
main()

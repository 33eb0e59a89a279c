"""Fashion-MNIST: 8851 of the 10,000 test images, on every mesh."""
import os

import numpy as np
from common import SAMPLES, SOURCE, SBPRUN, expect, main, run

SAMPLE = os.path.join(SAMPLES, "fashion.sbp")
WEIGHTS = os.path.join(SAMPLES, "fashion.safetensors")
IMAGES = "/usr/share/datasets/fashion-mnist"
LOGITS = os.path.join(SOURCE, "tests/data/fashion_logits.npy")

# One rank, data parallel, uneven, tensor parallel, both.
MESHES = ([], ["-D", "d=2"], ["-D", "d=3"], ["-D", "t=4"],
          ["-D", "d=2", "-D", "t=2"])


def program(*arguments):
    return [SAMPLE, "--load", WEIGHTS, "--data", f"test={IMAGES}", *arguments]


def test_count(_):
    for mesh in MESHES:
        out = run(SBPRUN, *mesh, *program("--eval"))
        expect(out == "correct: 8851\n", f"{mesh}: {out}")


def test_one_batch(_):
    out = run(SBPRUN, "-D", "n=10000", "-D", "d=2",
              *program("--show", "correct"))
    expect(out.split("\n")[1] == "8851", out)


def test_logits(directory):
    want = np.load(LOGITS)
    path = os.path.join(directory, "logits.npy")
    for mesh in MESHES:
        run(SBPRUN, "-D", "n=64", *mesh, *program("--output",
                                                  f"logits={path}"))
        worst = np.abs(np.load(path) - want).max()
        expect(worst < 1e-4, f"{mesh}: logits differ by {worst}")


def test_uneven_evaluation(_):
    out = run(SBPRUN, "-D", "n=999", *program("--eval"), code=2)
    expect("10000" in out and "999" in out, out)


main(test_count, test_one_batch, test_logits, test_uneven_evaluation)

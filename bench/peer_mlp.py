"""The network of fashion_mlp.sbp in NumPy or PyTorch; prints the median
milliseconds of a step. Usage: peer_mlp.py numpy|torch DIR THREADS STEPS, DIR
holding x.npy and fc1.weight.npy, ...: the arrays that sbpc's program gets."""
import sys
import time


def numpy_step(load):
    import numpy as np

    x = load("x")
    w = [(load(f"fc{i}.weight"), load(f"fc{i}.bias")) for i in (1, 2, 3)]

    def step():
        h = np.maximum(x @ w[0][0].T + w[0][1], 0)
        h = np.maximum(h @ w[1][0].T + w[1][1], 0)
        return h @ w[2][0].T + w[2][1]

    return step


def torch_step(load, threads):
    import torch

    torch.set_num_threads(threads)
    x = torch.from_numpy(load("x"))
    layers = []
    for i, (n, m) in enumerate(((784, 256), (256, 128), (128, 10)), 1):
        layer = torch.nn.Linear(n, m)
        layer.weight.data = torch.from_numpy(load(f"fc{i}.weight"))
        layer.bias.data = torch.from_numpy(load(f"fc{i}.bias"))
        layers += [layer, torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers[:-1])

    def step():
        with torch.no_grad():
            return net(x)

    return step


def main():
    kind, folder, threads, steps = sys.argv[1:]
    import numpy as np

    def load(name):
        return np.load(f"{folder}/{name}.npy")

    if kind == "numpy":
        step = numpy_step(load)
    else:
        step = torch_step(load, int(threads))
    for _ in range(3):
        step()
    times = []
    for _ in range(int(steps)):
        start = time.perf_counter()
        y = step()
        times.append(time.perf_counter() - start)
    print(sorted(times)[len(times) // 2] * 1e3, float(y[0][0]))


main()

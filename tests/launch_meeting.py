"""Ranks started by hand: where they meet, and what they say of one another."""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np

from common import SBPC, Failure, run

PROGRAM = """\
let n = 8
placement grid = cpu[[0, 1], [2, 3]]
model m on grid {
  input x: f32[n, 6] on (S(0), B)
  h = x * 2 on (B, B)
  y = sum(h)
  output h
  output y
}
"""
WORLD = 4
FOREVER = ["--steps", "1000000000"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Job:
    """Ranks of one job, started by the five variables alone."""

    def __init__(self, directory, port=None, **env):
        self.directory = directory
        self.port = port or free_port()
        self.ranks = {}
        self.env = {k: v for k, v in os.environ.items()
                    if not re.match("RANK|WORLD_|LOCAL_|MASTER_|SBP_|OMP_", k)}
        self.env.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(self.port),
                        WORLD_SIZE=str(WORLD))
        self.env.update(env)
        self.env = {k: v for k, v in self.env.items() if v is not None}

    def start(self, rank, *options, program="m", feed=True, **env):
        env = {**self.env, "RANK": str(rank), "LOCAL_RANK": str(rank), **env}
        env = {k: v for k, v in env.items() if v is not None}
        self.ranks[rank] = subprocess.Popen(
            ["./" + program, *(["--input", "x=x.npy"] if feed else []),
             *options], env=env,
            cwd=self.directory, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        return self.ranks[rank]

    def start_all(self, *options, feed=True):
        for rank in reversed(range(WORLD)):
            self.start(rank, *options, feed=feed)

    def finish(self, rank, limit=10):
        """(exit status, stdout, stderr)"""
        p = self.ranks[rank]
        try:
            out, err = p.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            raise Failure(f"rank {rank} does not end: {err}")
        return p.returncode, out, err

    def end(self):
        for p in self.ranks.values():
            p.kill()
            p.communicate()


def expect(good, *what):
    if not good:
        raise Failure(" ".join(str(w) for w in what))


def expect_refusal(result, text, status=2):
    code, _, err = result
    expect(code == status and text in err, "wanted", status, text, "got",
           result)
    expect(err.count("\n") == 1, "one line:", err)


# ---- what works ----

def test_by_hand(d):
    job = Job(d)
    job.start_all("--show", "y,x", "--output", "h=h.npy")
    results = [job.finish(r) for r in range(WORLD)]
    expect(all(r[0] == 0 and not r[2] for r in results), results)
    lines = results[0][1].splitlines()
    expect(lines[0] == "[rank 0] y f32[] of [] (B, B)", lines)
    expect(lines[1] == "2256" and lines[8].startswith("[rank 0] x f32[4, 6]"),
           lines)
    expect(all(not r[1] for r in results[1:]), "only rank 0 prints")
    expect(os.path.getsize(os.path.join(d, "h.npy")) == 128 + 8 * 6 * 4)


def test_two_jobs(d):
    jobs = [Job(d), Job(d)]
    for rank in range(WORLD):
        for job in jobs:
            job.start(rank)
    for job in jobs:
        for rank in range(WORLD):
            expect(job.finish(rank)[0] == 0)


def test_late_rank_zero(d):
    job = Job(d)
    for rank in range(1, WORLD):
        job.start(rank)
    time.sleep(0.3)
    job.start(0)
    for rank in range(WORLD):
        expect(job.finish(rank)[0] == 0)


def test_strangers(d):
    """Bytes that are no hello, silence, and a rank of another job."""
    job = Job(d)
    job.start(0)
    time.sleep(0.2)
    for data in (b"GET / HTTP/1.0\r\n\r\n", os.urandom(5000), b""):
        with socket.create_connection(("127.0.0.1", job.port)) as s:
            s.sendall(data)
    silent = socket.create_connection(("127.0.0.1", job.port))
    job.start(3, SBP_TOKEN="other", SBP_TIMEOUT="0.3")
    expect_refusal(job.finish(3), "rank 0 is not to be had", 1)
    for rank in range(1, WORLD):
        job.start(rank)
    for rank in range(WORLD):
        expect(job.finish(rank)[0] == 0)
    silent.close()


# ---- ranks that are not there ----

def test_missing(d):
    job = Job(d, SBP_TIMEOUT="0.5")
    job.start(0)
    job.start(2)
    for rank in (0, 2):
        expect_refusal(job.finish(rank), "have not come to 127.0.0.1:" +
                       f"{job.port}: 1, 3", 1 if rank == 0 else 2)


def test_no_rank_zero(d):
    job = Job(d, SBP_TIMEOUT="0.5")
    job.start(1)
    expect_refusal(job.finish(1), "rank 0 is not to be had", 1)


def test_unresolved(d):
    job = Job(d, MASTER_ADDR="no-such-host.invalid")
    start = time.monotonic()
    job.start_all()
    for rank in range(WORLD):
        expect_refusal(job.finish(rank), "'no-such-host.invalid'")
    expect(time.monotonic() - start < 1.5, "took long")


def test_port_taken(d):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        job = Job(d, port=s.getsockname()[1])
        job.start(0)
        expect_refusal(job.finish(0), f"cannot listen at 127.0.0.1:{job.port}")


def test_builds_differ(d):
    job = Job(d)
    job.start(0)
    job.start(3, program="other")
    time.sleep(0.3)
    for rank in (1, 2):
        job.start(rank)
    for rank in range(WORLD):
        code, _, err = job.finish(rank)
        expect(code == 2 and len(set(re.findall("[0-9a-f]{16}", err))) == 2,
               "both hashes:", err)


def test_rank_twice(d):
    job = Job(d)
    job.start(0)
    job.start(1)
    first = job.ranks[1]
    time.sleep(0.1)
    job.start(1)
    expect_refusal(job.finish(0), "two processes say that they are rank 1")
    job.finish(1)
    expect(first.wait(10) == 2)


# ---- ranks that end, fail or stop ----

def check_reports(job, others, text, limit):
    start = time.monotonic()
    reports = [job.finish(r) for r in others]
    expect(time.monotonic() - start < limit, "took long")
    for rank, (code, _, err) in zip(others, reports):
        expect(code == 1 and text in err, rank, code, err)
        expect(re.search(rf"rank {rank}, (after )?step \d+", err), err)
    expect(any(re.search(r"step \d+, [a-z-]+\([0-9,]+\) of '.*', m\.sbp:5:",
                         r[2]) for r in reports), reports)


def test_killed(d):
    job = Job(d)
    job.start_all(*FOREVER)
    time.sleep(0.5)
    job.ranks[2].send_signal(signal.SIGKILL)
    check_reports(job, [0, 1, 3], "rank 2 has died", 1)
    job.end()


def test_stopped(d):
    job = Job(d, SBP_TIMEOUT="1")
    job.start_all(*FOREVER)
    time.sleep(0.5)
    job.ranks[1].send_signal(signal.SIGSTOP)
    check_reports(job, [0, 2, 3], "rank 1 has not answered within 1 s", 3)
    job.end()


def test_nothing_left(d):
    before = set(os.listdir("/dev/shm"))
    job = Job(d)
    job.start_all(*FOREVER)
    time.sleep(0.3)
    for p in job.ranks.values():
        p.send_signal(signal.SIGKILL)
    job.end()
    left = set(os.listdir("/dev/shm")) - before
    expect(not any("sbp" in name for name in left), left)


# ---- the environment and the command line ----

def refused_alone(d, text, status=2, options=(), rank=0, **env):
    job = Job(d)
    job.start(rank, *options, **env)
    expect_refusal(job.finish(rank), text, status)


def test_environment(d):
    refused_alone(d, "RANK is 'x'", RANK="x")
    refused_alone(d, "RANK is '4'", RANK="4")
    refused_alone(d, "WORLD_SIZE is not set", WORLD_SIZE=None)
    refused_alone(d, "for 4 ranks, but WORLD_SIZE is 2", WORLD_SIZE="2")
    refused_alone(d, "MASTER_PORT is '70000'", MASTER_PORT="70000")
    refused_alone(d, "MASTER_PORT is not set", MASTER_PORT=None)
    refused_alone(d, "MASTER_ADDR is not set", MASTER_ADDR=None)
    refused_alone(d, "LOCAL_RANK is '-1'", LOCAL_RANK="-1")
    refused_alone(d, "SBP_TIMEOUT is '0'", SBP_TIMEOUT="0")
    refused_alone(d, "OMP_NUM_THREADS is 'many'", OMP_NUM_THREADS="many")
    refused_alone(d, "start it with sbprun -n 4", RANK=None, WORLD_SIZE=None)


def other_launcher(d, names, **more):
    rank_name, world_name, local_name = names
    job = Job(d, WORLD_SIZE=None, **more)
    for rank in range(WORLD):
        job.start(rank, "--show", "y", RANK=None, LOCAL_RANK=None,
                  **{rank_name: str(rank), world_name: str(WORLD),
                     local_name: str(rank)})
    results = [job.finish(r) for r in range(WORLD)]
    expect(all(r[0] == 0 for r in results), results)
    expect(results[0][1].startswith("[rank 0] y"), results)


def test_other_launchers(d):
    port = str(free_port())
    other_launcher(d, ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                       "OMPI_COMM_WORLD_LOCAL_RANK"], MASTER_ADDR=None,
                   MASTER_PORT=None, PMIX_NAMESPACE="prterun-" + port)
    other_launcher(d, ["PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"])
    other_launcher(d, ["SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"],
                   MASTER_ADDR=None)


def test_options(d):
    refused_alone(d, "unknown option '--frob'", options=["--frob"])
    refused_alone(d, "--steps takes a positive number", options=["--steps=0"])
    refused_alone(d, "'q' is not one of: x, h, y", options=["--show", "q"])
    refused_alone(d, "'q' is not one of: x", options=["--input", "q=x.npy"])
    refused_alone(d, "unexpected argument 'file'", options=["file"])
    refused_alone(d, "--bench and --steps exclude",
                  options=["--bench=3", "--steps=3"])
    refused_alone(d, "input 'x' is fed twice", options=["--input=x=x.npy"])
    refused_alone(d, "needs {rank}", options=["--local-output", "h=h.npy"])
    for other in ("z.npy", "./z.npy", os.path.join(d, "z.npy")):
        refused_alone(d, f"'{other}' would be written twice", options=[
            "--output", "y=z.npy", "--output", f"h={other}"])


def test_unreadable_input(d):
    """One rank cannot read its file: it says so, all stop."""
    job = Job(d)
    job.start_all("--local-input", "x=only0.{rank}.npy", feed=False)
    results = [job.finish(r) for r in range(WORLD)]
    expect(all(r[0] == 2 for r in results), results)
    said = [r[2] for r in results if r[2]]
    expect(len(said) == 1 and "rank 0: only0.0.npy" in said[0], said)


def build(d):
    with open(os.path.join(d, "m.sbp"), "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    run(SBPC, "m.sbp", "-o", "m", cwd=d)
    run(SBPC, "m.sbp", "-D", "n=9", "-o", "other", cwd=d)
    x = np.arange(48, dtype="f4").reshape(8, 6)
    np.save(os.path.join(d, "x.npy"), x)


def main():
    tests = [(n, f) for n, f in globals().items() if n.startswith("test_")]
    tests = [t for t in tests if t[0] in sys.argv[1:] or not sys.argv[1:]]
    bad = 0
    with tempfile.TemporaryDirectory() as d:
        build(d)
        for name, test in tests:
            try:
                test(d)
            except Failure as e:
                bad += 1
                print(f"FAILED {name}: {e}")
    print(f"launch_meeting: {len(tests) - bad} passed, {bad} failed")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())

"""sbprun: ranks, lines, exit codes, and that nothing is left behind."""
import os
import re
import signal
import socket
import subprocess
import time

from common import BIN, SAMPLES, SBPC, SBPRUN, expect, main, run


def script(directory, text):
    path = os.path.join(directory, "rank.sh")
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def pids_of(path, count):
    """Waits until COUNT ranks have written their pids."""
    for _ in range(200):
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                pids = [int(line) for line in f if line.endswith("\n")]
            if len(pids) == count:
                return pids
        time.sleep(0.02)
    raise AssertionError("ranks did not start")


def test_environment(directory):
    path = script(directory, "echo $RANK $WORLD_SIZE $LOCAL_RANK "
                             "$LOCAL_WORLD_SIZE $MASTER_ADDR "
                             "${MASTER_PORT:+port} ${SBP_JOB:+job} "
                             "${SBP_TOKEN:+token}\n")
    for spelling in ("-n3", "-n 3", "--nproc-per-node=3",
                     "--nproc_per_node=3", "--nproc-per-node 3"):
        out = run(SBPRUN, *spelling.split(), path)
        expect(sorted(out.split("\n"))[1:] ==
               [f"{r} 3 {r} 3 127.0.0.1 port job token" for r in range(3)],
               f"{spelling}: {out}")
    out = run(SBPRUN, "--nnodes=1", "--master-addr", "localhost",
              "--master_port=4242", path)
    expect(out.startswith("0 1 0 1 localhost"), out)


def test_cores(directory):
    path = script(directory, "grep Cpus_allowed: /proc/self/status\n")
    cores = len(os.sched_getaffinity(0))
    own = run(path).split()
    out = run(SBPRUN, "-n", str(cores), path).split()
    expect(out == own * cores, f"ranks that have cores are not bound: {out}")
    out = run(SBPRUN, "-n", str(2 * cores), path).split()[1::2]
    masks = [int(mask.replace(",", ""), 16) for mask in out]
    expect(len(masks) == 2 * cores and len(set(masks)) == cores and
           all(bin(mask).count("1") == 1 and masks.count(mask) == 2
               for mask in masks), f"two ranks on each core: {out}")


def test_usage(directory):
    path = script(directory, "exit 0\n")
    for args, part in ((["-n", "0", path], "1 to"),
                       (["-n", "x", path], "1 to"),
                       (["--nnodes=2", path], "only one host"),
                       (["--nproc", "2", path], "did you mean"),
                       ([], "which program"),
                       (["./absent"], "cannot start './absent'"),
                       (["--master-port=0", path], "1 to 65535"),
                       (["absent.sbp"], "absent.sbp")):
        out = run(SBPRUN, *args, code=2, cwd=directory)
        expect(part in out, f"{args}: {out}")


def test_exit_codes(directory):
    path = script(directory, '[ $RANK = 2 ] && exit 7\nsleep 20\n')
    start = time.time()
    out = run(SBPRUN, "-n", "4", path, code=7)
    expect(time.time() - start < 5, "the others were not ended")
    host = socket.gethostname()
    expect(f"rank 2 on {host} exited with 7" in out, out)
    expect(len(out.strip().split("\n")) == 1, out)
    path = script(directory, '[ $RANK = 1 ] && kill -SEGV $$\nsleep 20\n')
    out = run(SBPRUN, "-n", "3", path, code=139)
    expect(f"rank 1 on {host} was killed by signal 11" in out, out)


def test_stubborn_ranks(directory):
    path = script(directory, 'trap "" TERM\necho $$ >> pids\n'
                             '[ $RANK = 0 ] && sleep 0.2 && exit 3\n'
                             'while :; do sleep 0.1; done\n')
    run(SBPRUN, "-n", "2", path, code=3, cwd=directory)
    for pid in pids_of(os.path.join(directory, "pids"), 2):
        expect(not alive(pid), f"{pid} lives")


def test_long_lines(directory):
    program = (f"import os; r = os.environ['RANK']\n"
               f"import sys\n"
               f"for i in range(1000):\n"
               f"    sys.stdout.write(r * (5000 + i) + '\\n')\n"
               f"    sys.stderr.write('e' + r * 300 + '\\n')\n"
               f"sys.stdout.write('end' + r)\n")
    path = os.path.join(directory, "p.py")
    with open(path, "w", encoding="utf-8") as f:
        f.write(program)
    for label in ([], ["--label"], ["-l"]):
        done = subprocess.run(
            [SBPRUN, "-n", "4", *label, "python3", path], timeout=120,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            universal_newlines=True, check=True)
        count = {str(r): 0 for r in range(4)}
        for line in done.stdout.split("\n")[:-1]:
            if label:
                head = re.match(r"\[(\d)\] ", line)
                expect(head, f"no label: {line[:40]}")
                line = line[4:]
            rank = line[-1]
            if line != "end" + rank:
                expect(line == rank * (5000 + count[rank]),
                       f"a line is broken: {line[:40]}")
                count[rank] += 1
        expect(all(n == 1000 for n in count.values()), str(count))
        expect(done.stderr.count("e") == 4000, "stderr is not whole")


def test_kill_9(directory):
    path = script(directory, "echo $$ >> pids\nexec sleep 60\n")
    job = subprocess.Popen([SBPRUN, "-n", "3", path], cwd=directory)
    pids = pids_of(os.path.join(directory, "pids"), 3)
    job.kill()
    job.wait()
    time.sleep(0.5)
    expect(not any(alive(pid) for pid in pids), "ranks are left")


def test_signals(directory):
    path = script(directory, 'trap "echo got; exit 0" TERM INT\n'
                             'echo $$ >> pids\n'
                             'while :; do sleep 0.05; done\n')
    for number in (signal.SIGINT, signal.SIGTERM):
        job = subprocess.Popen([SBPRUN, "-n", "2", path], cwd=directory,
                               stdout=subprocess.PIPE)
        pids = pids_of(os.path.join(directory, "pids"), 2)
        time.sleep(0.1)
        job.send_signal(number)
        out = job.communicate(timeout=20)[0]
        expect(job.returncode == 128 + number, f"exit {job.returncode}")
        expect(out == b"got\ngot\n", str(out))
        expect(not any(alive(pid) for pid in pids), "ranks are left")
        os.unlink(os.path.join(directory, "pids"))


def test_grandchildren(directory):
    path = script(directory, 'sleep 60 &\necho $! >> pids\n'
                             '[ $RANK = 1 ] && sleep 0.3 && exit 5\nwait\n')
    run(SBPRUN, "-n", "2", path, code=5, cwd=directory)
    for pid in pids_of(os.path.join(directory, "pids"), 2):
        expect(not alive(pid), f"{pid} lives")


def test_two_jobs(directory):
    run(SBPC, os.path.join(SAMPLES, "mlp2d.sbp"), "-o", "mlp", cwd=directory)
    command = [SBPRUN, "-n", "4", "./mlp", "--input",
               "x=" + os.path.join(SAMPLES, "mlp2d_x.npy"), "--show", "y"]
    jobs = [subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE)
            for _ in range(4)]
    outs = [job.communicate(timeout=60)[0] for job in jobs]
    expect(all(job.returncode == 0 for job in jobs), "a job failed")
    expect(len(set(outs)) == 1 and outs[0], "jobs differ")


def test_world_size(directory):
    run(SBPC, os.path.join(SAMPLES, "mlp2d.sbp"), "-o", "mlp", cwd=directory)
    out = run(SBPRUN, "-n", "3", "./mlp", code=2, cwd=directory)
    expect("4" in out and "3" in out, out)
    out = run(SBPRUN, "-n", "3", os.path.join(SAMPLES, "mlp2d.sbp"), code=2)
    expect("is for 4 ranks, but -n is 3" in out, out)


def test_address(directory):
    run(SBPC, os.path.join(SAMPLES, "mlp2d.sbp"), "-o", "mlp", cwd=directory)
    start = time.time()
    out = run(SBPRUN, "-n", "4", "--master-addr", "no.such.host.invalid",
              "./mlp", "--input",
              "x=" + os.path.join(SAMPLES, "mlp2d_x.npy"), code=2,
              cwd=directory)
    expect("no.such.host.invalid" in out, out)
    expect(time.time() - start < 4, "too late")


def test_builds_differ(directory):
    """Ranks of two programs are refused, both hashes named."""
    with open(os.path.join(SAMPLES, "two.sbp"), encoding="utf-8") as f:
        text = f.read()
    for name, change in (("a", text), ("b", text.replace("64, 32", "64, 33"))):
        with open(os.path.join(directory, name + ".sbp"), "w",
                  encoding="utf-8") as f:
            f.write(change)
        run(SBPC, name + ".sbp", "-o", name, cwd=directory)
    path = script(directory, 'if [ $RANK = 0 ]; then exec ./a "$@"; fi\n'
                             'exec ./b "$@"\n')
    done = subprocess.run([SBPRUN, "-n", "2", path], cwd=directory,
                          stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                          timeout=60, universal_newlines=True, check=False)
    hashes = set(re.findall(r"[0-9a-f]{16}", done.stderr))
    expect(done.returncode != 0 and len(hashes) >= 2, done.stderr)


def test_cuda(directory):
    with open(os.path.join(directory, "m.sbp"), "w", encoding="utf-8") as f:
        f.write("placement w = cuda[0, 1]\nmodel m on w {\n"
                "const x: f32[2] = [1, 2]\ny = x + 1\noutput y\n}\n")
    out = run(SBPRUN, "m.sbp", code=2, cwd=directory)
    expect("is for cuda" in out, out)


def test_model_in_memory(directory):
    path = os.path.join(SAMPLES, "mlp2d.sbp")
    out = run(SBPRUN, path, "--input",
              "x=" + os.path.join(SAMPLES, "mlp2d_x.npy"), "--show", "h",
              cwd=directory)
    expect(out.count("[rank ") == 4 and "h f32[1, 2, 4]" in out, out)
    expect(not os.listdir(directory), "files are left")
    expect(os.path.exists(os.path.join(BIN, "sbprun")), "no sbprun")


main(test_environment, test_cores, test_usage, test_exit_codes,
     test_stubborn_ranks, test_long_lines, test_kill_9, test_signals,
     test_grandchildren, test_two_jobs, test_world_size, test_address,
     test_builds_differ, test_cuda, test_model_in_memory)

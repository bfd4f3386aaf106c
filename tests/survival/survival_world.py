"""What the survival rows have in common: the programs, a scratch directory, and looking at what a run left."""

import json
import os
import re
import signal
import subprocess
import time

LIMIT_FACTOR = 3  # promised limits are asserted at three times their value
PATIENCE_S = 120  # for what happens at once on a machine that is not busy

SYSTEM_CALLS = ("openat", "openat2", "write", "writev", "renameat2", "renameat", "mkdirat", "fsync", "close")
# Values whose steps take another way to the disk, past the page cache, and the calls of that way.
LARGE_BYTES = 400_000
CALLS_OF_LARGE = ("write", "writev", "fcntl", "fallocate", "ftruncate")
# Every run that is hurt at a system call: the call, and the options of the run.
HURT_AT = [(call, {"steps": 12}) for call in SYSTEM_CALLS]
HURT_AT += [(call, {"steps": 4, "bytes": LARGE_BYTES}) for call in CALLS_OF_LARGE]


class Broken(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Broken(text)


def wait_until(condition, process, what):
    """Until the condition holds; a break if the process ends before, or nothing happens."""
    last = time.monotonic() + PATIENCE_S
    while not condition():
        need(process.poll() is None, f"the run ended by itself, before {what}")
        need(time.monotonic() < last, f"no {what} after {PATIENCE_S} s")
        time.sleep(0.002)


class World:
    """Where the programs are, and a scratch directory for one row."""

    def __init__(self, args, scratch):
        self.bin, self.source, self.scratch = args.bin, args.source, scratch
        self.python = os.path.join(args.source, ".venvs", "smdebug", "bin", "python")
        self.count = 0
        self.trials = []
        self.bare_hashes = {}
        self.processes = []

    def path(self, name):
        return os.path.join(self.scratch, name)

    def new_run(self):
        self.count += 1
        return self.path(f"run{self.count}"), self.path(f"log{self.count}")

    def command(self, out, log, **options):
        line = [os.path.join(self.bin, "survival_train"), "--out", out, "--log", log]
        for key, value in options.items():
            line += ["--" + key.replace("_", "-")] + ([] if value is True else [str(value)])
        return line

    def start(self, line, **options):
        """A process that does not outlive the row."""
        self.processes.append(subprocess.Popen(line, **options))
        return self.processes[-1]

    def end_processes(self):
        for process in self.processes:
            process.kill()
            process.wait()

    def train(self, out, log, wrap=(), timeout=600, env=None, **options):
        """Runs to the end and returns the finished process; weights are compared when it ended well."""
        done = subprocess.run(
            [*wrap, *self.command(out, log, **options)], capture_output=True, text=True, timeout=timeout, env=env, check=False
        )
        if done.returncode == 0:
            found = re.search(r"hash (\w+)", done.stdout)
            need(found, f"no hash at the end of {' '.join(wrap)}: {done.stdout} {done.stderr}")
            got = found.group(1)
            need(got == self.bare_hash(options.get("steps", 100), options.get("first", 0)), f"weights changed: {done.stdout}")
        return done

    def bare_hash(self, steps, first=0):
        key = (steps, first)
        if key not in self.bare_hashes:
            line = [os.path.join(self.bin, "survival_train"), "--bare", "--steps", str(steps), "--first", str(first)]
            out = subprocess.run(line, capture_output=True, text=True, check=True).stdout
            self.bare_hashes[key] = re.search(r"hash (\w+)", out).group(1)
        return self.bare_hashes[key]

    def check(self, out, log, smdebug=True):
        """What survival_check counted; a wrong value or sum is a break."""
        line = [os.path.join(self.bin, "survival_check"), log, out]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        words = done.stdout.split()
        counts = dict(zip(words[0::2], map(int, words[1::2])))
        need(done.returncode == 0, f"{out}: {done.stdout} {done.stderr}")
        if smdebug:
            self.trials.append(out)
        return counts

    def check_with_smdebug(self):
        if not self.trials:
            return None
        line = [self.python, os.path.join(self.source, "tests", "survival", "smdebug_check.py"), *self.trials]
        done = subprocess.run(line, capture_output=True, text=True, timeout=3600, check=False)
        need(done.stdout.strip(), done.stderr[-500:])
        answer = json.loads(done.stdout.strip().splitlines()[-1])
        need(not answer["problems"], f"smdebug: {answer['problems']}")
        self.trials = []
        return answer["values"]


def numbers(done):
    return {key: float(value) for key, value in re.findall(r"(seconds|close|rss_kib|due|committed|dropped) ([\d.]+)", done.stdout)}


def health(out):
    with open(os.path.join(out, "tornasole", "worker_0_health.json"), encoding="utf-8") as file:
        return json.load(file)


def debris(out):
    return [os.path.join(d, f) for d, _, files in os.walk(out) for f in files if f.endswith(".tmp")]


def snapshot(out):
    """Every published file with its bytes."""
    files = {}
    for directory, _, names in os.walk(out):
        for name in names:
            path = os.path.join(directory, name)
            if name.endswith((".tfevents", ".json")) and "/index/" in path or "/events/" in path and not name.endswith(".tmp"):
                try:
                    with open(path, "rb") as file:
                        files[os.path.relpath(path, out)] = file.read()
                except FileNotFoundError:
                    pass  # a run goes on, and has moved it since
    return files


def tree(directory):
    """Every file with its content."""
    found = {}
    for root, _, names in os.walk(directory):
        for name in names:
            with open(os.path.join(root, name), "rb") as file:
                found[os.path.join(root, name)] = file.read()
    return found


def tornasole(world, *arguments, timeout=300):
    line = [os.path.join(world.bin, "tornasole"), *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=timeout, check=False)


def logged_steps(log):
    """The steps that the training has finished so far."""
    if not os.path.exists(log):
        return []
    with open(log, encoding="utf-8") as file:
        return [int(line) for line in file if line.endswith("\n")]


def killed_run(world, seconds, **options):
    """A run that died about so many seconds after it began, when a step that it had finished was on disk.

    Its directory, its log, that step, and how long after its end the step was seen there."""
    out, log = world.new_run()
    line = world.command(out, log, steps=10_000_000, when_full="block", **{"bytes": 4000, **options})
    process = world.start(line, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: logged_steps(log), process, "a finished step")
        time.sleep(seconds)
        last = logged_steps(log)[-1]
        start = time.monotonic()
        index = os.path.join(out, "index", f"{last // 1000:09}", f"{last:012}_worker_0.json")
        wait_until(lambda: os.path.exists(index), process, f"step {last} on disk")
        seen_after = time.monotonic() - start
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    return out, log, last, seen_after

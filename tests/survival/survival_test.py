"""The survival rows: training goes on, whatever happens to the capture.

    survival_test.py --bin DIR --source DIR --set short|long [--row N] [--json FILE]

Each row is a function named after it. It returns its figures, prints them and fails by raising Broken. The figures of all
rows go to --json. In every row: the weights equal those of the bare run, no value is wrong, due = committed + dropped,
and the real smdebug opens what is committed.
"""
import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LIMIT_FACTOR = 3  # promised limits are asserted at three times their value


class Broken(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Broken(text)


class World:
    """Where the programs are, and a scratch directory for one row."""

    def __init__(self, args, scratch):
        self.bin, self.source, self.scratch = args.bin, args.source, scratch
        self.python = os.path.join(args.source, ".venvs", "smdebug", "bin", "python")
        self.count = 0
        self.trials = []
        self.bare_hashes = {}

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

    def train(self, out, log, wrap=(), timeout=120, env=None, **options):
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
        done = subprocess.run(line, capture_output=True, text=True, timeout=600, check=False)
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
                with open(path, "rb") as file:
                    files[os.path.relpath(path, out)] = file.read()
    return files


# ---- 1 to 7: death of the process


def kill_at_random(world, runs, seed=1):
    chance = random.Random(seed)
    totals = {"runs": runs, "finished": 0, "committed": 0, "damaged": 0, "partial": 0}
    for run in range(runs):
        out, log = world.new_run()
        think = chance.choice([0, 1, 5, 20, 40])
        process = subprocess.Popen(
            world.command(out, log, steps=10_000_000, think_ms=think, bytes=4000), stderr=subprocess.DEVNULL
        )
        time.sleep(chance.uniform(0.1, 1.0))  # the moment of death is the parameter of this row
        before = snapshot(out)
        process.send_signal(signal.SIGKILL)
        process.wait()
        after = snapshot(out)
        for path, content in before.items():
            need(after.get(path) == content, f"{path}: a committed file was lost or changed")
        # smdebug is slow: it reads the shorter ones.
        counts = world.check(out, log, smdebug=think >= 5 and run % 2 == 0)
        for key in ("finished", "committed", "damaged", "partial"):
            totals[key] += counts[key]
    totals["lost_committed"] = 0
    return totals


def row_1(world):
    """kill -9 at a random moment, 20 runs."""
    return kill_at_random(world, 20)


def row_1_full(world):
    """kill -9 at a random moment, 200 runs."""
    return kill_at_random(world, 200, seed=2)


def tornasole(world, *arguments, timeout=120):
    line = [os.path.join(world.bin, "tornasole"), *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=timeout, check=False)


def killed_run(world, seconds, **options):
    """A run that died after so many seconds: its directory, its log, and the last step that was finished well before.

    What is drained leaves the process within 100 ms; a busy machine gets three times that to drain it."""
    out, log = world.new_run()
    line = world.command(out, log, steps=10_000_000, bytes=4000, **options)
    process = subprocess.Popen(line, stderr=subprocess.DEVNULL)
    time.sleep(seconds - 0.3)
    with open(log, encoding="utf-8") as file:
        finished = file.read().split()
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return out, log, int(finished[-1]) if finished else -1


def tree(directory):
    """Every file with its content."""
    found = {}
    for root, _, names in os.walk(directory):
        for name in names:
            with open(os.path.join(root, name), "rb") as file:
                found[os.path.join(root, name)] = file.read()
    return found


def row_2(world):
    """salvage: repair twice what kill -9 left, then verify."""
    chance = random.Random(3)
    figures = {"runs": 10, "steps": 0, "missing": 0, "changed_by_second": 0}
    for _ in range(figures["runs"]):
        out, log, last = killed_run(world, chance.uniform(0.8, 1.5), think_ms=chance.choice([20, 40]))
        need(tornasole(world, "repair", out, "--json").returncode == 0, f"repair of {out}")
        first = tree(out)
        again = tornasole(world, "repair", out, "--json")
        need(again.returncode == 0, f"second repair: {again.stdout} {again.stderr}")
        need(tree(out) == first, "the second repair changed something")
        verified = tornasole(world, "verify", out, "--json")
        need(verified.returncode == 0, f"verify: {verified.stdout[-500:]} {verified.stderr}")
        there = {int(name.split("_")[0]) for path in first for name in [os.path.basename(path)]
                 if "/index/" in path and name.endswith(".json")}
        figures["steps"] += len(there)
        missing = set(range(last + 1)) - there
        figures["missing"] += len(missing)
        need(not missing, f"steps {sorted(missing)[:5]} finished well before the kill are missing")
        world.check(out, log, smdebug=False)
    return figures


def row_8(world):
    """a reader of a dead run ends and says why."""
    out, _, _ = killed_run(world, 0.8, think_ms=5)
    start = time.monotonic()
    done = tornasole(world, "tail", out, "--poll", "0.5")
    seconds = time.monotonic() - start
    need(done.returncode == 1 and "dead" in done.stdout + done.stderr, f"tail: {done.returncode} {done.stdout} {done.stderr}")
    need(seconds <= 5, f"it took {seconds:.1f} s")
    return {"seconds": round(seconds, 2)}


def row_8_other_host(world):
    """the same for a run of another host: the heartbeat tells."""
    out, _, _ = killed_run(world, 0.8, think_ms=5)
    health = os.path.join(out, "tornasole", "worker_0_health.json")
    with open(health, encoding="utf-8") as file:
        content = json.load(file)
    with open(health, "w", encoding="utf-8") as file:
        json.dump({**content, "host": "elsewhere"}, file)
    start = time.monotonic()
    done = tornasole(world, "tail", out, "--poll", "0.5", timeout=120)
    seconds = time.monotonic() - start
    need(done.returncode == 1 and "dead" in done.stdout + done.stderr, f"tail: {done.returncode} {done.stdout} {done.stderr}")
    need(seconds <= 65, f"it took {seconds:.1f} s")
    return {"seconds": round(seconds, 1)}


def live_readers(world, seconds, ours, theirs):
    out, log = world.new_run()
    think = 20
    writer = subprocess.Popen(world.command(out, log, steps=seconds * 1000 // think, think_ms=think, bytes=4000),
                              stdout=subprocess.PIPE, text=True)
    readers = [[os.path.join(world.bin, "live_reader"), out]] * ours
    readers += [[world.python, os.path.join(world.source, "tests/survival/live_smdebug.py"), out]] * theirs
    processes = [subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for line in readers]
    writer.communicate(timeout=seconds * 3 + 60)
    figures = {"readers": len(readers), "steps": 0, "violations": 0, "p50_ms": 0, "p99_ms": 0}
    for line, process in zip(readers, processes):
        stdout, stderr = process.communicate(timeout=120)
        need(process.returncode == 0, f"{os.path.basename(line[-2])}: {stdout} {stderr[-500:]}")
        answer = json.loads(stdout)
        figures["steps"] = answer["steps"]
        need(answer["steps"] == seconds * 1000 // think, f"{os.path.basename(line[-2])} saw {answer['steps']} steps")
        for key in ("p50_ms", "p99_ms"):
            figures[key] = max(figures[key], answer.get(key, 0))
    return figures


def row_36(world):
    """live readers for a minute: four of ours, two of smdebug."""
    return live_readers(world, 60, ours=4, theirs=2)


def row_36_full(world):
    """live readers for ten minutes: four of ours, four of smdebug."""
    return live_readers(world, 600, ours=4, theirs=4)


SYSTEM_CALLS = ("openat", "openat2", "write", "writev", "renameat2", "renameat", "mkdirat", "fsync", "close")


def row_3(world):
    """kill at every system call of capture."""
    points = 0
    for call in SYSTEM_CALLS:
        for n in range(1, 400):
            out, log = world.new_run()
            wrap = ["strace", "-f", "-o", "/dev/null", "-e", f"inject={call}:signal=KILL:when={n}"]
            done = world.train(out, log, wrap=wrap, steps=12, fsync="step")
            points += 1
            if os.path.isdir(out):
                world.check(out, log, smdebug=points % 10 == 0)
            shutil.rmtree(out, ignore_errors=True) if points % 10 else None
            if done.returncode == 0:
                break
    return {"points": points}


def row_4(world):
    """power loss: unsynced writes torn and reordered."""
    figures = {}
    for policy in ("none", "step", "1s"):
        lost = committed = 0
        for seed in range(1000):
            out, log = world.new_run()
            world.train(out, log, steps=12, fsync=policy, store=f"crash:{seed}@{20 + seed % 60}")
            if not os.path.isdir(out):
                continue
            counts = subprocess.run(
                [os.path.join(world.bin, "survival_check"), log, out], capture_output=True, text=True, check=False
            ).stdout.split()
            counts = dict(zip(counts[0::2], map(int, counts[1::2])))
            committed += counts["readable"]
            lost += counts["damaged"]
            shutil.rmtree(out)
        figures[policy] = {"seeds": 1000, "readable": committed, "noticed_damage": lost}
        if policy == "step":
            need(lost == 0, f"fsync=step: {lost} published steps damaged by power loss")
    return figures


def row_5(world):
    """SIGTERM, SIGHUP, SIGINT; as they are, and with flush_on_signal."""
    figures = {}
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        for flush in (False, True):
            worst, lost = 0.0, 0
            for i in range(50):
                out, log = world.new_run()
                options = {"flush_on_signal": True} if flush else {}
                process = subprocess.Popen(
                    world.command(out, log, steps=10_000_000, think_ms=1 + i % 7, **options), stderr=subprocess.DEVNULL
                )
                time.sleep(0.05 + 0.005 * i)  # the moment of the signal is the parameter of this row
                process.send_signal(number)
                start = time.monotonic()
                process.wait(timeout=30)
                worst = max(worst, time.monotonic() - start)
                need(process.returncode == -number, f"ended with {process.returncode}, not by signal {number}")
                counts = world.check(out, log, smdebug=i % 10 == 0) if os.path.isdir(out) else {"lost": 0}
                if flush:
                    lost += counts["lost"]
            figures[f"{number.name} {'flush' if flush else 'default'}"] = {"exit_s": round(worst, 3), "lost": lost}
            need(worst <= 2 * LIMIT_FACTOR, f"exit took {worst} s")
            need(lost == 0, f"{lost} finished steps lost though flushed")
    return figures


def row_6(world):
    """exception in the loop and in the forward pass, abort, _exit."""
    figures = {}
    for end, runs in (("exception", 20), ("forward", 20), ("abort", 5), ("_exit", 5)):
        lost = partial = 0
        for i in range(runs):
            out, log = world.new_run()
            done = world.train(out, log, steps=30, end=end, end_step=5 + i, think_ms=1)
            need(done.returncode != 0, "it should have ended early")
            counts = world.check(out, log, smdebug=i % 5 == 0)
            if end in ("exception", "forward"):
                lost += counts["lost"]
                partial += counts["partial"]
                need(health(out)["state"] == "failed", "the run is not recorded as failed")
        if end in ("exception", "forward"):
            need(lost == 0, f"{lost} finished steps lost")
            need(partial == runs, f"{partial} of {runs} cut steps are marked partial")
        figures[end] = {"runs": runs, "lost": lost, "partial": partial}
    return figures


def row_7(world):
    """restart into the directory of a dead run, and of a live one."""
    out, log = world.new_run()
    process = subprocess.Popen(world.command(out, log, steps=10_000_000, think_ms=2), stderr=subprocess.DEVNULL)
    while not os.path.isdir(os.path.join(out, "index")):
        need(process.poll() is None, "the first run ended by itself")
    refused = world.train(out, log + "b", steps=5)
    need(refused.returncode == 5, f"a live run was not refused: {refused.stdout}")
    need(str(process.pid) in refused.stderr and os.uname().nodename in refused.stderr, refused.stderr)
    process.kill()
    process.wait()
    before = snapshot(out)
    again = world.train(out, log + "c", steps=5)
    need(again.returncode == 0, again.stderr)
    after = snapshot(os.path.join(out, "attempts", "1"))
    need(before == after, "the old attempt was changed")
    world.check(os.path.join(out, "attempts", "1"), log)
    world.check(out, log + "c")
    resumed, log2 = world.new_run()
    process = subprocess.Popen(world.command(resumed, log2, steps=10_000_000, think_ms=2), stderr=subprocess.DEVNULL)
    while len(snapshot(resumed)) < 10:
        need(process.poll() is None, "the first run ended by itself")
    process.kill()
    process.wait()
    before = snapshot(resumed)
    need(world.train(resumed, log2 + "b", steps=5, resume=True).returncode == 0, "resume was refused")
    after = snapshot(resumed)
    need(all(after.get(path) == content for path, content in before.items()), "a published step was replaced")
    return {"kept_files": len(before), "after_resume": len(after)}


# ---- 9 to 16: storage


def row_9(world):
    """full disk: a small file system that fills up, then is emptied."""
    mount = world.path("disk")
    os.mkdir(mount)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", mount], capture_output=True, check=False)
    if mounted.returncode != 0:
        out, log = world.new_run()
        done = world.train(out, log, steps=2000, store="fail:200+")
        need(done.returncode == 0, done.stderr)
        return {"method": "failing store: mounting is forbidden here", **numbers(done)}
    try:
        out, log = os.path.join(mount, "run"), world.path("log9")
        bare = numbers(world.train(out, log, steps=10_000, bare=True))["seconds"]
        done = world.train(out, log, steps=10_000, bytes=4000)
        need(done.returncode == 0, done.stderr)
        counts = world.check(out, log, smdebug=False)
        need(counts["dropped"] > 0 or numbers(done)["dropped"] > 0, "the disk never filled up")
        left = debris(out)
        need(not left, f"debris: {left[:3]}")
        world.trials.append(out)
        values = world.check_with_smdebug()
        return {"bare_s": bare, **numbers(done), "debris": len(left), "values_read": values}
    finally:
        subprocess.run(["umount", "-l", mount], check=False)


def row_9_recovery(world):
    """space comes back in mid-run: capture is on again within 65 s."""
    mount = world.path("disk")
    os.mkdir(mount)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", mount], check=True)
    try:
        filler = os.path.join(mount, "filler")
        out, log = os.path.join(mount, "run"), world.path("log9r")
        process = subprocess.Popen(world.command(out, log, steps=10_000_000, think_ms=50, bytes=4000), stderr=subprocess.DEVNULL)
        while not os.path.isdir(os.path.join(out, "index")):
            need(process.poll() is None, "the run ended by itself")
        try:
            with open(filler, "wb") as file:
                while True:
                    file.write(b"x" * 4096)
        except OSError:
            pass  # full, as wanted
        time.sleep(2)  # capture meets the full disk, and goes off after five steps
        os.remove(filler)
        start, committed = time.monotonic(), len(snapshot(out))
        while len(snapshot(out)) <= committed and time.monotonic() - start < 65 * LIMIT_FACTOR:
            time.sleep(0.2)  # waiting for the retry that is promised within a minute
        back = time.monotonic() - start
        process.terminate()
        process.wait()
        need(back < 65 * LIMIT_FACTOR, "capture did not come back")
        return {"back_after_s": round(back, 1)}
    finally:
        subprocess.run(["umount", "-l", mount], check=False)


ERRORS = ("ENOSPC", "EIO", "EACCES", "EMFILE", "EINTR", "EDQUOT", "ESTALE")


def calls_made(world, call):
    """How often a run that nobody disturbs makes this system call."""
    out, log = world.new_run()
    trace = out + ".strace"
    world.train(out, log, wrap=["strace", "-f", "-o", trace, "-e", f"trace={call}"], steps=12, fsync="step")
    with open(trace, encoding="utf-8", errors="replace") as file:
        return sum(f" {call}(" in line for line in file)


def row_10(world):
    """an I/O error at the n-th system call, once and from then on."""
    points = hurt = 0
    for call in SYSTEM_CALLS:
        last = min(200, calls_made(world, call))
        for error in ERRORS:
            # The two errors of a failing disk at every call, the others, which take the same ways, at every third.
            stride = 1 if error in ("ENOSPC", "EIO") else 3
            for n, when in ((n, when) for n in range(1, last + 1, stride) for when in ("", "+")):
                out, log = world.new_run()
                wrap = ["strace", "-f", "-o", "/dev/null", "-e", f"inject={call}:error={error}:when={n}{when}"]
                done = world.train(out, log, wrap=wrap, steps=12, fsync="step", timeout=60)
                points += 1
                # 127: the loader found no library. 9: the log of the test program. 1 and 5: set-up refused.
                need(done.returncode in (0, 1, 5, 9, 127), f"{call} {error} {n}{when}: {done.returncode} {done.stderr[-300:]}")
                hurt += done.returncode != 0
                if done.returncode == 0 and os.path.isdir(out):
                    world.check(out, log, smdebug=False)
                shutil.rmtree(out, ignore_errors=True)
    need(points > 2 * hurt, f"{hurt} of {points} runs never came to capture")
    return {"points": points, "hurt_before_capture": hurt}


def row_11(world):
    """an allocation fails, the n-th and from the n-th on."""
    points = dropped = 0
    for lasting in (False, True):
        for n in [*range(1, 120), *range(120, 5000, 97)]:
            out, log = world.new_run()
            options = {"fail_new_lasting": True} if lasting else {}
            line = world.command(out, log, steps=12, fail_new=n, **options)
            line[0] = os.path.join(world.bin, "survival_alloc")
            done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
            need(done.returncode == 0, f"allocation {n}{'+' if lasting else ''}: {done.returncode} {done.stderr[-300:]}")
            need(world.bare_hash(12) in done.stdout, "weights changed")
            points += 1
            dropped += int(numbers(done)["dropped"])
            if os.path.isdir(out):
                world.check(out, log, smdebug=False)
            shutil.rmtree(out, ignore_errors=True)
    return {"points": points, "dropped_steps": dropped}


def row_12(world):
    """path is a file, below a file, not writable; directory removed in mid-run."""
    figures = {}
    plain = world.path("plain")
    with open(plain, "w", encoding="utf-8") as file:
        file.write("mine")
    for what, out in (("a file", plain), ("below a file", os.path.join(plain, "run"))):
        done = world.train(out, world.path("log12"), steps=5)
        need(done.returncode == 5 and plain in done.stderr, f"{what}: {done.returncode} {done.stderr}")
        figures[what] = "refused"
    with open(plain, encoding="utf-8") as file:
        need(file.read() == "mine", "the file was changed")
    if os.geteuid() == 0:
        locked = world.path("locked")
        os.mkdir(locked, 0o755)
        os.chmod(world.scratch, 0o755)
        line = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *world.command(os.path.join(locked, "run"), "/dev/null", steps=5)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        need(done.returncode == 5 and locked in done.stderr, f"not writable: {done.returncode} {done.stderr}")
        figures["not writable"] = "refused"
    out, log = world.new_run()
    process = subprocess.Popen(world.command(out, log, steps=400, think_ms=2), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not os.path.isdir(os.path.join(out, "index")):
        need(process.poll() is None, "the run ended by itself")
    os.rename(out, out + ".gone")
    while os.path.exists(out + ".gone"):
        shutil.rmtree(out + ".gone", ignore_errors=True)  # the run may still be writing below it
    text, errors = process.communicate(timeout=60)
    need(process.returncode == 0, f"removed in mid-run: {process.returncode} {errors}")
    need(world.bare_hash(400) in text, "weights changed")
    need(errors.count("error") <= 4, f"reported more than once a cause: {errors}")
    figures["removed in mid-run"] = re.search(r"committed \d+ dropped \d+", text).group(0)
    return figures


def row_13(world):
    """a slow store, drop and block."""
    figures = {}
    bare = numbers(world.train("x", "/dev/null", steps=2000, think_ms=3, bare=True))
    for policy in ("drop", "block"):
        out, log = world.new_run()
        steps = 2000 if policy == "drop" else 40
        rate = "1MB/s" if policy == "drop" else "10MB/s"
        done = world.train(out, log, steps=steps, think_ms=3, tensors=1, bytes=700_000, store=f"slow:{rate}", when_full=policy, queue_bytes=32 << 20, timeout=900)
        need(done.returncode == 0, done.stderr)
        figures[policy] = numbers(done)
        need(health(out)["when_full"] == policy, "the policy is not in the health file")
        if policy == "drop":
            figures["slow_down_percent"] = round(100 * (figures[policy]["seconds"] / bare["seconds"] - 1), 2)
        else:
            need(health(out)["dropped"].get("queue_full", 0) == 0, "block lost steps")
        world.check(out, log, smdebug=False)
    return figures


def row_14(world):
    """a store that hangs for ever."""
    out, log = world.new_run()
    done = world.train(out, log, steps=200, store="hang:50", timeout=60)
    need(done.returncode == 0, done.stderr)
    figures = numbers(done)
    need(figures["close"] <= 5 * LIMIT_FACTOR, f"close took {figures['close']} s")
    need(figures["due"] == figures["committed"] + figures["dropped"], "the sum is wrong")
    world.check(out, log)
    return figures


def row_15(world):
    """large values: 1 GiB and 2.2 GiB."""
    figures = {}
    for what, size in (("1 GiB", 1 << 30), ("2.2 GiB", int(2.2 * (1 << 30)))):
        out, log = world.new_run()
        bare = size / 1024  # the value itself, in KiB
        done = world.train(out, log, steps=1, tensors=1, bytes=size, timeout=300)
        need(done.returncode == 0, done.stderr)
        figures[what] = {**numbers(done), "extra_rss_mib": round((numbers(done)["rss_kib"] - bare) / 1024)}
        state = health(out)
        if size < 1 << 31:
            world.check(out, log, smdebug=False)
        else:
            need(state["dropped_values"].get("too_large") == 1, f"{state}")
        shutil.rmtree(out)
    return figures


def row_16(world):
    """many values: 100,000 tensors in a step; 1000 by 1000."""
    figures = {}
    for what, steps, tensors in (("1 x 100000", 1, 100_000), ("1000 x 1000", 1000, 1000)):
        out, log = world.new_run()
        done = world.train(out, log, steps=steps, tensors=tensors, bytes=64, when_full="block", timeout=900)
        need(done.returncode == 0, done.stderr)
        start = time.monotonic()
        counts = world.check(out, log, smdebug=False)
        need(counts["lost"] == 0, f"{counts}")
        result = numbers(done)
        figures[what] = {
            "write_per_s": round(steps * tensors / (result["seconds"] + result["close"])),
            "read_per_s": round(steps * tensors / (time.monotonic() - start)),
        }
        shutil.rmtree(out)
    return figures


# ---- 29 to 39: values, names, processes; the tests of the folders do these, here they are counted


def run_tests(world, program, pattern):
    line = [os.path.join(world.bin, program), f"--gtest_filter={pattern}", "--gtest_brief=1"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=600, check=False)
    ran = int(re.search(r"(\d+) tests? from", done.stdout).group(1))
    need(done.returncode == 0 and ran > 0, f"{program} {pattern}: {done.stdout[-800:]}")
    return {"tests": ran}


def row_29(world):
    """all types, bit-exact."""
    return run_tests(world, "capture_test", "*BitExact*")


def row_32(world):
    """names, the writing half."""
    return run_tests(world, "capture_test", "*BadNames*:*WorkerNames*:*CollectionNames*")


def row_33(world):
    """patterns."""
    return run_tests(world, "pattern_test", "Pattern.*:Limits.*")


def row_34(world):
    """configuration, mutated."""
    return run_tests(world, "config_test", "Mutations.*")


def row_35(world):
    """links and permissions."""
    return run_tests(world, "store_test", "*LocalPermissions*:*Traps*:*Links*")


def row_37(world):
    """fork: children neither write nor hang."""
    out, log = world.new_run()
    done = world.train(out, log, steps=50, fork=8, timeout=60)
    need(done.returncode == 0 and "child" not in done.stderr, done.stderr)
    counts = world.check(out, log)
    need(counts["lost"] == 0, f"{counts}")
    return numbers(done)


def row_39(world):
    """16 threads, one recorder; two recorders."""
    out, log = world.new_run()
    done = world.train(out, log, steps=100, threads=16, tensors=64, bytes=20_000, when_full="block")
    need(done.returncode == 0, done.stderr)
    counts = world.check(out, log)
    need(counts["lost"] == 0, f"{counts}")
    return {**numbers(done), **run_tests(world, "capture_test", "*Threads*:*TwoHooks*")}


SHORT = [row_1, row_2, row_6, row_7, row_8, row_9, row_12, row_14, row_29, row_32, row_33, row_34, row_35, row_36, row_37, row_39]
LONG = [row_1_full, row_3, row_4, row_5, row_8_other_host, row_9_recovery, row_10, row_11, row_13, row_15, row_16, row_36_full]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--set", choices=("short", "long"), default="short")
    parser.add_argument("--row", help="only the row of this function name")
    parser.add_argument("--json")
    args = parser.parse_args()
    args.bin, args.source = os.path.abspath(args.bin), os.path.abspath(args.source)
    if not os.path.exists(os.path.join(args.source, ".venvs", "smdebug", "bin", "python")):
        print("skipped: the environment smdebug is missing (make env NAME=smdebug)")
        return 1 if os.environ.get("CI") else 77
    rows = [row for row in SHORT + LONG if row.__name__ == args.row] if args.row else SHORT if args.set == "short" else LONG
    results, failed = {}, 0
    for row in rows:
        scratch = tempfile.mkdtemp(prefix="survival-")
        world = World(args, scratch)
        start = time.monotonic()
        try:
            figures = row(world)
            figures["smdebug_values"] = world.check_with_smdebug()
            verdict = "ok"
        except (Broken, subprocess.TimeoutExpired) as problem:
            figures, verdict, failed = {"problem": str(problem)}, "BROKEN", failed + 1
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        seconds = round(time.monotonic() - start, 1)
        results[row.__name__] = {"what": row.__doc__, "verdict": verdict, "seconds": seconds, **figures}
        print(f"{verdict:6} {row.__name__:16} {seconds:6.1f} s  {row.__doc__}  {json.dumps(figures)}", flush=True)
    if args.json:
        known = {}
        if os.path.exists(args.json):
            with open(args.json, encoding="utf-8") as file:
                known = json.load(file)
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({**known, **results}, file, indent=1)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

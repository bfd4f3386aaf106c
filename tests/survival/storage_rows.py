"""Rows 9 to 16: a store that is full, broken, slow or hangs, and values that are large or many."""

import os
import re
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from survival_world import HURT_AT, LIMIT_FACTOR, debris, health, need, numbers, snapshot, wait_until

ERRORS = ("ENOSPC", "EIO", "EACCES", "EMFILE", "EINTR", "EDQUOT", "ESTALE")


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
        bare = numbers(world.train(out, log, steps=10_000, bytes=4000, bare=True))["seconds"]
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
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", mount], capture_output=True, check=False)
    if mounted.returncode != 0:
        return {"method": "none: mounting is forbidden here"}
    try:
        filler = os.path.join(mount, "filler")
        out, log = os.path.join(mount, "run"), world.path("log9r")
        line = world.command(out, log, steps=10_000_000, think_ms=50, bytes=4000)
        process = world.start(line, stderr=subprocess.DEVNULL)
        wait_until(lambda: os.path.isdir(os.path.join(out, "index")), process, "index")
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


def calls_made(world, call, options):
    """How often a run that nobody disturbs makes this system call."""
    out, log = world.new_run()
    trace = out + ".strace"
    world.train(out, log, wrap=["strace", "-f", "-o", trace, "-e", f"trace={call}"], fsync="step", **options)
    with open(trace, encoding="utf-8", errors="replace") as file:
        return sum(f" {call}(" in line for line in file)


def row_10(world):
    """an I/O error at the n-th system call, once and from then on."""
    points = hurt = 0
    for call, options in HURT_AT:
        last = min(200, calls_made(world, call, options))
        for error in ERRORS:
            # The two errors of a failing disk at every call, the others, which take the same ways, at every third.
            stride = 1 if error in ("ENOSPC", "EIO") else 3
            for n, when in ((n, when) for n in range(1, last + 1, stride) for when in ("", "+")):
                out, log = world.new_run()
                wrap = ["strace", "-f", "-o", "/dev/null", "-e", f"inject={call}:error={error}:when={n}{when}"]
                done = world.train(out, log, wrap=wrap, fsync="step", **options)
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
    bare = world.bare_hash(12)

    def train(out, log, n, is_lasting):
        line = world.command(out, log, steps=12, fail_new=n, **({"fail_new_lasting": True} if is_lasting else {}))
        line[0] = os.path.join(world.bin, "survival_alloc")
        done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
        need(done.returncode == 0, f"allocation {n}{'+' * is_lasting}: {done.returncode} {done.stderr[-300:]}")
        need(bare in done.stdout, "weights changed")
        if os.path.isdir(out):
            world.check(out, log, smdebug=False)
        shutil.rmtree(out, ignore_errors=True)
        return int(numbers(done)["dropped"])

    points = [(n, lasting) for lasting in (False, True) for n in [*range(1, 120), *range(120, 2200, 13)]]
    points += [(n, lasting) for lasting in (False, True) for n in range(2200, 5000, 97)]
    # Side by side: what the threads of one process do to each other depends on when they get to run.
    with ThreadPoolExecutor(max_workers=6) as pool:
        dropped = list(pool.map(lambda place, point: train(*place, *point), [world.new_run() for _ in points], points))
    return {"points": len(points), "dropped_steps": sum(dropped)}


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
    line = world.command(out, log, steps=2000, think_ms=2)
    process = world.start(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: os.path.isdir(os.path.join(out, "index")), process, "index")
    os.rename(out, out + ".gone")
    while os.path.exists(out + ".gone"):
        shutil.rmtree(out + ".gone", ignore_errors=True)  # the run may still be writing below it
    text, errors = process.communicate(timeout=600)
    need(process.returncode == 0, f"removed in mid-run: {process.returncode} {errors}")
    need(world.bare_hash(2000) in text, "weights changed")
    need(errors.count("error") <= 4, f"reported more than once a cause: {errors}")
    figures["removed in mid-run"] = re.search(r"committed \d+ dropped \d+", text).group(0)
    return figures


def row_13(world):
    """a slow store, drop and block."""
    figures = {}
    # The bare run makes the same values: making them is the training's work, saving them is ours.
    bare = numbers(world.train("x", "/dev/null", steps=2000, think_ms=3, tensors=1, bytes=700_000, bare=True))
    for policy in ("drop", "block"):
        out, log = world.new_run()
        steps = 2000 if policy == "drop" else 40
        rate = "1MB/s" if policy == "drop" else "10MB/s"
        done = world.train(out, log, steps=steps, think_ms=3, tensors=1, bytes=700_000, store=f"slow:{rate}", when_full=policy, queue_bytes=32 << 20,
                           close_wait=5 if policy == "drop" else 300, timeout=900)
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
    done = world.train(out, log, steps=200, store="hang:50", close_wait=5)
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
        done = world.train(out, log, steps=1, tensors=1, bytes=size)
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

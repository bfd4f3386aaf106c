"""Rows 1 to 8: death of the process, and what the next one finds."""

import json
import os
import random
import shutil
import signal
import subprocess
import time

from survival_world import HURT_AT, LARGE_BYTES, LIMIT_FACTOR, health, killed_run, need, snapshot, tornasole, tree, wait_until


def kill_at_random(world, runs, seed=1):
    chance = random.Random(seed)
    totals = {"runs": runs, "finished": 0, "committed": 0, "damaged": 0, "partial": 0}
    for run in range(runs):
        out, log = world.new_run()
        think = chance.choice([0, 1, 5, 20, 40])
        process = world.start(
            world.command(
                out, log, steps=10_000_000, think_ms=think, bytes=LARGE_BYTES if think >= 20 else 4000
            ),
            stderr=subprocess.DEVNULL,
        )
        wait_until(lambda out=out: os.path.isdir(out), process, "directory")
        time.sleep(chance.uniform(0, 0.9))  # the moment of death is the parameter of this row
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


def row_2(world):
    """salvage: repair twice what kill -9 left, then verify."""
    chance = random.Random(3)
    figures = {"runs": 10, "steps": 0, "missing": 0, "changed_by_second": 0, "on_disk_after_ms": 0}
    for _ in range(figures["runs"]):
        out, log, last, seconds = killed_run(
            world, chance.uniform(0.5, 1.2), think_ms=chance.choice([20, 40]), bytes=chance.choice([4000, LARGE_BYTES])
        )
        figures["on_disk_after_ms"] = max(figures["on_disk_after_ms"], round(seconds * 1000))
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
        need(not missing, f"steps {sorted(missing)[:5]} were finished and on disk before the kill, and are missing")
        world.check(out, log, smdebug=False)
    return figures


def row_3(world):
    """kill at every system call of capture."""
    points = 0
    for call, options in HURT_AT:
        for n in range(1, 400):
            out, log = world.new_run()
            wrap = ["strace", "-f", "-o", "/dev/null", "-e", f"inject={call}:signal=KILL:when={n}"]
            done = world.train(out, log, wrap=wrap, fsync="step", **options)
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
                process = world.start(
                    world.command(out, log, steps=10_000_000, think_ms=1 + i % 7, **options), stderr=subprocess.DEVNULL
                )
                time.sleep(0.05 + 0.005 * i)  # the moment of the signal is the parameter of this row
                process.send_signal(number)
                start = time.monotonic()
                process.wait(timeout=120)
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
    process = world.start(world.command(out, log, steps=10_000_000, think_ms=2), stderr=subprocess.DEVNULL)
    wait_until(lambda: os.path.isdir(os.path.join(out, "index")), process, "index")
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
    process = world.start(world.command(resumed, log2, steps=10_000_000, think_ms=2), stderr=subprocess.DEVNULL)
    wait_until(lambda: len(snapshot(resumed)) >= 10, process, "ten files")
    process.kill()
    process.wait()
    before = snapshot(resumed)
    # Values that no index names are no step: whoever goes on may write them anew.
    stems = {os.path.basename(path)[: -len(".json")] for path in before if path.endswith(".json")}
    before = {path: content for path, content in before.items() if os.path.splitext(os.path.basename(path))[0] in stems}
    need(before, "nothing was published")
    need(world.train(resumed, log2 + "b", steps=5, resume=True).returncode == 0, "resume was refused")
    after = snapshot(resumed)
    need(all(after.get(path) == content for path, content in before.items()), "a published step was replaced")
    return {"kept_files": len(before), "after_resume": len(after)}


def row_8(world):
    """a reader of a dead run ends and says why."""
    out, *_ = killed_run(world, 0.5, think_ms=5)
    start = time.monotonic()
    done = tornasole(world, "tail", out, "--poll", "0.5")
    seconds = time.monotonic() - start
    need(done.returncode == 1 and "dead" in done.stdout + done.stderr, f"tail: {done.returncode} {done.stdout} {done.stderr}")
    need(seconds <= 5 * LIMIT_FACTOR, f"it took {seconds:.1f} s")
    return {"seconds": round(seconds, 2)}


def row_8_other_host(world):
    """the same for a run of another host: the heartbeat tells."""
    out, *_ = killed_run(world, 0.5, think_ms=5)
    health = os.path.join(out, "tornasole", "worker_0_health.json")
    with open(health, encoding="utf-8") as file:
        content = json.load(file)
    with open(health, "w", encoding="utf-8") as file:
        json.dump({**content, "host": "elsewhere"}, file)
    start = time.monotonic()
    done = tornasole(world, "tail", out, "--poll", "0.5", timeout=300)
    seconds = time.monotonic() - start
    need(done.returncode == 1 and "dead" in done.stdout + done.stderr, f"tail: {done.returncode} {done.stdout} {done.stderr}")
    need(seconds <= 65 * LIMIT_FACTOR, f"it took {seconds:.1f} s")
    return {"seconds": round(seconds, 1)}

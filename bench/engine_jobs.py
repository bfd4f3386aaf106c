"""The engine beside smdebug: writing, reading, statistics, patterns."""

import statistics
import subprocess
import tempfile
import time

from runner import HERE, MIB, shown_time

KIB = 1024

# name, tensors a step, bytes of each, steps a turn, target of sync, target of async
WRITES = [
    ("1000 x 1 KiB", 1000, KIB, 8, 40, 50),
    ("100 x 100 KiB", 100, 100 * KIB, 8, 4, 30),
    ("10 x 10 MiB", 10, 10 * MIB, 4, 8, 30),
    ("1 x 100 MiB", 1, 100 * MIB, 4, 14, 30),
]
# what, job of trial_bench, trial, times faster, times less memory (None: not compared)
READS = [
    ("open", "open", "1,000 x 50", 15, 20),
    ("open", "open", "5,000 x 50", 35, 20),
    ("open", "open", "20,000 x 5", 150, None),
    ("values of one tensor", "values", "5,000 x 50", 8, None),
    ("sweep of one reduction", "sweep", "1,000 x 50 reduced", 100, None),
]


def turns(runner, mode, count, size, steps, repeats):
    """(ours, peer): the median of each, None if no turn of it counted."""
    results = {"ours": [], "peer": []}
    for _ in range(repeats):
        for who, answer in (("ours", runner.ours("write_bench", mode, count, size, steps)),
                            ("peer", runner.peer("write_peer.py", mode, count, size, steps))):
            if answer is not None:
                results[who] += answer["results"][1:] if len(answer["results"]) > 1 else answer["results"]
    return [statistics.median(results[who]) if results[who] else None for who in ("ours", "peer")]


def write(runner, mode, job, count, size, steps, target):
    ours, peer = turns(runner, mode, count, size, steps, runner.options.repeats)
    if ours is None or peer is None:
        runner.add(job, shown_time(ours), shown_time(peer), "-", f"{target} x", False)
    else:
        runner.add(job, shown_time(ours), shown_time(peer), f"{peer / ours:.1f} x", f"{target} x", peer / ours >= target)


def memory(runner, name):
    ours, peer = turns(runner, "memory", 1, 100 * MIB, 1, 1)
    if ours is not None and peer is not None:
        runner.add("extra memory, 1 x 100 MiB", f"{ours / MIB:.0f} MiB", f"{peer / MIB:.0f} MiB", f"{peer / ours:.1f} x",
                   "one copy", ours <= 1.15 * 100 * MIB)


def hot_path(runner, name):
    answers = [answer for answer in (runner.ours("hot_path_bench") for _ in range(runner.options.repeats)) if answer]
    if not answers:
        return
    for key, job, limit_ns in (("save_not_due", "save, nothing due", 20), ("step_not_due", "a step, nothing due", None),
                               ("scalar_due", "save of a number, due", 1000), ("save_scalar", "save_scalar", 1000)):
        nanoseconds = statistics.median(answer[key] for answer in answers)
        target = f"<= {limit_ns} ns" if limit_ns else "-"
        runner.add(job, f"{nanoseconds:.1f} ns", "-", "-", target, limit_ns is None or nanoseconds <= limit_ns)


def patterns(runner, name):
    """10,000 names met for the first time."""
    ours, peer, members = [], [], set()
    for _ in range(runner.options.repeats):
        for answer, results in ((runner.ours("patterns_bench"), ours), (runner.peer("patterns_peer.py"), peer)):
            if answer is not None:
                results.append(answer["seconds"])
                members.add(answer["members"])
    if len(members) > 1:
        runner.notes.append(f"patterns: the contenders found {sorted(members)} members, so they did not do the same work")
    if ours and peer:
        ours, peer = statistics.median(ours), statistics.median(peer)
        runner.add("10,000 names, first pass", shown_time(ours), shown_time(peer), f"{peer / ours:.1f} x", "40 x",
                   peer / ours >= 40)


def reductions(runner, what, count, job, target):
    """One call on so many floats, beside smdebug's or NumPy's."""
    ours, peer = [], []
    for _ in range(runner.options.repeats):
        for answer, results in ((runner.ours("reduce_bench", what, count), ours),
                                (runner.peer("reduce_peer.py", what, count), peer)):
            if answer is not None:
                results.append(answer["seconds"])
    if ours and peer:
        ours, peer = statistics.median(ours), statistics.median(peer)
        runner.add(job, shown_time(ours), shown_time(peer), f"{peer / ours:.1f} x", f"{target} x", peer / ours >= target)


def memory_speed(runner, name):
    """Nine statistics of 1 GiB, beside a loop that only reads it, and of as many halves."""
    answers = [answer for answer in (runner.ours("reduce_bench", "read", 1024 * MIB) for _ in range(2)) if answer]
    if not answers:
        return
    best = {key: min(answer[key] for answer in answers) for key in answers[0]}
    share = best["read"] / best["float32"]
    runner.add("nine statistics, 1 GiB of float32", f"{1.074 / best['float32']:.1f} GB/s",
               f"{1.074 / best['read']:.1f} GB/s", f"{share:.2f} x", "0.5 x", share >= 0.5)
    for narrow in ("float16", "bfloat16"):
        rate = best["float32"] / best[narrow]
        runner.add(f"as many elements of {narrow}", shown_time(best[narrow]), shown_time(best["float32"]), f"{rate:.2f} x",
                   "0.5 x", rate >= 0.5)


def hook_share(runner, name):
    answers = [answer for answer in (runner.ours("hook_share_bench") for _ in range(2)) if answer]
    if answers:
        bare = min(answer["bare"] for answer in answers)
        hooked = min(answer["hooked"] for answer in answers)
        runner.add("three statistics of every gradient, a step", shown_time(hooked), shown_time(bare),
                   f"{100 * (hooked / bare - 1):+.1f} %", "-", True)


def read(runner, job, name, trial, faster, smaller):
    """One trial, written once and then read by both in turns."""
    runner.options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="trial-", dir=runner.options.out) as directory:
        path = directory + "/run"
        if not runner.make_trial(trial, path):
            return
        answers = {"ours": [], "peer": []}
        for _ in range(runner.options.repeats):
            answers["ours"].append(runner.read_once(runner.options.bin / "trial_bench", job, path))
            answers["peer"].append(runner.read_once(runner.options.python, HERE / "trial_peer.py", job, path))
    ours, peer = ([answer for answer in answers[who] if answer] for who in ("ours", "peer"))
    if not ours or not peer:
        return
    if len({answer["count"] for answer in ours + peer}) > 1:
        runner.notes.append(f"{name}: the contenders found different numbers of things")
    runner.compare(name, ours, peer, "seconds", shown_time, faster)
    if smaller:
        runner.compare(f"{name}, memory", ours, peer, "rss_bytes", lambda size: f"{size / MIB:.0f} MiB", smaller)


def list_names(runner, name):
    """Many tensors at few steps: a second is what a person waits for without a thought."""
    runner.options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="trial-", dir=runner.options.out) as directory:
        path = directory + "/run"
        if not runner.make_trial("100 of 100,000 x 10,000", path):
            return
        answers = [runner.read_once(runner.options.bin / "trial_bench", "list", path) for _ in range(runner.options.repeats)]
    seconds = statistics.median(answer["seconds"] for answer in answers if answer)
    runner.add(name, shown_time(seconds), "-", "-", "<= 1 s", seconds <= 1)


def follow(runner, name):
    """From the end of a step to a reader that sees it."""
    answers = [answer for answer in (runner.ours("follow_bench") for _ in range(2)) if answer]
    for share in ("p50", "p99"):
        if answers:
            seconds = statistics.median(answer[share] for answer in answers)
            runner.add(f"{name}, {share}", shown_time(seconds), "-", "-", "-", True)


def workers(runner, name):
    """A trial of 1,024 workers, as each of them would have written its part."""
    with tempfile.TemporaryDirectory() as scratch:
        made = runner.read_once(runner.options.bin / "make_trial", "values", 10, 5, 16, 1, scratch + "/run", 1024)
        if made is None:
            return
        opened = runner.read_once(runner.options.bin / "trial_bench", "open", scratch + "/run")
        if opened is not None:
            runner.add(f"{name} open 10 steps of 1,024 workers x 5", shown_time(opened["seconds"]), "-", "-", "5 s",
                       opened["seconds"] <= 5 and opened["count"] == 10 * 1_000_000 + 5)


def tensorboard_export(runner, name):
    """A trial of 1 GiB as TensorBoard's files."""
    runner.options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=runner.options.out) as directory:
        made = subprocess.run([runner.options.bin / "make_trial", "values", "64", "16", str(MIB // 4), "1",
                               directory + "/trial"], capture_output=True, text=True, env=runner.environment)
        if made.returncode:
            runner.notes.append(f"{name}: {made.stderr.strip()[-300:]}")
            return
        seconds = []
        for turn in range(runner.options.repeats):
            begin = time.perf_counter()
            done = subprocess.run([runner.options.bin / "tornasole", "export", directory + "/trial", "--format",
                                   "tensorboard", "-o", f"{directory}/boards-{turn}"], capture_output=True,
                                  text=True, env=runner.environment)
            seconds.append(time.perf_counter() - begin)
            if done.returncode:
                runner.notes.append(f"{name}: {done.stderr.strip()[-300:]}")
                return
        rate = 1024 * MIB / statistics.median(seconds) / 1e6
        runner.add(name, f"{rate:.0f} MB/s", "-", "-", "500 MB/s", rate >= 500)


def jobs():
    """Name and function of each, which takes the runner and the name."""
    for name, count, size, steps, target, _ in WRITES:
        yield f"write to closed files, {name}", lambda runner, job, c=count, s=size, n=steps, t=target: write(
            runner, "sync", job, c, s, n, t)
    # A hook takes its memory in its first steps, and keeps it: what most steps of a training cost is asked for.
    for name, count, size, steps, _, target in WRITES:
        yield f"caller's time, {name}", lambda runner, job, c=count, s=size, n=4 * steps, t=target: write(
            runner, "async", job, c, s, n, t)
    yield "memory", memory
    yield "hot path", hot_path
    yield "patterns", patterns
    for what, kind, trial, faster, smaller in READS:
        yield f"trial: {what}, {trial}", lambda runner, job, k=kind, t=trial, f=faster, m=smaller: read(
            runner, k, job, t, f, m)
    yield "trial: list 10,000 tensors x 100", list_names
    yield "trial: end of a step to seen", follow
    for count, target in ((1_000, 100), (100_000, 15), (10_000_000, 25)):
        yield f"18 reductions, {count:,} floats", lambda runner, job, c=count, t=target: reductions(
            runner, "reductions", c, job, t)
    yield "median, 10,000,000 floats", lambda runner, job: reductions(runner, "median", 10_000_000, job, 4)
    yield "histogram, 10,000,000 floats", lambda runner, job: reductions(runner, "histogram", 10_000_000, job, 10)
    yield "statistics at memory speed", memory_speed
    yield "statistics in a hook", hook_share
    yield "workers:", workers
    yield "tensorboard: export of 1 GiB", tensorboard_export

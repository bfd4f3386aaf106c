"""Saving to a bucket and reading from one, on this machine."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time

from runner import HERE, shown_time

def s3(runner, name):
    """A training that saves every step to a bucket on this machine, and a trial of 5,000 steps read from there."""
    sys.path.insert(0, str(HERE.parent / "tests" / "s3"))
    from s3_servers import VERSITYGW, versitygw

    if not VERSITYGW.exists():
        runner.notes.append(f"{name}: versitygw is missing; make env NAME=s3 makes it")
        return
    with tempfile.TemporaryDirectory() as scratch, versitygw(scratch) as server:
        s3_writing(runner, name, scratch, server)
        s3_reading(runner, name, server)


def s3_writing(runner, name, scratch, server):
    steps, tensors, size = 1000, 20, 40_000
    line = [runner.options.bin / "survival_train", "--steps", str(steps), "--tensors", str(tensors), "--bytes", str(size)]
    line += ["--think-ms", "10"]

    def seconds(*more):
        done = subprocess.run([*line, *more], env=server.environment(), capture_output=True, text=True, check=True)
        return [float(found) for found in re.findall(r"(?:seconds|close) ([\d.]+)", done.stdout)]

    bare = seconds("--bare")[0]
    saved, close = seconds("--out", "s3://bucket/run", "--log", scratch + "/log")
    what = f"{name} {steps} steps of {tensors} x {size // 1000} kB"
    runner.add(f"{what}, training beside bare", shown_time(saved), shown_time(bare), f"{saved / bare - 1:+.1%}", "+5 %",
               saved / bare <= 1.05)
    peer = json.loads(subprocess.run(
        [runner.options.python, HERE / "s3_peer.py", "60", str(tensors), str(size), "s3://bucket/peer"],
        env=server.environment(AWS_DEFAULT_REGION="us-east-1"), capture_output=True, text=True, check=True,
    ).stdout)["extra_s"]
    # Below a microsecond a step the clock of the whole training says nothing.
    extra = max((saved - bare) / steps, 1e-6)
    runner.add(f"{what}, extra a step beside smdebug", shown_time(extra), shown_time(peer), f"{peer / extra:.1f} x", "50 x",
               peer / extra >= 50)
    stored = sum(path.stat().st_size for path in (server.data / "run").rglob("*") if path.is_file())
    begin = time.monotonic()
    subprocess.run([runner.options.bin / "tornasole", "verify", "s3://bucket/run"], env=server.environment(),
                   capture_output=True, check=True)
    remote = time.monotonic() - begin
    begin = time.monotonic()
    subprocess.run([runner.options.bin / "tornasole", "verify", server.data / "run"], capture_output=True, check=True)
    runner.add(f"{name} verify {stored / 1e6:.0f} MB, bucket and directory", shown_time(remote),
               shown_time(time.monotonic() - begin), "-", "-", True)
    runner.add(f"{name} close after the last step", shown_time(close), "-", "-", "30 s", close <= 30)


def s3_reading(runner, name, server):
    """A trial as our hook leaves it in a bucket, and the same one without packs, as smdebug would have left it."""
    environment = server.environment(AWS_DEFAULT_REGION="us-east-1")
    if not runner.make_trial("5,000 x 50", "s3://bucket/read", environment):
        return

    def opened(*command):
        answers = [runner.read_once(*command, "open", "s3://bucket/read", environment=environment)
                   for _ in range(runner.options.repeats)]
        return sorted(answers, key=lambda one: one["seconds"])[len(answers) // 2] if all(answers) else None

    peer = opened(runner.options.python, HERE / "trial_peer.py")
    for what, wanted in (("", 20), (", no packs", None)):
        ours = opened(runner.options.bin / "trial_bench")
        if ours is None or peer is None:
            return
        ratio = peer["seconds"] / ours["seconds"]
        runner.add(f"{name} open 5,000 steps x 50{what}", shown_time(ours["seconds"]), shown_time(peer["seconds"]),
                   f"{ratio:.1f} x", f"{wanted} x" if wanted else "-", ratio >= (wanted or 0) and ours["count"] == peer["count"])
        shutil.rmtree(server.data / "read" / "tornasole" / "packs", ignore_errors=True)


def jobs():
    yield "s3:", s3

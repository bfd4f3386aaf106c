"""What every job of run.py does: runs a program, reads what it printed, adds a line to the table."""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent

MIB = 1024 * 1024
# name, form, steps, tensors, elements, save interval
TRIALS = {
    "1,000 x 50": ("values", 1000, 50, 16, 1),
    "5,000 x 50": ("values", 5000, 50, 16, 1),
    "20,000 x 5": ("values", 20000, 5, 16, 1),
    "1,000 x 50 reduced": ("reductions", 1000, 50, 16, 1),
    "100 of 100,000 x 10,000": ("values", 100, 10000, 4, 1000),
}


class Runner:
    def __init__(self, options):
        self.options = options
        self.rows = []
        self.notes = []
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("SMDEBUG_", "TORNASOLE_"))}

    def run(self, *command):
        """What a program printed as JSON in a directory of its own; None if it failed or lost something."""
        self.options.out.mkdir(parents=True, exist_ok=True)
        directory = tempfile.mkdtemp(prefix="turn-", dir=self.options.out)
        try:
            done = subprocess.run([*map(str, command), directory + "/run"], capture_output=True, text=True,
                                  timeout=600, env=self.environment)
        except (OSError, subprocess.TimeoutExpired) as error:
            self.notes.append(f"{pathlib.Path(command[0]).name}: {error}")
            return None
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        if done.returncode:
            self.notes.append(f"{' '.join(map(str, command))} gave {done.returncode}: {done.stderr.strip()[-300:]}")
            return None
        answer = json.loads(done.stdout)
        if not answer.get("complete", True):
            self.notes.append(f"{' '.join(map(str, command))}: something was dropped, the turn does not count")
            return None
        return answer

    def forget_removed_files(self):
        """For a minute after a file was removed, and five more until that is on the disk, ext4 looks at it again for
        each file it makes: a job that makes three small files a step would measure what was removed before it."""
        print("(a minute for the file system to forget the files that were removed)", flush=True)
        os.sync()
        time.sleep(62)

    def ours(self, program, *arguments):
        return self.run(self.options.bin / program, *arguments)

    def peer(self, script, *arguments):
        return self.run(self.options.python, HERE / script, *arguments)

    def add(self, job, ours, peer, ratio, target, is_ok):
        row = {"job": job, "ours": ours, "peer": peer, "ratio": ratio, "target": target, "ok": is_ok}
        self.rows.append(row)
        print(f"{job:<44}{ours:>12}{peer:>12}{ratio:>10}{target:>12}  {'ok' if is_ok else 'short'}", flush=True)

    def compare(self, name, ours, peer, key, shown, target):
        ours, peer = (statistics.median(answer[key] for answer in answers) for answers in (ours, peer))
        self.add(name, shown(ours), shown(peer), f"{peer / ours:.1f} x", f"{target} x", peer / ours >= target)

    def make_trial(self, trial, path, environment=None):
        command = [self.options.bin / "make_trial", *TRIALS[trial], path]
        return self.read_once(*command, environment=environment) is not None

    def read_once(self, *command, environment=None):
        """What a program printed as JSON; None if it failed."""
        done = subprocess.run(
            [*map(str, command)], capture_output=True, text=True, timeout=1800, env=environment or self.environment, check=False
        )
        if done.returncode:
            self.notes.append(f"{' '.join(map(str, command))} gave {done.returncode}: {done.stderr.strip()[-300:]}")
            return None
        return json.loads(done.stdout)


def times_less(ours, peer):
    """How many times less than the peer's extra time ours is. Ours may be nothing, or less where the machine was busy
    with something else: below a thousandth of the peer's nothing is told apart."""
    return peer / max(ours, peer / 1000)


def shown_time(seconds):
    if seconds is None:
        return "failed"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"

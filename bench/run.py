#!/usr/bin/env python3
"""Measures tornasole beside smdebug and prints one line per job: ours, peer, ratio, target.

    run.py [--bin build/bin] [--python .venvs/smdebug/bin/python] [--out build/bench] [--repeats 5] [--only WORD]

Contenders take turns in one run and write to the same file system; a number is the median over all steps of all turns,
the first step of each turn left out. A turn in which anything was dropped does not count and is named. Nothing is
asserted: a target that was missed is marked `short`. The table is also written as bench.json beside the output
directory."""

import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent

KIB, MIB = 1024, 1024 * 1024
# name, tensors a step, bytes of each, steps a turn, target of sync, target of async
WRITES = [
    ("1000 x 1 KiB", 1000, KIB, 8, 40, 50),
    ("100 x 100 KiB", 100, 100 * KIB, 8, 4, 30),
    ("10 x 10 MiB", 10, 10 * MIB, 4, 8, 30),
    ("1 x 100 MiB", 1, 100 * MIB, 4, 14, 30),
]
# name, form, steps, tensors, elements, save interval
TRIALS = {
    "1,000 x 50": ("values", 1000, 50, 16, 1),
    "5,000 x 50": ("values", 5000, 50, 16, 1),
    "20,000 x 5": ("values", 20000, 5, 16, 1),
    "1,000 x 50 reduced": ("reductions", 1000, 50, 16, 1),
    "100 of 100,000 x 10,000": ("values", 100, 10000, 4, 1000),
}
# what, job of trial_bench, trial, times faster, times less memory (None: not compared)
READS = [
    ("open", "open", "1,000 x 50", 15, 20),
    ("open", "open", "5,000 x 50", 35, 20),
    ("open", "open", "20,000 x 5", 150, None),
    ("values of one tensor", "values", "5,000 x 50", 8, None),
    ("sweep of one reduction", "sweep", "1,000 x 50 reduced", 100, None),
]


# VanishingGradient over 1,000 steps x 24 gradients: what, the command before the directory, times faster than the same
# rule in smdebug's loop. Each is a program that prints {"seconds", "met"}: the steps at which the condition is met.
RULES = [
    ("VanishingGradient, native", lambda options: [options.bin / "rules_bench", "vanishing"], 100),
    ("one written in Python", lambda options: [ROOT / ".venvs/torch/bin/python", HERE / "rules_peer.py", "ours"], 30),
]
RULE_ELEMENTS = (1024, 4096)  # of a gradient

# Extra time of a step of a libtorch training as a share of the bare one: of a scenario, or of one model in it.
LIBTORCH_SHARES = {"nothing_due": 0.005, ("gradient_stats", "cnn"): 0.03}
# Models that are mostly weights: statistics of gradients as times one read of them at the speed of the fused pass.
LIBTORCH_READS = {("gradient_stats", "mlp"): 1.5, ("gradient_stats", "deep"): 1.5}
# Extra time of a step of a PyTorch training: scenario of torch_bench.py -> times less than smdebug's, by model.
TORCH = {
    "save_all": {"mlp": 20, "cnn": 20, "deep": 20},
    "weights_gradients": {"mlp": 15, "cnn": 15, "deep": 15},
    "gradient_stats": {"mlp": 30, "cnn": 50, "deep": 50},
    "losses": {"mlp": 40, "cnn": 40, "deep": 40},
}
# The same as a share of the bare step: nothing due in 200 modules; the preset of `tornasole run`, bursts included.
TORCH_SHARES = {"not_saving": 0.01, "standard": 0.03}


# Trainings of the other frameworks, each measured by a program of its own that prints a line for each scenario:
# environment, program, and of a scenario the limit as a share of the bare step or in microseconds, or the times less
# than smdebug's.
FRAMEWORKS = {
    "Keras": ("tensorflow", "keras_bench.py", {"nothing due": 0.01, "losses and metrics": "100 us"}),
    "Keras 2": ("tensorflow-legacy", "keras_bench.py", {"nothing due": 0.01, "losses and metrics": "100 us"}),
    "XGBoost": ("xgboost-old", "boost_bench.py", {"nothing due": 0.01, "metrics": 0.02, ("metrics", "smdebug"): 10}),
    "MXNet": ("mxnet", "gluon_bench.py", {"nothing due": 0.01, "losses": "100 us"}),
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

    def ours(self, program, *arguments):
        return self.run(self.options.bin / program, *arguments)

    def peer(self, script, *arguments):
        return self.run(self.options.python, HERE / script, *arguments)

    def add(self, job, ours, peer, ratio, target, is_ok):
        row = {"job": job, "ours": ours, "peer": peer, "ratio": ratio, "target": target, "ok": is_ok}
        self.rows.append(row)
        print(f"{job:<44}{ours:>12}{peer:>12}{ratio:>10}{target:>12}  {'ok' if is_ok else 'short'}", flush=True)

    # ---- jobs

    def turns(self, mode, count, size, steps, repeats):
        """(ours, peer): the median of each, None if no turn of it counted."""
        results = {"ours": [], "peer": []}
        for _ in range(repeats):
            for who, answer in (("ours", self.ours("write_bench", mode, count, size, steps)),
                                ("peer", self.peer("write_peer.py", mode, count, size, steps))):
                if answer is not None:
                    results[who] += answer["results"][1:] if len(answer["results"]) > 1 else answer["results"]
        return [statistics.median(results[who]) if results[who] else None for who in ("ours", "peer")]

    def write(self, mode, job, count, size, steps, target):
        ours, peer = self.turns(mode, count, size, steps, self.options.repeats)
        if ours is None or peer is None:
            self.add(job, shown_time(ours), shown_time(peer), "-", f"{target} x", False)
        else:
            self.add(job, shown_time(ours), shown_time(peer), f"{peer / ours:.1f} x", f"{target} x", peer / ours >= target)

    def memory(self):
        ours, peer = self.turns("memory", 1, 100 * MIB, 1, 1)
        if ours is not None and peer is not None:
            self.add("extra memory, 1 x 100 MiB", f"{ours / MIB:.0f} MiB", f"{peer / MIB:.0f} MiB", f"{peer / ours:.1f} x",
                     "one copy", ours <= 1.15 * 100 * MIB)

    def hot_path(self):
        answers = [answer for answer in (self.ours("hot_path_bench") for _ in range(self.options.repeats)) if answer]
        if not answers:
            return
        for key, job, limit_ns in (("save_not_due", "save, nothing due", 20), ("step_not_due", "a step, nothing due", None),
                                   ("scalar_due", "save of a number, due", 1000), ("save_scalar", "save_scalar", 1000)):
            nanoseconds = statistics.median(answer[key] for answer in answers)
            target = f"<= {limit_ns} ns" if limit_ns else "-"
            self.add(job, f"{nanoseconds:.1f} ns", "-", "-", target, limit_ns is None or nanoseconds <= limit_ns)

    def patterns(self):
        """10,000 names met for the first time."""
        ours, peer, members = [], [], set()
        for _ in range(self.options.repeats):
            for answer, results in ((self.ours("patterns_bench"), ours), (self.peer("patterns_peer.py"), peer)):
                if answer is not None:
                    results.append(answer["seconds"])
                    members.add(answer["members"])
        if len(members) > 1:
            self.notes.append(f"patterns: the contenders found {sorted(members)} members, so they did not do the same work")
        if ours and peer:
            ours, peer = statistics.median(ours), statistics.median(peer)
            self.add("10,000 names, first pass", shown_time(ours), shown_time(peer), f"{peer / ours:.1f} x", "40 x",
                     peer / ours >= 40)

    def reductions(self, what, count, job, target):
        """One call on so many floats, beside smdebug's or NumPy's."""
        ours, peer = [], []
        for _ in range(self.options.repeats):
            for answer, results in ((self.ours("reduce_bench", what, count), ours),
                                    (self.peer("reduce_peer.py", what, count), peer)):
                if answer is not None:
                    results.append(answer["seconds"])
        if ours and peer:
            ours, peer = statistics.median(ours), statistics.median(peer)
            self.add(job, shown_time(ours), shown_time(peer), f"{peer / ours:.1f} x", f"{target} x", peer / ours >= target)

    def memory_speed(self):
        """Nine statistics of 1 GiB, beside a loop that only reads it, and of as many halves."""
        answers = [answer for answer in (self.ours("reduce_bench", "read", 1024 * MIB) for _ in range(2)) if answer]
        if not answers:
            return
        best = {key: min(answer[key] for answer in answers) for key in answers[0]}
        share = best["read"] / best["float32"]
        self.add("nine statistics, 1 GiB of float32", f"{1.074 / best['float32']:.1f} GB/s",
                 f"{1.074 / best['read']:.1f} GB/s", f"{share:.2f} x", "0.5 x", share >= 0.5)
        for narrow in ("float16", "bfloat16"):
            rate = best["float32"] / best[narrow]
            self.add(f"as many elements of {narrow}", shown_time(best[narrow]), shown_time(best["float32"]), f"{rate:.2f} x",
                     "0.5 x", rate >= 0.5)

    def hook_share(self):
        answers = [answer for answer in (self.ours("hook_share_bench") for _ in range(2)) if answer]
        if answers:
            bare = min(answer["bare"] for answer in answers)
            hooked = min(answer["hooked"] for answer in answers)
            self.add("three statistics of every gradient, a step", shown_time(hooked), shown_time(bare),
                     f"{100 * (hooked / bare - 1):+.1f} %", "-", True)

    def read(self, job, name, trial, faster, smaller):
        """One trial, written once and then read by both in turns."""
        self.options.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="trial-", dir=self.options.out) as directory:
            path = directory + "/run"
            if not self.make_trial(trial, path):
                return
            answers = {"ours": [], "peer": []}
            for _ in range(self.options.repeats):
                answers["ours"].append(self.read_once(self.options.bin / "trial_bench", job, path))
                answers["peer"].append(self.read_once(self.options.python, HERE / "trial_peer.py", job, path))
        ours, peer = ([answer for answer in answers[who] if answer] for who in ("ours", "peer"))
        if not ours or not peer:
            return
        if len({answer["count"] for answer in ours + peer}) > 1:
            self.notes.append(f"{name}: the contenders found different numbers of things")
        self.compare(name, ours, peer, "seconds", shown_time, faster)
        if smaller:
            self.compare(f"{name}, memory", ours, peer, "rss_bytes", lambda size: f"{size / MIB:.0f} MiB", smaller)

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

    def list_names(self, name):
        """Many tensors at few steps: a second is what a person waits for without a thought."""
        self.options.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="trial-", dir=self.options.out) as directory:
            path = directory + "/run"
            if not self.make_trial("100 of 100,000 x 10,000", path):
                return
            answers = [self.read_once(self.options.bin / "trial_bench", "list", path) for _ in range(self.options.repeats)]
        seconds = statistics.median(answer["seconds"] for answer in answers if answer)
        self.add(name, shown_time(seconds), "-", "-", "<= 1 s", seconds <= 1)

    def follow(self, name):
        """From the end of a step to a reader that sees it."""
        answers = [answer for answer in (self.ours("follow_bench") for _ in range(2)) if answer]
        for share in ("p50", "p99"):
            if answers:
                seconds = statistics.median(answer[share] for answer in answers)
                self.add(f"{name}, {share}", shown_time(seconds), "-", "-", "-", True)

    def rules(self, name):
        """Small gradients show what a value costs, larger ones what its bytes do."""
        for elements in RULE_ELEMENTS:
            self.rules_over(f"{name} {elements:,} floats,", elements)

    def rules_over(self, name, elements):
        """One rule over one trial, beside the same rule in smdebug's loop; then `check` beside a bare read."""
        self.options.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="trial-", dir=self.options.out) as directory:
            path = directory + "/run"
            program = self.options.bin / "rules_bench"
            if self.read_once(program, "make", path, elements) is None:
                return
            contenders = {what: command(self.options) for what, command, _ in RULES}
            contenders |= {job: [program, job] for job in ("read", "check")}
            contenders["peer"] = [self.options.python, HERE / "rules_peer.py", "peer"]
            for what in [what for what, command in contenders.items() if not pathlib.Path(command[0]).exists()]:
                self.notes.append(f"{name} {what}: there is no {contenders.pop(what)[0]}")
            answers = {who: [] for who in contenders}
            for turn in range(self.options.repeats):
                for who, command in contenders.items():
                    if who != "peer" or turn < 2:  # it takes long
                        answers[who].append(self.read_once(*command, path))
        answers = {who: [answer for answer in all_of if answer] for who, all_of in answers.items()}
        for what, _, target in RULES:
            if not answers.get(what) or not answers["peer"]:
                continue
            if len({answer["met"] for answer in answers[what] + answers["peer"]}) > 1:
                self.notes.append(f"{name} {what}: the contenders met the condition at different numbers of steps")
            self.compare(f"{name} {what}", answers[what], answers["peer"], "seconds", shown_time, target)
        if answers["read"] and answers["check"]:
            read, check = (statistics.median(answer["seconds"] for answer in answers[job]) for job in ("read", "check"))
            self.add(f"{name} check, beside one read", shown_time(check), shown_time(read), f"{check / read:.2f} x", "<= 3 x",
                     check <= 3 * read)

    def torch(self, name):
        """One process that trains bare, under smdebug and under ours, in turns."""
        python = ROOT / ".venvs/bench/bin/python"
        if not python.exists():
            self.notes.append(f"{name}: there is no {python}; make env NAME=bench makes it")
            return
        with tempfile.TemporaryDirectory() as directory:
            out = directory + "/figures.json"
            done = subprocess.run([python, HERE / "torch_bench.py", "--json", out], capture_output=True, text=True,
                                  timeout=1800, env=self.environment, cwd=directory)
            if done.returncode:
                self.notes.append(f"{name}: {done.stderr.strip()[-300:]}")
                return
            figures = json.loads(pathlib.Path(out).read_text())
        for row in figures:
            self.torch_row(f"{name} {row['model']}, {row['scenario'].replace('_', ' ')}", row)

    def torch_row(self, name, row):
        ours, peer = row["tornasole_us"], row.get("smdebug_us")
        if row["scenario"] not in TORCH:
            share, limit = ours / row["bare_us"], TORCH_SHARES[row["scenario"]]
            self.add(name, f"{ours:.3g} us", f"{peer:.3g} us" if peer else "-", f"{100 * share:+.1f} %",
                     f"<= {100 * limit:.0f} %", share <= limit)
            return
        target = TORCH[row["scenario"]][row["model"]]
        self.add(name, f"{ours:.3g} us", f"{peer:.3g} us", f"{row['ratio']:.1f} x", f"{target} x", row["ratio"] >= target)
        if row["scenario"] == "save_all":
            self.add(f"{name}, processor", f"{row['tornasole_cpu_us']:.3g} us", f"{row['smdebug_cpu_us']:.3g} us",
                     f"{row['cpu_ratio']:.1f} x", "8 x", row["cpu_ratio"] >= 8)

    def framework(self, name):
        """One process that trains bare, under ours and, where it runs, under smdebug, in turns."""
        environment, program, limits = FRAMEWORKS[name]
        python = ROOT / f".venvs/{environment}/bin/python"
        if not python.exists():
            self.notes.append(f"{name}: there is no {python}; make env NAME={environment} makes it")
            return
        done = subprocess.run([python, HERE / program], capture_output=True, text=True, timeout=1800, env=self.environment)
        if done.returncode:
            self.notes.append(f"{name}: {done.stderr.strip()[-300:]}")
            return
        for row in (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")):
            self.framework_row(name, row, limits)

    def framework_row(self, name, row, limits):
        job, ours, peer = f"{name}, {row['scenario']}", row["tornasole_us"], row.get("smdebug_us")
        share, limit = ours / row["bare_us"], limits.get(row["scenario"])
        if limit is None:
            target, is_ok = "-", True
        elif isinstance(limit, str):
            target, is_ok = f"<= {limit}", ours <= float(limit.split()[0])
        else:
            target, is_ok = f"<= {100 * limit:.0f} %", share <= limit
        self.add(job, f"{ours:+.3g} us", f"{row['bare_us']:.4g} us", f"{100 * share:+.2f} %", target, is_ok)
        if peer is not None:
            times = limits.get((row["scenario"], "smdebug"))
            ratio = peer / max(ours, 1.0)  # below a microsecond nothing is told apart
            self.add(f"{job}, beside smdebug", f"{ours:+.3g} us", f"{peer:+.3g} us", f"{ratio:.1f} x",
                     f"{times} x" if times else "-", times is None or ratio >= times)

    def libtorch(self, name):
        """The same models in C++, bare and under ours, in turns; compiled here, with the libtorch of PyTorch's wheel."""
        found = list((ROOT / ".venvs/torch/lib").glob("python*/site-packages/torch"))
        if not found:
            self.notes.append(f"{name}: there is no PyTorch in .venvs/torch; make env NAME=torch makes it")
            return
        library = self.options.bin.parent / "lib"
        with tempfile.TemporaryDirectory() as directory:
            program = directory + "/libtorch_bench"
            command = ["c++", "-std=c++20", "-O2", "-DNDEBUG", HERE / "libtorch_bench.cc", "-o", program]
            command += ["-I", ROOT / "include", "-I", ROOT / "adapters/libtorch/include", "-isystem", found[0] / "include"]
            command += ["-isystem", found[0] / "include/torch/csrc/api/include", "-L", library, f"-Wl,-rpath,{library}"]
            command += ["-ltornasole", "-L", found[0] / "lib", f"-Wl,-rpath,{found[0] / 'lib'}", "-ltorch_cpu", "-lc10"]
            for what in (command, [program, directory + "/runs"]):
                done = subprocess.run(what, capture_output=True, text=True, timeout=1800, env=self.environment)
                if done.returncode:
                    self.notes.append(f"{name}: {done.stderr.strip()[-300:]}")
                    return
        for row in map(json.loads, done.stdout.splitlines()):
            # Of the training thread: what a busy machine does to the clock is no cost of ours.
            job = f"{name} {row['model']}, {row['scenario'].replace('_', ' ')}"
            extra, bare = row["extra_thread_us"], row["bare_thread_us"]
            limit = LIBTORCH_SHARES.get((row["scenario"], row["model"]), LIBTORCH_SHARES.get(row["scenario"]))
            self.add(job, f"{extra:+.3g} us", f"{bare:.4g} us", f"{100 * extra / bare:+.1f} %",
                     f"<= {100 * limit:.1f} %" if limit else "-", limit is None or extra / bare <= limit)
            if reads := LIBTORCH_READS.get((row["scenario"], row["model"])):
                one_read = row["gradients_us"]
                self.add(f"{job}, beside one read", f"{extra:+.3g} us", f"{one_read:.3g} us", f"{extra / one_read:.2f} x",
                         f"<= {reads} x", extra <= reads * one_read)

    def rules_inside(self, name):
        """What rules inside a training add to a step, beside a hook that saves the same."""
        python = ROOT / ".venvs/bench/bin/python"
        if not python.exists():
            self.notes.append(f"{name}: there is no {python}; make env NAME=bench makes it")
            return
        with tempfile.TemporaryDirectory() as directory:
            out = directory + "/figures.json"
            done = subprocess.run([python, HERE / "inside_bench.py", "--json", out], capture_output=True, text=True,
                                  timeout=1800, env=self.environment, cwd=directory)
            if done.returncode:
                self.notes.append(f"{name}: {done.stderr.strip()[-300:]}")
                return
            for row in json.loads(pathlib.Path(out).read_text()):
                share = row["training_us"] / row["bare_us"]
                self.add(f"{name}, {row['model']}", f"{row['training_us']:+.3g} us", f"{row['bare_us']:.3g} us",
                         f"{100 * share:+.1f} %", "<= 1 %", share <= 0.01)

    def s3(self, name):
        """A training that saves every step to a bucket on this machine, and a trial of 5,000 steps read from there."""
        sys.path.insert(0, str(HERE.parent / "tests" / "s3"))
        from s3_servers import VERSITYGW, versitygw

        if not VERSITYGW.exists():
            self.notes.append(f"{name}: versitygw is missing; make env NAME=s3 makes it")
            return
        with tempfile.TemporaryDirectory() as scratch, versitygw(scratch) as server:
            self.s3_writing(name, scratch, server)
            self.s3_reading(name, server)

    def s3_writing(self, name, scratch, server):
        steps, tensors, size = 1000, 20, 40_000
        line = [self.options.bin / "survival_train", "--steps", str(steps), "--tensors", str(tensors), "--bytes", str(size)]
        line += ["--think-ms", "10"]

        def seconds(*more):
            done = subprocess.run([*line, *more], env=server.environment(), capture_output=True, text=True, check=True)
            return [float(found) for found in re.findall(r"(?:seconds|close) ([\d.]+)", done.stdout)]

        bare = seconds("--bare")[0]
        saved, close = seconds("--out", "s3://bucket/run", "--log", scratch + "/log")
        what = f"{name} {steps} steps of {tensors} x {size // 1000} kB"
        self.add(f"{what}, training beside bare", shown_time(saved), shown_time(bare), f"{saved / bare - 1:+.1%}", "+5 %",
                 saved / bare <= 1.05)
        peer = json.loads(subprocess.run(
            [self.options.python, HERE / "s3_peer.py", "60", str(tensors), str(size), "s3://bucket/peer"],
            env=server.environment(AWS_DEFAULT_REGION="us-east-1"), capture_output=True, text=True, check=True,
        ).stdout)["extra_s"]
        # Below a microsecond a step the clock of the whole training says nothing.
        extra = max((saved - bare) / steps, 1e-6)
        self.add(f"{what}, extra a step beside smdebug", shown_time(extra), shown_time(peer), f"{peer / extra:.1f} x", "50 x",
                 peer / extra >= 50)
        stored = sum(path.stat().st_size for path in (server.data / "run").rglob("*") if path.is_file())
        begin = time.monotonic()
        subprocess.run([self.options.bin / "tornasole", "verify", "s3://bucket/run"], env=server.environment(),
                       capture_output=True, check=True)
        remote = time.monotonic() - begin
        begin = time.monotonic()
        subprocess.run([self.options.bin / "tornasole", "verify", server.data / "run"], capture_output=True, check=True)
        self.add(f"{name} verify {stored / 1e6:.0f} MB, bucket and directory", shown_time(remote),
                 shown_time(time.monotonic() - begin), "-", "-", True)
        self.add(f"{name} close after the last step", shown_time(close), "-", "-", "30 s", close <= 30)

    def s3_reading(self, name, server):
        """A trial as our hook leaves it in a bucket, and the same one without packs, as smdebug would have left it."""
        environment = server.environment(AWS_DEFAULT_REGION="us-east-1")
        if not self.make_trial("5,000 x 50", "s3://bucket/read", environment):
            return

        def opened(*command):
            answers = [self.read_once(*command, "open", "s3://bucket/read", environment=environment)
                       for _ in range(self.options.repeats)]
            return sorted(answers, key=lambda one: one["seconds"])[len(answers) // 2] if all(answers) else None

        peer = opened(self.options.python, HERE / "trial_peer.py")
        for what, wanted in (("", 20), (", no packs", None)):
            ours = opened(self.options.bin / "trial_bench")
            if ours is None or peer is None:
                return
            ratio = peer["seconds"] / ours["seconds"]
            self.add(f"{name} open 5,000 steps x 50{what}", shown_time(ours["seconds"]), shown_time(peer["seconds"]),
                     f"{ratio:.1f} x", f"{wanted} x" if wanted else "-", ratio >= (wanted or 0) and ours["count"] == peer["count"])
            shutil.rmtree(server.data / "read" / "tornasole" / "packs", ignore_errors=True)

    def workers(self, name):
        """A trial of 1,024 workers, as each of them would have written its part."""
        with tempfile.TemporaryDirectory() as scratch:
            made = self.read_once(self.options.bin / "make_trial", "values", 10, 5, 16, 1, scratch + "/run", 1024)
            if made is None:
                return
            opened = self.read_once(self.options.bin / "trial_bench", "open", scratch + "/run")
            if opened is not None:
                self.add(f"{name} open 10 steps of 1,024 workers x 5", shown_time(opened["seconds"]), "-", "-", "5 s",
                         opened["seconds"] <= 5 and opened["count"] == 10 * 1_000_000 + 5)

    def tensorboard(self, name):
        """Histograms of weights and gradients at every step: what each writer adds to a step of the training."""
        kinds = {"tornasole": "bench", "smdebug": "bench", "summary_writer": "tensorboard"}
        answers = {kind: [] for kind in kinds}
        for kind, environment in kinds.items():
            python = ROOT / f".venvs/{environment}/bin/python"
            for _ in range(self.options.repeats if python.exists() else 0):
                answer = self.run(python, HERE / "tensorboard_bench.py", kind)
                if answer is not None:
                    answers[kind].append(answer["extra_us"])
        if not all(answers.values()):
            self.notes.append(f"{name}: make env NAME=bench and NAME=tensorboard make what it needs")
            return
        extra = {kind: statistics.median(found) for kind, found in answers.items()}
        for peer, target in (("smdebug", 10), ("summary_writer", 5)):
            ratio = extra[peer] / extra["tornasole"]
            self.add(f"{name} a step, beside {peer.replace('_', ' ')}", f"{extra['tornasole']:.3g} us",
                     f"{extra[peer]:.3g} us", f"{ratio:.1f} x", f"{target} x", ratio >= target)

    def tensorboard_export(self, name):
        """A trial of 1 GiB as TensorBoard's files."""
        self.options.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.options.out) as directory:
            made = subprocess.run([self.options.bin / "make_trial", "values", "64", "16", str(MIB // 4), "1",
                                   directory + "/trial"], capture_output=True, text=True, env=self.environment)
            if made.returncode:
                self.notes.append(f"{name}: {made.stderr.strip()[-300:]}")
                return
            seconds = []
            for turn in range(self.options.repeats):
                begin = time.perf_counter()
                done = subprocess.run([self.options.bin / "tornasole", "export", directory + "/trial", "--format",
                                       "tensorboard", "-o", f"{directory}/boards-{turn}"], capture_output=True,
                                      text=True, env=self.environment)
                seconds.append(time.perf_counter() - begin)
                if done.returncode:
                    self.notes.append(f"{name}: {done.stderr.strip()[-300:]}")
                    return
            rate = 1024 * MIB / statistics.median(seconds) / 1e6
            self.add(name, f"{rate:.0f} MB/s", "-", "-", "500 MB/s", rate >= 500)

    def all_jobs(self):
        for name, count, size, steps, target, _ in WRITES:
            yield f"write to closed files, {name}", lambda job, c=count, s=size, n=steps, t=target: self.write(
                "sync", job, c, s, n, t)
        for name, count, size, steps, _, target in WRITES:
            yield f"caller's time, {name}", lambda job, c=count, s=size, n=steps, t=target: self.write(
                "async", job, c, s, n, t)
        yield "memory", lambda job: self.memory()
        yield "hot path", lambda job: self.hot_path()
        yield "patterns", lambda job: self.patterns()
        for what, job, trial, faster, smaller in READS:
            yield f"trial: {what}, {trial}", lambda name, j=job, t=trial, f=faster, m=smaller: self.read(j, name, t, f, m)
        yield "trial: list 10,000 tensors x 100", self.list_names
        yield "trial: end of a step to seen", self.follow
        for count, target in ((1_000, 100), (100_000, 15), (10_000_000, 25)):
            yield f"18 reductions, {count:,} floats", lambda job, c=count, t=target: self.reductions("reductions", c, job, t)
        yield "median, 10,000,000 floats", lambda job: self.reductions("median", 10_000_000, job, 4)
        yield "histogram, 10,000,000 floats", lambda job: self.reductions("histogram", 10_000_000, job, 10)
        yield "statistics at memory speed", lambda job: self.memory_speed()
        yield "statistics in a hook", lambda job: self.hook_share()
        yield "rules:", self.rules
        yield "rules inside a training", self.rules_inside
        yield "PyTorch", self.torch
        for name in FRAMEWORKS:
            yield name, self.framework
        yield "libtorch:", self.libtorch
        yield "s3:", self.s3
        yield "workers:", self.workers
        yield "tensorboard:", self.tensorboard
        yield "tensorboard: export of 1 GiB", self.tensorboard_export


def shown_time(seconds):
    if seconds is None:
        return "failed"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--python", type=pathlib.Path, default=ROOT / ".venvs/smdebug/bin/python")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/bench")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="jobs whose name contains this")
    options = parser.parse_args()
    if not options.python.exists():
        sys.exit(f"there is no {options.python}; make env NAME=smdebug makes it")
    runner = Runner(options)
    print(f"{'job':<44}{'ours':>12}{'peer':>12}{'ratio':>10}{'target':>12}")
    for name, job in runner.all_jobs():
        if options.only in name:
            job(name)
    for note in runner.notes:
        print(f"note: {note}")
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "system": platform.platform()}
    result = {"machine": machine, "repeats": options.repeats, "rows": runner.rows, "notes": runner.notes}
    options.out.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    shutil.rmtree(options.out, ignore_errors=True)
    short = sum(not row["ok"] for row in runner.rows)
    print(f"{len(runner.rows)} jobs, {short} short of their target; {options.out.with_suffix('.json')}")


if __name__ == "__main__":
    main()

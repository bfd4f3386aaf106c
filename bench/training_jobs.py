"""Trainings bare, under ours and under smdebug; rules over what they saved."""

import json
import pathlib
import statistics
import subprocess
import tempfile

from runner import HERE, ROOT, shown_time, times_less

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
TORCH_MICROSECONDS = {"losses": 50}
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


def rules(runner, name):
    """Small gradients show what a value costs, larger ones what its bytes do."""
    for elements in RULE_ELEMENTS:
        rules_over(runner, f"{name} {elements:,} floats,", elements)


def rules_over(runner, name, elements):
    """One rule over one trial, beside the same rule in smdebug's loop; then `check` beside a bare read."""
    runner.options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="trial-", dir=runner.options.out) as directory:
        path = directory + "/run"
        program = runner.options.bin / "rules_bench"
        if runner.read_once(program, "make", path, elements) is None:
            return
        contenders = {what: command(runner.options) for what, command, _ in RULES}
        contenders |= {job: [program, job] for job in ("read", "check")}
        contenders["peer"] = [runner.options.python, HERE / "rules_peer.py", "peer"]
        for what in [what for what, command in contenders.items() if not pathlib.Path(command[0]).exists()]:
            runner.notes.append(f"{name} {what}: there is no {contenders.pop(what)[0]}")
        answers = {who: [] for who in contenders}
        for turn in range(runner.options.repeats):
            for who, command in contenders.items():
                if who != "peer" or turn < 2:  # it takes long
                    answers[who].append(runner.read_once(*command, path))
    answers = {who: [answer for answer in all_of if answer] for who, all_of in answers.items()}
    for what, _, target in RULES:
        if not answers.get(what) or not answers["peer"]:
            continue
        if len({answer["met"] for answer in answers[what] + answers["peer"]}) > 1:
            runner.notes.append(f"{name} {what}: the contenders met the condition at different numbers of steps")
        runner.compare(f"{name} {what}", answers[what], answers["peer"], "seconds", shown_time, target)
    if answers["read"] and answers["check"]:
        read, check = (statistics.median(answer["seconds"] for answer in answers[job]) for job in ("read", "check"))
        runner.add(f"{name} check, beside one read", shown_time(check), shown_time(read), f"{check / read:.2f} x", "<= 3 x",
                   check <= 3 * read)


def figures_of(runner, name, program):
    """The rows that a program of the environment `bench` measured; none if it failed."""
    python = ROOT / ".venvs/bench/bin/python"
    if not python.exists():
        runner.notes.append(f"{name}: there is no {python}; make env NAME=bench makes it")
        return []
    with tempfile.TemporaryDirectory() as directory:
        out = directory + "/figures.json"
        done = subprocess.run([python, HERE / program, "--json", out], capture_output=True, text=True, timeout=1800,
                              env=runner.environment, cwd=directory)
        if done.returncode:
            runner.notes.append(f"{name}: {done.stderr.strip()[-300:]}")
            return []
        return json.loads(pathlib.Path(out).read_text())


def rules_inside(runner, name):
    """What rules inside a training add to a step, beside a hook that saves the same."""
    for row in figures_of(runner, name, "inside_bench.py"):
        share = row["training_us"] / row["bare_us"]
        runner.add(f"{name}, {row['model']}", f"{row['training_us']:+.3g} us", f"{row['bare_us']:.3g} us",
                   f"{100 * share:+.1f} %", "<= 1 %", share <= 0.01)


def torch(runner, name):
    """One process that trains bare, under smdebug and under ours, in turns."""
    runner.forget_removed_files()
    for row in figures_of(runner, name, "torch_bench.py"):
        torch_row(runner, f"{name} {row['model']}, {row['scenario'].replace('_', ' ')}", row)


def torch_row(runner, name, row):
    ours, peer = row["tornasole_us"], row.get("smdebug_us")
    if row["scenario"] not in TORCH:
        share, limit = ours / row["bare_us"], TORCH_SHARES[row["scenario"]]
        runner.add(name, f"{ours:.3g} us", f"{peer:.3g} us" if peer else "-", f"{100 * share:+.1f} %",
                   f"<= {100 * limit:.0f} %", share <= limit)
        return
    target = TORCH[row["scenario"]][row["model"]]
    runner.add(name, f"{ours:.3g} us", f"{peer:.3g} us", f"{row['ratio']:.1f} x", f"{target} x", row["ratio"] >= target)
    if limit_us := TORCH_MICROSECONDS.get(row["scenario"]):
        runner.add(f"{name}, a step", f"{ours:.3g} us", "-", "-", f"<= {limit_us} us", ours <= limit_us)
    if row["scenario"] == "save_all":
        runner.add(f"{name}, processor", f"{row['tornasole_cpu_us']:.3g} us", f"{row['smdebug_cpu_us']:.3g} us",
                   f"{row['cpu_ratio']:.1f} x", "8 x", row["cpu_ratio"] >= 8)


def framework(runner, name):
    """One process that trains bare, under ours and, where it runs, under smdebug, in turns."""
    environment, program, limits = FRAMEWORKS[name]
    python = ROOT / f".venvs/{environment}/bin/python"
    if not python.exists():
        runner.notes.append(f"{name}: there is no {python}; make env NAME={environment} makes it")
        return
    done = subprocess.run([python, HERE / program], capture_output=True, text=True, timeout=1800, env=runner.environment)
    if done.returncode:
        runner.notes.append(f"{name}: {done.stderr.strip()[-300:]}")
        return
    for row in (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")):
        framework_row(runner, name, row, limits)


def framework_row(runner, name, row, limits):
    job, ours, peer = f"{name}, {row['scenario']}", row["tornasole_us"], row.get("smdebug_us")
    share, limit = ours / row["bare_us"], limits.get(row["scenario"])
    if limit is None:
        target, is_ok = "-", True
    elif isinstance(limit, str):
        target, is_ok = f"<= {limit}", ours <= float(limit.split()[0])
    else:
        target, is_ok = f"<= {100 * limit:.0f} %", share <= limit
    runner.add(job, f"{ours:+.3g} us", f"{row['bare_us']:.4g} us", f"{100 * share:+.2f} %", target, is_ok)
    if peer is not None:
        times = limits.get((row["scenario"], "smdebug"))
        ratio = times_less(ours, peer)
        runner.add(f"{job}, beside smdebug", f"{ours:+.3g} us", f"{peer:+.3g} us", f"{ratio:.1f} x",
                   f"{times} x" if times else "-", times is None or ratio >= times)


def libtorch(runner, name):
    """The same models in C++, bare and under ours, in turns; compiled here, with the libtorch of PyTorch's wheel."""
    found = list((ROOT / ".venvs/torch/lib").glob("python*/site-packages/torch"))
    if not found:
        runner.notes.append(f"{name}: there is no PyTorch in .venvs/torch; make env NAME=torch makes it")
        return
    library = runner.options.bin.parent / "lib"
    with tempfile.TemporaryDirectory() as directory:
        program = directory + "/libtorch_bench"
        command = ["c++", "-std=c++20", "-O2", "-DNDEBUG", HERE / "libtorch_bench.cc", "-o", program]
        command += ["-I", ROOT / "include", "-I", ROOT / "adapters/libtorch/include", "-isystem", found[0] / "include"]
        command += ["-isystem", found[0] / "include/torch/csrc/api/include", "-L", library, f"-Wl,-rpath,{library}"]
        command += ["-ltornasole", "-L", found[0] / "lib", f"-Wl,-rpath,{found[0] / 'lib'}", "-ltorch_cpu", "-lc10"]
        for what in (command, [program, directory + "/runs"]):
            done = subprocess.run(what, capture_output=True, text=True, timeout=1800, env=runner.environment)
            if done.returncode:
                runner.notes.append(f"{name}: {done.stderr.strip()[-300:]}")
                return
    for row in map(json.loads, done.stdout.splitlines()):
        # Of the training thread: what a busy machine does to the clock is no cost of ours.
        job = f"{name} {row['model']}, {row['scenario'].replace('_', ' ')}"
        extra, bare = row["extra_thread_us"], row["bare_thread_us"]
        limit = LIBTORCH_SHARES.get((row["scenario"], row["model"]), LIBTORCH_SHARES.get(row["scenario"]))
        runner.add(job, f"{extra:+.3g} us", f"{bare:.4g} us", f"{100 * extra / bare:+.1f} %",
                   f"<= {100 * limit:.1f} %" if limit else "-", limit is None or extra / bare <= limit)
        if reads := LIBTORCH_READS.get((row["scenario"], row["model"])):
            one_read = row["gradients_us"]
            runner.add(f"{job}, beside one read", f"{extra:+.3g} us", f"{one_read:.3g} us", f"{extra / one_read:.2f} x",
                       f"<= {reads} x", extra <= reads * one_read)


def tensorboard(runner, name):
    """Histograms of weights and gradients at every step: what each writer adds to a step of the training."""
    kinds = {"tornasole": "bench", "smdebug": "bench", "summary_writer": "tensorboard"}
    answers = {kind: [] for kind in kinds}
    for kind, environment in kinds.items():
        python = ROOT / f".venvs/{environment}/bin/python"
        for _ in range(runner.options.repeats if python.exists() else 0):
            answer = runner.run(python, HERE / "tensorboard_bench.py", kind)
            if answer is not None:
                answers[kind].append(answer["extra_us"])
    if not all(answers.values()):
        runner.notes.append(f"{name}: make env NAME=bench and NAME=tensorboard make what it needs")
        return
    extra = {kind: statistics.median(found) for kind, found in answers.items()}
    for peer, target in (("smdebug", 10), ("summary_writer", 5)):
        ratio = times_less(extra["tornasole"], extra[peer])
        runner.add(f"{name} a step, beside {peer.replace('_', ' ')}", f"{extra['tornasole']:.3g} us",
                   f"{extra[peer]:.3g} us", f"{ratio:.1f} x", f"{target} x", ratio >= target)


def jobs():
    """Name and function of each, which takes the runner and the name."""
    yield "rules:", rules
    yield "rules inside a training", rules_inside
    yield "PyTorch", torch
    for name in FRAMEWORKS:
        yield name, framework
    yield "libtorch:", libtorch
    yield "tensorboard:", tensorboard

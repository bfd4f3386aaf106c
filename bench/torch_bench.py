"""What capture costs a PyTorch training, with tornasole and with smdebug, interleaved in one process.

    PYTHONPATH=build/py311/python .venvs/bench/bin/python bench/torch_bench.py [--steps 150] [--only save_all]

Each line: the bare step, the extra time per step of either, and how many times more smdebug takes: wall time, processor
time of the training thread, and, where much is written, that of the whole process. Contenders take turns in an order
that is drawn anew each time; a figure is the median over all rounds of what one took more than the bare training in the
same round. One thread. A second bare contender says how far figures can be trusted: ``noise_us``.

A turn is some consecutive steps, as a training takes them. Where much is written the next begins when the writer has
nothing left to do. Where little is, nobody waits, since a process that sleeps between turns would be measured waking
up; one more step before each turn, which does not count, has whatever the contender before left behind.

All contenders train the same model: their callbacks are hung on it for their own step and taken off after it. Two
models that are equal in all but their addresses differ by up to a tenth of a millisecond a step, which is more than
some of what is measured here. Nothing is removed before all is measured: ext4 looks at each file that was removed in
the last minutes when it makes a new one. Event files are emptied after each turn instead: a virtual machine whose
files fill ever more memory pays its host for each page of it, more than for anything that is measured.

The scenario ``standard`` is the preset of ``tornasole run``, over whole blocks of steps with and without it;
``counted`` is the share of the blocks in which the machine was steady.
"""

import argparse
import json
import logging
import os
import random
import shutil
import statistics
import sys
import tempfile
import time

os.environ.setdefault("SMDEBUG_LOG_LEVEL", "off")
os.environ.setdefault("TORNASOLE_LOG_LEVEL", "off")

import torch
from torch import nn

SCENARIOS = {
    "save_all": dict(save_all=True),
    "weights_gradients": dict(include_collections=["weights", "biases", "gradients"]),
    "gradient_stats": dict(
        include_collections=["gradients"], reductions=dict(reductions=["mean"], abs_reductions=["mean"], norms=["l2"])
    ),
    "losses": dict(),
    "not_saving": dict(save_all=True, interval=10**9, start=1),
}


# Cheaper ones take more steps: what they cost is closer to the noise.
STEPS_FACTOR = {"gradient_stats": 4, "losses": 6, "not_saving": 6, "standard": 32}
TURN_STEPS = 5  # where much is written
LIGHT = {"gradient_stats", "losses", "not_saving"}
WARM_UP_TURNS = 4
STEADY = 0.05  # how far two bare blocks of a training may differ


def mlp():
    sizes = [784, 512, 512, 256, 10]
    layers = []
    for i in range(4):
        layers += [nn.Linear(sizes[i], sizes[i + 1])] + ([nn.ReLU()] if i < 3 else [])
    return nn.Sequential(*layers), torch.randn(128, 784), torch.randint(0, 10, (128,))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 3), nn.Conv2d(16, 32, 3)
        self.fc1, self.fc2 = nn.Linear(32 * 25, 64), nn.Linear(64, 10)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


def cnn():
    return Cnn(), torch.randn(16, 1, 28, 28), torch.randint(0, 10, (16,))


def deep():
    layers = []
    for _ in range(25):
        layers += [nn.Linear(128, 128), nn.ReLU()]
    return nn.Sequential(*layers), torch.randn(64, 128), torch.randint(0, 128, (64,))


def wide():
    """200 modules, for the cost of steps at which nothing is due."""
    layers = []
    for _ in range(100):
        layers += [nn.Linear(32, 32), nn.ReLU()]
    return nn.Sequential(*layers), torch.randn(32, 32), torch.randint(0, 32, (32,))


MODELS = {"mlp": mlp, "cnn": cnn, "deep": deep, "wide": wide}


def make_hook(package, scenario, directory):
    options = dict(SCENARIOS[scenario])
    reductions = options.pop("reductions", None)
    config = package.SaveConfig(save_interval=options.pop("interval", 1), start_step=options.pop("start", 0))
    if reductions:
        options["reduction_config"] = package.ReductionConfig(**reductions)
    return package.Hook(out_dir=directory, save_config=config, **options)


class Bench:
    """A model and what it takes to train it."""

    def __init__(self, model):
        torch.manual_seed(0)
        self.net, self.inputs, self.labels = MODELS[model]()
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-4)

    def step(self):
        self.optimizer.zero_grad()
        self.loss(self.net(self.inputs), self.labels).backward()
        self.optimizer.step()


class Callbacks:
    """All callbacks on a model and on optimizers, which can be taken off and put back."""

    def __init__(self, bench):
        self._modules = [*bench.net.modules(), bench.loss]
        self._parameters = list(bench.net.parameters())
        self._of_dicts = [{} for _ in self._dicts()]
        self._of_parameters = [None for _ in self._parameters]

    def _dicts(self):
        """Asked for each time: a contender may hang a dict of its own in the place of an empty one."""
        found = [value for module in self._modules for key, value in vars(module).items() if key.endswith("_hooks")]
        of_optimizers = vars(sys.modules["torch.optim.optimizer"])
        found += [of_optimizers.get(f"_global_optimizer_{when}_hooks") for when in ("pre", "post")]
        return [known for known in found if known is not None]

    def put_back(self):
        for known, content in zip(self._dicts(), self._of_dicts):
            known.update(content)
        for parameter, content in zip(self._parameters, self._of_parameters):
            parameter._backward_hooks = content

    def take_off(self):
        self._of_dicts = [dict(known) for known in self._dicts()]
        self._of_parameters = [parameter._backward_hooks for parameter in self._parameters]
        for known in self._dicts():
            known.clear()
        for parameter in self._parameters:
            parameter._backward_hooks = None


class Contender:
    def __init__(self, name, package, bench, scenario, directory):
        self.name, self._bench = name, bench
        self.is_light = scenario in LIGHT
        self._events = os.path.join(directory, name, "events")
        self._callbacks = Callbacks(bench)
        self.hook = None
        if package is not None:
            package.del_hook()
            self.hook = make_hook(package, scenario, os.path.join(directory, name))
            self.hook.register_module(bench.net)
            self.hook.register_loss(bench.loss)
        self._callbacks.take_off()
        self.forget()

    def take_turn(self):
        self._callbacks.put_back()
        if self.is_light:
            self._bench.step()  # beside what the writer of the contender before still does
        wall, thread, process = time.perf_counter(), time.thread_time(), time.process_time()
        for _ in range(TURN_STEPS):
            self._bench.step()
        self.wall.append((time.perf_counter() - wall) / TURN_STEPS)
        self.thread.append((time.thread_time() - thread) / TURN_STEPS)
        self._callbacks.take_off()
        if not self.is_light:
            self.process.append((settled() - process) / TURN_STEPS)
            self._empty_files()

    def _empty_files(self):
        for folder, _, names in os.walk(self._events):
            for name in names:
                if name.endswith(".tfevents"):  # whole: what is being written has another name
                    os.truncate(os.path.join(folder, name), 0)

    def forget(self):
        self.wall, self.thread, self.process = [], [], []

    def close(self):
        if self.hook is not None:
            self.hook.close()


def settled():
    """The processor time of the process once it is idle: what a writer thread still has to do belongs to this step."""
    before = time.process_time()
    while True:
        time.sleep(0.012)  # longer than a writer naps
        now = time.process_time()
        if now - before < 0.0003:
            return now
        before = now


def measure(model, scenario, packages, steps, directory):
    bench = Bench(model)
    directory = tempfile.mkdtemp(prefix=f"{scenario}-{model}-", dir=directory)
    contenders = [Contender(name, None, bench, scenario, directory) for name in ("bare", "noise")]
    contenders += [Contender(name, package, bench, scenario, directory) for name, package in packages]
    bare = contenders[0]
    order = random.Random(0)
    for i in range(steps // TURN_STEPS + WARM_UP_TURNS):
        if i == WARM_UP_TURNS:
            for contender in contenders:
                contender.forget()
        for contender in order.sample(contenders, len(contenders)):
            contender.take_turn()
    for contender in contenders:
        contender.close()
    figures = {"model": model, "scenario": scenario, "bare_us": statistics.median(bare.wall) * 1e6}
    for contender in contenders[1:]:
        figures[f"{contender.name}_us"] = more(contender.wall, bare.wall)
        figures[f"{contender.name}_thread_us"] = more(contender.thread, bare.thread)
        if contender.process:
            figures[f"{contender.name}_cpu_us"] = more(contender.process, bare.process)
    if "smdebug_us" in figures:
        for kind in ("", "thread_", "cpu_") if bare.process else ("", "thread_"):
            ratio = figures[f"smdebug_{kind}us"] / max(figures[f"tornasole_{kind}us"], 0.1)
            figures[f"{kind}ratio"] = ratio
    return figures


class Attached:
    """What ``tornasole run`` changes in PyTorch, which can be undone and done again."""

    def __init__(self, bench, directory):
        import tornasole.pytorch
        from tornasole.run import OUT_VARIABLE, PRESET_VARIABLE, torch_attachment

        tornasole.pytorch.del_hook()
        self._add_param_group = torch.optim.Optimizer.add_param_group
        functions = [(torch.nn.functional, name) for name in torch_attachment.LOSS_FUNCTIONS]
        self._places = [(torch.Tensor, "backward"), (torch.nn.modules.loss._Loss, "__call__"), *functions]
        self._places = [(owner, name) for owner, name in self._places if hasattr(owner, name)]
        self._bare = [getattr(owner, name) for owner, name in self._places]
        self._callbacks = Callbacks(bench)
        os.environ.update({OUT_VARIABLE: directory, PRESET_VARIABLE: "standard"})
        torch_attachment._attachment = None
        with open(os.devnull, "w") as sys.stderr:
            self._attachment = torch_attachment.attach()
            bench.step()
        sys.stderr = sys.__stderr__
        self._ours = [getattr(owner, name) for owner, name in self._places]
        self.undo()

    def undo(self):
        # Steps without it are not the training's that it counts its share of.
        self._attachment.hook._watcher._budget.pause()
        self._callbacks.take_off()
        self._set(self._bare)

    def do(self):
        self._callbacks.put_back()
        self._set(self._ours)

    def _set(self, values):
        for (owner, name), value in zip(self._places, values):
            setattr(owner, name, value)

    def close(self):
        torch.optim.Optimizer.add_param_group = self._add_param_group  # else it would take the next model as well
        self._attachment.hook.close()


def measure_standard(model, steps, directory, block=120):
    """Time of all steps with the preset beside that of as many without, in blocks that take turns.

    A block is compared with the bare ones before and after it. Where these two differ by more than a twentieth the
    machine did something else meanwhile, and the block does not count.
    """
    bench = Bench(model)
    for _ in range(10):
        bench.step()
    attached = Attached(bench, os.path.join(tempfile.mkdtemp(prefix=f"standard-{model}-", dir=directory), "run"))
    bare, ours = [], []  # (wall, thread) seconds of a step
    for i in range(2 * (steps // block) + 1):
        is_ours = i % 2 == 1
        if is_ours:
            attached.do()
        wall, thread = time.perf_counter(), time.thread_time()
        for _ in range(block):
            bench.step()
        taken = (time.perf_counter() - wall) / block, (time.thread_time() - thread) / block
        (ours if is_ours else bare).append(taken)
        if is_ours:
            attached.undo()
        settled()
    attached.close()
    rounds = list(zip(ours, bare, bare[1:]))
    steady = [one for one in rounds if abs(one[1][0] / one[2][0] - 1) < STEADY] or rounds
    bare_us, bare_thread_us = (statistics.mean((a[k] + b[k]) / 2 for _, a, b in steady) * 1e6 for k in (0, 1))
    ours_us, ours_thread_us = (statistics.mean(mine[k] for mine, _, _ in steady) * 1e6 for k in (0, 1))
    return {
        "model": model,
        "scenario": "standard",
        "bare_us": bare_us,
        "tornasole_us": ours_us - bare_us,
        "tornasole_thread_us": ours_thread_us - bare_thread_us,
        "share": ours_us / bare_us - 1,
        "thread_share": ours_thread_us / bare_thread_us - 1,
        "counted": len(steady) / len(rounds),
    }


def more(seconds, bare):
    """Microseconds that a step takes more than a bare one: what is usual, round by round."""
    return statistics.median(mine - other for mine, other in zip(seconds, bare)) * 1e6


def reference_package():
    try:
        import smdebug.pytorch as reference
    except ImportError:
        print("smdebug is not installed here: only tornasole is measured")
        return []
    return [] if "tornasole" in (reference.Hook.__module__ or "") else [("smdebug", reference)]


def measure_all(arguments, packages, directory):
    results = []
    for scenario in arguments.only or [*SCENARIOS, "standard"]:
        for model in arguments.model or (["wide"] if scenario == "not_saving" else ["mlp", "cnn", "deep"]):
            steps = arguments.steps * STEPS_FACTOR.get(scenario, 1)
            if scenario == "standard":
                figures = measure_standard(model, steps, directory)
            else:
                figures = measure(model, scenario, packages, steps, directory)
            results.append(figures)
            cells = [f"{key} {v:.4g}" if isinstance(v, float) else f"{v:18s}" for key, v in figures.items()]
            print("  ".join(cells), flush=True)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--only", action="append", choices=[*SCENARIOS, "standard"])
    parser.add_argument("--model", action="append", choices=list(MODELS))
    parser.add_argument("--json")
    parser.add_argument("--out", help="where the contenders write; a temporary directory unless given")
    parser.add_argument("--alone", action="store_true", help="without smdebug")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.CRITICAL)
    import tornasole.pytorch as ours

    packages = [] if arguments.alone else reference_package()
    packages.append(("tornasole", ours))
    directory = tempfile.mkdtemp(prefix="torch_bench_", dir=arguments.out)
    try:
        results = measure_all(arguments, packages, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if arguments.json:
        with open(arguments.json, "w") as out:
            json.dump(results, out, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What capture costs a PyTorch training, with tornasole and with smdebug, interleaved in one process.

    PYTHONPATH=build/py311/python .venvs/bench/bin/python bench/torch_bench.py [--steps 60] [--only save_all]

Each line: the bare step, the extra time per step of either, and how many times more smdebug takes. Wall time and the
processor time of the training thread, both as lower quartiles over steps that the contenders take in turns; processor
time of the whole process, as a mean. One thread.
"""

import argparse
import json
import logging
import os
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


class Contender:
    def __init__(self, name, package, model, scenario):
        torch.manual_seed(0)
        self.name = name
        self.net, self.inputs, self.labels = MODELS[model]()
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-4)
        self.directory = tempfile.mkdtemp(prefix="torch_bench_")
        self.hook = None
        if package is not None:
            package.del_hook()
            self.hook = make_hook(package, scenario, os.path.join(self.directory, "run"))
            self.hook.register_module(self.net)
            self.hook.register_loss(self.loss)
        self.wall, self.thread = [], []
        self.cpu = 0.0

    def step(self):
        self.optimizer.zero_grad()
        self.loss(self.net(self.inputs), self.labels).backward()
        self.optimizer.step()

    def timed_step(self):
        wall, thread, process = time.perf_counter(), time.thread_time(), time.process_time()
        self.step()
        self.wall.append(time.perf_counter() - wall)
        self.thread.append(time.thread_time() - thread)
        self.settle()
        self.cpu += time.process_time() - process

    def settle(self):
        """What a writer thread still has to do belongs to this step, not to the next contender's."""
        time.sleep(0.002)

    def close(self):
        if self.hook is not None:
            self.hook.close()
        shutil.rmtree(self.directory, ignore_errors=True)


def measure(model, scenario, packages, steps):
    contenders = [Contender("bare", None, model, scenario)]
    contenders += [Contender(name, package, model, scenario) for name, package in packages]
    for _ in range(4):
        for contender in contenders:
            contender.step()
    for _ in range(steps):
        for contender in contenders:
            contender.timed_step()
    for contender in contenders:
        contender.close()
    bare = contenders[0]
    figures = {"model": model, "scenario": scenario, "bare_us": low(bare.wall) * 1e6}
    for contender in contenders[1:]:
        figures[f"{contender.name}_us"] = (low(contender.wall) - low(bare.wall)) * 1e6
        figures[f"{contender.name}_thread_us"] = (low(contender.thread) - low(bare.thread)) * 1e6
        figures[f"{contender.name}_cpu_us"] = (contender.cpu - bare.cpu) / steps * 1e6
    if "smdebug_us" in figures:
        for kind in ("", "thread_", "cpu_"):
            ratio = figures[f"smdebug_{kind}us"] / max(figures[f"tornasole_{kind}us"], 0.1)
            figures[f"{kind}ratio"] = ratio
    return figures


def low(seconds):
    """The lower quartile: what a step takes when nothing else disturbs it."""
    return statistics.quantiles(seconds, n=4)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--only", action="append", choices=list(SCENARIOS))
    parser.add_argument("--model", action="append", choices=list(MODELS))
    parser.add_argument("--json")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.CRITICAL)
    import tornasole.pytorch as ours

    packages = []
    try:
        import smdebug.pytorch as reference

        if "tornasole" not in (reference.Hook.__module__ or ""):
            packages.append(("smdebug", reference))
    except ImportError:
        print("smdebug is not installed here: only tornasole is measured")
    packages.append(("tornasole", ours))
    results = []
    for scenario in arguments.only or SCENARIOS:
        for model in arguments.model or (["wide"] if scenario == "not_saving" else ["mlp", "cnn", "deep"]):
            steps = arguments.steps * (10 if scenario == "not_saving" else 1)
            figures = measure(model, scenario, packages, steps)
            results.append(figures)
            cells = [f"{key} {v:.1f}" if isinstance(v, float) else f"{v:18s}" for key, v in figures.items()]
            print("  ".join(cells), flush=True)
    if arguments.json:
        with open(arguments.json, "w") as out:
            json.dump(results, out, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())

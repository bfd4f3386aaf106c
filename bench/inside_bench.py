"""What rules inside a PyTorch training cost, beside a hook that saves the same statistics without them.

    PYTHONPATH=build/py311/python .venvs/bench/bin/python bench/inside_bench.py [--steps 100] [--turns 5]

Each line: the bare step; how much longer a step takes on the training thread with rules than without, as lower
quartiles; and the processor time of the rules' own thread, per step. Contenders take turns of so many steps, each of
which saves statistics of all weights and gradients.
"""

import argparse
import json
import logging
import os
import statistics
import sys
import tempfile
import time

os.environ.setdefault("TORNASOLE_LOG_LEVEL", "off")

import torch
from torch import nn
from torch_bench import MODELS

RULES_NICENESS = 10
# What the rules below ask for: a hook without them saves it as well.
STATISTICS = {"reductions": ["min", "max", "mean", "std"], "abs_reductions": ["mean"], "norms": ["l2"]}
RULES = ["VanishingGradient", "GradNormSpike", "WeightDivergence", "LossSpike", "LossDivergence"]


class Contender:
    def __init__(self, model, directory, **options):
        import tornasole.pytorch as ours

        torch.manual_seed(0)
        self.net, self.inputs, self.labels = MODELS[model]()
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-4)
        self.hook = None
        if options:
            save_config = ours.SaveConfig(save_interval=1)
            form = ours.ReductionConfig(**STATISTICS)
            self.hook = ours.Hook(
                out_dir=directory,
                save_config=save_config,
                reduction_config=form,
                include_collections=["weights", "gradients"],
                derived=["update"],
                **{name: value for name, value in options.items() if value is not None},
            )
            self.hook.register_module(self.net)
            self.hook.register_loss(self.loss)
        self.seconds = []

    def step(self):
        self.optimizer.zero_grad()
        self.loss(self.net(self.inputs), self.labels).backward()
        self.optimizer.step()

    def turn(self, steps):
        for _ in range(steps):
            start = time.thread_time()
            self.step()
            self.seconds.append(time.thread_time() - start)
        time.sleep(0.6)  # what other threads still have to do belongs to this turn


def rules_thread_seconds():
    """Processor time of the rules' thread so far: the one whose niceness the engine has set."""
    ticks = 0
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        if int(fields[16]) == RULES_NICENESS:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(model, steps, turns):
    with tempfile.TemporaryDirectory(prefix="inside_bench_") as directory:
        bare = Contender(model, "")
        plain = Contender(model, directory + "/plain", rules=None, save_all=False)
        inside = Contender(model, directory + "/inside", rules=RULES)
        for contender in (bare, plain, inside):
            contender.turn(5)
            contender.seconds = []
        before = rules_thread_seconds()
        for _ in range(turns):
            for contender in (bare, plain, inside):
                contender.turn(steps)
        processor = rules_thread_seconds() - before
        looked_at = inside.hook.rule_runs()[0].steps_evaluated
        for contender in (plain, inside):
            contender.hook.close()
    low = {name: statistics.quantiles(one.seconds, n=4)[0] for name, one in vars_of(bare, plain, inside)}
    count = steps * turns
    return {
        "model": model,
        "bare_us": low["bare"] * 1e6,
        "training_thread_us": (low["inside"] - low["plain"]) * 1e6,
        "rules_thread_us": processor / count * 1e6,
        "steps_looked_at": looked_at,
    }


def vars_of(bare, plain, inside):
    return (("bare", bare), ("plain", plain), ("inside", inside))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--model", action="append", choices=list(MODELS))
    parser.add_argument("--json")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.CRITICAL)
    results = []
    for model in arguments.model or ["mlp", "cnn", "deep"]:
        figures = measure(model, arguments.steps, arguments.turns)
        results.append(figures)
        share = 100 * figures["training_thread_us"] / figures["bare_us"]
        print(f"{model:6s} bare {figures['bare_us']:.0f} us, training thread {figures['training_thread_us']:+.1f} us "
              f"({share:+.1f} %), rules' thread {figures['rules_thread_us']:.0f} us, "
              f"{figures['steps_looked_at']} steps looked at", flush=True)
    if arguments.json:
        with open(arguments.json, "w") as out:
            json.dump(results, out, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())

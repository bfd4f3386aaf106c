"""What rules inside a PyTorch training cost, beside a hook that saves the same statistics without them.

    PYTHONPATH=build/py311/python .venvs/bench/bin/python bench/inside_bench.py [--turns 60]

Each line: the bare step; how much longer a step takes with rules than without, as the median over turns of what one
took more than the other in the same round; a second hook without rules says how far that can be trusted, ``noise``; and
the processor time of the rules' own thread, per step. Contenders train the same model in turns of some steps, each of
which saves statistics of all weights and gradients; see torch_bench.py for why.
"""

import argparse
import json
import logging
import os
import random
import statistics
import sys
import tempfile
import time

os.environ.setdefault("TORNASOLE_LOG_LEVEL", "off")

import torch
from torch_bench import MODELS, Bench, Callbacks, WARM_UP_TURNS, more, settled

RULES_NICENESS = 10
STEPS = 20  # of a turn
# What the rules below ask for: a hook without them saves it as well.
STATISTICS = {"reductions": ["min", "max", "mean", "std"], "abs_reductions": ["mean"], "norms": ["l2"]}
RULES = ["VanishingGradient", "GradNormSpike", "WeightDivergence", "LossSpike", "LossDivergence"]


class Contender:
    """A hook on a model that it shares with others; without options there is no hook."""

    def __init__(self, bench, directory, **options):
        import tornasole.pytorch as ours

        self._bench, self._callbacks = bench, Callbacks(bench)
        self.hook = None
        if options:
            ours.del_hook()
            self.hook = ours.Hook(
                out_dir=directory,
                save_config=ours.SaveConfig(save_interval=1),
                reduction_config=ours.ReductionConfig(**STATISTICS),
                include_collections=["weights", "gradients"],
                derived=["update"],
                **options,
            )
            self.hook.register_module(bench.net)
            self.hook.register_loss(bench.loss)
        self._callbacks.take_off()
        self.seconds = []

    def take_turn(self):
        self._callbacks.put_back()
        start = time.perf_counter()
        for _ in range(STEPS):
            self._bench.step()
        self.seconds.append((time.perf_counter() - start) / STEPS)
        self._callbacks.take_off()
        settled()  # what other threads still have to do belongs to this turn


def rules_thread_seconds():
    """Processor time of the rules' thread so far: the one whose niceness the engine has set."""
    ticks = 0
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        if int(fields[16]) == RULES_NICENESS:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(model, turns):
    bench = Bench(model)
    order = random.Random(0)
    with tempfile.TemporaryDirectory(prefix="inside_bench_") as directory:
        bare = Contender(bench, "")
        plain = Contender(bench, directory + "/plain", save_all=False)
        noise = Contender(bench, directory + "/noise", save_all=False)
        inside = Contender(bench, directory + "/inside", rules=RULES)
        contenders = [bare, plain, noise, inside]
        for turn in range(WARM_UP_TURNS + turns):
            if turn == WARM_UP_TURNS:
                before = rules_thread_seconds()
            for contender in order.sample(contenders, len(contenders)):
                contender.take_turn()
        processor = rules_thread_seconds() - before
        looked_at = inside.hook.rule_runs()[0].steps_evaluated
        for contender in (plain, noise, inside):
            contender.hook.close()
    for contender in contenders:
        del contender.seconds[:WARM_UP_TURNS]
    return {
        "model": model,
        "bare_us": statistics.median(bare.seconds) * 1e6,
        "training_us": more(inside.seconds, plain.seconds),
        "noise_us": more(noise.seconds, plain.seconds),
        "rules_thread_us": processor / (turns * STEPS) * 1e6,
        "steps_looked_at": looked_at,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--model", action="append", choices=list(MODELS))
    parser.add_argument("--json")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.CRITICAL)
    results = []
    for model in arguments.model or ["mlp", "cnn", "deep"]:
        figures = measure(model, arguments.turns)
        results.append(figures)
        share = 100 * figures["training_us"] / figures["bare_us"]
        print(f"{model:6s} bare {figures['bare_us']:.0f} us, with rules {figures['training_us']:+.1f} us ({share:+.1f} %), "
              f"noise {figures['noise_us']:+.1f} us, rules' thread {figures['rules_thread_us']:.0f} us, "
              f"{figures['steps_looked_at']} steps looked at", flush=True)
    if arguments.json:
        with open(arguments.json, "w") as out:
            json.dump(results, out, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())

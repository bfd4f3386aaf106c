"""What capture costs a training with MXNet Gluon, beside smdebug where that is installed.

    PYTHONPATH=build/py311/python .venvs/mxnet/bin/python bench/gluon_bench.py [--steps 150] [--rounds 3]

Each line: the time of a step without a hook, and what the hooks take in a step, as medians. MXNet runs each operation on
the thread that calls it, so a hook waits for none: the time in the calls of the hook is what it adds.
"""

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import tempfile
import time

os.environ.update({"MXNET_ENGINE_TYPE": "NaiveEngine", "OMP_NUM_THREADS": "1"})
os.environ.setdefault("TORNASOLE_LOG_LEVEL", "off")
os.environ.setdefault("SMDEBUG_LOG_LEVEL", "off")

import mxnet
from mxnet import autograd, gluon

import tornasole.mxnet as ours

STATISTICS = {"reductions": ["min", "max", "mean"], "norms": ["l2"]}


def options_of(package, scenario):
    if scenario == "nothing due":
        return {"save_config": package.SaveConfig(save_interval=10**9, start_step=1), "save_all": True}
    if scenario == "losses":
        return {"save_config": package.SaveConfig(save_interval=1)}
    return {
        "save_config": package.SaveConfig(save_interval=1),
        "reduction_config": package.ReductionConfig(**STATISTICS),
        "include_collections": ["weights", "biases", "gradients"],
        "include_regex": ["_output_"],
    }


SCENARIOS = ("nothing due", "losses", "statistics of all")


def peers():
    """The packages that take part, by name."""
    found = {"tornasole": ours}
    if importlib.util.find_spec("smdebug") is not None and importlib.util.find_spec("smdebug.profiler") is not None:
        import smdebug.mxnet

        found["smdebug"] = smdebug.mxnet
    return found


def timed(hook):
    """A list whose last number grows by the time that each callback of the hook takes."""
    spent = []

    def taking_time(callback):
        def call(*arguments):
            begin = time.perf_counter()
            callback(*arguments)
            spent[-1] += time.perf_counter() - begin

        return call

    for name in ("forward_pre_hook", "forward_hook"):
        setattr(hook, name, taking_time(getattr(hook, name)))
    return spent


def steps_of(count, hook=None):
    """The times of so many steps of a fresh model; with a hook, what that took of them."""
    mxnet.random.seed(1)
    net = gluon.nn.Sequential()
    for size in (256, 256, 128, 10):
        net.add(gluon.nn.Dense(size, activation="relu"))
    net.initialize()
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "adam")
    values, labels = mxnet.nd.random.normal(shape=(64, 256)), mxnet.nd.zeros((64,))
    times = []
    spent = timed(hook) if hook is not None else []
    if hook is not None:
        hook.register_hook(net)
        hook.register_hook(loss_of)
    for _ in range(count):
        spent.append(0.0)
        begin = time.perf_counter()
        with autograd.record():
            loss = loss_of(net(values), labels)
        loss.backward()
        trainer.step(64)
        times.append(time.perf_counter() - begin)
    return (times if hook is None else spent)[10:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for scenario in SCENARIOS:
        times = {"bare": []} | {who: [] for who in peers()}
        for _ in range(options.rounds):
            times["bare"] += steps_of(options.steps)
            for who, package in peers().items():
                directory = tempfile.mkdtemp(prefix="gluon-bench-")
                hook = package.Hook(directory + "/run", **options_of(package, scenario))
                times[who] += steps_of(options.steps, hook)
                getattr(hook, "close", getattr(hook, "_cleanup", None))()
                shutil.rmtree(directory, ignore_errors=True)
        row = {"scenario": scenario}
        row |= {f"{who}_us": round(1e6 * statistics.median(found), 1) for who, found in times.items()}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()

"""What capture costs a training with XGBoost, beside smdebug where that is installed.

    PYTHONPATH=build/py311/python .venvs/xgboost-old/bin/python bench/boost_bench.py [--rows 100000] [--rounds 30]

Each line: the time of a round without a hook, and what the hooks take in a round, as medians over the rounds after the
first: XGBoost calls a hook between two rounds, on the thread that trains, so the time in the call is all it adds.
"""

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import tempfile
import time

os.environ.setdefault("TORNASOLE_LOG_LEVEL", "off")
os.environ.setdefault("SMDEBUG_LOG_LEVEL", "off")

import numpy
import xgboost

import tornasole.xgboost as ours

PARAMS = {"objective": "binary:logistic", "max_depth": 6, "tree_method": "hist", "eval_metric": ["auc", "logloss"]}
# Of a scenario, the interval and the collections besides what is saved anyway.
SCENARIOS = {
    "nothing due": (10**9, ["all"]),
    "metrics": (1, []),
    "importances, trees and predictions": (1, ["losses", "feature_importance", "trees", "predictions", "labels"]),
}


def peers():
    """The packages that take part, by name."""
    found = {"tornasole": ours}
    specification = importlib.util.find_spec("smdebug")
    if specification is not None and importlib.util.find_spec("smdebug.profiler.hvd_trace_file_rotation") is not None:
        import smdebug.xgboost

        found["smdebug"] = smdebug.xgboost
    return found


class Clock(xgboost.callback.TrainingCallback):
    """The time from one round to the next, and in it that of a hook."""

    def __init__(self, hook=None):
        super().__init__()
        self._hook = hook
        self.rounds, self.spent = [], []
        self._last = None

    def after_iteration(self, model, epoch, evals_log):
        begin = time.perf_counter()
        if self._last is not None:
            self.rounds.append(begin - self._last)
        if self._hook is not None:
            self._hook.after_iteration(model, epoch, evals_log)
        self._last = time.perf_counter()
        self.spent.append(self._last - begin)
        return False


def train(data, rounds, hook=None):
    clock = Clock(hook)
    evaluations = [(data[0], "train"), (data[1], "validation")]
    xgboost.train(PARAMS, data[0], rounds, evals=evaluations, callbacks=[clock], verbose_eval=False)
    return clock


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    numbers = numpy.random.default_rng(0)
    values = numbers.normal(size=(options.rows, 50)).astype("float32")
    labels = (values[:, 0] + values[:, 1] > 0).astype(int)
    data = xgboost.DMatrix(values, label=labels), xgboost.DMatrix(values[:2000], label=labels[:2000])
    bare = statistics.median(train(data, options.rounds).rounds[1:])
    for name, (interval, collections) in SCENARIOS.items():
        row = {"scenario": name, "bare_us": round(1e6 * bare, 1)}
        for who, package in peers().items():
            directory = tempfile.mkdtemp(prefix="boost-bench-")
            schedule = package.SaveConfig(save_interval=interval, start_step=1 if interval > 1 else 0)
            known = {"train_data": data[1], "validation_data": data[1], "hyperparameters": PARAMS}
            hook = package.Hook(directory + "/run", save_config=schedule, include_collections=collections, **known)
            spent = train(data, options.rounds, hook).spent[1:]
            getattr(hook, "close", getattr(hook, "_cleanup", None))()
            shutil.rmtree(directory, ignore_errors=True)
            row[f"{who}_us"] = round(1e6 * statistics.median(spent), 1)
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()

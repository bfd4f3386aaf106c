#!/usr/bin/env python3
"""The jobs of reduce_bench.cc, done by smdebug's own code and by NumPy. Runs in the environment `smdebug`.

    reduce_peer.py reductions|median|histogram COUNT
"""

import json
import os
import sys
import time

os.environ["SMDEBUG_LOG_LEVEL"] = "off"
import numpy as np  # noqa: E402
from smdebug.core.reductions import get_numpy_reduction  # noqa: E402

NAMES = ("min", "max", "mean", "std", "variance", "sum", "prod", "l1", "l2")


def bucket_edges():
    positive = []
    value = 1e-12
    while value < 1e20:
        positive.append(value)
        value *= 1.1
    return np.array([-v for v in reversed(positive)] + [0.0] + positive)


def time_of(work):
    """Seconds of one call: the best of several rounds, each long enough to be measured."""
    best, calls, rounds = 1e9, 1, 0
    while rounds < 5:
        start = time.perf_counter()
        for _ in range(calls):
            work()
        took = time.perf_counter() - start
        if took < 2e-3:
            calls *= 4
            continue
        best, rounds = min(best, took / calls), rounds + 1
    return best


def main():
    what, count = sys.argv[1], int(sys.argv[2])
    values = np.random.default_rng(1).standard_normal(count).astype(np.float32)
    np.seterr(all="ignore")
    edges = bucket_edges()
    jobs = {
        "reductions": lambda: [get_numpy_reduction(name, values, abs=of_abs) for name in NAMES for of_abs in (False, True)],
        "median": lambda: np.median(values),
        "histogram": lambda: np.histogram(values, bins=edges),
    }
    print(json.dumps({"seconds": time_of(jobs[what])}))


if __name__ == "__main__":
    main()

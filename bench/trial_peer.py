#!/usr/bin/env python3
"""The jobs of trial_bench.cc, done by smdebug's own trial. Runs in the environment `smdebug`.

    trial_peer.py open|values|sweep|list DIRECTORY
"""

import json
import os
import resource
import sys
import time

os.environ["SMDEBUG_LOG_LEVEL"] = "off"
# Not part of the work: the pause before the last look at a run that has ended.
os.environ["SMDEBUG_TRAINING_END_DELAY_REFRESH"] = "0"
from smdebug.trials import create_trial  # noqa: E402


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("open", "values", "sweep", "list"):
        sys.exit(__doc__)
    job, directory = sys.argv[1:]
    start = time.perf_counter()
    trial = create_trial(directory)
    names = trial.tensor_names()
    if job == "open":
        count = len(trial.steps()) * 1_000_000 + len(names)
    elif job == "list":
        count = len(trial.tensor(names[-1]).steps()) * 1_000_000 + len(names)
    elif job == "values":
        start = time.perf_counter()
        count = len(trial.tensor(names[0]).values())
    else:
        start = time.perf_counter()
        count = sum(trial.tensor(name).reduction_value(step, "l2") is not None
                    for name in names for step in trial.tensor(name).steps())
    seconds = time.perf_counter() - start
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "rss_bytes": resident, "count": count}))


if __name__ == "__main__":
    main()

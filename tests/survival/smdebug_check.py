"""Reads trials of survival_train with the real smdebug and compares every value: smdebug_check.py DIR...

Runs in the environment `smdebug`. Prints one JSON line {"trials", "values", "problems"}; exit 1 if there is a problem.
Trials without a committed step are skipped: smdebug would wait for them for ever.
"""
import json
import os
import sys

os.environ.setdefault("SMDEBUG_LOG_LEVEL", "off")
os.environ.setdefault("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
os.environ.setdefault("SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT", "0")

import numpy as np  # noqa: E402
from smdebug import modes  # noqa: E402
from smdebug.trials import create_trial  # noqa: E402


def expected_value(step, tensor, count):
    return ((step * 7 + tensor * 13 + np.arange(count)) % 1021).astype(np.float32)


def check(directory):
    values, problems = 0, []
    trial = create_trial(directory, name="trial")
    for name in trial.tensor_names():
        tensor = trial.tensor(name)
        for step in tensor.steps(mode=modes.GLOBAL, show_incomplete_steps=True):
            got = tensor.value(step)
            values += 1
            if got.dtype != np.float32 or not np.array_equal(got, expected_value(step, int(name[1:]), got.size)):
                problems.append(f"{directory}: {name} at {step}")
    return values, problems


def main():
    trials, values, problems = 0, 0, []
    for directory in sys.argv[1:]:
        has_step = directory.startswith("s3://") or any(f.endswith(".json") for _, _, files in os.walk(os.path.join(directory, "index")) for f in files)
        if not has_step:
            continue
        trials += 1
        try:
            n, p = check(directory)
            values += n
            problems += p
        except Exception as error:  # any failure of the peer is a finding
            problems.append(f"{directory}: {type(error).__name__}: {error}")
    print(json.dumps({"trials": trials, "values": values, "problems": problems[:10]}))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

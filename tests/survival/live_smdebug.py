"""Follows a run of survival_train with the real smdebug while it is written: live_smdebug.py DIR

Runs in the environment `smdebug`. Checks that steps never disappear and that values are right; one JSON line at the end.
"""
import json
import os
import sys
import time

os.environ.setdefault("SMDEBUG_LOG_LEVEL", "off")

from smdebug.trials import create_trial  # noqa: E402
from smdebug_check import expected_value  # noqa: E402

import numpy as np  # noqa: E402


def main():
    trial = create_trial(sys.argv[1], name="live")
    known, values, problems = set(), 0, []
    while True:
        is_last = trial.loaded_all_steps
        steps = trial.steps()
        if known - set(steps):
            problems.append(f"steps {sorted(known - set(steps))[:5]} disappeared")
        for step in sorted(set(steps) - known):
            for name in trial.tensor_names(step=step):
                got = trial.tensor(name).value(step)
                values += 1
                if not np.array_equal(got, expected_value(step, int(name[1:]), got.size)):
                    problems.append(f"{name} at {step} is wrong")
        known |= set(steps)
        if is_last or len(problems) > 10:
            break
        time.sleep(0.05)
    print(json.dumps({"steps": len(known), "values": values, "violations": len(problems), "problems": problems[:10]}))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

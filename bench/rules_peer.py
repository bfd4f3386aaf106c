#!/usr/bin/env python3
"""The rule of rules_bench.cc, written in Python, over the run that it makes.

    rules_peer.py ours DIRECTORY    the rule as one that says what it needs, under tornasole
    rules_peer.py peer DIRECTORY    the same rule under smdebug's loop; in the environment `smdebug`

Opening the run is part of the work, importing packages is not."""

import json
import os
import sys
import time

STEPS = 1000
THRESHOLD = 1e-7

os.environ["SMDEBUG_LOG_LEVEL"] = "off"
# Not part of the work: the pause before the last look at a run that has ended.
os.environ["SMDEBUG_TRAINING_END_DELAY_REFRESH"] = "0"


def ours(directory):
    from tornasole.rules import Need, Rule, run_rules
    from tornasole.trials import create_trial

    class VanishingGradient(Rule):
        needs = [Need(collections="gradients", stats=["abs_mean"])]

        def look_at(self, step, findings):
            for gradient in step.tensors():
                mean = gradient["abs_mean"]
                if mean < THRESHOLD:
                    findings.add(gradient, mean, THRESHOLD, f"{gradient.name} has vanished")

    start = time.perf_counter()
    (run,) = run_rules([VanishingGradient(create_trial(directory))])
    return {"seconds": time.perf_counter() - start, "met": len(run.steps_met)}


def peer(directory):
    from smdebug.exceptions import NoMoreData, RuleEvaluationConditionMet
    from smdebug.rules import Rule
    from smdebug.trials import create_trial

    class VanishingGradient(Rule):
        def set_required_tensors(self, step):
            for name in self.base_trial.tensor_names(step=step, collection="gradients"):
                self.req_tensors.add(name, steps=[step])

        def invoke_at_step(self, step):
            return any(tensor.reduction_value(step, "mean", abs=True) < THRESHOLD for tensor in self.req_tensors.get())

    start = time.perf_counter()
    rule = VanishingGradient(create_trial(directory), action_str="")
    met = 0
    for step in range(STEPS):
        try:
            rule.invoke(step)
        except RuleEvaluationConditionMet:
            met += 1
        except NoMoreData:
            break
    return {"seconds": time.perf_counter() - start, "met": met}


def main():
    jobs = {"ours": ours, "peer": peer}
    if len(sys.argv) != 3 or sys.argv[1] not in jobs:
        sys.exit(__doc__)
    print(json.dumps(jobs[sys.argv[1]](sys.argv[2])))


if __name__ == "__main__":
    main()

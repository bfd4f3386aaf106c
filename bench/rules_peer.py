#!/usr/bin/env python3
"""The rule of rules_bench.cc, written for smdebug's own rule loop. Runs in the environment `smdebug`.

    rules_peer.py DIRECTORY
"""

import json
import logging
import os
import sys
import time

os.environ["SMDEBUG_LOG_LEVEL"] = "off"
os.environ["SMDEBUG_TRAINING_END_DELAY_REFRESH"] = "0"
from smdebug.exceptions import NoMoreData, RuleEvaluationConditionMet  # noqa: E402
from smdebug.rules import Rule  # noqa: E402
from smdebug.rules.rule_invoker import invoke_rule  # noqa: E402
from smdebug.trials import create_trial  # noqa: E402

logging.disable(logging.CRITICAL)


class VanishingGradient(Rule):
    def __init__(self, base_trial, threshold=1e-7):
        super().__init__(base_trial, action_str="")
        self.threshold = threshold
        self.steps_met = 0

    def set_required_tensors(self, step):
        for name in self.base_trial.tensor_names(step=step, collection="gradients"):
            self.req_tensors.add(name=name, steps=[step])

    def invoke_at_step(self, step):
        is_met = False
        for tensor in self.req_tensors.get():
            if tensor.reduction_value(step, "mean", abs=True) < self.threshold:
                is_met = True
        self.steps_met += is_met
        return is_met


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    trial = create_trial(sys.argv[1])
    rule = VanishingGradient(trial)
    last = trial.steps()[-1]
    start = time.perf_counter()
    try:
        invoke_rule(rule, start_step=0, end_step=last + 1)
    except (NoMoreData, RuleEvaluationConditionMet):
        pass
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "count": rule.steps_met}))


if __name__ == "__main__":
    main()

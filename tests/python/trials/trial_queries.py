"""Asks a trial everything and prints the answers as JSON.

Usage: trial_queries.py PACKAGE TRIAL..., where PACKAGE is `smdebug` or `tornasole`: the same questions to both.
"""

import hashlib
import importlib
import json
import logging
import sys

REDUCTIONS = ("min", "max", "mean", "std", "variance", "sum", "prod", "l1", "l2")
LONGEST = 4  # so many steps of a tensor are read


def plain(answer):
    if hasattr(answer, "dtype") and hasattr(answer, "shape") and answer.shape != ():
        digest = hashlib.sha256(answer.tobytes()).hexdigest()
        return {"dtype": str(answer.dtype), "shape": list(answer.shape), "sha": digest}
    if hasattr(answer, "item"):
        return answer.item()
    if hasattr(answer, "name") and hasattr(answer, "value"):
        return answer.name
    if isinstance(answer, dict):
        return {str(plain(key)): plain(value) for key, value in answer.items()}
    if isinstance(answer, tuple):
        return [plain(one) for one in answer]
    if isinstance(answer, (set, frozenset)) or type(answer).__name__ == "dict_keys":
        return sorted((plain(one) for one in answer), key=str)
    if isinstance(answer, list):
        return [plain(one) for one in answer]
    return answer


def as_numbers(answer):
    """Reductions, each of them as a number, not as an array of one."""
    if isinstance(answer, dict):
        return {key: as_numbers(value) for key, value in answer.items()}
    return answer.item() if getattr(answer, "size", 0) == 1 else answer


def fields(error):
    found = {}
    for key in ("tname", "step", "mode", "worker", "last_step", "has_reductions"):
        if hasattr(error, key):
            found[key] = plain(getattr(error, key))
    return found


class Interview:
    def __init__(self, package, path):
        logging.disable(logging.CRITICAL)
        module = "smdebug.core.modes" if package == "smdebug" else "tornasole.modes"
        self.modes = importlib.import_module(module).ModeKeys
        self.trials = importlib.import_module(package + ".trials")
        self.trial = self.trials.create_trial(path)
        self.answers = {}

    def ask(self, question, ask):
        try:
            self.answers[question] = {"answer": plain(ask())}
        except Exception as error:  # every kind is an answer
            bases = [base.__name__ for base in type(error).__mro__]
            self.answers[question] = {"error": type(error).__name__, "bases": bases, "fields": fields(error)}

    def ask_trial(self):
        trial, modes = self.trial, self.modes
        trial.workers()  # the first question makes the original load the end of a run
        self.ask("loaded_all_steps", lambda: trial.loaded_all_steps)
        self.ask("last_complete_step", lambda: trial.last_complete_step)
        self.ask("last_index_token", lambda: trial.last_index_token.split("/index/")[1])
        self.ask("num_workers", lambda: trial.num_workers)
        self.ask("workers", trial.workers)
        self.ask("modes", trial.modes)
        self.ask("name", lambda: trial.name)
        self.ask("collections", lambda: sorted(trial.collections()))
        self.ask("equality", lambda: (trial == self.trials.create_trial(trial.path, name=trial.name)))
        last = max(trial.steps(show_incomplete_steps=True), default=0)
        around = sorted({0, 1, 2, 3, last - 1, last, last + 1, last + 7} - {-1})
        for mode in modes:
            self.ask(f"steps {mode.name}", lambda: trial.steps(mode=mode))
            self.ask(f"all steps {mode.name}", lambda: trial.steps(mode=mode, show_incomplete_steps=True))
            for step in around:
                self.ask(f"has_passed_step {mode.name} {step}", lambda: trial.has_passed_step(step, mode=mode))
                self.ask(f"global_step {mode.name} {step}", lambda: trial.global_step(mode, step))
                if trial.loaded_all_steps:
                    self.ask(f"wait_for_steps {mode.name} {step}", lambda: trial.wait_for_steps([step], mode=mode))
            if mode in trial.modes() or mode == modes.GLOBAL:
                self.ask(f"tensor_names {mode.name}", lambda: trial.tensor_names(mode=mode))
                for step in trial.steps(mode=mode)[:LONGEST]:
                    names = lambda: trial.tensor_names(step=step, mode=mode)
                    self.ask(f"tensor_names {mode.name} {step}", names)
        for step in around:
            self.ask(f"mode {step}", lambda: trial.mode(step))
            self.ask(f"mode_step {step}", lambda: trial.mode_step(step))
        for regex in ("weight", "^gradient", [".*bias", ["relu.*"]], "(?<!g)$", "nothing like it", "a|b"):
            self.ask(f"regex {regex}", lambda: trial.tensor_names(regex=regex))
        for name in sorted(trial.collections()):
            self.ask(f"collection {name}", lambda: trial.tensor_names(collection=name))
            self.ask(f"collection {name} object", lambda: trial.tensor_names(collection=trial.collection(name)))
            self.ask(f"collection {name} regex", lambda: trial.collection(name).include_regex)
        trial.collection("mine").include("weight")
        trial.collection("mine").add_tensor_name(trial.tensor_names()[0] if trial.tensor_names() else "none")
        self.ask("collection mine", lambda: trial.tensor_names(collection="mine"))
        self.ask("regex and collection", lambda: trial.tensor_names(regex="a", collection="mine"))
        self.ask("a collection that is none", lambda: trial.tensor_names(collection=12))
        self.ask("no tensor", lambda: trial.tensor("no such tensor"))
        self.ask("has no tensor", lambda: trial.has_tensor("no such tensor"))

    def ask_tensor(self, name):
        trial, modes = self.trial, self.modes
        tensor = trial.tensor(name)
        ask = lambda question, call: self.ask(f"{name}: {question}", call)
        ask("original_name", lambda: tensor.original_name)
        last = max(trial.steps(show_incomplete_steps=True))
        for mode in [modes.GLOBAL, *sorted(trial.modes(), key=lambda one: one.value)]:
            ask(f"steps {mode.name}", lambda: tensor.steps(mode=mode))
            ask(f"all steps {mode.name}", lambda: tensor.steps(mode=mode, show_incomplete_steps=True))
            ask(f"prev_steps {mode.name}", lambda: tensor.prev_steps(last // 2 + 1, n=2, mode=mode))
            ask(f"all prev_steps {mode.name}", lambda: tensor.prev_steps(last // 2 + 1, mode=mode))
            steps = tensor.steps(mode=mode)
            for step in sorted({*steps[:LONGEST], 1, last + 5}):
                ask(f"value {mode.name} {step}", lambda: tensor.value(step, mode=mode))
                ask(f"shape {mode.name} {step}", lambda: tensor.shape(step, mode=mode))
                ask(f"workers {mode.name} {step}", lambda: sorted(tensor.workers(step, mode=mode)))
                stored = lambda: as_numbers(tensor.reduction_values(step, mode=mode))
                ask(f"reduction_values {mode.name} {step}", stored)
                ask(f"bad worker {mode.name} {step}", lambda: tensor.value(step, mode=mode, worker="nobody"))
            for step in steps[:1]:
                for worker in trial.workers():
                    ask(f"value {mode.name} {step} {worker}", lambda: tensor.value(step, mode=mode, worker=worker))
                for reduction in (*REDUCTIONS, "no such reduction"):
                    for of_abs in (False, True):
                        question = f"reduction {mode.name} {step} {reduction} {of_abs}"
                        number = lambda: tensor.reduction_value(step, reduction, mode=mode, abs=of_abs)
                        ask(question, lambda: as_numbers(number()))
        ask("step", lambda: tensor.step(0))


def answers_about(package, path):
    interview = Interview(package, path)
    interview.ask_trial()
    for name in interview.trial.tensor_names():
        interview.ask_tensor(name)
    return interview.answers


def main():
    package, *paths = sys.argv[1:]
    json.dump({path: answers_about(package, path) for path in paths}, sys.stdout)


if __name__ == "__main__":
    main()

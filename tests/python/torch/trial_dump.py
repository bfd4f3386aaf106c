"""A trial as the command line reads it, for tests of what writes it."""

import json
import os
import subprocess

import tornasole


def program():
    return os.path.join(os.path.dirname(tornasole.__file__), "bin", "tornasole")


class TrialDump:
    """What ``tornasole dump`` says of a trial."""

    def __init__(self, directory):
        ran = subprocess.run(
            [program(), "dump", str(directory), "--max-elements", "1000000"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        self.document = json.loads(ran.stdout)
        self.trial = self.document["trial"]
        self.names = self.trial["tensor_names"]
        self.workers = self.trial["workers"]
        self.steps = {mode: steps for mode, steps in self.trial["steps"].items() if steps}

    def names_at(self, step):
        return set(self.trial["tensor_names_by_global_step"].get(str(step), []))

    def collection(self, name):
        return sorted(self.document["collections"][name]["tensor_names"])

    def entries(self):
        """(name, global step, worker) -> what was saved of the tensor then."""
        return {
            (tensor["name"], entry["global_step"], entry["worker"]): entry
            for tensor in self.document["tensors"]
            for entry in tensor["entries"]
        }

    def value(self, name, step, worker="worker_0"):
        """The elements of a tensor at a step, flat."""
        return self.entries()[name, step, worker]["value"]["data"]

    def modes(self):
        """(global step, mode, step of the mode), in order."""
        return [tuple(row) for row in self.trial["global_step_to_mode_step"]]

"""A hook with PyTorch's collections but without PyTorch. In a file of its own: a class that is pickled needs a module."""

import numpy

from tornasole.core.hook import BaseHook


class PlainHook(BaseHook):
    """Begins and ends steps as the test says."""

    _framework = "pytorch"

    def run(self, steps, values=None, mode=None):
        """So many steps, each with the same values; the numbers of those in which something was due."""
        due = []
        for _ in range(steps):
            if self._begin_step(mode):
                due.append(self.mode_steps[self.mode])
                for name, value in (values or {}).items():
                    self._engine_hook.save(name, numpy.asarray(value))
            self._end_step()
        return due

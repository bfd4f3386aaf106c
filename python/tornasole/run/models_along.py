"""Models that are trained along with the one whose calls are steps, as a decoder with its encoder.

1. Which parameters: those that optimizers were given and that no registered model has.
2. Which models: in the first backward passes each call of a module is looked at, and a model that has such parameters
   of its own is a candidate. One that is called again after the registered model was, too, is trained along; what takes
   the place of another is not.
3. Models that come later, as a discriminator that waits for its generator: parameters without a gradient so far have a
   callback each, which costs nothing until their first one comes. That opens the search again.
4. A candidate that came later and is trained for long without a call of the registered model is another training.
5. A registered model that was called before anything was trained, and then is not, was tried out, as for the shapes it
   gives. The candidate takes its place, in the same trial; at once if it has that model as a part.

Presets capture models along; a configuration means one model.
"""

import functools
import os
import weakref
from typing import Callable, Dict, List, Set

import torch

from tornasole.pytorch.attached_callbacks import AttachedToGradient, Callback
from tornasole.pytorch.host_tensors import is_distributed, is_unmade
from tornasole.pytorch.unseen_callbacks import before_forward
from tornasole.run import PRESET_VARIABLE
from tornasole.run.module_calls import ModuleCalls, outermost

_PASSES = 20  # backward passes in which each call of a module is looked at, if that takes no longer
_CALLS = 10_000  # of modules
_PASSES_ALONE = 100  # programs that train two models in turns may well do it in dozens of passes each


def _is_by_preset() -> bool:
    return bool(os.environ.get(PRESET_VARIABLE))


class _Candidate:
    """A model that may be trained along, with a callback where it was called first."""

    def __init__(self, root: torch.nn.Module, called: torch.nn.Module, step: int, passes: int, tell: Callable):
        self.root, self.step, self.passes = weakref.ref(root), step, passes
        self._tell = tell
        self._handle = before_forward(called, Callback(self._called))

    def _called(self, module: torch.nn.Module, _inputs) -> None:
        root = self.root()
        if root is not None and torch.is_grad_enabled():
            self._tell(self, root, module)

    def close(self) -> None:
        self._handle.remove()


class ModelsAlong:
    """The search of one attached process."""

    def __init__(
        self,
        calls: ModuleCalls,
        trained: Callable[[], Dict[int, "weakref.ref[torch.nn.Parameter]"]],
        passes: Callable[[], int],
        begin_another: Callable[[torch.nn.Module], None],
        failed: Callable[[Exception], None],
    ):
        """``trained``: what optimizers were given, by id. ``passes``: backward passes so far. ``begin_another``: the
        training of the hook has ended, and the one of this module begins."""
        self._calls, self._trained, self._passes = calls, trained, passes
        self._begin_another, self._failed = begin_another, failed
        self._hook = None
        self._begun_after = 0  # backward passes
        self._wanted: Set[int] = set()  # parameters, by id, that no registered model has
        self._until = 0  # this backward pass
        self._looks = 0
        self._is_late = self._was_tried_out = False
        self._candidates: List[_Candidate] = []
        self._awaited: Dict[int, AttachedToGradient] = {}  # parameters without a gradient so far
        self._has_come: List[AttachedToGradient] = []  # the first gradient; to be taken off
        self._came: Set[int] = set()
        self._roots = weakref.WeakSet()  # of all trainings

    def begin(self, hook, root: torch.nn.Module) -> None:
        """A training begins, with this model."""
        self._forget()
        self._hook, self._begun_after = hook, self._passes()
        self._roots.add(root)
        self.search()

    def _forget(self) -> None:
        for one in [*self._awaited.values(), *self._has_come]:
            one.remove()
        for candidate in self._candidates:
            candidate.close()
        self._awaited, self._has_come, self._candidates, self._came = {}, [], [], set()
        self._looks, self._is_late = 0, False

    # ---- the first backward passes

    def search(self) -> None:
        """There may be such models: one was registered, or an optimizer was given parameters."""
        if self._hook is None or not self._hook._is_automatic or not self.is_free():
            return
        known = {id(one) for capture in self._hook._live_captures() for _, one in capture.parameters()}
        trained = {key for key, parameter in self._trained().items() if parameter() is not None}
        self._wanted = trained - known
        self._was_tried_out = not trained & known
        if self._wanted and (_is_by_preset() or self._is_untrained()):
            self._until = self._passes() + _PASSES
            self._calls.search(self._look)
        else:
            self._calls.stop()

    def is_free(self) -> bool:
        """Whether nothing else is searched for."""
        return self._calls.look in (None, self._look)

    def _look(self, module: torch.nn.Module) -> None:
        while self._has_come:
            self._has_come.pop().remove()
        self._looks += 1
        if self._passes() >= self._until or self._looks > _CALLS:
            self._calls.stop()
            self._wait_for_gradients()
            return
        if not torch.is_grad_enabled():
            return
        if not any(id(parameter) in self._wanted for parameter in self._calls.weights_of(module)):
            return
        root = outermost(module)
        if root is None or any(known.root() is root for known in self._candidates) or not self._has_own(root):
            return
        parts = set(root.modules())
        if self._is_untrained() and all(capture.root() in parts for capture in self._hook._live_captures()):
            self._take_instead(root, module)
            return
        self._candidates.append(_Candidate(root, module, self._hook.step, self._passes(), self._called_again))

    def _is_untrained(self) -> bool:
        """Whether nothing went back since the registered model was found."""
        return self._passes() == self._begun_after

    def _take_instead(self, root: torch.nn.Module, module: torch.nn.Module) -> None:
        """Calls of this model, where its part ``module`` is called, are the steps from now on."""
        self._forget()
        self._roots.add(root)
        self._hook._register_instead(root, module)
        self.search()

    def _has_own(self, root: torch.nn.Module) -> bool:
        """Whether it has wanted parameters outside the parts that it shares with registered models."""
        registered = self._hook.module_set
        own = [part for part in root.modules() if part not in registered] if root not in registered else []
        return any(id(parameter) in self._wanted for part in own for parameter in part._parameters.values())

    def _called_again(self, candidate: _Candidate, root: torch.nn.Module, module: torch.nn.Module) -> None:
        try:
            if self._hook.step > candidate.step:
                self._drop(candidate)
                if _is_by_preset():
                    self._hook._register_along(root)
                    self.search()
            elif self._was_tried_out and candidate.passes == self._begun_after < self._passes():
                self._take_instead(root, module)
                self._hook._live_captures()[-1].before_forward(module)
            elif self._passes() - candidate.passes >= _PASSES_ALONE:
                self._drop(candidate)
                if self._is_late and root not in self._roots:
                    self._begin_another(module)
        except Exception as error:
            self._failed(error)

    def _drop(self, candidate: _Candidate) -> None:
        candidate.close()
        self._candidates.remove(candidate)

    # ---- later

    def _wait_for_gradients(self) -> None:
        for key in self._wanted - self._came - self._awaited.keys():
            parameter = self._trained()[key]() if key in self._trained() else None
            if not isinstance(parameter, torch.nn.Parameter) or not parameter.requires_grad or not parameter.is_leaf:
                continue
            if parameter.grad is None and not is_distributed(parameter) and not is_unmade(parameter):
                first = Callback(functools.partial(self._first_gradient, key))
                self._awaited[key] = AttachedToGradient(parameter, first)

    def _first_gradient(self, key: int, _gradient: torch.Tensor) -> None:
        """Callbacks of a parameter must not be taken off while they are called."""
        attached = self._awaited.pop(key, None)
        if attached is None:
            return
        self._has_come.append(attached)
        self._came.add(key)
        if self._calls.look is None and self._hook._is_open:
            self._looks, self._is_late = 0, True
            self._until = self._passes() + _PASSES
            self._calls.search(self._look)

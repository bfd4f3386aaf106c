"""Attaches to a framework at the moment a program has imported it."""

import importlib.abc
import importlib.util
import sys
import threading
from typing import Callable, Dict

from tornasole.run import is_wanted


def _attach_torch() -> None:
    from tornasole.run.torch_attachment import attach

    attach()


def _attach_boost() -> None:
    from tornasole.run.boost_attachment import attach

    attach()


def _attach_gluon() -> None:
    from tornasole.run.gluon_attachment import attach

    attach()


def _attach_keras(package: str) -> Callable[[], None]:
    def attach_keras() -> None:
        from tornasole.run.keras_attachment import attach

        attach(package)

    return attach_keras


def _attach_tensorflow() -> None:
    from tornasole.run import session_attachment, tape_attachment

    session_attachment.attach()
    tape_attachment.attach()


def _attach_estimators() -> None:
    from tornasole.run.session_attachment import attach_estimators

    attach_estimators(_ESTIMATORS)


_ESTIMATORS = "tensorflow_estimator.python.estimator.estimator"
_ATTACHMENTS: Dict[str, Callable[[], None]] = {
    "torch": _attach_torch,
    "xgboost": _attach_boost,
    "mxnet": _attach_gluon,
    "keras": _attach_keras("keras"),
    "tf_keras": _attach_keras("tf_keras"),
    "tensorflow": _attach_tensorflow,
    _ESTIMATORS: _attach_estimators,
}


class _Loader(importlib.abc.Loader):
    """A module's own loader, and something to do once the module is whole."""

    def __init__(self, loader, attach: Callable[[], None]):
        self._loader, self._attach = loader, attach

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module) -> None:
        # What others see of the module is as if this loader had never been here.
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            self._attach()
        except Exception as error:
            from tornasole.run.automatic_hook import tell_nothing_is_captured

            tell_nothing_is_captured(error)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self) -> None:
        self._looking_for = threading.local()  # .name: what this thread is asking the other finders for

    def find_spec(self, name, path=None, target=None):
        attach = _ATTACHMENTS.get(name)
        if attach is None or getattr(self._looking_for, "name", None) == name:
            return None
        self._looking_for.name = name  # what the others find is wrapped
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._looking_for.name = None
        if spec is None or spec.loader is None:
            return None
        spec.loader = _Loader(spec.loader, attach)
        return spec


_FINDER = _Finder()


def install() -> None:
    """Attaches to frameworks that are imported from now on, and to those that are imported already."""
    if not is_wanted() or _FINDER in sys.meta_path:
        return
    sys.meta_path.insert(0, _FINDER)
    for name, attach in _ATTACHMENTS.items():
        if name in sys.modules:
            attach()

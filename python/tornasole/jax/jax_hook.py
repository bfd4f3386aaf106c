"""The hook for JAX, which has no modules to listen to: the program hands over its trees of arrays, step by step.

=============  ================================================  ================================================
tensor         name                                              handed over by
=============  ================================================  ================================================
parameter      ``weight/<path>``, ``weight/dense/kernel``;       ``hook.save_parameters(tree)``
               of a bias ``bias/<path>``
gradient       ``gradient/<parameter's name>``                   ``hook.save_gradients(tree)``
loss           ``loss``, or ``<name>/loss``                      ``hook.save_loss(value)``
=============  ================================================  ================================================

The path is that of the leaf in its tree. This file is all that a framework needs: see the page about adding one.
"""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, Tuple

import jax
import numpy

from tornasole.core.guard import guarded
from tornasole.core.hook import BaseHook
from tornasole.modes import ModeKeys

_BIASES = ("bias", "b")


class Hook(BaseHook):
    """Captures tensors of a training with JAX into a trial.

    >>> hook = Hook(out_dir="runs/jax", include_collections=["weights", "gradients"])   # doctest: +SKIP
    >>> with hook.new_step():                                                            # doctest: +SKIP
    ...     hook.save_loss(loss); hook.save_gradients(gradients); hook.save_parameters(parameters)

    The arguments are those of every hook. Call it outside of ``jax.jit``: what is being traced has no value yet, and is
    told of once and left out. At steps of which nothing is due no array is copied from its device.
    """

    _framework = "cpp"  # the engine's collections that belong to no framework
    _framework_version = jax.__version__
    _is_described = False

    @guarded(even_when_off=True)  # a new hook ends a shut-down
    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)

    @contextlib.contextmanager
    def new_step(self, mode: ModeKeys | None = None) -> Iterator["Hook"]:
        """``with hook.new_step():`` what is saved inside is one step, of this mode or of the one that was set."""
        self._begin(mode)
        try:
            yield self
        except BaseException:
            self._end(partial=True)
            raise
        self._end()

    @guarded()
    def _begin(self, mode: ModeKeys | None) -> None:
        self._begin_step(mode)

    @guarded()
    def _end(self, partial: bool = False) -> None:
        self._end_step(partial)

    @guarded()
    def save_parameters(self, parameters: Any) -> None:
        """Saves each leaf of a tree of parameters."""
        if not self._is_due():
            return
        if not self._is_described:
            self._is_described = True
            described = [_description(name, leaf) for name, leaf in _leaves(parameters)]
            self._engine_hook.describe_model({"parameters": described, "versions": {"jax": jax.__version__}})
        for name, leaf in _leaves(parameters):
            self._save(name, leaf)

    @guarded()
    def save_gradients(self, gradients: Any) -> None:
        """Saves each leaf of a tree of gradients, which has the structure of the parameters."""
        if self._is_due():
            for name, leaf in _leaves(gradients):
                self._save(f"gradient/{name}", leaf)

    @guarded()
    def save_loss(self, value: Any, name: str = "") -> None:
        """Saves a loss, as ``loss`` or ``<name>/loss``."""
        if self._is_due():
            self._save(f"{name}/loss" if name else "loss", value)

    def _is_due(self) -> bool:
        return self._engine_hook is not None and self._engine_hook.anything_due()

    def _save(self, name: str, value: Any) -> None:
        try:
            if not self._engine_hook.wants(name):
                return
            if isinstance(value, jax.core.Tracer):
                raise TypeError("it is being traced by jax.jit or jax.grad; hand it over outside of them")
            self._engine_hook.save(name, numpy.asarray(value))
        except Exception as error:
            self._note_failure(f"'{name}'", error)

    def _get_worker_rank(self) -> Tuple[int, int]:
        # Asked only if several processes were joined: otherwise it would make JAX take its devices.
        is_joined = getattr(jax.distributed, "is_initialized", lambda: False)()
        return (jax.process_index(), jax.process_count()) if is_joined else (0, 1)


def _leaves(tree: Any) -> Iterator[Tuple[str, Any]]:
    """(name, array) of each leaf."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        keys = [_text(key) for key in path]
        role = "bias" if keys and keys[-1] in _BIASES else "weight"
        yield "/".join([role, *keys]), leaf


def _text(key: Any) -> str:
    for field in ("key", "name", "idx"):
        if hasattr(key, field):
            return str(getattr(key, field))
    return str(key)


def _description(name: str, leaf: Any) -> dict:
    dtype = str(getattr(leaf, "dtype", ""))
    return {"name": name, "shape": list(numpy.shape(leaf)), "dtype": dtype, "requires_grad": True}

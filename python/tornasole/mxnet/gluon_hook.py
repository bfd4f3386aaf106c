"""The hook for MXNet Gluon: what is captured, under which name, and when.

=====================  ==================================================  =========================================
tensor                 name                                                captured
=====================  ==================================================  =========================================
parameter              ``<parameter's name>``, ``dense0_weight``           when the step ends: after the update
gradient               ``gradient/<parameter's name>``                     the same moment
block input, output    ``<block's name>_input_<i>``, ``..._output_<i>``    after the block's forward pass
loss                   ``<loss block's name>_output_0``                    after the loss block's forward pass
=====================  ==================================================  =========================================

A step begins with each forward pass of a registered block that is no loss, and ends with the next one. Inside a block
that was hybridized nothing can be seen: its own input and output, its parameters and its gradients remain.
"""

from __future__ import annotations

import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import mxnet
from mxnet import autograd
from mxnet.gluon import Block, Parameter
from mxnet.gluon.loss import Loss
from mxnet.ndarray import NDArray

from tornasole.core.collection import CollectionKeys
from tornasole.core.guard import guard, guarded
from tornasole.core.hook import BaseHook
from tornasole.core.older_names import make_tornasole_hook
from tornasole.modes import ModeKeys
from tornasole.mxnet.block_description import block_graph, blocks_of, describe
from tornasole.mxnet.gluon_collection import Collection
from tornasole.mxnet.gluon_workers import rank_and_size

# What needs no look into the parts of a block.
_NOT_OF_BLOCKS = {CollectionKeys.WEIGHTS, CollectionKeys.BIASES, CollectionKeys.GRADIENTS, CollectionKeys.LOSSES}


class Hook(BaseHook):
    """Captures tensors of a training with MXNet Gluon into a trial.

    >>> hook = Hook(out_dir="runs/mnist", save_config=SaveConfig(save_interval=100))  # doctest: +SKIP
    >>> hook.register_block(net); hook.register_block(loss)                           # doctest: +SKIP

    The arguments are those of every hook. After construction no call raises into the training because of a fault of
    the disk, of a value or of this library: what was lost is counted and stands in ``report()``.
    """

    _framework = "mxnet"
    _framework_version = mxnet.__version__
    _collection_class = Collection

    # What a copy has, which captures nothing.
    _is_due = False
    _is_open = False
    _mode_follows_training = False

    @guarded(even_when_off=True)  # a new hook ends a shut-down
    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self.registered_blocks: "weakref.WeakSet[Block]" = weakref.WeakSet()
        self.model: Optional[Block] = None
        self._roots: List[Block] = []
        self._losses: List[Block] = []
        self._step_callbacks: List[Any] = []  # at the roots, as long as the hook is open
        self._value_callbacks: List[Any] = []  # at what is due, for the steps that are
        self._tapped_due_set = 0
        self._numbers: Dict[str, int] = {}  # of the inputs and outputs of each block, in the open step
        self._without_parameters = 0  # a set of what is due in which no parameter and no gradient is
        self._custom: List[Tuple[str, Any, Any]] = []
        self._is_described = True
        self._is_open = True

    # ---- what users call

    @guarded()
    def register_block(self, block: Block) -> None:
        """Captures this block: a loss, or a model, each of whose forward passes is a step.

        What is no block of Gluon, and a block that is registered already, is told of and left alone.
        """
        if not isinstance(block, Block):
            self.logger.error("register_block takes a block of Gluon, not a value of type %s", type(block).__name__)
            return
        if block in self.registered_blocks:
            self.logger.warning("the block %s is registered already", block.name)
            return
        self.registered_blocks.add(block)
        self._without_parameters = 0
        self._is_described = False
        if isinstance(block, Loss):
            self._losses.append(block)
            if self._is_due:
                self._tap(block)
            return
        self.model = block
        self._roots.append(block)
        self._step_callbacks.append(block.register_forward_pre_hook(self.forward_pre_hook))

    def register_hook(self, block: Block) -> None:
        """The same as :meth:`register_block`."""
        self.register_block(block)

    @guarded()
    def save_tensor(self, tensor_name: str, tensor_value, collections_to_write="default") -> None:
        """Saves a value in the next step that begins, if one of these collections is due then.

        The collections are created and included if need be. A value that is no array and cannot be made one is told of
        and left out.
        """
        if not self._is_open:
            return
        value = tensor_value.asnumpy() if isinstance(tensor_value, NDArray) else tensor_value
        array = self._as_array(tensor_name, value)
        if array is not None:
            names = self._name_in_collections(collections_to_write, tensor_name)
            self._custom.append((tensor_name, array.copy() if hasattr(array, "copy") else array, names))

    def set_mode(self, mode: ModeKeys) -> None:
        """Sets the mode of the steps to come; ends the open step if the mode changes. Counts nothing."""
        if isinstance(mode, ModeKeys) and mode is not self.mode:
            self._end_step()
        super().set_mode(mode)

    # ---- called by Gluon

    @guarded()
    def forward_pre_hook(self, block: Block, inputs) -> None:
        """The forward pass of a root begins, and with it a step."""
        if not self._is_open:
            return
        self._end_step()
        follows = ModeKeys.TRAIN if autograd.is_training() else ModeKeys.EVAL
        self._is_due = self._begin_step(follows if self._mode_follows_training else None)
        self._save_custom()
        if self._is_due:
            self._numbers.clear()
            self._engine_hook.set_facts({"training": autograd.is_training(), "grad_enabled": autograd.is_recording()})
            self._tap_what_is_due()
        elif self._value_callbacks:
            self._untap()

    @guarded()
    def forward_hook(self, block: Block, inputs, outputs) -> None:
        """The forward pass of a block is done."""
        if not self._is_due:
            return
        engine = self._engine_hook
        for place, values in ((f"{block.name}_input", inputs), (f"{block.name}_output", outputs)):
            for value in _arrays(values):
                number = self._numbers.get(place, 0)  # a block that is called several times in a step is numbered on
                self._numbers[place] = number + 1
                name = f"{place}_{number}"
                if engine.wants(name):  # to have the values of an array takes long
                    self._saved(name, lambda name=name, value=value: engine.save(name, value.asnumpy()))

    # ---- steps

    def _end_step(self, partial: bool = False) -> None:
        """Parameters and gradients as they are now belong to the step that ends."""
        if self._is_due and not guard.disable_smdebug:
            self._is_due = False
            if not self._is_described:
                self._is_described = True
                self._engine_hook.describe_model(describe(self._roots, self._losses))
                self._save_graph()
            due_set = self._engine_hook.due_set()
            if due_set != self._without_parameters and not any([self._save_parameter(p) for p in self._parameters()]):
                self._without_parameters = due_set
        super()._end_step(partial)

    def _save_graph(self) -> None:
        if self.tensorboard_dir and self.model is not None:
            graph = block_graph(self.model)
            if graph is not None:
                self._engine_hook.save_graph(graph)

    def _parameters(self) -> Iterator[Parameter]:
        """Each once, in the order of the blocks."""
        seen = set()
        for parameter in (p for root in self._roots for block in blocks_of(root) for p in block.params.values()):
            if parameter.name not in seen:
                seen.add(parameter.name)
                yield parameter

    def _save_parameter(self, parameter: Parameter) -> bool:
        """False if nobody wants it, nor its gradient."""
        engine, name = self._engine_hook, parameter.name
        gradient = f"gradient/{name}"
        is_wanted, is_gradient_wanted = engine.wants(name), engine.wants(gradient)
        if is_wanted:
            self._saved(name, lambda: engine.save(name, parameter.data(parameter.list_ctx()[0]).asnumpy()))
        if is_gradient_wanted and parameter.grad_req != "null":
            self._saved(gradient, lambda: engine.save(gradient, parameter.grad(parameter.list_ctx()[0]).asnumpy()))
        return is_wanted or is_gradient_wanted

    def _saved(self, name: str, save: Callable[[], None]) -> None:
        try:
            save()
        except Exception as error:  # a parameter without a value yet, among others
            self._note_failure(f"'{name}'", error)

    def _save_custom(self) -> None:
        """What the user saved since the last step began belongs to the one that is open now."""
        for name, array, collections in self._custom:
            self._engine_hook.save_tensor(name, array, collections)
        self._custom.clear()

    # ---- callbacks at blocks are there in steps that need them, and in no others

    def _tap_what_is_due(self) -> None:
        due_set = self._engine_hook.due_set()
        if self._value_callbacks and due_set == self._tapped_due_set:
            return
        self._untap()
        self._tapped_due_set = due_set
        needs_parts = bool(set(self._engine_hook.due_collections()) - _NOT_OF_BLOCKS)
        for root in self._roots:
            for block in blocks_of(root) if needs_parts else (root,):
                self._tap(block)
        for loss in self._losses:
            self._tap(loss)

    def _tap(self, block: Block) -> None:
        self._value_callbacks.append(block.register_forward_hook(self.forward_hook))

    def _untap(self) -> None:
        for callback in self._value_callbacks:
            callback.detach()
        self._value_callbacks.clear()

    # ---- asked by the base

    def _get_worker_rank(self) -> Tuple[int, int]:
        return rank_and_size()

    def _tensor_name_of(self, arg: object) -> Optional[str]:
        return arg.name if isinstance(arg, Parameter) else None

    @guarded(even_when_off=True)
    def close(self) -> None:
        """Ends the run and takes every callback off the blocks.

        What is left is written, then the end marker. Later calls are ignored with one warning.
        """
        if self._is_open:
            self._save_custom()
            self._end_step()
            self._is_open = False
            self._untap()
            for callback in self._step_callbacks:
                callback.detach()
            self._step_callbacks.clear()
        super().close()


def _arrays(values: Any) -> Iterator[NDArray]:
    """The arrays in a value, through tuples, lists and dicts; a block that is being traced has symbols instead."""
    if isinstance(values, NDArray):
        yield values
    elif isinstance(values, (tuple, list, dict)):
        for value in values.values() if isinstance(values, dict) else values:
            yield from _arrays(value)


TornasoleHook = make_tornasole_hook(Hook)

"""Capture of one registered root module.

1. A callback before the root's forward pass is all that hangs on the model between the steps that are saved. It begins
   the step and asks the engine whether anything is due.
2. At a due step it gives the parameters to the engine, and hangs taps on modules and parameters: on those whose tensors
   are wanted by the collections that are due now. Steps that want the same tensors share one set of taps, which stays
   as long as such steps follow each other and goes with the first that differs.
3. Which modules are wanted is known once they ran: at the first step of a kind every module has a tap, after the root's
   forward pass those without a wanted tensor lose it.

The callback belongs to the module and the capture to the callback, which keeps no module: a model that nobody needs any
more goes at once, as it would without them. Where parts of it live on, as those of a wrapper that is made for one call,
the taps on them go with the root: no step begins any more that could end the last one. Gradients of that may still come.

A model may be trained along with another, as a decoder with its encoder: its calls begin no steps, and what is captured
of it is captured in the steps of the other. It has no callback; its capture goes with it. Parts and parameters that it
shares with models that were registered before are theirs.
"""

import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple, Union

import torch

from tornasole import _engine
from tornasole.core.edits import edits
from tornasole.core.guard import guard
from tornasole.modes import ModeKeys
from tornasole.pytorch.attached_callbacks import Attached, AttachedToGradient, Callback, is_compiling, is_tracing
from tornasole.pytorch.functional_taps import FunctionalTaps
from tornasole.pytorch.host_tensors import is_distributed, is_unmade, local_part
from tornasole.pytorch.kept_gradients import KeptGradientTap, watched
from tornasole.pytorch.module_names import ModuleNames, is_compiled
from tornasole.pytorch.other_entry import OtherEntry
from tornasole.pytorch.unseen_callbacks import before_forward

GRADIENT_PREFIX = "gradient/"
_TRAIN = ModeKeys.TRAIN.value
_NOTHING_TO_DO, _NOT_CALM = -1, -2  # what CalmStep says
_MAX_SETS = 32  # of taps; a schedule that changes at each step must not pile them up


class _Taps:
    """What hangs on the model at steps that want the same tensors."""

    def __init__(self):
        self.parameters: Optional[_engine.TensorList] = None
        self.attached: List[Union[Attached, AttachedToGradient]] = []
        self.unsettled: List[Tuple[_engine.ForwardTap, Attached]] = []  # nothing is known of these modules yet
        self.follows_structure = False  # holds parameters, or modules that others might take the place of

    def needs_end(self, captures_functions: bool) -> bool:
        """Whether there is something to do at the end of the root's forward pass."""
        return bool(self.unsettled) or (captures_functions and self.follows_structure)

    def attach(self) -> None:
        for attached in self.attached:
            attached.attach()

    def detach(self) -> None:
        for attached in self.attached:
            attached.detach()


class _StepCallback(Callback):
    """Called before each forward pass that begins a step: ``before_forward`` of a capture, in one frame where all is as
    in the step before."""

    __slots__ = ("_begin_calm",)

    def __init__(self, capture: "ModelCapture"):
        super().__init__(capture._begin)
        self._begin_calm = capture._calm.begin_calm

    def __call__(self, module, _inputs) -> None:
        if is_compiling() or is_tracing():
            return
        try:
            due_set = self._begin_calm(module)
            if due_set != _NOTHING_TO_DO:
                self._function(module, due_set)
        except Exception as error:
            self._function.__self__._hook._note_failure("the forward pass", error)


def call_order(root: str, ends: Iterable[Tuple[str, int]]) -> Dict[str, int]:
    """Module -> its place in the order in which modules began, from the order in which they ended (negative: never).

    A module begins no later than the first of its parts, and before it where both are said to begin together. The
    root's name is no part of the others' paths.
    """
    began = {name: end for name, end in ends if end >= 0}
    if root in began:
        began[root] = -1
    for name in sorted(began, key=began.get):
        parent = name
        while "." in parent:
            parent = parent.rpartition(".")[0]
            if parent in began:
                began[parent] = min(began[parent], began[name])
    in_order = sorted(began, key=lambda name: (began[name], name.count(".")))
    return {name: place for place, name in enumerate(in_order)}


class ModelCapture:
    """The callbacks and taps of one root module, and what they know of it."""

    def __init__(
        self,
        hook,
        root: torch.nn.Module,
        names: ModuleNames,
        entry: Optional[torch.nn.Module] = None,
        begins_steps: bool = True,
    ):
        """``entry``: the part of the root whose forward pass begins a step, where the root itself is not called."""
        self.names = names
        self.begins_steps = begins_steps
        self.is_compiled = is_compiled(root)
        self._has_root_pass = begins_steps and not self.is_compiled and (entry is None or entry is root)
        self._hook = hook
        self._engine = hook._engine_hook
        self._replaced = hook._replaced_callbacks.methods  # by a subclass, which then captures what they stand for
        self._root = weakref.ref(root)
        self._places: List[Tuple] = []  # (dict of the module, key, parameter, requires_grad) or (dict, key, part, None)
        self._sizes: List[Tuple[Dict, int]] = []
        self._parameters: List[Tuple[str, torch.nn.Parameter]] = []
        self.trained: Set[str] = set()  # names of parameters that were to be, when their tensors were last looked at
        self._modules: List[Tuple[str, "weakref.ref[torch.nn.Module]"]] = []
        self.call_order: Dict[str, int] = {}  # of the modules that were called, once that was seen
        self._taps: Dict[int, _Taps] = {}
        self._hanging: Optional[_Taps] = None
        self._compiled_call: Optional[Tuple[Callable, Callable, Callable]] = None  # of which module, in place of what
        # What a root that was registered before was compiled into.
        self._compiled: Optional["weakref.ref[torch.nn.Module]"] = None
        self._pass = _engine.PassEnd()
        self._pass.set_used(self._has_root_pass)
        # A step that wants what the one before wanted needs no look at anything, while nothing changed: see _is_calm.
        self._calm = _engine.CalmStep(self._engine, self._pass, hook._state, edits)
        this = weakref.ref(self)
        self._at_end = lambda: this().after_forward()  # the pass must not keep its owner
        self._functional: Optional[FunctionalTaps] = None
        self._find_structure(root)
        self._other_entry: Optional[OtherEntry] = None
        self._handle: Any = None  # of what begins steps
        begins = root if entry is None else entry
        self._begins = weakref.ref(begins)
        if not begins_steps:
            weakref.finalize(root, self._take_off_parts).atexit = False
        elif getattr(begins, "_compiled_call_impl", None) is not None:
            self._begin_at_compiled_call(begins)
        else:
            self._handle = before_forward(begins, _StepCallback(self))

    def become_compiled(self, compiled: Optional[torch.nn.Module]) -> None:
        """The root was compiled after it was registered, into another module or in its place.

        Its own callbacks would be part of the compiled code; from now on a step begins where that code is called.
        """
        self._forget()
        self.is_compiled, self._has_root_pass = True, False
        if not self.begins_steps:
            self._compiled = None if compiled is None else weakref.ref(compiled)
            return
        if self._handle is not None:
            self._handle.remove()
        self._pass.set_used(False)
        if compiled is not None:
            self._compiled = weakref.ref(compiled)  # its name and structure are those of the root
            self._handle = before_forward(compiled, _StepCallback(self))
            return
        root = self._root()
        if root is not None:
            self._begin_at_compiled_call(root)

    def _begin_at_compiled_call(self, module: torch.nn.Module) -> None:
        """A step begins where this module is called, which was compiled in place: its callbacks are compiled with it."""
        run, known = module._compiled_call_impl, weakref.ref(module)

        def begin_and_run(*arguments, **keywords):
            called = known()
            if called is not None and not is_compiling() and not is_tracing():
                self.before_forward(called)
            return run(*arguments, **keywords)

        module._compiled_call_impl = begin_and_run
        self._compiled_call = known, begin_and_run, run

    def begin_at(self, part: torch.nn.Module, passes: Callable[[], int]) -> None:
        """From now on a call of this part, where the root is not running, begins a step too: see OtherEntry."""
        root, usual = self._root(), self._begins()
        if part is usual:
            return
        if self._other_entry is not None:
            self._other_entry.add(part)
        elif root is not None and usual is not None:
            self._other_entry = OtherEntry(self, root, usual, part, passes)

    def uncaptured(self) -> List[str]:
        """Modules whose inputs and outputs cannot be had, by name: they run inside compiled code, or take no callbacks."""
        return [
            name
            for i, (name, module) in enumerate(self.modules())
            if (self.is_compiled and i > 0)
            or getattr(module, "_compiled_call_impl", None) is not None
            or isinstance(module, torch.jit.RecursiveScriptModule)
        ]

    # ---- the model

    def root(self) -> Optional[torch.nn.Module]:
        return self._root()

    def parameters(self) -> List[Tuple[str, torch.nn.Parameter]]:
        """(name, parameter) of every parameter of the root."""
        return self._parameters

    def modules(self) -> List[Tuple[str, torch.nn.Module]]:
        """(name, module), the root first."""
        return [(name, module) for name, known in self._modules for module in [known()] if module is not None]

    def _find_structure(self, root: torch.nn.Module) -> None:
        others = [] if self.begins_steps else [one for one in self._hook._live_captures() if one is not self]
        theirs = {id(module) for other in others for _, module in other.modules()}
        self._modules = [(name, weakref.ref(part)) for name, part in self.names.modules() if id(part) not in theirs]
        self._parameters, self._places, self._sizes, self.trained = [], [], [], set()
        self.call_order = {}
        seen = {id(parameter) for other in others for _, parameter in other.parameters()}
        for dotted, module in root.named_modules():
            if id(module) in theirs:
                continue
            is_scripted = isinstance(module, torch.jit.ScriptModule)  # has no dicts, and what it has stays
            if not is_scripted:
                self._sizes += [(module._parameters, len(module._parameters)), (module._modules, len(module._modules))]
                self._places += [(module._modules, key, part, None) for key, part in module._modules.items()]
            for key, parameter in module._parameters.items():
                if parameter is None or id(parameter) in seen:
                    continue
                seen.add(id(parameter))
                name = self.names.parameter(f"{dotted}.{key}" if dotted else key)
                self._parameters.append((name, parameter))
                if parameter.requires_grad:
                    self.trained.add(name)
                if not is_scripted:
                    self._places.append((module._parameters, key, parameter, parameter.requires_grad))

    # ---- steps

    def before_forward(self, module) -> None:
        """A forward pass of the root is about to begin."""
        _StepCallback(self)(module, ())

    def _begin(self, module, due_set: int) -> None:
        """A forward pass begins, and ``begin_calm`` said this: there is more to do."""
        hook = self._hook
        if due_set != _NOT_CALM:
            self._begun(module, due_set)
            return
        if guard.disable_smdebug or not hook._is_open:
            return
        mode = None
        if hook._mode_follows_training:
            if _engine.is_in_backward():
                return
            mode = hook._mode_of(module)
        if hook._copies.is_busy or edits.count != hook._seen_edits:
            if _engine.is_in_backward():
                return
            hook._prepare_step()
        due_set = self._calm.begin(mode, module.training)
        if due_set != _NOTHING_TO_DO:
            self._begun(module, due_set)

    def _begun(self, module, due_set: int) -> None:
        """A step has begun, and this is due: nothing, what was due before, or something else."""
        hook = self._hook
        if due_set == 0:
            if self._hanging is not None:
                self._detach()
                for capture in hook._trained_along():
                    capture._detach()
                hook._nothing_is_due()
            self._arm(due_set)
        elif self._calm.is_armed() and due_set == self._calm.due_set and not self._hanging.follows_structure:
            hook._step_is_calm(self._last_module)
            self._set_usual(module)
            self._arm(due_set)  # what optimizers know may be told in another way from now on
        else:
            self._begin_due_step(module, due_set)

    def _begin_due_step(self, module, due_set: int) -> None:
        taps = self._hang(due_set, module)
        along = [capture._join(due_set) for capture in self._hook._trained_along()]
        if self._has_root_pass:
            self._pass.open()
            self._pass.set_listener(self._at_end if taps.needs_end(self._hook._captures_functions) else None)
        if self._has_root_pass and taps.follows_structure and self._hook._captures_functions and FunctionalTaps:
            self._functional = FunctionalTaps(
                self._hook._save_or_rescue, {id(submodule): name for name, submodule in self.modules()}
            )
            self._functional.start()
        self._last_module = weakref.ref(module)
        self._hook._step_is_due(module)
        self._set_usual(module)
        if self._is_calm(taps) and not any(one.unsettled or one.follows_structure for one in along):
            self._arm(due_set)
        else:
            self._calm.disarm()
        for one in [taps, *along]:
            if one.parameters is not None:
                one.parameters.save()

    def _join(self, due_set: int) -> _Taps:
        """A step of the model that this one is trained along with has begun."""
        if self._hanging is not None and self._hanging.unsettled:
            self.after_forward()  # it was called in the step before, if at all
        return self._hang(due_set, self._root())

    def _hang(self, due_set: int, root: Optional[torch.nn.Module]) -> _Taps:
        """The taps of steps that want the same, which are on the model from now on."""
        taps = self._taps.get(due_set)
        if (taps is None or taps.follows_structure) and not self._known(taps).is_unchanged():
            self._forget()
            self._find_structure(self._root() or root)
            self._hook._model_changed()
            taps = None
        if taps is not self._hanging or taps is None:
            self._detach()
            if taps is None:
                taps = self._make_taps(due_set)
            else:
                taps.attach()
            self._hanging = taps
        return taps

    def _set_usual(self, module) -> None:
        hook = self._hook
        self._calm.set_usual(hook._facts is None and hook._has_pass_gradients and module.training)

    def _arm(self, due_set: int) -> None:
        hook = self._hook
        mode = _TRAIN if hook._mode_follows_training else None
        rates = model = None
        if due_set > 0:
            rates = hook._optimizers.rate_tap()
            model = self._known(self._hanging) if self._hanging.follows_structure else None
        self._calm.arm(due_set, hook._seen_edits, mode, rates, model)

    def _known(self, taps: Optional[_Taps]) -> _engine.KnownModel:
        return _engine.KnownModel(self._places, self._sizes, None if taps is None else taps.parameters)

    def _is_calm(self, taps: _Taps) -> bool:
        """Whether the next step like this one needs nothing of Python: what hangs on the model does it all."""
        follows_calls = taps.follows_structure and self._hook._captures_functions
        return not taps.unsettled and not follows_calls and self._hook._needs_nothing_at_begin()

    def after_forward(self) -> None:
        """The root's forward pass is over: modules that gave nothing anybody wants are left alone from here on."""
        if self._functional is not None:
            self._functional.stop()
        taps = self._hanging
        if taps is None or not taps.unsettled:
            return
        if not self.call_order:
            self.call_order = call_order(self.names.root, ((tap.name, tap.first_call) for tap, _ in taps.unsettled))
            self._hook._describe_model()
        wants = self._engine.wants
        still_unknown, dropped = [], set()
        for tap, attached in taps.unsettled:
            if tap.calls == 0:
                still_unknown.append((tap, attached))
            elif not any(wants(f"{tap.name}_input_{i}") for i in range(tap.inputs)) and not any(
                wants(f"{tap.name}_output_{i}") for i in range(tap.outputs)
            ):
                attached.detach()
                dropped.add(attached)
        taps.unsettled = still_unknown
        if dropped:
            taps.attached = [attached for attached in taps.attached if attached not in dropped]
        of_pass = 1 if self._has_root_pass else 0  # one is the end of the root's pass
        taps.follows_structure = taps.parameters is not None or len(taps.attached) > of_pass

    # ---- taps

    def _make_taps(self, due_set: int) -> _Taps:
        taps = _Taps()
        taps.follows_structure = True
        engine, rescue = self._engine, self._hook._rescue
        tapped = []
        with torch.no_grad():
            for name, parameter in self._parameters:
                if is_unmade(parameter):
                    self._places.append(({}, name, None, False))  # looked at again at the next due step
                    continue
                if engine.wants(name):
                    if taps.parameters is None:
                        taps.parameters = _engine.TensorList(engine, rescue)
                    taps.parameters.add(name, local_part(parameter))
                if "backward_hook" in self._replaced:
                    continue
                if parameter.requires_grad and engine.wants(GRADIENT_PREFIX + name):
                    if is_distributed(parameter):
                        self._tap_shard(taps, GRADIENT_PREFIX + name, parameter)
                        continue
                    taps.attached.append(
                        AttachedToGradient(parameter, _engine.GradientTap(engine, GRADIENT_PREFIX + name, rescue))
                    )
                    tapped.append((name, parameter))
        leaves = [(name, parameter) for name, parameter in tapped if parameter.is_leaf]  # others have no .grad
        for name, parameter in watched(leaves) if self._hook._is_asked_for_rates else []:
            taps.attached.append(AttachedToGradient(parameter, KeptGradientTap(self._hook, name, parameter)))
        out_of_reach = set(self.uncaptured())
        compiled = None if self._compiled is None else self._compiled()
        hidden: List[Tuple[str, bool]] = []
        for i, (name, module) in enumerate([] if "forward_hook" in self._replaced else self.modules()):
            if name not in out_of_reach:
                # The wrapper around compiled code is called outside it.
                self._tap_module(taps, name, compiled if i == 0 and compiled is not None else module)
            elif engine.wants(f"{name}_output_0") or engine.wants(f"{name}_input_0"):
                hidden.append((name, isinstance(module, torch.jit.RecursiveScriptModule)))
        for is_scripted in (False, True):
            self._hook._cannot_capture([name for name, known in hidden if known is is_scripted], is_scripted)
        root = self._root()
        if root is not None and self._has_root_pass:
            taps.attached.append(Attached.to_module(root, self._pass, even_on_error=self._hook._captures_functions))
        if len(self._taps) > _MAX_SETS:
            self._forget()
        self._taps[due_set] = taps
        return taps

    def _tap_shard(self, taps: _Taps, name: str, parameter: torch.nn.Parameter) -> None:
        """The gradient of a distributed parameter passes no callback: it is read where it was put together."""
        hook = weakref.ref(self._hook)

        def save(parameter):
            target = hook()
            if target is not None and parameter.grad is not None:
                target._save_or_rescue(name, local_part(parameter.grad))

        callback = Callback(save)
        handle = parameter.register_post_accumulate_grad_hook(callback)
        taps.attached.append(Attached(handle, parameter._post_accumulate_grad_hooks, callback))

    def _tap_module(self, taps: _Taps, name: str, module: torch.nn.Module) -> None:
        tap = _engine.ForwardTap(self._engine, name, self._hook._rescue)
        attached = Attached.to_module(module, tap)
        taps.attached.append(attached)
        taps.unsettled.append((tap, attached))

    def _detach(self) -> None:
        self._calm.disarm()
        if self._hanging is not None:
            self._hanging.detach()
            self._hanging = None

    def _forget(self) -> None:
        self._calm.disarm()
        self._hanging = None
        for taps in self._taps.values():
            for attached in taps.attached:
                attached.remove()
        self._taps.clear()

    def __del__(self):
        try:
            if self._hanging is not None:
                self._hook._coming_gradients += [one for one in self._hanging.attached if not one.is_on_module]
                self._hanging.attached = [one for one in self._hanging.attached if one.is_on_module]
            self._take_off_parts()
        except Exception:
            pass  # half made, or at the end of the interpreter

    def _take_off_parts(self) -> None:
        self._forget()
        if self._other_entry is not None:
            self._other_entry.close()

    def close(self) -> None:
        """Takes everything off the model."""
        self._take_off_parts()
        self._pass.set_listener(None)
        if self._compiled_call is not None:
            known, ours, run = self._compiled_call
            module = known()
            if module is not None and module._compiled_call_impl is ours:
                module._compiled_call_impl = run
        if self._handle is not None:
            self._handle.remove()

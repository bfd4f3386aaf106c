"""Presets of frameworks whose steps are chosen beforehand, not by a budget: MXNet, sessions of TensorFlow."""

from typing import Optional

from tornasole import ReductionConfig, SaveConfig

_STATISTICS = ("weights", "biases", "gradients")  # of the preset standard
_REDUCTIONS = {"reductions": ["min", "max", "mean", "std"], "abs_reductions": ["mean"], "norms": ["l2"]}


def make_preset_hook(hook_class, name: str, out_dir: Optional[str]):
    """A hook configured by a preset: losses in every step, and besides them what the preset says."""
    every, now_and_then = SaveConfig(save_interval=1), SaveConfig(save_interval=100, save_steps=list(range(10)))
    is_full, is_standard = name == "full", name == "standard"
    hook = hook_class(
        out_dir=out_dir,
        save_config=now_and_then if is_full else every,
        save_all=is_full,
        include_collections=list(_STATISTICS) if is_standard else None,
        warn_unmatched=False,
    )
    hook.get_collection("losses").save_config = every
    if is_standard:
        for collection in map(hook.get_collection, _STATISTICS):
            collection.save_config = now_and_then
            collection.reduction_config = ReductionConfig(**_REDUCTIONS)
    return hook

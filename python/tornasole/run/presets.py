"""Ready-made configurations for ``tornasole run``, as arguments of a hook."""

from typing import Any, Dict

# At no step of any training: the schedule of collections whose steps are chosen while it runs.
NEVER = 10**15

_STATISTICS = {
    "reductions": ["min", "max", "mean", "std"],
    "abs_reductions": ["mean"],
    "norms": ["l2"],
}
# What the preset ``standard`` keeps statistics of, at the steps the cost budget allows.
BUDGETED = ("weights", "biases", "gradients", "optimizer_gradients", "activations")
NAMES = ("light", "standard", "full")


def preset_options(name: str) -> Dict[str, Any]:
    """The keyword arguments of a hook for a preset; the collections it makes are in ``configure``."""
    from tornasole import ReductionConfig, SaveConfig

    if name == "light":
        return {"save_config": SaveConfig(save_interval=1), "include_collections": ["optimizer_variables"]}
    if name == "standard":
        return {
            "save_config": SaveConfig(save_interval=1),
            "include_collections": [*BUDGETED, "optimizer_variables"],
            "reduction_config": ReductionConfig(**_STATISTICS),
            "derived": ["counts"],
        }
    if name == "full":
        return {
            "save_config": SaveConfig(save_interval=100, save_steps=list(range(10))),
            "save_all": True,
            "include_collections": ["optimizer_gradients", "optimizer_variables"],
        }
    raise ValueError(f"there is no preset {name!r}; there are {', '.join(NAMES)}")


def configure(hook, name: str) -> None:
    """What a preset asks of single collections."""
    from tornasole import ReductionConfig, SaveConfig

    if name in ("light", "standard"):
        # The learning rates are wanted, the tensors of the optimizer's state are not.
        hook.get_collection("optimizer_variables").save_config = SaveConfig(save_interval=NEVER, start_step=1)
    if name == "standard":
        activations = hook.get_collection("activations")
        activations.include(r"_output_\d+$")
        activations.exclude(r"([Ll]oss|cross_entropy)[^.]*_output_\d+$")
        for collection in BUDGETED:
            hook.get_collection(collection).save_config = SaveConfig(save_interval=NEVER, start_step=1)
        hook.get_collection("optimizer_gradients").reduction_config = ReductionConfig(**_STATISTICS)

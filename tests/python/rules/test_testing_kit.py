"""The test kit: each sick run is flagged by the rule it is made for, and the healthy one that looks alike is not."""

import pytest

import tornasole
from tornasole.exceptions import SMDebugValueError
from tornasole.rules import configs, run_rules
from tornasole.testing import healthy_run, kinds, sick_run

AGAINST = {
    "exploding_gradients": configs.exploding_tensor(collection_names="gradients"),
    "vanishing_gradients": configs.vanishing_gradient(tensor_regex="^gradient/fc0"),
    "dead_relus": configs.dead_relu(min_samples=8),
    "saturated_activations": configs.saturated_activation(),
    "loss_not_decreasing": configs.loss_not_decreasing(num_steps=20, diff_percent=2, mode="TRAIN"),
    "unchanged_weights": configs.unchanged_tensor(collection_names="weights"),
    "zero_weights": configs.all_zero(tensor_regex="^fc1.weight"),
    "overfit": configs.overfit(start_step=100, patience=3, ratio_threshold=0.5),
    "class_imbalance": configs.class_imbalance(),
    "large_updates": configs.weight_update_ratio(large_threshold=2),
    "poor_initialization": configs.poor_weight_initialization(distribution_range=0, patience=100, threshold=10),
    "kept_gradients": configs.missing_zero_grad(),
    "nan_in_data": configs.exploding_tensor(only_nan=True),
}


def test_every_kind_is_here():
    assert [kind.name for kind in kinds()] == list(AGAINST)
    assert all(kind.sick and kind.healthy for kind in kinds())


@pytest.mark.parametrize("kind", AGAINST)
def test_a_rule_tells_sick_from_healthy(kind, tmp_path):
    (sick,) = run_rules([AGAINST[kind]], sick_run(kind, tmp_path / "sick"))
    (healthy,) = run_rules([AGAINST[kind]], healthy_run(kind, tmp_path / "healthy"))
    assert sick.error is None and healthy.error is None
    assert sick.steps_met, sick.report
    assert not healthy.steps_met, healthy.violations[:3]


def test_the_same_seed_gives_the_same_run(tmp_path):
    seeds = {"one": 7, "same": 7, "other": 8}
    one, same, other = (sick_run("dead_relus", tmp_path / name, steps=3, seed=seed) for name, seed in seeds.items())
    values = [trial.tensor("fc1.weight").value(2).tobytes() for trial in (one, same, other)]
    assert values[0] == values[1] != values[2]
    assert len(one.steps()) == 3 and one.loaded_all_steps


def test_a_run_says_what_check_needs(tmp_path):
    report = tornasole.check(sick_run("unchanged_weights", tmp_path / "run"))
    assert "FrozenLayers" in [verdict.rule for verdict in report.verdicts]


def test_an_unknown_kind(tmp_path):
    with pytest.raises(SMDebugValueError, match="'gloomy'; there are exploding_gradients, vanishing_gradients"):
        sick_run("gloomy", tmp_path / "run")

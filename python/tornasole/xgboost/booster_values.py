"""What a booster tells about itself: importances, contributions, trees, as arrays."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterator, List, Tuple

import numpy
import xgboost

TREE_BOOSTERS = ("gbtree", "dart")
IMPORTANCE_TYPES = ("weight", "gain", "cover", "total_gain", "total_cover")
BIAS = "bias"  # the last column of the contributions
TREE_COLUMNS = ("Tree", "Node", "ID", "Feature", "Split", "Yes", "No", "Missing", "Gain", "Cover", "Category")
_TEXT_COLUMNS = ("ID", "Feature", "Yes", "No", "Missing", "Category")
_NAN = float("nan")


def release_of(version: str) -> Tuple[int, int]:
    """Major and minor number of a version of XGBoost."""
    major, minor = (version.split(".") + ["0"])[:2]
    return int(major), int(minor)


def booster_kind(booster: xgboost.Booster) -> str:
    """``gbtree``, ``dart`` or ``gblinear``."""
    return json.loads(booster.save_config())["learner"]["gradient_booster"]["name"]


def rounds_of(model: Any) -> int:
    """How many rounds a model has been boosted; 0 for what cannot tell, as the folds of ``xgboost.cv``."""
    return model.num_boosted_rounds() if isinstance(model, xgboost.Booster) else 0


def feature_names_of(booster: xgboost.Booster) -> List[str]:
    """The names of the features; ``f0``, ``f1`` ... if the data has none."""
    names = booster.feature_names
    return list(names) if names else [f"f{index}" for index in range(booster.num_features())]


def importances(booster: xgboost.Booster) -> Iterator[Tuple[str, float]]:
    """(``<type>/<feature>``, share of the total of its type) of each feature that a tree uses."""
    weight = booster.get_score(importance_type="weight")
    totals = {kind: booster.get_score(importance_type=f"total_{kind}") for kind in ("gain", "cover")}
    # Averages over the splits, in XGBoost's own precision: three passes over all trees instead of five.
    averages = {
        kind: {name: float(numpy.float32(sums[name]) / numpy.float32(max(1.0, weight[name]))) for name in sums}
        for kind, sums in totals.items()
    }
    scores = {
        "weight": weight,
        "gain": averages["gain"],
        "cover": averages["cover"],
        "total_gain": totals["gain"],
        "total_cover": totals["cover"],
    }
    for kind in IMPORTANCE_TYPES:
        total = sum(scores[kind].values())
        for name, score in scores[kind].items():
            yield f"{kind}/{name}", score / total if total else 0.0


def average_contributions(contributions: numpy.ndarray) -> numpy.ndarray:
    """Sum of the magnitudes over all rows (and classes), one number for each feature and the bias."""
    rows = contributions.reshape(-1, contributions.shape[-1])
    return numpy.abs(rows).sum(axis=0, dtype=numpy.float64).astype(contributions.dtype)


def tree_table(booster: xgboost.Booster, boosted_round: int) -> Dict[str, numpy.ndarray]:
    """The trees of one round, a column each, sorted by tree and node: the columns of ``trees_to_dataframe``.

    Only the round is read, however many the booster has. A round has several trees with several classes, or with
    ``num_parallel_tree``.
    """
    dumps = _dumped_round(booster, boosted_round)
    first_tree = boosted_round * len(dumps)
    nodes = [node for index, tree in enumerate(dumps) for node in sorted(_nodes(tree, first_tree + index))]
    columns = dict(zip(TREE_COLUMNS, zip(*nodes)))
    types = {"Tree": numpy.int64, "Node": numpy.int64, **dict.fromkeys(_TEXT_COLUMNS, numpy.str_)}
    # Category came with XGBoost 1.5.
    wanted = TREE_COLUMNS if release_of(xgboost.__version__) >= (1, 5) else TREE_COLUMNS[:-1]
    return {name: numpy.array(columns[name], dtype=types.get(name, numpy.float64)) for name in wanted}


def _dumped_round(booster: xgboost.Booster, boosted_round: int) -> List[dict]:
    one_round = booster[boosted_round : boosted_round + 1]
    try:
        return _dumped(one_round)
    except ValueError:
        # XGBoost does not escape names: without them it is JSON in any case.
        names = one_round.feature_names
        one_round.feature_names = None
        trees = _dumped(one_round)
        for tree in trees:
            _name_features(tree, names)
        return trees


def _dumped(booster: xgboost.Booster) -> List[dict]:
    # A leaf of minus zero is written like an integer.
    trees = booster.get_dump(with_stats=True, dump_format="json")
    return [json.loads(tree, parse_int=lambda text: -0.0 if text == "-0" else int(text)) for tree in trees]


def _name_features(node: dict, names: List[str]) -> None:
    if "split" in node:
        node["split"] = names[int(str(node["split"]).lstrip("f"))]
    for child in node.get("children", ()):
        _name_features(child, names)


def _nodes(root: dict, tree: int) -> Iterator[tuple]:
    """One tuple for each node, in the order of the columns."""
    left = [root]
    while left:
        node = left.pop()
        number, cover = node["nodeid"], float(node.get("cover", _NAN))
        place = (tree, number, f"{tree}-{number}")
        if "leaf" in node:
            yield (*place, "Leaf", _NAN, "nan", "nan", "nan", _number(node["leaf"]), cover, "nan")
            continue
        condition = node.get("split_condition", _NAN)
        is_category = isinstance(condition, (list, str))
        branches = [f"{tree}-{node[way]}" if way in node else "nan" for way in ("yes", "no", "missing")]
        split = _NAN if is_category else float(condition)
        category = str([str(one) for one in condition]) if is_category else "nan"
        yield (*place, str(node["split"]), split, *branches, float(node.get("gain", _NAN)), cover, category)
        left += node["children"]


def _number(value: Any) -> float:
    """A leaf's value; the first of several, where a leaf has one for each target."""
    return float(value[0] if isinstance(value, list) else value)

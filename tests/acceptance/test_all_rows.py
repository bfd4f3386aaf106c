"""The list is whole: every row has a test, or a reason why not."""

import pathlib

import pytest
from acceptance_rows import ELSEWHERE, IN_EACH, LAST_ROW, LEFT, NEED_NONE


def test_every_row_is_shown_left_or_needs_none(request):
    here = pathlib.Path(__file__).parent
    items = [item for item in request.session.items if item.path.parent == here]
    files = {item.path for item in items}
    if files != set(here.glob("test_*.py")):
        pytest.skip("not the whole list was collected")
    shown = {item.callspec.params["row"] for item in items if hasattr(item, "callspec")}
    assert all((here / folder).is_dir() for folder in ELSEWHERE)
    assert set(IN_EACH) <= shown, "PyTorch's part is shown here"
    groups = [shown, set(LEFT), set(NEED_NONE), *map(set, ELSEWHERE.values())]
    assert set.union(*groups) == set(range(1, LAST_ROW + 1))
    assert sum(map(len, groups)) == LAST_ROW, "no row is in two groups"

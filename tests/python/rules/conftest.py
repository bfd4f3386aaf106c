"""What the tests of rules share: two runs, one sick and one healthy, made once."""

import os

import pytest

# A busy disk takes what is queued in its own time: a test that writes a run wants all of it.
os.environ.setdefault("TORNASOLE_CLOSE_WAIT_S", "120")


@pytest.fixture(scope="session")
def vanishing(tmp_path_factory):
    """A run whose gradients vanish."""
    from tornasole.testing import sick_run

    return sick_run("vanishing_gradients", tmp_path_factory.mktemp("runs") / "vanishing", steps=12)


@pytest.fixture(scope="session")
def healthy(tmp_path_factory):
    """A run whose gradients do not."""
    from tornasole.testing import healthy_run

    return healthy_run("vanishing_gradients", tmp_path_factory.mktemp("runs") / "healthy", steps=12)

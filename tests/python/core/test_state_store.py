"""A state kept beside checkpoints, without a hook."""

import json

import pytest

from tornasole.core.state_store import StateStore


@pytest.fixture
def checkpoints(tmp_path, monkeypatch):
    directory = tmp_path / "checkpoints"
    directory.mkdir()
    (tmp_path / "config.json").write_text(json.dumps({"LocalPath": str(directory)}))
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(tmp_path / "config.json"))
    return directory


def test_news_are_told_once(checkpoints):
    (checkpoints / "old.pt").write_text("0")
    store = StateStore()
    assert not store.is_checkpoint_updated(), "what was there before is no news"
    news = [
        ("a new one", lambda: (checkpoints / "new.pt").write_text("1")),
        ("a longer one", lambda: (checkpoints / "new.pt").write_text("12")),
        ("one in a directory", lambda: ((checkpoints / "step").mkdir(), (checkpoints / "step/a.pt").write_text("1"))),
        ("one less", lambda: (checkpoints / "old.pt").unlink()),
    ]
    for what, change in news:
        change()
        assert store.is_checkpoint_updated() is True, what
        store.update_state({"latest-global-step-seen": 1})
        assert store.is_checkpoint_updated() is False, f"{what}: told already"


@pytest.mark.parametrize("name", ["metadata.json", "metadata.json.tmp", "a.pt.sagemaker-uploaded"])
def test_what_is_no_checkpoint(checkpoints, name):
    store = StateStore()
    (checkpoints / name).write_text("[]")
    assert store.is_checkpoint_updated() is False


def test_the_last_state_is_that_of_the_latest_step(checkpoints):
    assert StateStore().get_last_saved_state() is None
    states = [{"latest-global-step-seen": 30}, {"latest-global-step-seen": 20}, {"latest-global-step-seen": ""}]
    (checkpoints / "metadata.json").write_text(json.dumps(states))
    store = StateStore()
    assert store.get_last_saved_state() == {"latest-global-step-seen": 30}
    store.update_state({"latest-global-step-seen": 40})
    assert StateStore().get_last_saved_state() == {"latest-global-step-seen": 40}
    assert [path.name for path in checkpoints.iterdir()] == ["metadata.json"]


def test_a_damaged_state_is_none(checkpoints):
    (checkpoints / "metadata.json").write_text('[{"latest-global')
    assert StateStore().get_last_saved_state() is None


@pytest.mark.parametrize("config", [None, "{}"])
def test_without_a_directory_there_is_nothing_to_watch(tmp_path, monkeypatch, config):
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(tmp_path / "config.json"))
    store = StateStore()
    assert store.is_checkpoint_updated() is False and store.get_last_saved_state() is None
    with pytest.raises(RuntimeError, match="CHECKPOINT_CONFIG_FILE_PATH"):
        store.update_state({})

"""What scripts import and call, under both names of the package."""

import json

import pytest

import tornasole.tensorflow as smd


def test_the_names_of_smdebug():
    import smdebug.tensorflow
    from smdebug.tensorflow.collection import Collection, CollectionManager
    from smdebug.tensorflow.constants import TF_DEFAULT_SAVED_COLLECTIONS
    from smdebug.tensorflow.keras import KerasHook
    from smdebug.tensorflow.session import EstimatorHook, SessionHook
    from smdebug.tensorflow.singleton_utils import get_hook

    assert smdebug.tensorflow.KerasHook is KerasHook is smd.KerasHook and EstimatorHook is SessionHook
    assert get_hook is smd.get_hook and Collection is smd.Collection
    assert set(TF_DEFAULT_SAVED_COLLECTIONS) == {"metrics", "losses", "sm_metrics"}
    assert "optimizer_variables" in CollectionManager().get_collections()
    from smdebug.tensorflow.hook import TornasoleHook

    assert TornasoleHook is smd.TornasoleHook
    assert all(hasattr(smd, name) for name in smd.__all__)


def test_a_hook_from_a_file(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"LocalPath": str(tmp_path / "run")}))
    hook = smd.get_hook("keras", json_config_path=str(tmp_path / "config.json"), create_if_not_exists=True)
    assert isinstance(hook, smd.KerasHook) and smd.get_hook() is hook and smd.get_hook("keras") is hook
    assert smd.get_hook("session") is None, "one of another type is dropped"
    assert set(hook.include_collections) == {"metrics", "losses", "sm_metrics"}


@pytest.mark.parametrize("hook_type", [None, "torch"])
def test_a_type_must_be_known(hook_type, monkeypatch):
    monkeypatch.setenv("TORNASOLE_STRICT", "1")
    with pytest.raises(ValueError, match="allowed: session, estimator, keras"):
        smd.get_hook(hook_type, create_if_not_exists=True)

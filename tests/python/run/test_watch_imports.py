"""Each framework that a program imports is attached to, whichever it imports first."""

import importlib
import sys

from tornasole.run import watch_imports


def test_every_framework_is_attached_to_once(tmp_path, monkeypatch):
    attached = []
    for name in ("first_framework", "second_framework"):
        (tmp_path / f"{name}.py").write_text("value = 1\n")
        monkeypatch.setitem(watch_imports._ATTACHMENTS, name, lambda name=name: attached.append(name))
    monkeypatch.setitem(watch_imports._ATTACHMENTS, "missing_framework", lambda: attached.append("missing"))
    monkeypatch.syspath_prepend(str(tmp_path))
    finder = watch_imports._Finder()
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    for name in ("second_framework", "first_framework", "second_framework"):
        assert importlib.import_module(name).value == 1
    assert importlib.util.find_spec("missing_framework") is None
    assert attached == ["second_framework", "first_framework"]
    loader = sys.modules["first_framework"].__spec__.loader
    assert type(loader).__module__ == "_frozen_importlib_external", "nothing is left of the look-out"

"""The guard around what frameworks call, and the log."""

import os
import subprocess
import sys

import pytest

from tornasole.core import singleton_utils
from tornasole.core.error_handling_agent import BASE_ERROR_MESSAGE, ErrorHandlingAgent
from tornasole.core.guard import configuration_error, guard, guarded
from tornasole.exceptions import SMDebugValueError


def failing(error, neutral=None):
    @guarded(neutral=neutral)
    def callback(*arguments):
        raise error

    return callback


def test_a_failure_without_a_hook_switches_capture_off(log_lines):
    assert failing(RuntimeError("boom"), neutral=False)() is False
    assert guard.disable_smdebug
    assert (("ERROR", BASE_ERROR_MESSAGE) in log_lines) and any("boom" in text for _, text in log_lines)
    calls = []

    @guarded(neutral=lambda x: x)
    def callback(x):
        calls.append(x)

    assert callback(7) == 7 and calls == [], "once it is off, nothing runs"


def test_a_failure_with_the_default_configuration_switches_capture_off(hook_class, tmp_path):
    hook = hook_class(tmp_path / "run")
    failing(ValueError("x"))()
    assert guard.disable_smdebug and hook._begin_step() is False


def test_a_failure_in_running_with_the_users_configuration_costs_the_tensor(hook_class, tmp_path, log_lines):
    hook = hook_class(tmp_path / "run", save_all=True)
    callback = failing(ValueError("cannot be read"), neutral=3)
    assert [callback(), callback()] == [3, 3]
    assert not guard.disable_smdebug and hook._begin_step()
    assert sum("cannot be read" in text for _, text in log_lines) == 1, "told once"


def test_an_error_in_the_users_configuration_is_raised(hook_class, tmp_path):
    hook = hook_class(tmp_path / "run", save_all=True)
    callback = failing(configuration_error(SMDebugValueError("bad collection")))
    with pytest.raises(SMDebugValueError):
        callback()
    hook._is_automatic = True
    assert callback() is None and guard.disable_smdebug, "but not out of a hook nobody asked for"


def test_an_error_in_building_a_hook_is_raised_even_by_a_guarded_constructor(hook_class, tmp_path):
    class Framework(hook_class):
        @guarded()
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)

    with pytest.raises(RuntimeError, match="out_dir"):
        Framework()
    assert not guard.disable_smdebug


def test_a_bad_file_gives_no_automatic_hook(hook_class, tmp_path, log_lines):
    (tmp_path / "bad.json").write_text('{"HookParameters": {"save_interval": 0}}')
    arguments = {"json_config_path": str(tmp_path / "bad.json"), "hook_class": hook_class}
    assert singleton_utils.get_hook(**arguments, create_if_not_exists=True) is None
    assert guard.disable_smdebug and any("save_interval" in text for _, text in log_lines)


def test_a_new_hook_ends_a_shut_down(hook_class, tmp_path):
    failing(RuntimeError("boom"))()
    assert hook_class(tmp_path / "run")._begin_step() is True


def test_strict_mode_raises(monkeypatch):
    monkeypatch.setenv("TORNASOLE_STRICT", "1")
    with pytest.raises(RuntimeError, match="boom"):
        failing(RuntimeError("boom"))()
    assert not guard.disable_smdebug


def test_the_name_that_scripts_know():
    agent = ErrorHandlingAgent.get_error_handling_agent()
    assert agent is guard

    @agent.catch_smdebug_errors(default_return_val=5)
    def callback():
        raise RuntimeError("boom")

    assert callback() == 5 and agent.disable_smdebug is True


def test_what_a_function_of_the_users_own_raises(hook_class, tmp_path, log_lines):
    @guard.catch_smdebug_errors()
    def own():
        raise KeyError("mine")

    @guarded()
    def callback():  # of ours, which calls what a subclass put in place of one
        own()

    hook_class(tmp_path / "custom", save_all=True)
    for function in (own, callback):
        with pytest.raises(KeyError, match="mine"):
            function()
    assert not guard.disable_smdebug and not any("mine" in text for _, text in log_lines)
    hook_class(tmp_path / "default")
    callback()
    assert guard.disable_smdebug


LOG_SCRIPT = (
    "from tornasole.core.logger import get_logger\n"
    "log = get_logger()\n"
    "for _ in range(9): log.warning('again')\n"
    "log.info('hello')\nlog.debug('detail')\nlog.error('broken')\n"
)
LOGGED = [
    ("the default", {}, ["again"] * 3 + ["hello", "broken"], []),
    ("debug", {"SMDEBUG_LOG_LEVEL": "DEBUG"}, ["again"] * 3 + ["hello", "detail", "broken"], []),
    ("off", {"SMDEBUG_LOG_LEVEL": "off"}, [], []),
    ("an unknown level is info", {"SMDEBUG_LOG_LEVEL": "loud"}, ["again"] * 3 + ["hello", "broken"], []),
    ("our name wins", {"SMDEBUG_LOG_LEVEL": "off", "TORNASOLE_LOG_LEVEL": "error"}, ["broken"], []),
    ("errors apart", {"SMDEBUG_LOG_ALL_TO_STDOUT": "false"}, ["again"] * 3 + ["hello"], ["broken"]),
]


@pytest.mark.parametrize("what, variables, out, err", LOGGED, ids=[row[0] for row in LOGGED])
def test_log_variables(what, variables, out, err, tmp_path):
    environment = {**os.environ, "SMDEBUG_LOG_CONTEXT": "here", "SMDEBUG_LOG_PATH": str(tmp_path / "log"), **variables}
    command = [sys.executable, "-c", LOG_SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    words = [[line.rsplit(" ", 1)[-1] for line in text.splitlines()] for text in (done.stdout, done.stderr)]
    assert words == [out, err]
    assert all(" here " in line for line in done.stdout.splitlines())
    if out:
        assert (tmp_path / "log").read_text().count("\n") == len(out + err)

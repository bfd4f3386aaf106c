"""What the platform tells rules and reports through files, names and variables."""

import time

import pytest

from tornasole.core.access_layer import is_rule_signalled_gracetime_passed
from tornasole.core.utils import get_aws_region_from_processing_job_arn, setup_profiler_report

NOW = object()
ARN = "arn:aws:sagemaker:eu-north-1:210987654321:processing-job/report"


@pytest.mark.parametrize(
    "what, variable, content, grace, stops",
    [
        ("no variable: there is no signal", False, "0", None, False),
        ("no file: the signal was not given", True, None, None, False),
        ("a signal just given leaves time", True, NOW, None, False),
        ("a signal of long ago does not", True, "1500000000", None, True),
        ("what is no time is one of long ago", True, "soon", None, True),
        ("an empty signal is one of long ago", True, "", None, True),
        ("the time left can be more", True, "1500000000", "1e10", False),
        ("the time left can be none", True, NOW, "-10", True),
        ("a time left that is no number is none", True, NOW, "an hour", True),
    ],
)
def test_rules_stop_when_the_time_left_is_over(tmp_path, monkeypatch, what, variable, content, grace, stops):
    if variable:
        monkeypatch.setenv("SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE", "stop.signal")
    else:
        monkeypatch.delenv("SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE", raising=False)
    if grace is None:
        monkeypatch.delenv("rule_stop_grace_time_secs", raising=False)
    else:
        monkeypatch.setenv("rule_stop_grace_time_secs", grace)
    if content is not None:
        (tmp_path / "stop.signal").write_text(str(int(time.time())) if content is NOW else content)
    assert is_rule_signalled_gracetime_passed(str(tmp_path)) is stops, what


def test_the_region_of_a_job():
    assert get_aws_region_from_processing_job_arn(ARN) == "eu-north-1"
    with pytest.raises(ValueError, match="'report'; allowed: arn:aws:sagemaker:<region>"):
        get_aws_region_from_processing_job_arn("report")


def test_a_report_is_made_known_to_nobody(monkeypatch):
    import socket

    def refuse(*arguments, **options):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    assert setup_profiler_report(ARN) is None
    assert setup_profiler_report(ARN, opt_out=False) is None


def test_times_of_operations_are_left_out(tmp_path):
    from tornasole.core.hook import BaseHook

    hook = BaseHook(out_dir=str(tmp_path / "run"))
    assert hook.record_trace_events(timestamp=1.5, training_phase="Train", op_name="Epoch", phase="B", rank=0) is None
    hook.close()
    assert not [path for path in (tmp_path / "run").rglob("*") if "timeline" in path.name or "pevents" in str(path)]

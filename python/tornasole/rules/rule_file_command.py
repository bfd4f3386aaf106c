"""``tornasole rule --rule-file FILE``: a rule of one's own, from a Python file, over a run."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from typing import Any

from tornasole.exceptions import SMDebugError
from tornasole.rules.rule_file import make_from_file, rules_of_file
from tornasole.rules.rule_run import RuleRun

MET, NOTHING_MET, FAILED, WRONG_USE = 10, 0, 1, 2
_SHOWN_STEPS = 10
_SHOWN_VIOLATIONS = 5


def is_asked_for(arguments: list[str]) -> bool:
    """Whether these arguments of ``tornasole`` name a Python file with a rule."""
    if arguments[:1] != ["rule"]:
        return False
    for place, argument in enumerate(arguments):
        value = argument.partition("=")[2] if argument.startswith("--rule-file=") else None
        if argument == "--rule-file" and place + 1 < len(arguments):
            value = arguments[place + 1]
        if value is not None and value.endswith(".py"):
            return True
    return False


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tornasole rule",
        usage="tornasole rule --rule-file FILE.py [DIR [RULE]] [--PARAMETER VALUE ...] [OPTION ...]",
        description="Runs a rule that a Python file defines over a trial. The file is run; name only what you trust.",
        epilog="Exit codes: 0 not met; 10 met; 2 wrong use; 1 anything else.",
        allow_abbrev=False,
    )
    parser.add_argument("dir", metavar="DIR", nargs="?", help="the directory of the run")
    parser.add_argument("rule", metavar="RULE", nargs="?", help="the name of the rule; may be left out if there is one")
    parser.add_argument("--rule-file", required=True, metavar="FILE", help="a Python file with classes of rules")
    parser.add_argument("--trial-dir", metavar="DIR", help="the same as DIR")
    parser.add_argument("--rule-name", metavar="RULE", help="the same as RULE")
    parser.add_argument("--list-rules", action="store_true", help="the rules of the file")
    parser.add_argument("--other-trials", metavar="DIRS", help="other runs, separated by commas")
    parser.add_argument("--start-step", type=int, metavar="N", help="only global steps from this one on")
    parser.add_argument("--end-step", type=int, metavar="N", help="and before this one")
    parser.add_argument("--workers", default="all", metavar="WHICH", help="all, first, or names separated by commas")
    parser.add_argument("--actions", default="", metavar="JSON", help="what happens when the condition is met")
    parser.add_argument("--report", metavar="FILE", help="the report is written there")
    parser.add_argument("--follow", action=argparse.BooleanOptionalAction, default=None, help="wait for steps to come")
    parser.add_argument("--timeout", type=float, default=300.0, metavar="S", help="without a sign of life (300)")
    parser.add_argument("--raise-rule-eval-cond-exception", action="store_true", help="end at the first step that is met")
    parser.add_argument("--json", action="store_true", help="the answer as JSON")
    return parser


def _parameters(parser: argparse.ArgumentParser, rest: list[str]) -> dict[str, str]:
    """What is left over: ``--name value`` and ``--name=value``."""
    found: dict[str, str] = {}
    while rest:
        name = rest.pop(0)
        if not name.startswith("--") or len(name) < 3:
            parser.error(f"what is {name!r}? A parameter of the rule is --NAME VALUE")
        name, has_value, value = name[2:].partition("=")
        if not has_value:
            if not rest:
                parser.error(f"the parameter --{name} has no value")
            value = rest.pop(0)
        found[name] = value
    return found


def main(arguments: list[str]) -> int:
    """Runs the command; its exit code."""
    parser = _parser()
    # A value that begins with a dash, or stands where a directory would, belongs to the parameter before it.
    options, rest = parser.parse_known_args(_with_joined_parameters(parser, arguments))
    parameters = _parameters(parser, rest)
    logging.getLogger("tornasole").setLevel(logging.WARNING)
    try:
        return _list(options) if options.list_rules else _run(parser, options, parameters)
    except (SMDebugError, ValueError, TypeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return FAILED
    except Exception as error:  # noqa: BLE001 - whatever the file or the rule raises is said in a line
        print(f"error: {type(error).__name__}: {error}", file=sys.stderr)
        return FAILED


def _with_joined_parameters(parser: argparse.ArgumentParser, arguments: list[str]) -> list[str]:
    known = {option for action in parser._actions for option in action.option_strings}
    joined, rest = [], list(arguments)
    while rest:
        one = rest.pop(0)
        if one.startswith("--") and len(one) > 2 and "=" not in one and one not in known and rest:
            one = f"{one}={rest.pop(0)}"
        joined.append(one)
    return joined


def _list(options: argparse.Namespace) -> int:
    for name, rule in rules_of_file(options.rule_file).items():
        summary = (rule.__doc__ or "").strip().splitlines()
        print(f"{name}: {summary[0]}" if summary else name)
    return NOTHING_MET


def _run(parser: argparse.ArgumentParser, options: argparse.Namespace, parameters: dict[str, str]) -> int:
    from tornasole.rules.rule_pass import run_rules
    from tornasole.trials import create_trial

    path = options.trial_dir or options.dir
    if path is None:
        parser.error("the directory of a run is missing")
    if not os.path.isdir(os.path.expanduser(path)) and not options.follow:
        raise ValueError(f"there is no run in {path}")
    bounds = (options.start_step, options.end_step)
    opening = dict(range_steps=None if bounds == (None, None) else bounds, on_damage="skip", timeout=options.timeout)
    trial = create_trial(path, **opening)
    others = [create_trial(other.strip(), **opening) for other in (options.other_trials or "").split(",") if other.strip()]
    rule = make_from_file(
        options.rule_file, options.rule_name or options.rule, trial, parameters, options.actions, others or None
    )
    workers = options.workers if options.workers in ("all", "first") else options.workers.split(",")
    is_followed = trial.run_status[0] == "running" if options.follow is None else options.follow
    (run,) = run_rules(
        [rule],
        first_step=options.start_step,
        end_step=options.end_step,
        workers=workers,
        stop_when_met=options.raise_rule_eval_cond_exception,
        follow=is_followed and rule._is_fed,
        timeout=options.timeout,
    )
    if options.report is not None:
        rule.write_report(os.path.dirname(options.report) or ".")
        written = os.path.join(os.path.dirname(options.report) or ".", f"{rule.rule_name}.json")
        os.replace(written, options.report)
    print(_json(run) if options.json else _text(run))
    if run.error is not None:
        print(f"error: {type(run.error).__name__}: {run.error}", file=sys.stderr)
    return MET if run.steps_met else FAILED if run.error is not None else NOTHING_MET


def _json(run: RuleRun) -> str:
    content = {"name": run.name, "steps_evaluated": run.steps_evaluated, "steps_met": run.steps_met}
    content.update(ended_because=run.ended_because, report=run.report)
    content["error"] = None if run.error is None else str(run.error)
    return json.dumps(content, indent=2, default=str)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _printable(text: Any) -> str:
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in str(text))


def _text(run: RuleRun) -> str:
    looked_at = f"{_counted(run.steps_evaluated, 'step')} looked at"
    if not run.steps_met:
        lines = [f"{run.name}: condition not met, {looked_at}"]
    else:
        lines = [f"{run.name}: condition met at {_counted(len(run.steps_met), 'step')}, {looked_at}"]
        more = len(run.steps_met) - _SHOWN_STEPS
        shown = ", ".join(map(str, run.steps_met[:_SHOWN_STEPS])) + (f" and {more} more" if more > 0 else "")
        lines.append(f"  steps    {shown}")
    for one in reversed(run.violations[-_SHOWN_VIOLATIONS:]):
        lines.append(f"  step {one['step']}: {_printable(one['message'] or one['tensor'])}")
    lines.append(f"ended: {run.ended_because}")
    return "\n".join(lines)

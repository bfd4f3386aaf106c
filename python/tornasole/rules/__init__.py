"""Rules: conditions that are looked for in what training runs saved."""

from tornasole.rules.builtin import BuiltinRule, builtin_rules, find_rule, make
from tornasole.rules.need import Need
from tornasole.rules.req_tensors import RequiredTensors, RequiredTensorsForTrial
from tornasole.rules.rule import Rule
from tornasole.rules.rule_invoker import invoke_rule
from tornasole.rules.rule_pass import run_rules
from tornasole.rules.rule_run import RuleRun

__all__ = [
    "BuiltinRule",
    "Need",
    "RequiredTensors",
    "RequiredTensorsForTrial",
    "Rule",
    "RuleRun",
    "builtin_rules",
    "find_rule",
    "invoke_rule",
    "make",
    "run_rules",
]

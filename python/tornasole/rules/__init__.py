"""Rules: conditions that are looked for in what training runs saved."""

from tornasole.rules.req_tensors import RequiredTensors, RequiredTensorsForTrial
from tornasole.rules.rule import Rule
from tornasole.rules.rule_invoker import invoke_rule

__all__ = ["RequiredTensors", "RequiredTensorsForTrial", "Rule", "invoke_rule"]

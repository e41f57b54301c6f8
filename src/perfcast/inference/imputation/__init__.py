"""Imputation of partly described machines: rules by dataset, and hot-deck imputation from measured results.

A dataset without rules of its own has the base class: every cell that the user leaves out stays missing.
"""

from __future__ import annotations

from perfcast.inference.imputation.deployment_rules import LLM_SERVING
from perfcast.inference.imputation.hot_deck import Block
from perfcast.inference.imputation.rules import ImputationRules, Violation
from perfcast.inference.imputation.server_rules import SPEC_CPU2006, SPEC_CPU2017
from perfcast.inference.imputation.training_rules import LLM_LADDER, LLM_OVERTRAINING

__all__ = ["RULES", "Block", "ImputationRules", "Violation", "find_rules"]

RULES: dict[str, ImputationRules] = {
    "spec_cpu2006": SPEC_CPU2006,
    "spec_cpu2017": SPEC_CPU2017,
    "llm_serving": LLM_SERVING,
    "llm_ladder": LLM_LADDER,
    "llm_ladder_curve": LLM_LADDER,
    "llm_overtraining": LLM_OVERTRAINING,
}
"""Dataset -> its rules."""


def find_rules(dataset: str) -> ImputationRules:
    """Return the imputation rules of a dataset, those of the base class where it has none of its own."""
    return RULES.get(dataset) or ImputationRules()

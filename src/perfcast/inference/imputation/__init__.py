"""Imputation of partly described machines: rules by dataset, and hot-deck imputation from measured results.

A dataset without rules of its own has the base class: every cell that the user leaves out stays missing.
"""

from __future__ import annotations

from perfcast.domain import find_description
from perfcast.inference.imputation.hot_deck import Block
from perfcast.inference.imputation.rules import DescriptionRules, Violation

__all__ = ["Block", "DescriptionRules", "Violation", "find_rules"]


def find_rules(dataset: str) -> DescriptionRules:
    """Return the imputation rules of a dataset, those of the base class where it has none of its own."""
    rules: DescriptionRules | None = find_description(dataset)
    return rules or DescriptionRules()

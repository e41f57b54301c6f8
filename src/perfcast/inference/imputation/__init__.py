"""Imputation of partly described machines: rules by dataset, and hot-deck imputation from measured results.

The rules of a dataset are the instance `RULES` of an `ImputationRules` subclass in the module of the dataset's name.
A dataset without such a module has the base class: every cell that the user leaves out stays missing.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache

from perfcast.inference.imputation.rules import Block, ImputationRules, Violation

__all__ = ["Block", "ImputationRules", "Violation", "find_rules"]


@cache
def find_rules(dataset: str) -> ImputationRules:
    """Return the imputation rules of a dataset, those of the base class where it has none of its own."""
    name = f"{__name__}.{dataset}"
    if not dataset.isidentifier() or importlib.util.find_spec(name) is None:
        return ImputationRules()
    rules = getattr(importlib.import_module(name), "RULES", None)
    return rules if isinstance(rules, ImputationRules) else ImputationRules()

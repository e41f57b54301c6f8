"""Nested mappings of configuration: merge and flatten them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping with some values changed; mappings inside both are merged too."""
    result = dict(base)
    for name, value in changes.items():
        inner = result.get(name)
        result[name] = merged(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return result


def flattened(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values by their path of keys, such as `learners.extra_trees.n_estimators`."""
    result: dict[str, Any] = {}
    for name, value in values.items():
        result |= flattened(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return result

"""The audit section: what was looked at before any error was counted, and what the control scored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfcast.report.tables import number

_CONTROL = ("control_mape", "chance_mape", "difference_low", "difference_high")


def section(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what the section's template shows: every check with its numbers in words; None where no audit was run."""
    if found is None:
        return None
    checks = [{**check, "told": told_numbers(check)} for check in found["checks"]]
    return {"checks": checks, "findings": sum(len(check["findings"]) for check in checks)}


def told_numbers(check: Mapping[str, Any]) -> str:
    """Return the numbers of a check as a sentence; empty where it has none worth telling."""
    numbers = check["numbers"]
    if all(numbers.get(name) is not None for name in _CONTROL):
        control, chance, low, high = (float(numbers[name]) for name in _CONTROL)
        return (
            f"Trained on shuffled scores: MAPE {number(control)} %; chance: {number(chance)} % "
            f"(difference {low:+.2f} to {high:+.2f})."
        )
    share = numbers.get("least_share_of_error_left")
    if share is not None:
        return f"Nearest to the score: {numbers['by']}, leaves {100 * share:.0f} % of a constant's error."
    return ""

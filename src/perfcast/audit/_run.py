"""Run every check, and put what they found into plain values and one line each."""

from __future__ import annotations

from typing import Any

from perfcast import plugins
from perfcast.audit.base import Evidence
from perfcast.errors import UserError


def audit(evidence: Evidence) -> dict[str, Any]:
    """Return what every check looked at and found, as values that JSON can hold; checks in alphabetical order."""
    checks = []
    for name in plugins.names("audit"):
        module = plugins.load("audit", name)
        looked = module.look(evidence)
        checks.append(
            {
                "check": name.replace("_", " "),
                "meaning": module.MEANING,
                "looked_at": looked.at,
                "findings": list(looked.findings),
                "remedy": module.REMEDY,
                "numbers": {key: _rounded(value) for key, value in looked.numbers.items()},
            }
        )
    return {"dataset": evidence.table.dataset, "checks": checks}


def complaints(found: dict[str, Any]) -> list[UserError]:
    """Return one error per finding: what must hold, what was found, what to do."""
    return [
        UserError(f"{found['dataset']}: {check['meaning'].rstrip('.')}", finding, check["remedy"])
        for check in found["checks"]
        for finding in check["findings"]
    ]


def _rounded(value: float | str | None) -> float | str | None:
    return float(f"{value:.6g}") if isinstance(value, float) else value

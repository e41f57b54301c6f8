"""Leakage checks: they read again what the stages wrote, before any error is computed.

A check is one `LeakageCheck` in `CHECKS` or of a domain: its requirement, a remedy, and a function of the artifacts.
"""

from __future__ import annotations

from typing import Any

from perfcast.domain import CORE, Domain, domains
from perfcast.evaluation.leakage import file_checks
from perfcast.evaluation.leakage.artifacts import Artifacts, Control, LeakageCheck, Run
from perfcast.evaluation.leakage.shuffled_target import SHUFFLED_TARGET
from perfcast.utils.errors import UserError

__all__ = ["Artifacts", "Control", "Run", "check_leakage", "leakage_errors", "list_checks"]

CHECKS = (*file_checks.CHECKS, SHUFFLED_TARGET)


def list_checks(domain: Domain) -> list[LeakageCheck]:
    """Return the checks of the core and of a domain, by name; those of all domains for a dataset of none."""
    owners = domains() if domain is CORE else (domain,)
    further = [owner.load(path) for owner in owners for path in owner.leakage_checks]
    return sorted([*CHECKS, *further], key=lambda check: check.name)


def check_leakage(artifacts: Artifacts) -> dict[str, Any]:
    """Run every check, and return the reports as values that JSON can hold."""
    reports = []
    for check in list_checks(artifacts.domain):
        report = check.run(artifacts)
        numbers = {name: _rounded(value) for name, value in report.numbers.items()}
        content = {"looked_at": report.scope, "findings": list(report.findings), "remedy": check.remedy}
        reports.append({"check": check.name, "meaning": check.requirement, **content, "numbers": numbers})
    return {"dataset": artifacts.table.dataset, "checks": reports}


def _rounded(value: float | str | None) -> float | str | None:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def leakage_errors(report: dict[str, Any]) -> list[UserError]:
    """Return one error per finding: the requirement, the finding, the remedy."""
    return [
        UserError(f"{report['dataset']}: {check['meaning'].rstrip('.')}", finding, check["remedy"])
        for check in report["checks"]
        for finding in check["findings"]
    ]

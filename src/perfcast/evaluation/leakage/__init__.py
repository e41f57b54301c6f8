"""Leakage checks: they read again what the stages wrote, before any error is computed.

A check is one `LeakageCheck` in `CHECKS` or of a domain: its requirement, a remedy, and a function of the artifacts.
"""

from __future__ import annotations

from typing import Any

from perfcast.domain import CORE, Domain, domains
from perfcast.evaluation.leakage.artifacts import Artifacts, CheckReport, Control, LeakageCheck, Run
from perfcast.evaluation.leakage.encoded_target import ENCODED_TARGET
from perfcast.evaluation.leakage.run_checks import BACKTEST_ROWS, REPEATED_RUNS, TEST_ROWS
from perfcast.evaluation.leakage.shuffled_target import SHUFFLED_TARGET
from perfcast.evaluation.leakage.table_checks import COLUMN_ROLES, FUTURE_DATES, SPLIT_RULES
from perfcast.utils.errors import UserError

__all__ = [
    "CHECKS",
    "Artifacts",
    "CheckReport",
    "Control",
    "LeakageCheck",
    "Run",
    "check_leakage",
    "leakage_errors",
    "list_checks",
]

CHECKS = (
    BACKTEST_ROWS,
    COLUMN_ROLES,
    ENCODED_TARGET,
    FUTURE_DATES,
    REPEATED_RUNS,
    SHUFFLED_TARGET,
    SPLIT_RULES,
    TEST_ROWS,
)


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
        reports.append(
            {
                "check": check.name,
                "meaning": check.requirement,
                "looked_at": report.scope,
                "findings": list(report.findings),
                "remedy": check.remedy,
                "numbers": {
                    key: float(f"{value:.6g}") if isinstance(value, float) else value
                    for key, value in report.numbers.items()
                },
            }
        )
    return {"dataset": artifacts.table.dataset, "checks": reports}


def leakage_errors(report: dict[str, Any]) -> list[UserError]:
    """Return one error per finding: the requirement, the finding, the remedy."""
    return [
        UserError(f"{report['dataset']}: {check['meaning'].rstrip('.')}", finding, check["remedy"])
        for check in report["checks"]
        for finding in check["findings"]
    ]

"""Leakage checks: they read again what the stages wrote, before any error is computed.

A check is one `LeakageCheck` in `leakage_report.CHECKS`: its requirement, a remedy, and a function of the artifacts.
"""

from perfcast.evaluation.leakage.artifacts import Artifacts, CheckReport, Control, LeakageCheck, Run
from perfcast.evaluation.leakage.leakage_report import CHECKS, check_leakage, leakage_errors

__all__ = ["CHECKS", "Artifacts", "CheckReport", "Control", "LeakageCheck", "Run", "check_leakage", "leakage_errors"]

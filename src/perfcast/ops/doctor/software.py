"""Check of Python and the installed packages against requirements.lock."""

from __future__ import annotations

import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from perfcast.ops.doctor.findings import BROKEN, CARE, FINE, Finding, ProjectPlace

OLDEST = (3, 11)
_SHOWN = 4
_OPTIONAL = {"catboost"}


def check(place: ProjectPlace) -> list[Finding]:
    """Compare with the oldest supported Python and with requirements.lock."""
    installed = platform.python_version()
    oldest = ".".join(map(str, OLDEST))
    if sys.version_info[:2] < OLDEST:
        python = Finding("Python", BROKEN, f"{installed}, older than {oldest}", f"install Python {oldest} or newer")
    else:
        python = Finding("Python", FINE, installed)
    return [python, _packages(place.project / "requirements.lock")]


def _packages(lock: Path) -> Finding:
    if not lock.is_file():
        return Finding("packages", CARE, "there is no requirements.lock to compare with", "work in a clone of perfcast")
    locked = dict(re.findall(r"^([A-Za-z0-9_.\-]+)==(\S+)", lock.read_text(encoding="utf-8"), re.MULTILINE))
    missing, other = [], []
    for name, pinned in locked.items():
        try:
            there = version(name)
        except PackageNotFoundError:
            missing.append(name)
            continue
        if there.partition("+")[0] != pinned.partition("+")[0]:  # a local label, such as cpu, is the same release
            other.append(f"{name} {there}, locked {pinned}")
    if missing:
        return Finding("packages", BROKEN, f"missing: {_some(missing)}", "run make setup")
    if other:
        remedy = "run make setup for the same results as those of dvc.lock"
        return Finding("packages", CARE, f"other versions than locked: {_some(other)}", remedy)
    return Finding("packages", FINE, f"{len(locked)}, as locked")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return "; ".join(names[:_SHOWN]) + more

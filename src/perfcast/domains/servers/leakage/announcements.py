"""Leakage check of the gains that vendors announce."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd

from perfcast.domains.servers.processors.announcements import (
    announced_index,
    announced_power_index,
    core_table,
    process_table,
)
from perfcast.evaluation.leakage.artifacts import Artifacts, CheckReport, LeakageCheck, join_names, training_mask
from perfcast.schema.table import Kind, Tag
from perfcast.utils.io import read_json

INDICES: Mapping[str, Callable[[pd.Timestamp], dict[str, float]]] = {
    "clock_gains": announced_index,
    "power_gains": announced_power_index,
}
"""Names of announced levels in model files, and the function that returns them for a given day."""


def check_announcements(artifacts: Artifacts) -> CheckReport:
    """Compare every announced level in the JSON files of a model with those announced before its last training row.

    The stored model is that of the first fold. Its knowledge may end earlier, so it is compared with every earlier
    day of an announcement.
    """
    times = artifacts.table.select(tag=Tag.TIME, kind=Kind.DATE)
    if not times:
        return CheckReport("no dates, so announcements are not limited")
    dates = [gain.announced for table in (core_table(), process_table()) for gain in table.values()]
    days = sorted({day for day in dates if day is not None})
    count = 0
    findings = []
    for run in artifacts.runs:
        files = sorted((run.folder / "model").rglob("*.json"))
        stored = [levels for path in files for levels in _announced_levels(read_json(path))]
        if not stored:
            continue
        folds = artifacts.folds(run.split)
        last = artifacts.table.frame.loc[training_mask(folds, folds.columns[0]), times[0]].max()
        for name, levels in stored:
            count += 1
            known = [INDICES[name](day) for day in [*(day for day in days if day <= last), last]]
            if levels not in known:
                wrong = sorted(core for core, level in levels.items() if known[-1].get(core) != level)
                findings.append(
                    f"{run.name}: {join_names(wrong)} {'has' if len(wrong) == 1 else 'have'} gains not announced "
                    f"by {last:%Y-%m}"
                )
    return CheckReport(f"{count} tables of announced gains in stored models", tuple(dict.fromkeys(findings)))


def _announced_levels(value: Any) -> Iterator[tuple[str, dict[str, float]]]:
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        if key in INDICES and isinstance(inner, dict) and inner and set(inner) <= set(core_table()):
            yield key, inner
        else:
            yield from _announced_levels(inner)


ANNOUNCEMENTS = LeakageCheck(
    "announcements",
    "a model may use only gains that vendors announced before its last training row",
    "train the run again",
    check_announcements,
)

"""Does a stored model know gains that makers announced after its training part ended?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.audit.base import Evidence, Looked, learned, some
from perfcast.io import read_json
from perfcast.processors.cores import announced_index, announced_power_index, core_table, process_table
from perfcast.schema import Kind, Tag

MEANING = "a model may count what makers announced only up to its last training row"
REMEDY = "train the run again"
INDICES: Mapping[str, Callable[[pd.Timestamp], dict[str, float]]] = {
    "index": announced_index,
    "power_index": announced_power_index,
}
"""Under which names a model's files hold announced levels, and what they were on a given day."""


def look(evidence: Evidence) -> Looked:
    """Compare every announced level that a model's JSON files hold with what had been said by its last training row.

    The stored model is that of the first fold. A model may stop earlier: it is compared with every day on which
    something was announced before.
    """
    times = evidence.table.select(tag=Tag.TIME, kind=Kind.DATE)
    if not times:
        return Looked("no dates, so nothing announced is cut")
    said = [one.announced for table in (core_table(), process_table()) for one in table.values()]
    days = sorted({day for day in said if day is not None})
    looked = 0
    found = []
    for run in evidence.runs:
        stored = list(_stored(run.folder / "model"))
        if not stored:
            continue
        folds = evidence.folds(run.split)
        last = evidence.table.frame.loc[learned(folds, folds.columns[0]), times[0]].max()
        for name, levels in stored:
            looked += 1
            known = [INDICES[name](day) for day in [*(day for day in days if day <= last), last]]
            if levels not in known:
                wrong = sorted(core for core, level in levels.items() if known[-1].get(core) != level)
                found.append(
                    f"{run.name}: {some(wrong)} {'has' if len(wrong) == 1 else 'have'} gains that were not announced "
                    f"by {last:%Y-%m}"
                )
    return Looked(f"{looked} tables of announced gains in stored models", tuple(dict.fromkeys(found)))


def _stored(folder: Path) -> Iterator[tuple[str, dict[str, float]]]:
    for path in sorted(folder.rglob("*.json")):
        yield from _indices(read_json(path))


def _indices(value: Any) -> Iterator[tuple[str, dict[str, float]]]:
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        if key in INDICES and isinstance(inner, dict) and inner and set(inner) <= set(core_table()):
            yield key, inner
        else:
            yield from _indices(inner)

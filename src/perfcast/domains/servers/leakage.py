"""Leakage checks of servers: gains that vendors announced, and facts of processors that were public after a cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from perfcast import plugins
from perfcast.domains.servers.features.server_physics import find_memory_limit
from perfcast.domains.servers.processors.announcements import (
    announced_index,
    announced_power_index,
    core_table,
    process_table,
)
from perfcast.domains.servers.processors.cpu_models import OF_MODEL
from perfcast.domains.servers.processors.facts import find_launch
from perfcast.evaluation.leakage.artifacts import Artifacts, CheckReport, LeakageCheck, join_names, training_mask
from perfcast.schema.table import Kind, Role, Table, Tag
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


_OF_FAMILY = (
    "mem_channels_per_chip",
    "mem_max_mts_1dpc",
    "mem_max_mts_2dpc",
    "mem_mrdimm_mts",
    "simd_bits",
    "has_amx",
    "fma_units",
    "pcie_gen",
    "process_node",
)
"""Columns that the tables of families fill. The name alone tells vendor, series and instruction set."""
_NEEDED = {"family", "launch_quarter", "mem_max_mts_1dpc", "mem_max_mts_2dpc", "mem_mrdimm_mts", "mem_eff_mts"}
_FORWARD = "forward"
MAX_LATE = 0.02
"""Share of training cells that may rest on a later fact: published dates contain typing errors, and a CPU model that
was launched in the quarter of the cut is dated by its last day."""


def mask_later_facts(frame: pd.DataFrame, as_of: pd.Timestamp) -> pd.DataFrame:
    """Return standard rows with the facts alone that were public before a day; the memory rate is limited by these.

    A CPU model's facts are public from the last day of its launch quarter, or from its family's day without a launch.
    """
    days = {name: find_launch(str(name)) for name in frame["family"].dropna().unique()}
    family_day = pd.to_datetime(frame["family"].astype(object).map(days))
    model_day = (frame["launch_quarter"] + pd.offsets.QuarterEnd(0)).fillna(family_day)
    masked = frame.copy()
    for names, day in ((OF_MODEL, model_day), (_OF_FAMILY, family_day)):
        late = np.asarray(day >= as_of)
        for name in names:
            if name in masked:
                masked[name] = masked[name].mask(late)
    rate = masked["mem_running_mts"].fillna(masked["mem_rated_mts"])
    limit = find_memory_limit(masked, rate)
    late_rate = rate.mask(rate > limit, limit)
    masked["mem_eff_mts"] = masked["mem_eff_mts"].mask(np.asarray(family_day >= as_of), late_rate)
    return masked


def rebuild_features(
    table: Table,
    standard: tuple[str, ...],
    modules: tuple[str, ...],
    as_of: pd.Timestamp,
) -> Table:
    """Return the feature table as it would have been on a day: standard columns with earlier facts, derived again."""
    columns = tuple(column for column in table.columns if column.name in standard)
    frame = mask_later_facts(table.frame[[column.name for column in columns]], as_of)
    rebuilt = Table(table.dataset, frame, columns, table.facts)
    for name in modules:
        rebuilt = plugins.load("features", name).derive(rebuilt)
    return rebuilt


def check_fact_dates(artifacts: Artifacts) -> CheckReport:
    """Rebuild the features as of the cut of every forward split, and compare them cell by cell.

    Training rows may hardly differ. Test rows do wherever their processor was launched after the cut: their share of
    differing cells is the knowledge that a prediction on the day of the cut would not have had.
    """
    times = artifacts.table.select(tag=Tag.TIME, kind=Kind.DATE)
    forward = [name for name in artifacts.splits if name.startswith(_FORWARD)]
    if not forward or not times or not artifacts.features or not set(artifacts.table.frame) >= _NEEDED:
        return CheckReport("no forward split with facts of processors")
    standard = tuple(column.name for column in artifacts.standard)
    names = [
        column.name
        for column in artifacts.table.columns
        if column.role is Role.FEATURE or (column.role is not Role.TARGET and column.name in (*OF_MODEL, *_OF_FAMILY))
    ]
    findings: list[str] = []
    numbers: dict[str, float | str | None] = {}
    cuts: dict[pd.Timestamp, pd.DataFrame] = {}
    for split in forward:
        folds = artifacts.folds(split)
        for fold in map(str, folds):
            testing = np.asarray(folds[fold] == "test")
            cut = artifacts.table.frame.loc[testing, times[0]].min()
            if cut not in cuts:
                rebuilt = rebuild_features(artifacts.table, standard, artifacts.features, cut).frame
                derived = [name for name in names if name in rebuilt]  # estimates on a bridge are not derived
                cuts[cut] = _differing_cells(artifacts.table.frame[derived], rebuilt[derived])
            training = training_mask(folds, fold)
            shares = {"training": cuts[cut][training].to_numpy().mean(), "test": cuts[cut][testing].to_numpy().mean()}
            numbers |= {f"{split}_{kind}_cells_with_later_facts": float(share) for kind, share in shares.items()}
            if shares["training"] > MAX_LATE:
                findings.append(
                    f"{split} {fold}: {100 * shares['training']:.1f} % of the training cells rest on facts of "
                    f"{cut:%Y-%m} or later"
                )
    return CheckReport(f"{len(names)} columns in {', '.join(forward)}", tuple(findings), numbers)


def _differing_cells(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    differing = {}
    for name in first:
        values = first[name].astype(object)
        others = second[name].astype(object)
        differing[name] = (values != others) & ~(first[name].isna() & second[name].isna())
    return pd.DataFrame(differing)


FACT_DATES = LeakageCheck(
    "fact dates",
    "training rows of a forward split may rest only on facts that were public before its first test row",
    "correct the days of the facts, or make the split again",
    check_fact_dates,
)

"""The public sample of PerfCastDB: one row per run of a suite on a machine, one target per test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.datasets import _perfcastdb_columns as declared
from perfcast.datasets._dimm_part_number import decode
from perfcast.datasets._perfcastdb_runs import (
    LOWER_IS_BETTER,
    RUN,
    SOURCE,
    SUITE,
    WANTED,
    LongRows,
    Runs,
    clean,
    folded,
    reject_runs,
    slug,
    to_runs,
)
from perfcast.datasets._perfcastdb_sku import Skus, read_skus
from perfcast.datasets._perfcastdb_values import (
    LISTED_COUNT,
    LISTED_GB,
    LOGICAL_CPUS,
    SLOT_SIZES,
    characterise,
    part_numbers,
    slot_sizes,
)
from perfcast.datasets._strict_csv import Rejection, read_rows, rejected_frame
from perfcast.datasets.base import Standardized
from perfcast.errors import UserError
from perfcast.schema import Column, Role, Table, build_table, out_of_bounds, select

FILES = {"train": "train_data.csv", "test": "test_data.csv"}
SKU_TABLE = "SPR_QDF_INFO.xlsx"


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardise the published sample: long rows to runs, processor samples joined, units repaired.

    Raises: UserError when a file is missing, broken or lacks a column, or when an option is given: there is none.
    """
    if options:
        raise UserError("data set 'perfcastdb' has no options", f"found {', '.join(sorted(options))}")
    folder = raw[SOURCE]
    rows, rows_in = _read(folder)
    skus = read_skus(folder / SKU_TABLE)
    clean(rows)
    runs = to_runs(rows.frame)
    table, repairs = _table(runs, skus)
    bad = _out_of_bounds(table)
    if bad:
        reject_runs(rows, bad, "out_of_bounds")
        runs = to_runs(rows.frame)
        table, repairs = _table(runs, skus)
    return Standardized(
        table=table,
        rejected=rejected_frame(rows.rejections),
        rows_in=rows_in,
        merged={**rows.merged, **folded(rows.frame, list(runs.frame.index))},
        quality=_quality(table, runs, skus, repairs),
    )


def _read(folder: Path) -> tuple[LongRows, int]:
    frames, rejections, rows_in = [], list[Rejection](), 0
    for part, file in FILES.items():
        rows = read_rows(SOURCE, folder / file, WANTED)
        frames.append(rows.frame.assign(file=file, part=part))
        rejections += rows.rejections
        rows_in += rows.rows_in
    return LongRows(pd.concat(frames, ignore_index=True), rejections), rows_in


def _table(runs: Runs, skus: Skus) -> tuple[Table, dict[str, int]]:
    """Return the standard table of runs, and the repairs made (rule -> runs)."""
    described = [characterise(stated) for stated in _stated(runs)]
    values = pd.DataFrame([values for values, _ in described], index=runs.frame.index)
    repairs = Counter(sorted(rule for _, rules in described for rule in set(rules)))
    frame = values.join(skus.frame, on="sku_code") if len(values) else values
    frame = frame.assign(
        result_id=runs.frame.index,
        run_id=runs.frame[RUN].str.strip(),
        suite=runs.frame[SUITE].map(slug),
        published_part=runs.frame["part"],
        source_file=runs.frame["file"],
        source_line=runs.frame["line"],
        **{name: runs.frame[name] for name in ("iterations", "tests", "spread_median", "spread_max", *runs.targets)},
    )
    targets = [
        declared.target(name, suite, test, unit, lower_is_better=unit in LOWER_IS_BETTER)
        for name, (suite, test, unit) in runs.targets.items()
    ]
    columns: list[Column] = [*declared.COLUMNS, *targets]
    frame = frame.reindex(columns=[column.name for column in columns])
    lower = [column.name for column in targets if column.unit in LOWER_IS_BETTER]
    table = build_table("perfcastdb", frame, columns, {"lower_is_better": lower})
    return table, dict(repairs)


def _out_of_bounds(table: Table) -> dict[str, str]:
    """Return, by result_id, the first value outside its column's bounds."""
    bad = out_of_bounds(table)
    found = {}
    for row in bad.index[bad.any(axis=1)]:
        name = str(bad.loc[row].idxmax())
        found[str(table.frame.loc[row, "result_id"])] = f"{name}: {table.frame.loc[row, name]:g}"
    return found


def _quality(table: Table, runs: Runs, skus: Skus, repairs: dict[str, int]) -> dict[str, Any]:
    """Tell how much was understood and how far independent statements of one fact agree, in runs."""
    frame = table.frame
    joined = frame["sku_code"].isin(skus.frame.index)
    numbers = sorted({number for stated in _stated(runs) for number in part_numbers(stated)})
    return {
        "runs": len(frame),
        "repairs": repairs,
        "stated_share": {
            column.name: round(float(frame[column.name].notna().mean()), 4)
            for column in select(table.columns, role=Role.FEATURE)
        },
        "sku_join": {
            "runs_joined": int(joined.sum()),
            "codes_missing": sorted(set(frame["sku_code"][~joined].dropna())),
            "repeated_rows": skus.repeated,
            "conflicting_rows": skus.conflicts,
        },
        "part_numbers_undecoded": {
            name: [number for number in numbers if getattr(decode(number), name) is None]
            for name in ("maker", "capacity_gb", "ranks", "width", "density_gbit", "rated_mts")
        },
        "agreement": _agreement(frame, runs.frame.reset_index(drop=True)),
    }


def _agreement(frame: pd.DataFrame, stated: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Compare independent statements of one fact: runs that state both, and runs where both agree."""
    listed = {name: pd.to_numeric(stated[name]).astype("float64") for name in (LISTED_GB, LISTED_COUNT, LOGICAL_CPUS)}
    slots = stated[SLOT_SIZES].map(slot_sizes)
    parts = pd.Series([decode(text.split(" ")[0]).capacity_gb if text else None for text in _texts(frame["dimm_part"])])
    cores = frame["cores_enabled_total"] * frame["threads_per_core"]
    pairs = {
        "memory_total": (frame["mem_total_gb"], listed[LISTED_GB]),
        "memory_by_slot": (frame["mem_total_gb"], slots.map(sum).astype("float64")),
        "module_count": (frame["dimm_count"] + frame["hbm_count"], listed[LISTED_COUNT]),
        "logical_processors": (cores, listed[LOGICAL_CPUS]),
        "l3_of_sample": (frame["l3_mb_per_chip"], frame["sku_l3_mb"]),
        "cores_of_sample": (frame["cores_per_chip_part"], frame["sku_cores"]),
        "base_clock_of_sample": (frame["base_mhz"], frame["sku_base_mhz"]),
        "module_size_of_part_number": (frame["dimm_gb"], parts.astype("float64")),
    }
    return {
        name: {"stated": int((one.notna() & other.notna()).sum()), "agree": int(((one - other).abs() < 1e-6).sum())}
        for name, (one, other) in pairs.items()
    }


def _stated(runs: Runs) -> list[dict[str, str]]:
    """Return what each run states, as text by column."""
    return [{name: str(row[name]) for name in WANTED} for _, row in runs.frame.iterrows()]


def _texts(values: pd.Series) -> list[str]:
    return [str(value) if pd.notna(value) else "" for value in values]

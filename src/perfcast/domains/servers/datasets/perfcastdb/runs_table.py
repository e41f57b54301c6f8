"""Public sample of PerfCastDB: one row per run of a suite on a machine, one target per test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import Rejection, build_rejected_frame, read_rows
from perfcast.domains.servers.data_tables import read_columns
from perfcast.domains.servers.datasets.perfcastdb.run_rows import (
    LOWER_IS_BETTER,
    READ_COLUMNS,
    RUN,
    SOURCE,
    SUITE,
    LongRows,
    Runs,
    clean_rows,
    count_folded,
    make_slug,
    pivot_runs,
    reject_runs,
)
from perfcast.domains.servers.datasets.perfcastdb.run_values import (
    CPU_MODEL,
    DEVICES,
    INSTALLED,
    ISA,
    LISTED_COUNT,
    LISTED_GB,
    LISTED_PARTS,
    LOGICAL_CPUS,
    OS,
    SLOT_SIZES,
    characterize_run,
    list_part_numbers,
    parse_slot_sizes,
)
from perfcast.domains.servers.datasets.perfcastdb.sample_skus import Skus, read_skus
from perfcast.domains.servers.parsing.dimm_part_number import decode_part_number
from perfcast.schema.table import Column, Kind, Role, Table, build_table, out_of_bounds
from perfcast.utils.errors import UserError

FILES = {"train": "train_data.csv", "test": "test_data.csv"}
SKU_TABLE = "SPR_QDF_INFO.xlsx"

_PARSED = {
    CPU_MODEL: "cpu_series",
    INSTALLED: "mem_total_gb",
    LISTED_PARTS: "dimm_vendor",
    ISA: "has_avx512",
    DEVICES: "dsa_count",
    OS: "os_version",
}
"""Stated text -> the standard column that is missing where the text was not parsed."""

_DECODED = ("vendor", "capacity_gb", "ranks", "width", "density_gbit", "rated_mts")


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the sample: convert long rows to runs, join the processor samples, and repair units.

    Raises:
        UserError: A file is missing, broken or lacks a column, or `options` is not empty.
    """
    if options:
        raise UserError(
            "dataset 'perfcastdb' has no options", f"found {', '.join(sorted(options))}", "remove them from its conf"
        )
    folder = raw[SOURCE]
    rows, rows_in = _read_files(folder)
    skus = read_skus(folder / SKU_TABLE)
    clean_rows(rows)
    runs = pivot_runs(rows.frame)
    table, repairs = _build_table(runs, skus)
    bad = _find_out_of_bounds(table)
    if bad:
        reject_runs(rows, bad, "out_of_bounds")
        runs = pivot_runs(rows.frame)
        table, repairs = _build_table(runs, skus)
    return Standardized(
        table=table,
        rejected=build_rejected_frame(rows.rejections),
        rows_in=rows_in,
        merged={**rows.merged, **count_folded(rows.frame, list(runs.frame.index))},
        quality=_summarize_quality(table.frame, runs, skus, repairs),
    )


def _read_files(folder: Path) -> tuple[LongRows, int]:
    frames, rejections, rows_in = [], list[Rejection](), 0
    for part, file in FILES.items():
        rows = read_rows(SOURCE, folder / file, READ_COLUMNS)
        frames.append(rows.frame.assign(file=file, part=part))
        rejections += rows.rejections
        rows_in += rows.rows_in
    return LongRows(pd.concat(frames, ignore_index=True), rejections), rows_in


def _build_table(runs: Runs, skus: Skus) -> tuple[Table, dict[str, int]]:
    """Return the standard table of runs, and the number of repaired runs by rule."""
    characterized = [characterize_run(stated) for stated in _list_stated_texts(runs)]
    values = pd.DataFrame([values for values, _ in characterized], index=runs.frame.index)
    repairs = Counter(sorted(rule for _, rules in characterized for rule in set(rules)))
    frame = values.join(skus.frame, on="sku_code") if len(values) else values
    frame = frame.assign(
        result_id=runs.frame.index,
        run_id=runs.frame[RUN].str.strip(),
        suite=runs.frame[SUITE].map(make_slug),
        published_subset=runs.frame["part"],
        source_file=runs.frame["file"],
        source_line=runs.frame["line"],
        **{name: runs.frame[name] for name in ("iterations", "tests", "spread_median", "spread_max", *runs.targets)},
    )
    targets = [
        Column(name, Kind.NUMERICAL, Role.TARGET, "workload", unit, _describe_target(suite, test, unit), low=0)
        for name, (suite, test, unit) in runs.targets.items()
    ]
    columns = [*read_columns(__package__, "columns.csv"), *targets]
    frame = frame.reindex(columns=[column.name for column in columns])
    lower = [column.name for column in targets if column.unit in LOWER_IS_BETTER]
    table = build_table("perfcastdb", frame, columns, {"lower_is_better": lower})
    return table, dict(repairs)


def _describe_target(suite: str, test: str, unit: str) -> str:
    better = "lower" if unit in LOWER_IS_BETTER else "higher"
    return f"{suite}: {test}, mean over iterations; {better} is better"


def _find_out_of_bounds(table: Table) -> dict[str, str]:
    """Return the first value outside its column's bounds by result_id."""
    bad = out_of_bounds(table)
    outliers = {}
    for row in bad.index[bad.any(axis=1)]:
        name = str(bad.loc[row].idxmax())
        outliers[str(table.frame.loc[row, "result_id"])] = f"{name}: {table.frame.loc[row, name]:g}"
    return outliers


def _list_stated_texts(runs: Runs) -> list[dict[str, str]]:
    """Return the stated texts of each run by column."""
    return [{name: str(row[name]) for name in READ_COLUMNS} for _, row in runs.frame.iterrows()]


def _summarize_quality(frame: pd.DataFrame, runs: Runs, skus: Skus, repairs: dict[str, int]) -> dict[str, Any]:
    """Return the quality facts of the standard table `frame`; rows and counts are those of `runs`."""
    stated = runs.frame.reset_index(drop=True)
    numbers = sorted({number for texts in _list_stated_texts(runs) for number in list_part_numbers(texts)})
    return {
        "repairs": repairs,
        "parse_coverage": {column: _measure_coverage(stated[column], frame[name]) for column, name in _PARSED.items()},
        "join_coverage": _measure_join_coverage(frame["sku_code"], skus),
        "part_numbers_undecoded": {
            name: [number for number in numbers if getattr(decode_part_number(number), name) is None]
            for name in _DECODED
        },
        "agreement": _measure_agreement(frame, stated),
    }


def _measure_coverage(texts: pd.Series, values: pd.Series) -> dict[str, Any]:
    stated = texts.str.strip() != ""
    parsed = stated & values.notna()
    return {
        "stated": int(stated.sum()),
        "complete": int(parsed.sum()),
        "share": round(float(parsed.sum() / stated.sum()), 6) if stated.any() else 1.0,
        "examples": sorted(set(texts[stated & ~parsed]))[:5],
    }


def _measure_join_coverage(codes: pd.Series, skus: Skus) -> dict[str, Any]:
    joined = codes.isin(skus.frame.index)
    return {
        "runs": int(joined.sum()),
        "share_of_rows": round(float(joined.mean()), 6) if len(joined) else 1.0,
        "codes_missing": sorted(set(codes[~joined].dropna())),
        "repeated_sheet_rows": skus.repeated,
        "conflicting_sheet_rows": skus.conflicts,
    }


def _measure_agreement(frame: pd.DataFrame, stated: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Count the runs with both statements of a fact, and the runs whose statements agree."""
    listed = {name: pd.to_numeric(stated[name]).astype("float64") for name in (LISTED_GB, LISTED_COUNT, LOGICAL_CPUS)}
    by_slot = stated[SLOT_SIZES].map(parse_slot_sizes)
    pairs = {
        "memory_total": (frame["mem_total_gb"], listed[LISTED_GB]),
        "memory_by_slot": (frame["mem_total_gb"], by_slot.map(lambda sizes: sum(sizes) if sizes else None)),
        "module_count": (frame["dimm_count"] + frame["hbm_count"], listed[LISTED_COUNT]),
        "module_size_of_part_number": (frame["dimm_gb"], frame["dimm_part"].map(_decode_capacity)),
        "logical_processors": (frame["cores_enabled_total"] * frame["threads_per_core"], listed[LOGICAL_CPUS]),
        "cores_of_sample": (frame["cores_per_chip_of_cpu_model"], frame["sku_cores"]),
        "base_clock_of_sample": (frame["base_mhz"], frame["sku_base_mhz"]),
        "l3_of_sample": (frame["l3_mb_per_chip"], frame["sku_l3_mb"]),
    }
    return {name: _compare(first.astype("float64"), other.astype("float64")) for name, (first, other) in pairs.items()}


def _decode_capacity(part_numbers: Any) -> float | None:
    """Return the capacity of a DIMM in GiB by its part number, None for several kinds or none."""
    return decode_part_number(part_numbers).capacity_gb if isinstance(part_numbers, str) else None


def _compare(first: pd.Series, other: pd.Series) -> dict[str, int]:
    return {"stated": int((first.notna() & other.notna()).sum()), "agree": int(((first - other).abs() < 1e-6).sum())}

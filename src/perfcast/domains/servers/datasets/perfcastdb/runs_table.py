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
)
from perfcast.domains.servers.datasets.perfcastdb.run_values import (
    characterize_run,
)
from perfcast.domains.servers.datasets.perfcastdb.sample_skus import read_skus
from perfcast.schema.table import Column, Kind, Role, Table, build_table
from perfcast.utils.errors import UserError

FILES = {"train": "train_data.csv", "test": "test_data.csv"}
SKU_TABLE = "SPR_QDF_INFO.xlsx"


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
    return Standardized(
        table=table,
        rejected=build_rejected_frame(rows.rejections),
        rows_in=rows_in,
        merged={**rows.merged, **count_folded(rows.frame, list(runs.frame.index))},
        quality={"repairs": repairs, "join_coverage": _measure_join_coverage(table.frame["sku_code"], skus)},
    )


def _read_files(folder: Path) -> tuple[LongRows, int]:
    frames, rejections, rows_in = [], list[Rejection](), 0
    for part, file in FILES.items():
        rows = read_rows(SOURCE, folder / file, READ_COLUMNS)
        frames.append(rows.frame.assign(file=file, part=part))
        rejections += rows.rejections
        rows_in += rows.rows_in
    return LongRows(pd.concat(frames, ignore_index=True), rejections), rows_in


def _build_table(runs: Runs, skus: pd.DataFrame) -> tuple[Table, dict[str, int]]:
    """Return the standard table of runs, and the number of repaired runs by rule."""
    characterized = [
        characterize_run({name: str(row[name]) for name in READ_COLUMNS}) for _, row in runs.frame.iterrows()
    ]
    values = pd.DataFrame([values for values, _ in characterized], index=runs.frame.index)
    repairs = Counter(sorted(rule for _, rules in characterized for rule in set(rules)))
    frame = values.join(skus, on="sku_code") if len(values) else values
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


def _measure_join_coverage(codes: pd.Series, skus: pd.DataFrame) -> dict[str, Any]:
    joined = codes.isin(skus.index)
    return {
        "runs": int(joined.sum()),
        "share_of_rows": round(float(joined.mean()), 6) if len(joined) else 1.0,
        "codes_missing": sorted(set(codes[~joined].dropna())),
    }

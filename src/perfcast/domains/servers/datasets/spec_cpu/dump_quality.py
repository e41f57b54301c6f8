"""Quality facts of a standardized dump, for quality.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from perfcast.domains.servers.parsing.distinct_texts import count_texts
from perfcast.domains.servers.processors.catalog import TABLES
from perfcast.schema.table import Kind, Table

_JOINED_FACTS = (
    *("tdp_w", "max_turbo_mhz", "mem_channels_per_chip", "launch_quarter", "process_node", "upi_links", "fma_units"),
)


def summarize_quality(frame: pd.DataFrame, table: Table, repairs: Mapping[str, int]) -> dict[str, Any]:
    """Return the quality facts of a standardized dump.

    Args:
        frame: Accepted rows with raw and intermediate columns.
        table: The same rows with standard columns.
        repairs: Number of repaired rows by rule.
    """
    return {
        "join_coverage": _measure_join_coverage(frame),
        "families": _count_values(table.frame["family"]),
        "unknown_processors": _count_values(frame.loc[table.frame["family"].isna().to_numpy(), "cpu_model"]),
        "missing": {name: round(float(share), 6) for name, share in table.frame.isna().mean().items()},
        "ranges": _find_ranges(table),
        "flags": {name: int(table.frame[name].sum()) for name in table.frame if str(name).startswith("q_")},
        "repairs": dict(sorted(repairs.items())),
    }


def _count_values(values: pd.Series) -> dict[str, int]:
    return {str(value): int(count) for value, count in count_texts(values).sort_index().items()}


def _measure_join_coverage(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the CPU models and rows joined from each catalog table, and the joined shares by year and by fact."""
    joined = frame["catalog_table"].notna()
    cpu_models = frame.drop_duplicates("cpu_model")
    year = frame["published_month"].dt.year
    first = frame.groupby("cpu_model")["published_month"].transform("min").dt.year == year
    return {
        "cpu_models": len(cpu_models),
        "rows": len(frame),
        "by_table": {
            name: {
                "cpu_models": int((cpu_models["catalog_table"] == name).sum()),
                "rows": int((frame["catalog_table"] == name).sum()),
            }
            for name in (*TABLES, "twin")
        },
        "share_of_rows": _compute_share(joined),
        "share_of_cpu_models": _compute_share(cpu_models["catalog_table"].notna()),
        "share_of_rows_by_year": _compute_share_by_year(joined, year),
        "share_of_rows_of_new_cpu_models_by_year": _compute_share_by_year(joined[first], year[first]),
        "share_of_rows_with": {name: _compute_share(frame[name].notna()) for name in _JOINED_FACTS},
    }


def _compute_share(flags: pd.Series) -> float:
    return round(float(flags.mean()), 6) if len(flags) else 0.0


def _compute_share_by_year(flags: pd.Series, year: pd.Series) -> dict[str, float]:
    return {str(key): _compute_share(group) for key, group in flags.groupby(year)}


def _find_ranges(table: Table) -> dict[str, list[Any]]:
    """Return [minimum, maximum] of every numerical and date column with a value."""
    ranges: dict[str, list[Any]] = {}
    for column in table.columns:
        values = table.frame[column.name].dropna()
        if values.empty:
            continue
        if column.kind is Kind.NUMERICAL:
            ranges[column.name] = [float(values.min()), float(values.max())]
        elif column.kind is Kind.DATE:
            ranges[column.name] = [values.min().strftime("%Y-%m-%d"), values.max().strftime("%Y-%m-%d")]
    return ranges

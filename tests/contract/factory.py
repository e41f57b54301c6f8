"""Tiny generated tables for contract tests: every semantic type, every tag, missing values, a known law."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from perfcast.schema.table import Column, Kind, Role, Table, Tag, build_table

COLUMNS = (
    Column("row", Kind.CATEGORICAL, Role.KEY, "provenance", tags=(Tag.ROW,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.IDENTITY, Tag.ENTITY)),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
    Column("chips", Kind.NUMERICAL, Role.FEATURE, "system", tags=(Tag.IDENTITY, Tag.SCALING)),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor", tags=(Tag.SCALING,)),
    Column("base_mhz", Kind.NUMERICAL, Role.FEATURE, "processor", "MHz", tags=(Tag.SCALING,)),
    Column("memory_gb", Kind.NUMERICAL, Role.FEATURE, "memory", "GB"),
    Column("vendor", Kind.CATEGORICAL, Role.FEATURE, "system", tags=(Tag.SLICE,)),
    Column("available", Kind.DATE, Role.FEATURE, "system"),
    Column("comment", Kind.TEXT, Role.FEATURE, "system"),
    Column("constant", Kind.NUMERICAL, Role.FEATURE, "system"),
    Column("never_known", Kind.NUMERICAL, Role.FEATURE, "system"),
    Column("published", Kind.DATE, Role.PROVENANCE, "provenance", tags=(Tag.TIME,)),
    Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
    Column("second_score", Kind.NUMERICAL, Role.TARGET, "workload"),
)


@dataclass(frozen=True)
class Part:
    """One part of a table, as a predictor receives it."""

    X: pd.DataFrame
    y: pd.DataFrame
    columns: tuple[Column, ...]


def tiny_table(rows: int = 96, seed: int = 0) -> Table:
    """Generate machines on two suites, four rows per part; score = factor x (cores x chips)^0.9 x MHz, 2 % noise."""
    rng = np.random.default_rng(seed)
    suite = np.where(np.arange(rows) % 2 == 0, "rate", "speed")
    part = np.arange(rows) // 4
    cores = rng.choice([8.0, 16.0, 24.0, 32.0, 48.0, 64.0], rows)[part]
    mhz = rng.choice([2000.0, 2400.0, 2800.0, 3200.0], rows)[part]
    chips = rng.choice([1.0, 2.0], rows)
    memory = 64.0 * rng.choice([1.0, 2.0, 4.0, 8.0], rows)
    months = rng.integers(0, 60, rows)
    score = (
        np.where(suite == "rate", 3.0, 1.0) * (cores * chips) ** 0.9 * mhz / 2000 * np.exp(rng.normal(0, 0.02, rows))
    )
    frame = pd.DataFrame(
        {
            "row": [f"r{index:04d}" for index in range(rows)],
            "part": [f"part {number}" for number in part],
            "suite": suite,
            "chips": chips,
            "cores": cores,
            "base_mhz": mhz,
            "memory_gb": np.where(rng.random(rows) < 0.1, np.nan, memory),
            "vendor": np.where(rng.random(rows) < 0.1, None, rng.choice(["A", "B", "C"], rows)),
            "available": pd.Timestamp("2018-01-01") + pd.to_timedelta(months * 30, unit="D"),
            "comment": "free text",
            "constant": 7.0,
            "never_known": np.nan,
            "published": pd.Timestamp("2018-06-01") + pd.to_timedelta(months * 30, unit="D"),
            "score": score,
            "second_score": np.where(np.arange(rows) % 3 == 0, np.nan, 10 * score),
        }
    )
    return build_table("tiny", frame, COLUMNS)


def parts(table: Table, train: int, targets: tuple[str, ...] = ("score",)) -> tuple[Part, Part]:
    """Cut a table into its first `train` rows and the rest, with the target columns asked for."""
    columns = tuple(column for column in table.columns if column.role is not Role.TARGET or column.name in targets)
    inputs = [column.name for column in columns if column.role is not Role.TARGET]
    cut = (table.frame.iloc[:train], table.frame.iloc[train:])
    first, second = (Part(frame[inputs], frame[list(targets)], columns) for frame in cut)
    return first, second


def decode_texts(table: Table) -> Table:
    """Return a table with its categories as plain texts."""
    coded = [name for name in table.frame if isinstance(table.frame[name].dtype, pd.CategoricalDtype)]
    return replace(table, frame=table.frame.astype(dict.fromkeys(coded, "str")))

"""Steps that the dumps of published SPEC results share: file, last month, submission, bounds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.datasets._spec_cpu2017_rows import Quarantine
from perfcast.errors import UserError
from perfcast.parsing.distinct import combinations, is_coded, spread
from perfcast.schema import Column, Kind, as_declared, outside, select

_SUBMISSION = ("hw_vendor", "system_stem", "part_key", "chips", "published_month")


def find_only_file(source: str, folder: Path, endings: tuple[str, ...] = (".csv", ".csv.gz")) -> Path:
    """Return the only file of a source's folder with these endings. Raises: UserError for none or several."""
    files = sorted(path for path in Path(folder).iterdir() if path.name.endswith(endings))
    if len(files) != 1:
        raise UserError(
            f"source {source!r} must be one file {' or '.join(f'*{ending}' for ending in endings)}",
            f"{folder} has {', '.join(path.name for path in files) or 'none'}",
            "ingest the source again",
        )
    return files[0]


def parse_last_month(text: object) -> pd.Timestamp:
    """Return the first day of a month written YYYY-MM, and the end of time for None. Raises: UserError."""
    try:
        return pd.Timestamp.max if text is None else pd.Timestamp(pd.Period(str(text), freq="M").start_time)
    except ValueError:
        raise UserError(
            "published_until must be a month such as 2024-12", f"found {text!r}", "correct it in params.yaml"
        ) from None


def name_submissions(frame: pd.DataFrame) -> pd.Series:
    """Return the test campaign of each row as vendor, system, part, chips and month of publication."""
    numbers, first = combinations(frame, _SUBMISSION)
    keys = frame[list(_SUBMISSION)].iloc[first]
    texts = keys[["system_stem", "part_key"]].astype("str")
    texts = texts.assign(
        chips=keys["chips"].astype("int64").astype("str"),
        month=keys["published_month"].dt.strftime("%Y-%m"),
    )
    joined = keys["hw_vendor"].astype("str").fillna("?").str.cat(texts, sep=" | ")
    coded = spread(joined.tolist(), numbers, frame.index)
    return coded if is_coded(frame["part_key"]) else coded.astype("str")


def reject_out_of_bounds(frame: pd.DataFrame, columns: Sequence[Column], quarantine: Quarantine) -> pd.DataFrame:
    """Quarantine rows with a value outside its column's bounds; the detail names the first such column."""
    wrong, detail = describe_out_of_bounds(frame, columns)
    return quarantine.reject(frame, wrong, "out_of_bounds", detail)


def describe_out_of_bounds(frame: pd.DataFrame, columns: Sequence[Column]) -> tuple[pd.Series, pd.Series]:
    """Mark rows with a value outside its column's bounds, and describe the first such value of each.

    Shapes: mask on the index of `frame`; details on the index of the marked rows.
    """
    first: dict[Any, str] = {}
    wrong = pd.Series(False, index=frame.index)
    for column in select(columns, kind=Kind.NUMERICAL):
        bad = outside(as_declared(frame[column.name], column), column)
        first |= {row: column.name for row in frame.index[bad] if row not in first}
        wrong |= bad
    return wrong, pd.Series({row: f"{name}={frame.at[row, name]!s}" for row, name in first.items()}, dtype="object")

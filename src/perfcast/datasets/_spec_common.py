"""Steps that the dumps of published SPEC CPU results share: the file, the submission of a row, the bounds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from perfcast.datasets._spec_cpu2017_rows import Quarantine
from perfcast.errors import UserError
from perfcast.schema import Column, build_table, out_of_bounds


def only_file(source: str, folder: Path, endings: tuple[str, ...] = (".csv", ".csv.gz")) -> Path:
    """Return the one file of a source's folder. Raises: UserError when there is none or more than one."""
    found = sorted(path for path in Path(folder).iterdir() if path.name.endswith(endings))
    if len(found) != 1:
        raise UserError(
            f"source {source!r} must be one file {' or '.join(f'*{ending}' for ending in endings)}",
            f"{folder} has {', '.join(path.name for path in found) or 'none'}",
            "ingest the source again",
        )
    return found[0]


def submissions(frame: pd.DataFrame) -> pd.Series:
    """Return the test campaign of each row: vendor, system, part, chips and month of publication."""
    month = frame["published_month"].dt.strftime("%Y-%m")
    chips = frame["chips"].astype("int64").astype("str")
    parts = [frame["hw_vendor"].fillna("?"), frame["system_stem"], frame["part_key"], chips, month]
    joined: pd.Series = parts[0].str.cat(parts[1:], sep=" | ")
    return joined


def within_bounds(dataset: str, frame: pd.DataFrame, columns: Sequence[Column], quarantine: Quarantine) -> pd.DataFrame:
    """Quarantine rows with a value outside its column's bounds, naming the first such column."""
    bad = out_of_bounds(build_table(dataset, frame, columns)).set_axis(frame.index, axis=0)
    first = bad.idxmax(axis=1)
    wrong = bad.any(axis=1)
    detail = pd.Series("", index=frame.index, dtype="str")
    for row in frame.index[wrong]:
        name = str(first[row])
        detail[row] = f"{name}={frame.at[row, name]!s}"
    return quarantine.reject(frame, wrong, "out_of_bounds", detail)

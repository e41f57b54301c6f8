"""Quarantine of the dumps' rows: rejections with reasons, and the checks that the datasets share."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from perfcast.data.strict_csv import Rejection
from perfcast.domains.servers.parsing.distinct_texts import map_distinct
from perfcast.domains.servers.parsing.text_normalization import is_stated, normalize

MAX_CORES_PER_CHIP = 512
THREADS_PER_CORE = (1, 2, 4, 8)
_MANY_DEFECTS = 2
_SHOWN = 120


class Quarantine:
    """Collector of the rejected rows of one file; its frames have the column `line_in_file` and a unique index."""

    def __init__(self, source: str, file: str, rejections: tuple[Rejection, ...] = ()) -> None:
        self.source, self.file, self.rejections = source, file, list(rejections)

    def reject(self, frame: pd.DataFrame, bad: pd.Series, reason: str, detail: pd.Series) -> pd.DataFrame:
        """Quarantine the rows where `bad` holds, and return the others.

        Shapes: `bad` has the frame's index; the index of `detail` contains at least the bad rows.
        """
        if not bad.any():  # also without rows: then `bad` is not boolean and would select columns
            return frame
        lines = frame.loc[bad, "line_in_file"]
        self.rejections += [
            Rejection(self.source, self.file, int(line), reason, str(text)[:_SHOWN])
            for line, text in zip(lines, detail.loc[lines.index], strict=True)
        ]
        return frame[~bad]


def reject_untyped(frame: pd.DataFrame, quarantine: Quarantine, reasons: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """Quarantine rows that lack a required value; several missing values mean shifted columns.

    A peak score that is not stated is no defect.

    Args:
        frame: Rows with raw and typed columns.
        quarantine: Collector of the rejected rows.
        reasons: Typed column -> its raw column, and the reason where only that column is invalid.
    """
    missing = pd.DataFrame({name: frame[name].isna() for name in reasons}, index=frame.index)
    missing["peak_score"] &= map_distinct(frame[reasons["peak_score"][0]], is_stated)
    return reject_defects(frame, quarantine, missing, reasons)


def reject_defects(
    frame: pd.DataFrame, quarantine: Quarantine, missing: pd.DataFrame, reasons: Mapping[str, tuple[str, str]]
) -> pd.DataFrame:
    """Quarantine rows with an invalid required text; two such texts mean shifted columns.

    `reasons` maps a typed column to its raw column, and to the reason where only that column is invalid.

    Shapes: `missing` has a boolean column per key of `reasons`, on the frame's index.
    """
    defects = missing.sum(axis=1)
    raw_columns = [column for column, _ in reasons.values()]
    detail = pd.Series("", index=frame.index[defects > 0], dtype="object")
    for row in detail.index:
        wrong = [column for column, bad in zip(raw_columns, missing.loc[row], strict=True) if bad]
        detail[row] = ", ".join(f"{column}={normalize(str(frame.at[row, column]))!r}" for column in wrong)
    shifted = defects >= _MANY_DEFECTS
    single = {reason: pd.Series(False, index=frame.index) for _, reason in reasons.values()}
    for name, (_, reason) in reasons.items():
        single[reason] |= missing[name] & ~shifted
    valid_rows = quarantine.reject(frame, shifted, "shifted_columns", detail)
    for reason, bad in single.items():
        valid_rows = quarantine.reject(valid_rows, bad[valid_rows.index], reason, detail)
    return valid_rows

"""Tables of the sources of error of one predictor: what would remain if the level of a group were known."""

from __future__ import annotations

from dataclasses import dataclass

from perfcast.evaluation import AVERAGE, Evaluation
from perfcast.report.error_tables import number
from perfcast.splits import split_label


@dataclass(frozen=True)
class SourceTable:
    """Steps of one split, each with its name, MAPE, MedAPE and share of the error as text. Units: %."""

    split: str
    lines: list[tuple[str, ...]]


def error_source_tables(evaluation: Evaluation, predictor: str) -> list[SourceTable]:
    """Return one table per ranked split, averaged over tasks; none where the dataset names no sources."""
    frame = evaluation.error_sources
    if frame.empty:
        return []
    shown = frame[(frame["task"] == AVERAGE) & (frame["predictor"] == predictor)]
    return [
        SourceTable(
            split_label(split),
            [
                (str(row["known"]), *(number(float(row[name])) for name in ("mape", "medape", "share")))
                for row in shown[shown["split"] == split].to_dict("records")
            ],
        )
        for split in evaluation.ranked_splits
        if (shown["split"] == split).any()
    ]

"""Section of the report on the sources of error: what would remain if the level of a group were known."""

from __future__ import annotations

from perfcast.evaluation import AVERAGE, Evaluation
from perfcast.report.text_tables import Section, TextTable, number, text_section
from perfcast.splits import split_label

_TEXT = (
    "An oracle adds what no prediction can know before a measurement: the level of a group of test machines, which is "
    "the median deviation of its other results. Each step knows those before it. What a step takes away is the share "
    "of the error that such a level causes. Values are averages over tasks, in %."
)


def error_sources_section(evaluation: Evaluation, predictor: str) -> Section:
    """Return a table of one predictor for each ranked split, averaged over tasks."""
    frame = evaluation.tables["error_sources"]
    shown = frame[(frame["task"] == AVERAGE) & (frame["predictor"] == predictor)]
    tables = [
        TextTable(
            f"Sources of error on {split_label(split)}",
            f"{split_label(split)}: error of {predictor} when more is known",
            ("known", "MAPE", "MedAPE", "share of the error"),
            [
                (str(row["known"]), *(number(float(row[name])) for name in ("mape", "medape", "share")))
                for row in shown[shown["split"] == split].to_dict("records")
            ],
        )
        for split in evaluation.ranked_splits
        if (shown["split"] == split).any()
    ]
    return text_section("error_sources", "What limits accuracy", _TEXT, tables)

"""Table of machines that are predicted as users describe them: error, coverage and width by level of description."""

from __future__ import annotations

from dataclasses import dataclass

from perfcast.evaluation import AVERAGE, Evaluation
from perfcast.evaluation.described_metrics import LEVEL_LABELS
from perfcast.report.error_tables import number
from perfcast.splits import split_label


@dataclass(frozen=True)
class DescribedLine:
    """Metrics of one split, facts and level, as text. Units: %."""

    split: str
    facts: str
    level: str
    rows: str
    mape: str
    medape: str
    coverage: str
    width: str


def described_lines(evaluation: Evaluation) -> list[DescribedLine]:
    """Return one line per split, facts and level, averaged over tasks; none where no machine was described."""
    frame = evaluation.described
    if frame.empty:
        return []
    return [
        DescribedLine(
            split_label(row["split"]),
            row["facts"],
            f"{row['level']} {LEVEL_LABELS[row['level'] - 1]}",
            f"{row['n']:,}",
            *(number(row[name]) for name in ("mape", "medape", "coverage", "width")),
        )
        for row in frame[frame["task"] == AVERAGE].to_dict("records")
    ]

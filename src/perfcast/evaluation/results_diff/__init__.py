"""Comparison of two results: changes of data, code and parameters, and whether the change of each metric is real.

Either side is a results folder or a git revision whose results DVC keeps (`sides`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perfcast.evaluation.results_diff.input_changes import (
    CodeChange,
    ParameterChange,
    SourceChange,
    TableChange,
    code_changes,
    parameter_changes,
    source_changes,
    table_changes,
)
from perfcast.evaluation.results_diff.metric_changes import REAL, WORSE, MetricChanges, Only, metric_changes
from perfcast.evaluation.results_diff.sides import Side, open_side
from perfcast.utils.progress import Progress, ignore_progress

__all__ = ["Changes", "Side", "find_changes", "open_side"]


@dataclass(frozen=True)
class Changes:
    """Result of `perfcast results compare`: `before` and `after` are the sides as the user typed them.

    `code_from` names the origin of the changes of the code; `same_tables` counts tables with equal bytes.
    """

    before: str
    after: str
    sources: list[SourceChange]
    tables: list[TableChange]
    same_tables: int
    code: list[CodeChange]
    code_from: str
    parameters: list[ParameterChange]
    metrics: MetricChanges

    def count(self, verdict: str) -> int:
        """Return the number of compared metrics with a verdict."""
        return int((self.metrics.frame["verdict"] == verdict).sum())

    @property
    def real(self) -> int:
        """Number of compared metrics with a real change."""
        return sum(self.count(verdict) for verdict in REAL)

    @property
    def worse(self) -> bool:
        """Return whether any metric is worse by a real change."""
        return self.count(WORSE) > 0

    def as_tree(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold; a number that is not finite is None."""
        records = self.metrics.frame.to_dict("records")
        return {
            "before": self.before,
            "after": self.after,
            "summary": {
                "compared": len(records),
                "real": {verdict.replace(" ", "_"): self.count(verdict) for verdict in REAL},
            },
            "data": {
                "sources": [asdict(change) for change in self.sources],
                "tables": [asdict(change) for change in self.tables],
                "same_tables": self.same_tables,
            },
            "code": {"from": self.code_from, "files": [asdict(change) for change in self.code]},
            "parameters": [asdict(change) for change in self.parameters],
            "metrics": [{str(key): _plain(value) for key, value in row.items()} for row in records],
            "rows": [asdict(change) for change in self.metrics.rows],
            "left_out": self.metrics.left_out,
        }


def find_changes(
    a: Side,
    b: Side,
    project: Path,
    *,
    only: Only | None = None,
    resamples: int | None = None,
    progress: Progress = ignore_progress,
) -> Changes:
    """Compare `a` with `b`, the earlier results with the later ones.

    Raises: UserError when they share no dataset, split and predictor.
    """
    metrics = metric_changes(a, b, only=only, resamples=resamples, progress=progress)
    tables, same = table_changes(a, b)
    code, known_from = code_changes(a, b, project)
    return Changes(
        before=a.label,
        after=b.label,
        sources=source_changes(a, b),
        tables=tables,
        same_tables=same,
        code=code,
        code_from=known_from,
        parameters=parameter_changes(a, b),
        metrics=metrics,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}") if np.isfinite(value) else None
    return value

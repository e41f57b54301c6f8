"""Everything that changed between two results."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perfcast.comparing.code import CodeChange, code_changes
from perfcast.comparing.data import SourceChange, TableChange, source_changes, table_changes
from perfcast.comparing.metrics import MetricChanges, Only, metric_changes
from perfcast.comparing.parameters import ParameterChange, parameter_changes
from perfcast.comparing.sides import Side
from perfcast.comparing.verdicts import REAL, WORSE


@dataclass(frozen=True)
class Changes:
    """What `perfcast compare` found: `before` and `after` are what the user called the sides.

    `code_from` says how the code's changes are known, `same_tables` how many tables have equal bytes.
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
        """Return how many compared metrics have a verdict."""
        return int((self.metrics.frame["verdict"] == verdict).sum())

    @property
    def real(self) -> int:
        """How many compared metrics changed for real."""
        return sum(self.count(verdict) for verdict in REAL)

    @property
    def worse(self) -> bool:
        """Whether any metric is worse for real."""
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
                "sources": [asdict(one) for one in self.sources],
                "tables": [asdict(one) for one in self.tables],
                "same_tables": self.same_tables,
            },
            "code": {"from": self.code_from, "files": [asdict(one) for one in self.code]},
            "parameters": [asdict(one) for one in self.parameters],
            "metrics": [{str(key): _plain(value) for key, value in row.items()} for row in records],
            "rows": [asdict(one) for one in self.metrics.rows],
            "left_out": self.metrics.left_out,
        }


def find_changes(a: Side, b: Side, project: Path, *, only: Only | None = None, resamples: int | None = None) -> Changes:
    """Compare `a` with `b`, what came before with what came after.

    Raises: UserError when they share nothing that can be compared.
    """
    metrics = metric_changes(a, b, only=only, resamples=resamples)
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

"""Trial of a champion after it was read: digests show that files belong together, not that they hold a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfcast.schema.table import Tag
from perfcast.uncertainty.conformal import outputs_of
from perfcast.utils.errors import UserError

if TYPE_CHECKING:
    from perfcast.inference.champion import Champion

AGAIN = "make it again, or fetch it again"
_TASKS = 8
"""Most tasks that are tried: every one takes a millisecond."""
_LARGEST = 1e30


def try_champion(champion: Champion) -> None:
    """Predict one measured result of every task.

    Raises: UserError when the outputs are not those of the results, or a prediction or an interval is impossible. Any
    other exception shows a model that does not fit its reference data.
    """
    measured, targets = champion.reference_data.measured, champion.predictor.targets_
    declared = {column.name for column in measured.columns}
    if not targets or not set(targets) <= declared:
        raise _impossible(f"its targets are {', '.join(map(str, targets)) or 'none'}")
    rows = list(champion.typical_rows.values())[:_TASKS]
    if not rows or not 0 <= min(rows) <= max(rows) < len(measured.frame):
        raise _impossible("it has no measured results")
    table = champion.build_features(measured.frame.iloc[rows])
    X, tasks = table.frame, table.frame[table.column_of(Tag.TASK)]
    with np.errstate(all="ignore"):
        predicted = champion.predictor.predict(X).to_numpy(dtype=float)
    if not is_possible(predicted) or np.isnan(predicted).all(axis=1).any():
        raise _impossible("it predicts no positive numbers")
    if champion.calibrated is None or champion.neighbor_index is None:
        return
    for target in targets:
        intervals = champion.calibrated.intervals(X, outputs_of(tasks, target))
        reaches, score = intervals[["below", "above"]].to_numpy(dtype=float), intervals["in_domain_score"].to_numpy()
        if not (np.isfinite(reaches).all() and (reaches >= 0).all() and ((score > 0) & (score <= 1)).all()):
            raise _impossible("its intervals are impossible")
    widths = [len(numeric) for _, _, numeric in champion.calibrated.in_domain.parts()]
    expected, shape = (len(measured.frame), sum(widths)), champion.neighbor_index.encoded.shape
    if shape != expected:
        raise _impossible(f"its neighbors have the shape {shape} and not {expected}")


def is_possible(predicted: np.ndarray) -> bool:
    """Return whether predictions are positive numbers that a measurement can have; missing ones are possible."""
    sizes = predicted[~np.isnan(predicted)]
    return bool(((sizes > 1 / _LARGEST) & (sizes < _LARGEST)).all())


def _impossible(fact: str) -> UserError:
    return UserError("a champion must be a fitted model", fact, AGAIN)

"""Ridge regression of a new task's few rows on the predictions of models of well-measured tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfcast.predictors.transfer.task_experts import Known, TaskExpertsPredictor, Weights


@dataclass(kw_only=True, eq=False, repr=False)
class RidgeTransferPredictor(TaskExpertsPredictor):
    """Weighted sum of the experts and of the item columns for a new task, shrunk to the experts' plain mean.

    The penalty, one of `alphas`, has the smallest leave-one-out error on the task's known rows. Weights on columns cost
    `column_cost` times as much as weights on experts, which are similar tasks.
    """

    alphas: Sequence[float] = (0.0001, 0.001, 0.01, 0.1, 1.0)
    column_cost: float = 100.0
    few_rows: int = 100
    expert_rows: int = 4000

    def _weigh(self, known: Known) -> Weights:
        experts = len(known.experts)
        share = 1 / np.sqrt(self.column_cost)
        blocks = [known.experts.T - (known.experts.mean(axis=0)[:, None] if experts else 0.0)]
        blocks += [share * one for one in known.groups.values()]
        design = np.hstack(blocks)
        aims = known.values - (known.experts.mean(axis=0) if experts else 1.0)
        kernel = design @ design.T
        errors = [float((_left_out(kernel, aims, alpha) ** 2).sum()) for alpha in self.alphas]
        alpha = float(self.alphas[int(np.argmin(errors))])
        weights = design.T @ np.linalg.solve(kernel + alpha * np.eye(len(aims)), aims)
        on_experts, groups, begin = weights[:experts], {}, experts
        for name, one in known.groups.items():
            groups[name] = share * weights[begin : begin + one.shape[1]]
            begin += one.shape[1]
        # the design holds differences from the experts' mean: their weights sum to one in all
        plain = 1 / experts if experts else 0.0
        return Weights(0.0 if experts else 1.0, plain + on_experts - (on_experts.mean() if experts else 0.0), groups)


def _left_out(kernel: np.ndarray, aims: np.ndarray, alpha: float) -> np.ndarray:
    """Return the error of each row when it is predicted from the others. Source: Allen, 1974, Technometrics 16(1)."""
    inverse = np.linalg.inv(kernel + alpha * np.eye(len(aims)))
    return np.asarray((inverse @ aims) / np.diag(inverse))

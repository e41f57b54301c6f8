"""The linear skip of the neural predictors: a ridge regression per task that a network corrects.

Not part of the published networks. A network does not extrapolate; a straight line in logarithms continues to machines
that are larger than any in training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from perfcast.features.encoding.token_arrays import Tokens

ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Candidate ridge penalties (alpha), per row and in units of the standardized inputs."""

DEFAULT_ALPHA = 1e-3

_ALL = ""


@dataclass(frozen=True)
class LinearSkip:
    """Ridge weights of each task; a task that was not fitted takes the weights of all rows.

    Shapes: each entry of `weights` (1 + 2 x numerical, targets); the first row is the intercept.
    """

    weights: dict[str, np.ndarray]

    @classmethod
    def fit(cls, tokens: Tokens, tasks: np.ndarray, logs: np.ndarray, alpha: float) -> Self:
        """Solve the ridge regressions. Shapes: tasks (n,), logs (n, targets), NaN where not measured."""
        inputs = _inputs(tokens)
        weights = {_ALL: _ridge(inputs, logs, alpha)}
        for task in sorted(set(tasks.tolist()) - {_ALL}):
            weights[task] = _ridge(inputs[tasks == task], logs[tasks == task], alpha)
        return cls(weights)

    @classmethod
    def zero(cls, tokens: Tokens, targets: int) -> Self:
        """Return the skip that predicts zero."""
        return cls({_ALL: np.zeros((_inputs(tokens).shape[1], targets))})

    def predict(self, tokens: Tokens, tasks: np.ndarray) -> np.ndarray:
        """Return the linear prediction of the log targets, (n, targets)."""
        prediction = np.zeros((len(tokens.numbers), self.weights[_ALL].shape[1]))
        if not any(weights.any() for weights in self.weights.values()):
            return prediction
        inputs = _inputs(tokens)
        for task in sorted(set(tasks.tolist())):
            rows = tasks == task
            prediction[rows] = np.einsum("nf,ft->nt", inputs[rows], self.weights.get(task, self.weights[_ALL]))
        return prediction

    def state(self) -> dict[str, Any]:
        """Return the weights as values that JSON can hold."""
        return {task: weights.tolist() for task, weights in self.weights.items()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild a skip from `state()`."""
        return cls({task: np.array(weights) for task, weights in state.items()})


def choose_alpha(
    fitting: tuple[Tokens, np.ndarray, np.ndarray], validation: tuple[Tokens, np.ndarray, np.ndarray]
) -> float:
    """Return the penalty whose fit on the first rows has the smallest mean absolute error of logs on the second.

    Both are (tokens, tasks, logs).
    """
    tokens, tasks, logs = validation
    errors = {
        alpha: float(np.nanmean(np.abs(LinearSkip.fit(*fitting, alpha).predict(tokens, tasks) - logs)))
        for alpha in ALPHAS
    }
    return min(errors, key=lambda alpha: (errors[alpha], alpha))


def _inputs(tokens: Tokens) -> np.ndarray:
    ones = np.ones((len(tokens.numbers), 1))
    return np.hstack([ones, tokens.numbers.astype(float), tokens.missing.astype(float)])


def _ridge(inputs: np.ndarray, logs: np.ndarray, alpha: float) -> np.ndarray:
    weights = np.zeros((inputs.shape[1], logs.shape[1]))
    for target, values in enumerate(logs.T):
        measured = ~np.isnan(values)
        if not measured.any():
            continue
        X, center = inputs[measured], values[measured].mean()
        gram = X.T @ X / len(X)
        shrink = np.full(len(gram), alpha)
        shrink[0] = 1e-9
        weights[:, target] = np.linalg.solve(gram + np.diag(shrink), X.T @ (values[measured] - center) / len(X))
        weights[0, target] += center
    return weights

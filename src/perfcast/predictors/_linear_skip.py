"""The linear skip of the neural predictors: a ridge regression per task that a network corrects.

Not part of the published network. A network repeats what it has seen; a straight line in logarithms goes on to a
generation of machines that is larger than any in training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from perfcast.encoding.tokens import Tokens

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Candidate ridge penalties, per row and in units of the standardised inputs."""

DEFAULT_PENALTY = 1e-3

_ALL = ""


@dataclass(frozen=True)
class LinearSkip:
    """Ridge weights of each task; a task that was not fitted takes the weights of all rows.

    Shapes: each entry of `weights` (1 + 2 x numerical, targets); the first row is the intercept.
    """

    weights: dict[str, np.ndarray]

    @classmethod
    def fit(cls, tokens: Tokens, tasks: np.ndarray, logs: np.ndarray, penalty: float) -> Self:
        """Solve the ridge regressions. Shapes: tasks (n,), logs (n, targets), NaN where not measured."""
        inputs = _inputs(tokens)
        weights = {_ALL: _ridge(inputs, logs, penalty)}
        for task in sorted(set(tasks.tolist()) - {_ALL}):
            weights[task] = _ridge(inputs[tasks == task], logs[tasks == task], penalty)
        return cls(weights)

    @classmethod
    def none(cls, tokens: Tokens, targets: int) -> Self:
        """Return the skip that forecasts zero."""
        return cls({_ALL: np.zeros((_inputs(tokens).shape[1], targets))})

    def predict(self, tokens: Tokens, tasks: np.ndarray) -> np.ndarray:
        """Return the linear forecast of the log targets, (n, targets)."""
        forecast = np.zeros((len(tokens.numbers), self.weights[_ALL].shape[1]))
        if not any(weights.any() for weights in self.weights.values()):
            return forecast
        inputs = _inputs(tokens)
        for task in sorted(set(tasks.tolist())):
            chosen = tasks == task
            forecast[chosen] = np.einsum("nf,ft->nt", inputs[chosen], self.weights.get(task, self.weights[_ALL]))
        return forecast

    def state(self) -> dict[str, Any]:
        """Return the weights as values that JSON can hold."""
        return {task: weights.tolist() for task, weights in self.weights.items()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild a skip from `state()`."""
        return cls({task: np.array(weights) for task, weights in state.items()})


def choose_penalty(
    fitting: tuple[Tokens, np.ndarray, np.ndarray], choosing: tuple[Tokens, np.ndarray, np.ndarray]
) -> float:
    """Return the penalty whose fit on the first rows errs least, in mean absolute logs, on the second.

    Both are (tokens, tasks, logs).
    """
    tokens, tasks, logs = choosing
    errors = {
        penalty: float(np.nanmean(np.abs(LinearSkip.fit(*fitting, penalty).predict(tokens, tasks) - logs)))
        for penalty in PENALTIES
    }
    return min(errors, key=lambda penalty: (errors[penalty], penalty))


def _inputs(tokens: Tokens) -> np.ndarray:
    ones = np.ones((len(tokens.numbers), 1))
    return np.hstack([ones, tokens.numbers.astype(float), tokens.missing.astype(float)])


def _ridge(inputs: np.ndarray, logs: np.ndarray, penalty: float) -> np.ndarray:
    weights = np.zeros((inputs.shape[1], logs.shape[1]))
    for target, values in enumerate(logs.T):
        seen = ~np.isnan(values)
        if not seen.any():
            continue
        X, centre = inputs[seen], values[seen].mean()
        gram = X.T @ X / len(X)
        shrink = np.full(len(gram), penalty)
        shrink[0] = 1e-9
        weights[:, target] = np.linalg.solve(gram + np.diag(shrink), X.T @ (values[seen] - centre) / len(X))
        weights[0, target] += centre
    return weights

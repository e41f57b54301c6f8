"""Base of the neural predictors: encoding, training in two steps, weights on disk."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from torch import nn

from perfcast.features.encoding.tokens import TokenEncoder, Tokens, TokenSpec
from perfcast.nn.embedding import TokenBatch
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import measured_rows, task_labels
from perfcast.training.loop import BatchLoader, TrainerConfig, TrainingConfig, reproducible
from perfcast.utils.io import atomic_path, write_json
from perfcast.utils.model_files import read_arrays, read_state

if TYPE_CHECKING:
    from perfcast.training.lightning_modules import Regression

PREDICT_BATCH_SIZE = 512
_ALL = ""
"""Key of the scale and of the linear skip of all rows together."""

ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Candidate ridge penalties (alpha), per row and in units of the standardized inputs."""

DEFAULT_ALPHA = 1e-3


@dataclass(frozen=True)
class TargetScale:
    """Center and spread of the log targets of each task.

    A task that was not fitted, and a target that a task never measured, take the values of all rows.
    """

    centers: dict[str, list[float]]
    spreads: dict[str, list[float]]

    @classmethod
    def fit(cls, tasks: np.ndarray, logs: np.ndarray) -> Self:
        """Measure center and spread. Shapes: tasks (n,) text, logs (n, targets), NaN where not measured."""
        centers = {_ALL: [0.0] * logs.shape[1]}
        spreads = {_ALL: [1.0] * logs.shape[1]}
        for task in [_ALL, *sorted(set(tasks.tolist()) - {_ALL})]:
            selected = logs if task == _ALL else logs[tasks == task]
            pairs = [_center_spread(column, centers[_ALL][i], spreads[_ALL][i]) for i, column in enumerate(selected.T)]
            centers[task] = [center for center, _ in pairs]
            spreads[task] = [spread for _, spread in pairs]
        return cls(centers, spreads)

    def standardize(self, tasks: np.ndarray, logs: np.ndarray) -> np.ndarray:
        """Return logs in units of their task's spread around its center."""
        return np.asarray((logs - self._rows(self.centers, tasks)) / self._rows(self.spreads, tasks))

    def restore(self, tasks: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Undo `standardize`."""
        return np.asarray(values * self._rows(self.spreads, tasks) + self._rows(self.centers, tasks))

    @staticmethod
    def _rows(values: dict[str, list[float]], tasks: np.ndarray) -> np.ndarray:
        return np.array([values.get(task, values[_ALL]) for task in tasks.tolist()])


def _center_spread(column: np.ndarray, center: float, spread: float) -> tuple[float, float]:
    known = column[~np.isnan(column)]
    if len(known) == 0:
        return center, spread
    deviation = float(known.std())
    return float(known.mean()), deviation if deviation > 1e-9 else 1.0


@dataclass(frozen=True)
class LinearSkip:
    """A ridge regression per task that a network corrects; a task that was not fitted takes the weights of all rows.

    Not part of the published networks. A network does not extrapolate; a straight line in logarithms continues to
    machines that are larger than any in training.
    Shapes: each entry of `weights` (1 + 2 x numerical, targets); the first row is the intercept.
    """

    weights: dict[str, np.ndarray]

    @classmethod
    def fit(cls, tokens: Tokens, tasks: np.ndarray, logs: np.ndarray, alpha: float) -> Self:
        """Solve the ridge regressions. Shapes: tasks (n,), logs (n, targets), NaN where not measured."""
        return cls.fit_each(tokens, tasks, logs, [alpha])[0]

    @classmethod
    def fit_each(cls, tokens: Tokens, tasks: np.ndarray, logs: np.ndarray, alphas: Sequence[float]) -> list[Self]:
        """Return `fit` for each of the penalties, from the same sums of the rows."""
        inputs = _inputs(tokens)
        weights = {_ALL: _ridges(inputs, logs, alphas)}
        for task in sorted(set(tasks.tolist()) - {_ALL}):
            weights[task] = _ridges(inputs[tasks == task], logs[tasks == task], alphas)
        return [cls({task: each[number] for task, each in weights.items()}) for number in range(len(alphas))]

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


def _inputs(tokens: Tokens) -> np.ndarray:
    ones = np.ones((len(tokens.numbers), 1))
    return np.hstack([ones, tokens.numbers.astype(float), tokens.missing.astype(float)])


def _ridges(inputs: np.ndarray, logs: np.ndarray, alphas: Sequence[float]) -> np.ndarray:
    """Return the weights by penalty, (alphas, inputs, targets)."""
    weights = np.zeros((len(alphas), inputs.shape[1], logs.shape[1]))
    for target, values in enumerate(logs.T):
        measured = ~np.isnan(values)
        if not measured.any():
            continue
        X = inputs[measured]
        center = values[measured].mean()
        gram = X.T @ X / len(X)
        products = X.T @ (values[measured] - center) / len(X)
        for number, alpha in enumerate(alphas):
            shrink = np.full(len(gram), alpha)
            shrink[0] = 1e-9
            weights[number, :, target] = np.linalg.solve(gram + np.diag(shrink), products)
            weights[number, 0, target] += center
    return weights


@dataclass(frozen=True)
class _Subset:
    """Some of the rows of `fit`. Shapes: tasks (n,), logs (n, targets)."""

    X: pd.DataFrame
    tasks: np.ndarray
    logs: np.ndarray

    def select(self, mask: np.ndarray) -> Self:
        return type(self)(self.X[mask], self.tasks[mask], self.logs[mask])


class NeuralPredictor(TrainingConfig, Predictor):
    """A network over feature tokens, trained on standardized log targets, beside an optional linear skip.

    Training has two steps. The first fits everything without the validation rows, and chooses on them the number of
    epochs and the penalty of the skip. The second (`refit`) fits everything anew on all rows for that number of
    epochs: for a forward split the validation rows are the last months, the most useful ones to train on. Without
    validation rows, or without `early_stopping`, the second step alone trains the network, for the full number of
    epochs. That takes half the time.

    `history_` has one entry per epoch: epoch, train_loss, validation_loss, validation_error (mean absolute, scaled
    logs), learning_rate of the first step, refit_loss of the second; NaN where there was none.
    A subclass is a dataclass of the hyperparameters of its network and implements `build_network`.
    """

    trainer_config = TrainerConfig()
    # Devices for training. No annotation, so no hyperparameter: it is neither cloned nor saved.
    encoder_class: ClassVar[type[TokenEncoder]] = TokenEncoder

    @abstractmethod
    def build_network(self, spec: TokenSpec, n_outputs: int) -> nn.Module:
        """Return an untrained network for tokens of these sizes.

        Shapes: it maps rows to (rows, outputs). In training it may return (rows, k, outputs) instead: then every
        member learns by its own loss (`masked_huber`).
        """

    def _prepare_network(self, tokens: Tokens) -> None:
        """Learn what `build_network` needs of the training rows beside their sizes."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        measured_rows(log_y, self.targets_)
        everything = _Subset(X, task_labels(X, self.columns_), log_y)
        alpha = DEFAULT_ALPHA
        config = self.training_config()
        first = None
        if validation.any() and not validation.all():
            fitting = everything.select(~validation)
            held_out = everything.select(validation)
            alpha = self._choose_alpha(fitting, held_out)
            if self.early_stopping:
                first = self._fit_step(fitting, held_out, config, alpha)
                config = replace(config, epochs=first.best_epoch, min_steps=0)
        second = self._fit_step(everything, None, config, alpha) if first is None or self.refit else None
        self.history_ = _join_histories(first, second)

    def _choose_alpha(self, fitting: _Subset, validation: _Subset) -> float:
        """Return the penalty of the skip with the smallest mean absolute error of logs on the validation rows."""
        if not self.linear_skip:
            return DEFAULT_ALPHA
        encoder = self.encoder_class().fit(fitting.X, self.columns_)
        fitted = encoder.transform(fitting.X)
        validated = encoder.transform(validation.X)
        skips = LinearSkip.fit_each(fitted, fitting.tasks, fitting.logs, ALPHAS)
        errors = {}
        for alpha, skip in zip(ALPHAS, skips, strict=True):
            errors[alpha] = float(np.nanmean(np.abs(skip.predict(validated, validation.tasks) - validation.logs)))
        return min(errors, key=lambda alpha: (errors[alpha], alpha))

    def _fit_step(
        self, training: _Subset, validation: _Subset | None, config: TrainingConfig, alpha: float
    ) -> Regression:
        """Fit encoder, skip, scale and network on the training rows."""
        from perfcast.training.lightning_modules import train  # seconds of imports, which no prediction needs

        self.encoder_ = self.encoder_class().fit(training.X, self.columns_)
        tokens = self.encoder_.transform(training.X)
        n_outputs = training.logs.shape[1]
        if self.linear_skip:
            self.skip_ = LinearSkip.fit(tokens, training.tasks, training.logs, alpha)
        else:
            self.skip_ = LinearSkip.zero(tokens, n_outputs)
        residual = training.logs - self.skip_.predict(tokens, training.tasks)
        self.scale_ = TargetScale.fit(training.tasks, residual)
        rows = TokenBatch.from_tokens(tokens, self.scale_.standardize(training.tasks, residual))
        validation_rows = None if validation is None else self._encode(validation)
        self._prepare_network(tokens)
        with reproducible(self.random_state):
            self.network_ = self.build_network(self.encoder_.spec, n_outputs)
            return train(
                self.network_, rows, validation_rows, config, self.random_state, trainer_config=self.trainer_config
            )

    def _encode(self, subset: _Subset) -> TokenBatch:
        tokens = self.encoder_.transform(subset.X)
        residual = subset.logs - self.skip_.predict(tokens, subset.tasks)
        return TokenBatch.from_tokens(tokens, self.scale_.standardize(subset.tasks, residual))

    def encode_inputs(self, X: pd.DataFrame) -> TokenBatch:
        """Return rows of X as the fitted network reads them, without targets."""
        return self._without_targets(self.encoder_.transform(self._inputs(X)))

    def _without_targets(self, tokens: Tokens) -> TokenBatch:
        return TokenBatch.from_tokens(tokens, np.full((len(tokens.numbers), len(self.targets_)), np.nan))

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        return self._predict_tokens(self.encoder_.transform(X), task_labels(X, self.columns_))

    def _predict_tokens(self, tokens: Tokens, tasks: np.ndarray) -> np.ndarray:
        """Return the log targets of encoded rows. Shapes: tasks (n,) text -> (n, targets)."""
        with reproducible(0), torch.inference_mode():
            scaled = self._predict_scaled(self._without_targets(tokens)).numpy().astype(float)
        return np.asarray(self.scale_.restore(tasks, scaled) + self.skip_.predict(tokens, tasks))

    def _predict_scaled(self, rows: TokenBatch) -> torch.Tensor:
        """Return the network's standardized predictions, (rows, outputs)."""
        return torch.cat([self.network_(batch) for batch in BatchLoader(rows, PREDICT_BATCH_SIZE)])

    def _save(self, folder: Path) -> None:
        skip = {task: weights.tolist() for task, weights in self.skip_.weights.items()}
        learned = {"encoder": self.encoder_.to_state(), "scale": asdict(self.scale_), "skip": skip}
        write_json(folder / "learned.json", learned)
        with atomic_path(folder / "network.npz") as temporary:
            np.savez(temporary, **{name: value.numpy() for name, value in self.network_.state_dict().items()})

    def _load(self, folder: Path) -> None:
        learned = read_state(folder / "learned.json")
        self.encoder_ = self.encoder_class.from_state(learned["encoder"])
        self.scale_ = TargetScale(**learned["scale"])
        self.skip_ = LinearSkip({task: np.array(weights) for task, weights in learned["skip"].items()})
        arrays = read_arrays(folder / "network.npz")
        weights = {name: torch.from_numpy(array) for name, array in arrays.items()}
        with reproducible(0):
            self.network_ = self.build_network(self.encoder_.spec, len(self.targets_))
        self.network_.load_state_dict(weights)
        self.network_.eval()


def _join_histories(first: Regression | None, second: Regression | None) -> list[dict[str, float]]:
    """Return one entry per epoch with the curves of both steps."""
    nan = float("nan")
    entries = [] if first is None else [{**entry, "refit_loss": nan} for entry in first.history]
    for position, entry in enumerate([] if second is None else second.history):
        if position == len(entries):
            entries.append({**entry, "validation_loss": nan, "validation_error": nan})
        entries[position]["refit_loss"] = entry["train_loss"]
    return entries

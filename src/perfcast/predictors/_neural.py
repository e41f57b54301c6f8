"""What the neural predictors share: encoding, two-step training, weights on disk."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd
import torch
from torch import nn

from perfcast.encoding.tokens import TokenEncoder, Tokens
from perfcast.io import atomic_path, read_json, write_json
from perfcast.predictors._linear_skip import DEFAULT_PENALTY, LinearSkip, choose_penalty
from perfcast.predictors._rows import measured_rows, task_labels
from perfcast.predictors.base import Predictor
from perfcast.training.data import Batches, Rows
from perfcast.training.devices import Machine
from perfcast.training.loop import History, reproducible, train
from perfcast.training.module import Schedule
from perfcast.training.scale import TargetScale

PREDICT_BATCH_ROWS = 512


@dataclass(frozen=True)
class _Part:
    """Some of the rows given to `fit`. Shapes: tasks (n,), logs (n, targets)."""

    X: pd.DataFrame
    tasks: np.ndarray
    logs: np.ndarray

    def where(self, chosen: np.ndarray) -> Self:
        return type(self)(self.X[chosen], self.tasks[chosen], self.logs[chosen])


class NeuralPredictor(Predictor):
    """A network over feature tokens, trained on standardised log targets, beside an optional linear skip.

    Training has two steps. The first fits everything without the validation rows, and takes from them the number of
    epochs and the penalty of the skip. The second (`refit`) fits everything anew on all rows for that number of
    epochs: for a forward question the validation rows are the last months, which are the most useful ones to have
    seen. Without validation rows, or without `early_stopping`, the network is trained in the second step alone, for
    the full number of epochs: half the time, where that number is known to serve.

    `history_` has one entry per epoch: epoch, train_loss, valid_loss, valid_error (mean absolute, standardised logs),
    learning_rate of the first step, refit_loss of the second; NaN where there was none. `valid_mape_` is the mean
    absolute percentage error of the first step on the validation rows, in percent; NaN without them.
    """

    machine: Machine = Machine()
    """What trains: no hyper-parameter, so it is neither cloned nor saved."""
    linear_skip: bool
    early_stopping: bool
    refit: bool
    epochs: int
    least_steps: int
    batch_rows: int
    learning_rate: float
    weight_decay: float
    huber: float
    gradient_norm: float
    patience: int
    random_state: int

    @abstractmethod
    def network(self, encoder: TokenEncoder, outputs: int) -> nn.Module:
        """Return an untrained network for the tokens of `encoder`.

        Shapes: it turns rows to (rows, outputs). While it trains it may answer (rows, members, outputs) in their
        place: then every member learns by its own loss (`masked_huber`).
        """

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, valid: np.ndarray) -> None:
        measured_rows(log_y, self.targets_)
        everything = _Part(X, task_labels(X, self.columns_), log_y)
        penalty, schedule, first = DEFAULT_PENALTY, self.schedule(), None
        self.valid_mape_ = float("nan")
        if valid.any() and not valid.all():
            fitting, choosing = everything.where(~valid), everything.where(valid)
            penalty = self._choose_penalty(fitting, choosing)
            if self.early_stopping:
                first = self._fit_step(fitting, choosing, schedule, penalty)
                error = np.expm1(self._predict(choosing.X) - choosing.logs)
                self.valid_mape_ = 100.0 * float(np.nanmean(np.abs(error)))
                schedule = replace(schedule, epochs=first.chosen_epoch, least_steps=0)
        second = self._fit_step(everything, None, schedule, penalty) if first is None or self.refit else None
        self.history_ = _joined(first, second)

    def _choose_penalty(self, fitting: _Part, choosing: _Part) -> float:
        if not self.linear_skip:
            return DEFAULT_PENALTY
        encoder = TokenEncoder().fit(fitting.X, self.columns_)
        return choose_penalty(
            (encoder.transform(fitting.X), fitting.tasks, fitting.logs),
            (encoder.transform(choosing.X), choosing.tasks, choosing.logs),
        )

    def _fit_step(self, part: _Part, held: _Part | None, schedule: Schedule, penalty: float) -> History:
        """Fit encoder, skip, scale and network on the rows of `part`."""
        self.encoder_ = TokenEncoder().fit(part.X, self.columns_)
        tokens = self.encoder_.transform(part.X)
        if self.linear_skip:
            self.skip_ = LinearSkip.fit(tokens, part.tasks, part.logs, penalty)
        else:
            self.skip_ = LinearSkip.none(tokens, part.logs.shape[1])
        rest = part.logs - self.skip_.predict(tokens, part.tasks)
        self.scale_ = TargetScale.fit(part.tasks, rest)
        rows = Rows.of(tokens, self.scale_.standardise(part.tasks, rest))
        held_rows = None if held is None else self._rows(self.encoder_.transform(held.X), held)
        with reproducible(self.random_state):
            self.network_ = self.network(self.encoder_, part.logs.shape[1])
            return train(self.network_, rows, held_rows, schedule, self.random_state, machine=self.machine)

    def _rows(self, tokens: Tokens, part: _Part) -> Rows:
        rest = part.logs - self.skip_.predict(tokens, part.tasks)
        return Rows.of(tokens, self.scale_.standardise(part.tasks, rest))

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        tokens, tasks = self.encoder_.transform(X), task_labels(X, self.columns_)
        nothing = np.full((len(X), len(self.targets_)), np.nan)
        with reproducible(0), torch.inference_mode():
            scaled = self._answers(Rows.of(tokens, nothing)).numpy().astype(float)
        logs: np.ndarray = self.scale_.restore(tasks, scaled) + self.skip_.predict(tokens, tasks)
        return logs

    def _answers(self, rows: Rows) -> torch.Tensor:
        """Return the network's standardised forecasts, (rows, outputs)."""
        return torch.cat([self.network_(batch) for batch in Batches(rows, PREDICT_BATCH_ROWS)])

    def _rebuilt(self, weights: dict[str, torch.Tensor]) -> nn.Module:
        with reproducible(0):
            network = self.network(self.encoder_, len(self.targets_))
        network.load_state_dict(weights)
        return network.eval()

    def schedule(self) -> Schedule:
        return Schedule(
            epochs=self.epochs,
            least_steps=self.least_steps,
            batch_rows=self.batch_rows,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            huber=self.huber,
            gradient_norm=self.gradient_norm,
            patience=self.patience,
        )

    def _save(self, folder: Path) -> None:
        learned = {"encoder": self.encoder_.state(), "scale": self.scale_.state(), "skip": self.skip_.state()}
        write_json(folder / "learned.json", learned)
        with atomic_path(folder / "network.npz") as temporary:
            np.savez(temporary, **{name: value.numpy() for name, value in self.network_.state_dict().items()})

    def _load(self, folder: Path) -> None:
        learned = read_json(folder / "learned.json")
        self.encoder_ = TokenEncoder.from_state(learned["encoder"])
        self.scale_ = TargetScale(**learned["scale"])
        self.skip_ = LinearSkip.from_state(learned["skip"])
        with np.load(folder / "network.npz", allow_pickle=False) as weights:
            self.network_ = self._rebuilt({name: torch.from_numpy(weights[name]) for name in weights.files})


def _joined(first: History | None, second: History | None) -> list[dict[str, float]]:
    """Return one entry per epoch with the curves of both steps."""
    nothing = float("nan")
    entries = [] if first is None else [{**entry, "refit_loss": nothing} for entry in first.epochs]
    for position, entry in enumerate([] if second is None else second.epochs):
        if position == len(entries):
            entries.append({**entry, "valid_loss": nothing, "valid_error": nothing})
        entries[position]["refit_loss"] = entry["train_loss"]
    return entries

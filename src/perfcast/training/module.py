"""The one Lightning module of every neural predictor."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from perfcast.training.data import Rows


@dataclass(frozen=True)
class Schedule:
    """How a network is trained.

    epochs          passes over the training rows; more when the rows are so few that `least_steps` is not reached
    least_steps     optimiser steps at least, so that a small table is learned too
    batch_rows      rows per step
    learning_rate   highest rate of the one-cycle schedule (Smith & Topin 2018)
    weight_decay    of AdamW, on matrices alone
    huber           where the loss turns from squared to absolute, in standardised units
    gradient_norm   gradients are clipped to it
    patience        epochs without a better validation error before training stops
    """

    epochs: int = 30
    least_steps: int = 200
    batch_rows: int = 256
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    huber: float = 0.5
    gradient_norm: float = 1.0
    patience: int = 10

    def epochs_for(self, rows: int) -> int:
        """Return the number of epochs for a table of `rows` rows."""
        steps_per_epoch = math.ceil(rows / self.batch_rows)
        return max(self.epochs, math.ceil(self.least_steps / steps_per_epoch))


def masked_huber(predicted: Tensor, target: Tensor, delta: float) -> Tensor:
    """Return the mean Huber loss over the measured targets, 0 when none was measured; NaN marks the others.

    Shapes: target (rows, outputs); predicted the same, or (rows, members, outputs) of an implicit ensemble: every
    member is held against the target on its own, so this is the mean of their losses, not the loss of their mean.
    """
    if predicted.ndim == target.ndim + 1:
        target = target.unsqueeze(1).expand_as(predicted)
    seen = ~torch.isnan(target)
    error = predicted - torch.where(seen, target, predicted.detach())
    loss = nn.functional.huber_loss(error, torch.zeros_like(error), reduction="none", delta=delta)
    return (loss * seen).sum() / seen.sum().clamp(min=1)


class Regression(pl.LightningModule):
    """Train a network on standardised targets, and keep the weights of the best validation epoch.

    Without validation rows the weights of the last epoch are kept. `history` gets one entry per epoch.
    """

    def __init__(self, network: nn.Module, schedule: Schedule, steps: int) -> None:
        super().__init__()
        self.network, self.schedule, self.steps = network, schedule, steps
        self.history: list[dict[str, float]] = []
        self.best_epoch, self.best_error = 0, float("inf")
        self.best_weights: dict[str, Tensor] | None = None
        self._sums = {"train": [0.0, 0.0], "valid": [0.0, 0.0], "error": [0.0, 0.0]}

    def training_step(self, batch: Rows, index: int) -> Tensor:
        """Return the loss of one batch."""
        loss = masked_huber(self.network(batch), batch.targets, self.schedule.huber)
        self._add("train", loss, len(batch))
        return loss

    def validation_step(self, batch: Rows, index: int) -> None:
        """Add one batch to the validation loss and the mean absolute error."""
        predicted = self.network(batch)
        seen = ~torch.isnan(batch.targets)
        self._add("valid", masked_huber(predicted, batch.targets, self.schedule.huber), len(batch))
        if seen.any():
            self._add("error", (predicted - batch.targets)[seen].abs().mean(), int(seen.sum()))

    def on_train_epoch_end(self) -> None:
        """Close the epoch: note the curves, keep the best weights, stop when patience is over."""
        entry = {"epoch": self.current_epoch + 1, "train_loss": self._mean("train"), "learning_rate": self._rate()}
        if self._sums["valid"][1]:
            entry["valid_loss"], error = self._mean("valid"), self._mean("error")
            entry["valid_error"] = error
            if error < self.best_error:
                self.best_error, self.best_epoch = error, self.current_epoch + 1
                self.best_weights = copy.deepcopy(self.network.state_dict())
            elif self.current_epoch + 1 - self.best_epoch >= self.schedule.patience:
                self.trainer.should_stop = True
        self.history.append(entry)
        self._sums = {key: [0.0, 0.0] for key in self._sums}

    def configure_optimizers(self) -> Any:
        """Return AdamW with a one-cycle rate; biases, norms and embeddings of one row are not decayed."""
        parameters = [parameter for parameter in self.network.parameters() if parameter.requires_grad]
        groups = [
            {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": self.schedule.weight_decay},
            {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, lr=self.schedule.learning_rate, fused=True)
        cycle = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=self.schedule.learning_rate, total_steps=self.steps + 1, pct_start=0.15
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": cycle, "interval": "step"}}

    def _add(self, key: str, value: Tensor, weight: float) -> None:
        self._sums[key][0] += float(value.detach()) * weight
        self._sums[key][1] += weight

    def _mean(self, key: str) -> float:
        total, weight = self._sums[key]
        return total / weight if weight else float("nan")

    def _rate(self) -> float:
        return float(self.trainer.optimizers[0].param_groups[0]["lr"])

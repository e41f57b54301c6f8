"""The one Lightning module of every neural predictor."""

from __future__ import annotations

import copy
import io
import logging
import math
import warnings
from dataclasses import dataclass
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from perfcast.training.data import Rows
from perfcast.training.devices import rank_and_size, sum_over_devices


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

    def __init__(self, network: nn.Module, schedule: Schedule, steps: int, seed: int = 0) -> None:
        super().__init__()
        self.network, self.schedule, self.steps, self.seed = network, schedule, steps, seed
        self.history: list[dict[str, float]] = []
        self.best_epoch, self.best_error = 0, float("inf")
        self.best_weights: dict[str, Tensor] | None = None
        self._sums = {"train": [0.0, 0.0], "valid": [0.0, 0.0], "error": [0.0, 0.0]}

    def on_fit_start(self) -> None:
        """Seed a process that trains beside others: it began without its parent's state, and needs noise of its own."""
        rank, processes = rank_and_size()
        if processes > 1:
            torch.set_num_threads(1)
            torch.manual_seed(self.seed + rank)

    def training_step(self, batch: Rows, index: int) -> Tensor:
        """Return the loss of one batch, or of this process's share of it.

        Gradients are averaged over processes, so a share counts by its measured targets: what results is the gradient
        of the whole batch.
        """
        loss = masked_huber(self.network(batch), batch.targets, self.schedule.huber)
        rows, processes = float(len(batch)), rank_and_size()[1]
        if processes > 1:
            own = torch.stack([(~torch.isnan(batch.targets)).sum(), torch.tensor(len(batch), device=loss.device)])
            whole = sum_over_devices(own)
            loss, rows = loss * own[0] * processes / whole[0].clamp(min=1), float(whole[1]) / processes
        self._add("train", loss, rows)
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
        if rank_and_size()[1] > 1:
            self._sums["train"] = sum_over_devices(torch.tensor(self._sums["train"], device=self.device)).tolist()
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

    def on_train_end(self) -> None:
        """End with the weights of the best epoch."""
        if self.best_weights is not None:
            self.network.load_state_dict(self.best_weights)

    def get_extra_state(self) -> dict[str, Any]:
        """Return what comes back with the weights from the processes that trained."""
        return {"history": self.history, "best_epoch": self.best_epoch}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take what came back with the weights."""
        self.history, self.best_epoch = state["history"], state["best_epoch"]

    def __getstate__(self) -> dict[str, Any]:
        """Go to another process with the network as bytes, for the reason that rows go as arrays."""
        packed = io.BytesIO()
        torch.save(self.network, packed)
        return {**super().__getstate__(), "_modules": packed.getvalue()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpack the network that another process of this training packed, and be as quiet as that one."""
        for library in ("pytorch_lightning", "lightning_fabric"):
            logging.getLogger(library).setLevel(logging.ERROR)
            warnings.filterwarnings("ignore", module=library)
        network = torch.load(io.BytesIO(state["_modules"]), weights_only=False)
        super().__setstate__({**state, "_modules": {"network": network}})

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

"""The Lightning module and data module that train every network."""

from __future__ import annotations

import copy
import io
import logging
import warnings
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from perfcast.nn.token_batch import TokenBatch, mask_inputs
from perfcast.training.devices import rank_and_size, sum_over_devices
from perfcast.training.loop import BatchLoader, TrainingConfig
from perfcast.training.optimization import (
    VALIDATION_BATCH_SIZE,
    VALIDATION_METRIC,
    make_optimizer,
    masked_huber,
    measured_error,
)
from perfcast.training.progress import EPOCH_LISTENERS


class Regression(pl.LightningModule):
    """Train a network on standardized targets, and keep the weights of the best validation epoch.

    Without validation rows it keeps the weights of the last epoch. `history` gets one entry per epoch.
    """

    def __init__(self, network: nn.Module, config: TrainingConfig, steps: int, seed: int = 0) -> None:
        super().__init__()
        self.network, self.config, self.steps, self.seed = network, config, steps, seed
        self.history: list[dict[str, float]] = []
        self.best_epoch, self.best_error = 0, float("inf")
        self.best_weights: dict[str, Tensor] | None = None

    def on_fit_start(self) -> None:
        """Seed a process that trains beside others: it starts without its parent's state, and needs separate noise."""
        rank, processes = rank_and_size()
        if processes > 1:
            torch.set_num_threads(1)
            torch.manual_seed(self.seed + rank)

    def training_step(self, batch: TokenBatch, index: int) -> Tensor:
        """Return the loss of one batch, or of this process's share of it.

        Gradients are averaged over processes, so a share is weighted by its measured targets. The result is the
        gradient of the whole batch.
        """
        predicted = self.network(mask_inputs(batch, self.config.mask_rate))
        loss = masked_huber(predicted, batch.targets, self.config.huber_delta)
        rows, processes = len(batch), rank_and_size()[1]
        if processes > 1:
            share = torch.stack([(~torch.isnan(batch.targets)).sum(), torch.tensor(rows, device=loss.device)])
            total = sum_over_devices(share)
            loss, rows = loss * share[0] * processes / total[0].clamp(min=1), int(total[1])
        self.log("train_loss", loss, on_step=False, on_epoch=True, batch_size=rows, sync_dist=processes > 1)
        return loss

    def validation_step(self, batch: TokenBatch, index: int) -> None:
        """Log the validation loss and the mean absolute error of one batch; every process evaluates all rows."""
        predicted = self.network(batch)
        self.log(
            "validation_loss", masked_huber(predicted, batch.targets, self.config.huber_delta), batch_size=len(batch)
        )
        error, count = measured_error(predicted, batch.targets)
        if count:
            self.log(VALIDATION_METRIC, error, batch_size=count)

    def on_train_epoch_end(self) -> None:
        """Record the curves and keep the best weights, in memory: a file per epoch would need a folder."""
        metrics = {name: float(value) for name, value in self.trainer.callback_metrics.items()}
        rate = float(self.trainer.optimizers[0].param_groups[0]["lr"])
        self.history.append({"epoch": self.current_epoch + 1, "learning_rate": rate, **metrics})
        for listener in EPOCH_LISTENERS:
            listener(self.history[-1])
        if metrics.get(VALIDATION_METRIC, float("inf")) < self.best_error:
            self.best_error, self.best_epoch = metrics[VALIDATION_METRIC], self.current_epoch + 1
            self.best_weights = copy.deepcopy(self.network.state_dict())

    def on_train_end(self) -> None:
        """End with the weights of the best epoch."""
        if self.best_weights is not None:
            self.network.load_state_dict(self.best_weights)

    def get_extra_state(self) -> dict[str, Any]:
        """Return the state that processes which train send back beside the weights."""
        return {"history": self.history, "best_epoch": self.best_epoch}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take the state that such a process sent back."""
        self.history, self.best_epoch = state["history"], state["best_epoch"]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with the network as bytes, for the reason that `TokenBatch` is pickled as arrays."""
        packed = io.BytesIO()
        torch.save(self.network, packed)
        return {**super().__getstate__(), "_modules": packed.getvalue()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpack the network that another process of this training packed, and silence the same libraries."""
        for library in ("pytorch_lightning", "lightning_fabric"):
            logging.getLogger(library).setLevel(logging.ERROR)
            warnings.filterwarnings("ignore", module=library)
        network = torch.load(io.BytesIO(state["_modules"]), weights_only=False)
        super().__setstate__({**state, "_modules": {"network": network}})

    def configure_optimizers(self) -> Any:
        """Return the optimizer and the schedule of its rate."""
        optimizer, rates = make_optimizer(self.network, self.config, self.steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": rates, "interval": "step"}}


class TokenDataModule(pl.LightningDataModule):
    """The training rows, and the validation rows if there are any, as loaders for Lightning.

    All rows are moved to the device at once: a table is small beside a GPU's memory, and copies of every batch are not.
    """

    def __init__(self, training: TokenBatch, validation: TokenBatch | None, config: TrainingConfig, seed: int) -> None:
        super().__init__()
        self.training = BatchLoader(
            training, config.batch_size, shuffle_seed=seed, limit=config.steps_per_epoch, shared=True
        )
        self.validation = None if validation is None else BatchLoader(validation, VALIDATION_BATCH_SIZE)

    def train_dataloader(self) -> BatchLoader:
        """Return the batches of one epoch."""
        self.training.rows = self.training.rows.to(self._device)
        return self.training

    def val_dataloader(self) -> BatchLoader | list[BatchLoader]:
        """Return the validation batches; an empty list without validation rows."""
        if self.validation is None:
            return []
        self.validation.rows = self.validation.rows.to(self._device)
        return self.validation

    @property
    def _device(self) -> torch.device:
        assert self.trainer is not None  # Lightning asks for loaders once it is attached
        device: torch.device = self.trainer.strategy.root_device
        return device

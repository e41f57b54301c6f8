"""The Lightning module, data module and trainer that train every network."""

from __future__ import annotations

import copy
import hashlib
import io
import logging
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from lightning_fabric.plugins import TorchCheckpointIO
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from perfcast.nn.embedding import TokenBatch, mask_inputs
from perfcast.training.loop import BatchLoader, TrainerConfig, TrainingConfig, rank_and_size
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path

VALIDATION_BATCH_SIZE = 1024

VALIDATION_METRIC = "validation_error"
"""Mean absolute error of the standardized validation targets: what training stops by."""

for _library in ("pytorch_lightning", "lightning_fabric"):  # notes about hardware and loaders concern no result
    logging.getLogger(_library).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module=_library)


def masked_huber(predicted: Tensor, target: Tensor, delta: float) -> Tensor:
    """Return the mean Huber loss over the measured targets, 0 when none was measured; NaN marks the others.

    Shapes: target (rows, outputs); predicted the same, or (rows, k, outputs) of an implicit ensemble. Every member of
    an ensemble is compared with the target separately: this is the mean of their losses, not the loss of their mean.
    """
    if predicted.ndim == target.ndim + 1:
        target = target.unsqueeze(1).expand_as(predicted)
    measured = ~torch.isnan(target)
    error = predicted - torch.where(measured, target, predicted.detach())
    loss = nn.functional.huber_loss(error, torch.zeros_like(error), reduction="none", delta=delta)
    return (loss * measured).sum() / measured.sum().clamp(min=1)


class Regression(pl.LightningModule):
    """Train a network on standardized targets, and keep the weights of the best validation epoch.

    Without validation rows it keeps the weights of the last epoch. `history` gets one entry per epoch. The best weights
    are kept in memory, and in checkpoints if there are any: a file of every epoch takes as long as a short epoch.
    """

    def __init__(self, network: nn.Module, config: TrainingConfig, steps: int, seed: int = 0) -> None:
        super().__init__()
        self.network = network
        self.config = config
        self.steps = steps
        self.seed = seed
        self.train_losses: list[Tensor] = []
        self.train_rows: list[int] = []
        self.history: list[dict[str, float]] = []
        self.best_epoch = 0
        self.best_error = float("inf")
        self.best_weights: dict[str, Tensor] | None = None

    def on_fit_start(self) -> None:
        """Seed a process that trains beside others: it starts without its parent's state, and needs separate noise."""
        rank, processes = rank_and_size()
        if processes > 1:
            torch.set_num_threads(1)
            torch.manual_seed(self.seed + rank)
        stopping = self.trainer.early_stopping_callback  # with its state, if this training continues
        self.trainer.should_stop = stopping is not None and stopping.wait_count >= stopping.patience

    def training_step(self, batch: TokenBatch, index: int) -> Tensor:
        """Return the loss of one batch, or of this process's share of it.

        Gradients are averaged over processes, so a share is weighted by its measured targets. The result is the
        gradient of the whole batch.
        """
        predicted = self.network(mask_inputs(batch, self.config.mask_rate))
        loss = masked_huber(predicted, batch.targets, self.config.huber_delta)
        rows = len(batch)
        processes = rank_and_size()[1]
        if processes > 1:
            share = torch.stack([(~torch.isnan(batch.targets)).sum(), torch.tensor(rows, device=loss.device)])
            torch.distributed.all_reduce(total := share.clone())
            loss = loss * share[0] * processes / total[0].clamp(min=1)
            rows = int(total[1])
        # Lightning's own log of every step takes as long as a layer of a small network
        self.train_losses.append(loss.detach())
        self.train_rows.append(rows)
        return loss

    def _take_train_loss(self) -> float:
        """Return the mean loss of the training rows since the last call."""
        losses = torch.stack(self.train_losses)
        processes = rank_and_size()[1]
        if processes > 1:
            torch.distributed.all_reduce(losses)
        rows = np.array(self.train_rows)
        self.train_losses.clear()
        self.train_rows.clear()
        return float(losses.cpu().numpy() @ rows / rows.sum() / processes)

    def validation_step(self, batch: TokenBatch, index: int) -> None:
        """Log the validation loss and the mean absolute error of one batch; every process evaluates all rows."""
        predicted = self.network(batch)
        loss = masked_huber(predicted, batch.targets, self.config.huber_delta)
        self.log("validation_loss", loss, batch_size=len(batch), logger=False)
        errors = (predicted - batch.targets)[~torch.isnan(batch.targets)].abs()
        if len(errors):
            self.log(VALIDATION_METRIC, errors.mean(), batch_size=len(errors), logger=False)

    def on_train_epoch_end(self) -> None:
        """Record the curves and keep the best weights."""
        metrics = {name: float(value) for name, value in self.trainer.callback_metrics.items()}
        rate = float(self.trainer.optimizers[0].param_groups[0]["lr"])
        train_loss = self._take_train_loss()
        self.history.append(
            {"epoch": self.current_epoch + 1, "learning_rate": rate, **metrics, "train_loss": train_loss}
        )
        for logger in self.loggers:
            logger.log_metrics(self.history[-1])
        if metrics.get(VALIDATION_METRIC, float("inf")) < self.best_error:
            self.best_error = metrics[VALIDATION_METRIC]
            self.best_epoch = self.current_epoch + 1
            self.best_weights = copy.deepcopy(self.network.state_dict())

    def get_extra_state(self) -> dict[str, Any]:
        """Return what a checkpoint, and a process that trained, hold beside the weights."""
        return {name: getattr(self, name) for name in ("history", "best_epoch", "best_error", "best_weights")}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take that state."""
        for name, value in state.items():
            setattr(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with the network as bytes, for the reason that `TokenBatch` is pickled as arrays."""
        packed = io.BytesIO()
        torch.save(self.network, packed)
        return {**super().__getstate__(), "_modules": packed.getvalue()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpack the network that another process of this training packed."""
        network = torch.load(io.BytesIO(state["_modules"]), weights_only=False)
        super().__setstate__({**state, "_modules": {"network": network}})

    def configure_optimizers(self) -> Any:
        """Return AdamW with a one-cycle rate; biases, norms and embeddings of one row are not decayed."""
        parameters = [parameter for parameter in self.network.parameters() if parameter.requires_grad]
        groups = [
            {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": self.config.weight_decay},
            {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
        ]
        highest = self.config.learning_rate
        optimizer = torch.optim.AdamW(groups, lr=highest, fused=True)
        rates = OneCycleLR(optimizer, max_lr=highest, total_steps=self.steps + 1, pct_start=0.15)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": rates, "interval": "step"}}


class TokenDataModule(pl.LightningDataModule):
    """The training rows, and the validation rows if there are any, as loaders for Lightning.

    All rows are moved to the device at once: a table is small beside a GPU's memory, and copies of every batch are not.
    Its state is that of all random generators, so that a training that continues has the same bits.
    """

    def __init__(self, training: TokenBatch, validation: TokenBatch | None, config: TrainingConfig, seed: int) -> None:
        super().__init__()
        self.training = BatchLoader(
            training, config.batch_size, shuffle_seed=seed, limit=config.steps_per_epoch, shared=True
        )
        self.validation = None if validation is None else BatchLoader(validation, VALIDATION_BATCH_SIZE)

    def train_dataloader(self) -> BatchLoader:
        """Return the batches of one epoch."""
        return self._moved(self.training)

    def val_dataloader(self) -> BatchLoader | list[BatchLoader]:
        """Return the validation batches; an empty list without validation rows."""
        return [] if self.validation is None else self._moved(self.validation)

    def transfer_batch_to_device(self, batch: TokenBatch, device: torch.device, dataloader_idx: int) -> TokenBatch:
        """Return the batch: its rows are on the device."""
        return batch

    def _moved(self, loader: BatchLoader) -> BatchLoader:
        assert self.trainer is not None  # Lightning asks for loaders once it is attached
        loader.rows = loader.rows.to(self.trainer.strategy.root_device)
        return loader

    def state_dict(self) -> dict[str, Any]:
        """Return the states of the order of rows and of the noise."""
        noise = [torch.get_rng_state(), *torch.cuda.get_rng_state_all()]
        assert self.training.generator is not None  # training rows are shuffled
        return {"order": self.training.generator.get_state(), "noise": noise}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take these states."""
        assert self.training.generator is not None
        self.training.generator.set_state(state["order"])
        noise, *on_devices = state["noise"]
        torch.set_rng_state(noise)
        torch.cuda.set_rng_state_all(on_devices)


class _WholeFiles(TorchCheckpointIO):
    """Checkpoints that a kill leaves whole, the old one or the new one."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Write a checkpoint under a temporary name first: Lightning copies one from another file system."""
        with atomic_path(Path(path)) as temporary:
            torch.save(checkpoint, temporary)


def _identity(module: Regression, data: TokenDataModule) -> str:
    """Return a digest of the first weights, the rows and the hyperparameters of a training."""
    digest = hashlib.sha256(repr((asdict(module.config), module.steps, module.seed)).encode())
    parts = [module.network.state_dict(), *(vars(loader.rows) for loader in (data.training, data.validation) if loader)]
    for name, tensor in (entry for part in parts for entry in part.items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.cpu().contiguous().numpy().data)
    return digest.hexdigest()


def train(
    network: nn.Module,
    training: TokenBatch,
    validation: TokenBatch | None,
    config: TrainingConfig,
    seed: int,
    *,
    trainer_config: TrainerConfig | None = None,
) -> Regression:
    """Train `network` in place; with validation rows, it ends with the weights of its best epoch.

    Training then stops `patience` epochs after that epoch. Call it inside `reproducible`, together with the
    construction of the network, for equal bytes from equal seeds. On several devices a step takes the same rows as on
    one, each device its share, and every device evaluates all validation rows. A training that was killed continues
    from its checkpoint, if it made any: that of the same first weights, rows and hyperparameters.

    Raises:
        UserError: this machine has no such devices.
    """
    options = (trainer_config or TrainerConfig()).trainer_options()
    data = TokenDataModule(training, validation, config, seed)
    epochs = config.count_epochs(len(training))
    module = Regression(network, config, steps=epochs * len(data.training), seed=seed)
    callbacks: list[pl.Callback] = []
    if validation is not None:
        callbacks.append(EarlyStopping(VALIDATION_METRIC, patience=config.patience, strict=False, check_finite=False))
    continued = None
    if options["enable_checkpointing"]:
        folder = options["default_root_dir"]
        name = _identity(module, data)
        callbacks.append(ModelCheckpoint(folder, filename=name, enable_version_counter=False))
        options["plugins"] = [*options.get("plugins", []), _WholeFiles()]
        continued = path if (path := Path(folder, f"{name}.ckpt")).is_file() else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            options |= {"enable_model_summary": False, "num_sanity_val_steps": 0, "use_distributed_sampler": False}
            options |= {"max_epochs": epochs, "gradient_clip_val": config.gradient_clip_val}
            trainer = pl.Trainer(**options, callbacks=callbacks)
        except MisconfigurationException as error:
            message = str(error).strip().splitlines()[0]
            raise UserError("conf/trainer must name devices that this machine has", message) from None
        trainer.fit(module, datamodule=data, ckpt_path=continued, weights_only=True)
    module.best_epoch = module.best_epoch or epochs
    if module.best_weights is not None:
        network.load_state_dict(module.best_weights)
    network.cpu().eval()
    return module

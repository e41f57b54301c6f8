"""Train one network with Lightning, without files and without changes of global state."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from perfcast.nn.token_batch import TokenBatch
from perfcast.training.devices import TrainerConfig
from perfcast.training.training_config import TrainingConfig
from perfcast.utils.errors import UserError


@dataclass(frozen=True)
class History:
    """Learning curve: one entry per epoch, and the epoch whose weights the network holds now."""

    epochs: list[dict[str, float]]
    chosen_epoch: int


@contextmanager
def reproducible(seed: int) -> Iterator[None]:
    """Seed torch's generators and pin one thread within the block; both are restored after it.

    The bits of attention depend on the number of threads, so equal bytes from equal seeds need one thread.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


def train(
    network: nn.Module,
    training: TokenBatch,
    validation: TokenBatch | None,
    config: TrainingConfig,
    seed: int,
    *,
    trainer_config: TrainerConfig | None = None,
) -> History:
    """Train `network` in place; with validation rows, it ends with the weights of its best epoch on them.

    Call it inside `reproducible`, together with the construction of the network, for equal bytes from equal seeds. On
    several devices a step takes the same rows as on one, each device its share, and every device evaluates all
    validation rows.

    Raises:
        UserError: this machine has no such devices.
    """
    import pytorch_lightning as pl
    from pytorch_lightning.callbacks import EarlyStopping
    from pytorch_lightning.utilities.exceptions import MisconfigurationException

    from perfcast.training.lightning_modules import VALIDATION_METRIC, Regression, TokenDataModule

    data = TokenDataModule(training, validation, config.batch_size, seed)
    epochs = config.count_epochs(len(training))
    module = Regression(network, config, steps=epochs * len(data.training), seed=seed)
    stopping = EarlyStopping(VALIDATION_METRIC, patience=config.patience, strict=False, check_finite=False)
    with _quiet():
        try:
            trainer = pl.Trainer(
                **(trainer_config or TrainerConfig()).trainer_options(),
                max_epochs=epochs,
                callbacks=[] if validation is None else [stopping],
                gradient_clip_val=config.gradient_clip_val,
                logger=False,
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
                num_sanity_val_steps=0,
                use_distributed_sampler=False,
            )
        except MisconfigurationException as error:
            message = str(error).strip().splitlines()[0]
            raise UserError("conf/trainer must name devices that this machine has", message) from None
        trainer.fit(module, datamodule=data)
    network.cpu().eval()
    return History(module.history, module.best_epoch or epochs)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Lightning's notes about hardware and loaders, which do not concern the result."""
    loggers = [logging.getLogger(name) for name in ("pytorch_lightning", "lightning_fabric")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="pytorch_lightning")
            warnings.filterwarnings("ignore", module="lightning_fabric")
            warnings.filterwarnings("ignore", module="torch")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)

"""Train one network with Lightning: nothing is written, nothing outside is changed."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from perfcast.errors import UserError
from perfcast.training.data import Batches, Rows
from perfcast.training.devices import Machine
from perfcast.training.module import Regression, Schedule

_VALID_BATCH_ROWS = 1024


@dataclass(frozen=True)
class History:
    """What training did: one entry per epoch, and the epoch whose weights the network holds now."""

    epochs: list[dict[str, float]]
    chosen_epoch: int


@contextmanager
def reproducible(seed: int) -> Iterator[None]:
    """Seed torch's generators and pin one thread within the block; both are restored after it.

    Attention gives other bits with other numbers of threads, so one thread is part of "same seed, same bytes".
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
    network: nn.Module, rows: Rows, valid: Rows | None, schedule: Schedule, seed: int, *, machine: Machine | None = None
) -> History:
    """Train `network` in place on `rows`; with `valid`, it ends with the weights of its best epoch there.

    Call it inside `reproducible`, together with the making of the network, for equal bytes from equal seeds. On several
    devices of `machine` a step takes the same rows as on one, each device its share of them, and every device looks at
    all of `valid`. Raises: UserError when the machine has no such devices.
    """
    import pytorch_lightning as pl
    from pytorch_lightning.utilities.exceptions import MisconfigurationException

    machine = machine or Machine()
    batches = Batches(rows, schedule.batch_rows, shuffle_seed=seed, shared=True)
    epochs = schedule.epochs_for(len(rows))
    module = Regression(network, schedule, steps=epochs * len(batches), seed=seed)
    with _quiet():
        try:
            trainer = pl.Trainer(
                **machine.trainer_options(),
                max_epochs=epochs,
                gradient_clip_val=schedule.gradient_norm,
                logger=False,
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
                num_sanity_val_steps=0,
                use_distributed_sampler=False,
            )
        except MisconfigurationException as error:
            told = str(error).strip().splitlines()[0]
            raise UserError("conf/trainer must name devices that this machine has", told) from None
        trainer.fit(module, batches, None if valid is None else Batches(valid, _VALID_BATCH_ROWS))
    network.cpu().eval()
    return History(module.history, module.best_epoch or epochs)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Lightning's notes about hardware and loaders, which say nothing about the result."""
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

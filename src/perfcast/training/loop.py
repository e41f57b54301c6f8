"""Hyperparameters, batches and random generators of training; no Lightning, which takes seconds to import."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import torch

from perfcast.nn.embedding import TokenBatch
from perfcast.utils.errors import UserError

STRATEGIES = ("auto", "ddp")


@dataclass(frozen=True)
class TrainerConfig:
    """Options of Lightning's Trainer by their names there (conf/trainer)."""

    accelerator: str = "cpu"
    """Kind of device that trains: cpu, gpu or another one that Lightning knows."""
    devices: int = 1
    """Devices of a training. Of several, each has the whole network and a share of each batch, in a process of its
    own; the gradient is that of the whole batch."""
    strategy: str = "auto"
    """How several devices train together: ddp, which auto chooses."""
    enable_checkpointing: bool = True
    """Whether checkpoints are made, where there is a folder for them."""
    enable_progress_bar: bool = False
    """Whether progress is shown in a terminal."""
    default_root_dir: str = ""
    """Folder of checkpoints; none without one."""
    logger: Any = False
    """Logger of Lightning that gets the learning curves while the training runs."""

    def __post_init__(self) -> None:
        """Raise: UserError for values that are not allowed."""
        if not isinstance(self.devices, int) or isinstance(self.devices, bool) or self.devices < 1:
            raise UserError("devices in conf/trainer must be a whole number from 1", f"got {self.devices!r}")
        if self.strategy not in STRATEGIES:
            raise UserError(f"strategy in conf/trainer must be one of {', '.join(STRATEGIES)}", f"got {self.strategy}")

    def trainer_options(self) -> dict[str, Any]:
        """Return the arguments of Lightning's Trainer. Raises: UserError when the other nodes were not started."""
        from pytorch_lightning.plugins.environments import LightningEnvironment
        from pytorch_lightning.strategies import DDPStrategy

        options: dict[str, Any] = {
            "accelerator": self.accelerator,
            "devices": self.devices,
            "logger": self.logger,
            "default_root_dir": self.default_root_dir or None,
            "enable_checkpointing": self.enable_checkpointing and bool(self.default_root_dir),
            "enable_progress_bar": self.enable_progress_bar and sys.stdout.isatty(),
        }
        # Named, because Lightning would otherwise read the number of tasks from Slurm's environment.
        options["plugins"] = [LightningEnvironment()]
        if self.devices > 1:
            # Spawned, because the default starts the whole command again for every device. Static, because a kind of
            # column that the data lack leaves the same parameters without gradients in every step.
            options["strategy"] = DDPStrategy(start_method="spawn", static_graph=True)
        return options


def rank_and_size() -> tuple[int, int]:
    """Return the rank of this process and the number of processes that train together now."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return 0, 1
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


@dataclass(kw_only=True, eq=False, repr=False)
class TrainingConfig:
    """Hyperparameters of training, the base of every neural estimator.

    linear_skip         add a ridge regression per task, which the network corrects
    early_stopping      choose the number of epochs on the validation rows
    refit               train anew on all rows for the chosen number of epochs
    epochs              passes over the training rows; more when the table is so small that `min_steps` is not reached
    min_steps           optimizer steps at least, so that a small table is learned too
    steps_per_epoch     optimizer steps of an epoch at most, on rows of a new random order; 0 for all rows
    batch_size          rows per step
    learning_rate       highest rate of the one-cycle preset (Smith & Topin 2018)
    weight_decay        of AdamW, on matrices alone
    huber_delta         where the loss turns from squared to absolute, in standardized units
    gradient_clip_val   largest norm of the gradient
    patience            epochs without a better validation error before training stops
    mask_rate           share of the inputs that training masks
    random_state        seed of the weights, the order of rows and the noise
    """

    linear_skip: bool = True
    early_stopping: bool = True
    refit: bool = True
    epochs: int = 40
    min_steps: int = 200
    steps_per_epoch: int = 0
    batch_size: int = 256
    learning_rate: float = 2e-3
    weight_decay: float = 0.02
    huber_delta: float = 0.3
    gradient_clip_val: float = 1.0
    patience: int = 12
    mask_rate: float = 0.02
    random_state: int = 0

    def count_epochs(self, rows: int) -> int:
        """Return the number of epochs for a table of `rows` rows."""
        steps = limit_steps(math.ceil(rows / self.batch_size), self.steps_per_epoch)
        return max(self.epochs, math.ceil(self.min_steps / steps))

    def training_config(self) -> TrainingConfig:
        """Return the training hyperparameters alone, without those of a subclass."""
        return TrainingConfig(**{name: getattr(self, name) for name in TRAINING_FIELDS})

    def network_options(self, *without: str) -> dict[str, Any]:
        """Return the hyperparameters that a subclass adds, those of its network, without some of them."""
        names = [field.name for field in fields(self) if field.name not in (*TRAINING_FIELDS, *without)]
        return {name: getattr(self, name) for name in names}


TRAINING_FIELDS = tuple(field.name for field in fields(TrainingConfig))


def limit_steps(steps: int, limit: int) -> int:
    """Return the steps of an epoch, at most `limit`; 0 for no limit."""
    return min(steps, limit) if limit else steps


class BatchLoader:
    """Iterate over rows in batches: shuffled every epoch by a generator of its own, or in order.

    At most `limit` batches of an epoch are used, 0 for all. Where batches are `shared`, each of several processes that
    train together gets its share of every batch.
    """

    def __init__(
        self,
        rows: TokenBatch,
        batch_size: int,
        shuffle_seed: int | None = None,
        *,
        limit: int = 0,
        shared: bool = False,
    ) -> None:
        self.rows = rows
        self.batch_size = batch_size
        self.shuffle_seed = shuffle_seed
        self.shared = shared
        self.limit = limit

    @cached_property
    def generator(self) -> torch.Generator:
        """The generator of the order, made in the process that uses it: see `TokenBatch.__reduce__`."""
        return torch.Generator().manual_seed(self.shuffle_seed or 0)

    def __len__(self) -> int:
        return limit_steps(math.ceil(len(self.rows) / self.batch_size), self.limit)

    def __iter__(self) -> Iterator[TokenBatch]:
        rank, processes = rank_and_size() if self.shared else (0, 1)
        if self.shuffle_seed is None:
            for start in range(0, len(self.rows), self.batch_size):
                yield self.rows.take(slice(start + rank, start + self.batch_size, processes))
            return
        order = torch.randperm(len(self.rows), generator=self.generator).to(self.rows.targets.device)
        for index in order.split(self.batch_size)[: len(self)]:
            yield self.rows.take(index[rank::processes])


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

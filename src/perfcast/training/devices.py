"""Options of Lightning's Trainer, and processes that train a network together."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from perfcast.utils.errors import UserError

STRATEGIES = ("auto", "ddp")


@dataclass(frozen=True)
class TrainerConfig:
    """Options of Lightning's Trainer by their names there (conf/trainer).

    More than one device means data parallel training (`ddp`; `auto` chooses it): every device has the whole network and
    a share of each batch, and the gradient is that of the whole batch. On one node, Lightning starts the processes of
    the devices for one training. Over several nodes, srun or torchrun starts the command once for every device; all
    processes train, and only the first one writes.

    Checkpoints are made where there is a `default_root_dir` for them, and progress is shown in a terminal.
    """

    accelerator: str = "cpu"
    devices: int = 1
    strategy: str = "auto"
    num_nodes: int = 1
    enable_checkpointing: bool = True
    enable_progress_bar: bool = False
    default_root_dir: str = ""
    logger: Any = False

    def __post_init__(self) -> None:
        """Raise: UserError for values that are not allowed."""
        for name in ("devices", "num_nodes"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise UserError(f"{name} in conf/trainer must be a whole number from 1", f"got {value!r}")
        if self.strategy not in STRATEGIES:
            raise UserError(f"strategy in conf/trainer must be one of {', '.join(STRATEGIES)}", f"got {self.strategy}")

    def trainer_options(self) -> dict[str, Any]:
        """Return the arguments of Lightning's Trainer. Raises: UserError when the other nodes were not started."""
        from pytorch_lightning.plugins.environments import LightningEnvironment
        from pytorch_lightning.strategies import DDPStrategy

        options: dict[str, Any] = {
            **{name: getattr(self, name) for name in ("accelerator", "devices", "logger")},
            "default_root_dir": self.default_root_dir or None,
            "enable_checkpointing": self.enable_checkpointing and bool(self.default_root_dir),
            "enable_progress_bar": self.enable_progress_bar and sys.stdout.isatty(),
        }
        started = started_processes(os.environ)
        if self.num_nodes > 1:
            if started != (processes := self.devices * self.num_nodes):
                raise UserError(
                    f"num_nodes {self.num_nodes} in conf/trainer needs the command started {processes} times",
                    f"it was started {started} times",
                    f"srun --nodes={self.num_nodes} --ntasks-per-node={self.devices} perfcast pipeline train ...",
                )
            return {**options, "num_nodes": self.num_nodes, "strategy": DDPStrategy(static_graph=True)}
        # Named, because Lightning would otherwise read the number of tasks from Slurm's environment.
        options["plugins"] = [LightningEnvironment()]
        if self.devices > 1:
            # Spawned, because the default starts the whole command again for every device. Static, because a kind of
            # column that the data lack leaves the same parameters without gradients in every step.
            options["strategy"] = DDPStrategy(start_method="spawn", static_graph=True)
        return options


def started_processes(environment: Mapping[str, str]) -> int:
    """Return the number of processes of this command that srun or torchrun started."""
    return int(environment.get("WORLD_SIZE") or environment.get("SLURM_NTASKS") or 1)


def is_first(environment: Mapping[str, str]) -> bool:
    """Return whether this process is the one that writes, of those that srun or torchrun started."""
    if started_processes(environment) == 1:
        return True
    if "WORLD_SIZE" not in environment:
        return environment.get("SLURM_PROCID", "0") == "0"
    ranks = (
        [environment.get("RANK")]
        if "RANK" in environment
        else [environment.get("NODE_RANK"), environment.get("LOCAL_RANK")]
    )
    return all(rank in {None, "0"} for rank in ranks)


def rank_and_size() -> tuple[int, int]:
    """Return the rank of this process and the number of processes that train together now."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return 0, 1
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


def sum_over_devices(values: Tensor) -> Tensor:
    """Return the sum of a tensor over the processes that train together."""
    if rank_and_size()[1] == 1:
        return values
    total = values.clone()
    torch.distributed.all_reduce(total)
    return total

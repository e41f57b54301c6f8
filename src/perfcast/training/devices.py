"""What trains a network: one processor or accelerator, several of one machine, or those of several machines."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from perfcast.errors import UserError

STRATEGIES = ("auto", "ddp")


@dataclass(frozen=True)
class Machine:
    """What trains (conf/trainer): Lightning's accelerator, devices of a node, strategy and number of nodes.

    More than one device means data parallel training (`ddp`; `auto` chooses it): every device has the whole network and
    a share of each batch, and the gradient is that of the whole batch. On one node the devices' processes exist for a
    network's training alone. Over several nodes the command itself is started once for every device, by srun or
    torchrun: all do the same, and only the first writes.
    """

    accelerator: str = "cpu"
    devices: int = 1
    strategy: str = "auto"
    num_nodes: int = 1

    def __post_init__(self) -> None:
        """Raise: UserError for what cannot be meant."""
        for name in ("devices", "num_nodes"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise UserError(f"{name} in conf/trainer must be a whole number from 1", f"found {value!r}")
        if self.strategy not in STRATEGIES:
            raise UserError(
                f"strategy in conf/trainer must be one of {', '.join(STRATEGIES)}", f"found {self.strategy}"
            )

    @property
    def processes(self) -> int:
        """Return how many processes train together."""
        return self.devices * self.num_nodes

    def trainer_options(self) -> dict[str, Any]:
        """Return what Lightning's Trainer must be told. Raises: UserError when other nodes were not started."""
        from pytorch_lightning.plugins.environments import LightningEnvironment
        from pytorch_lightning.strategies import DDPStrategy

        options: dict[str, Any] = {"accelerator": self.accelerator, "devices": self.devices}
        started = started_processes(os.environ)
        if self.num_nodes > 1:
            if started != self.processes:
                raise UserError(
                    f"num_nodes {self.num_nodes} in conf/trainer needs the command started {self.processes} times",
                    f"it was started {started} times",
                    f"srun --nodes={self.num_nodes} --ntasks-per-node={self.devices} perfcast pipeline train ...",
                )
            return {**options, "num_nodes": self.num_nodes, "strategy": DDPStrategy(static_graph=True)}
        # Named, as Lightning would otherwise take Slurm's environment for orders about how many tasks there must be.
        options["plugins"] = [LightningEnvironment()]
        if self.processes > 1:
            # Spawned, as the usual way starts the whole command again for every device. Static: the same parameters get
            # gradients in every step, and a kind of column that the data lacks leaves some without.
            options["strategy"] = DDPStrategy(start_method="spawn", static_graph=True)
        return options


def started_processes(environment: Mapping[str, str]) -> int:
    """Return how many processes srun or torchrun started of this command."""
    return int(environment.get("WORLD_SIZE") or environment.get("SLURM_NTASKS") or 1)


def is_first(environment: Mapping[str, str]) -> bool:
    """Tell whether this process is the one that writes, of those that srun or torchrun started."""
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
    """Return the number of this process, and how many train together now."""
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

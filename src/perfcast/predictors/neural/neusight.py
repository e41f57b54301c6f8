"""Time of a kernel as waves of tiles, each at a learned share of its speed of light."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import torch

from perfcast.features.encoding.columns import number_matrix
from perfcast.nn.tile_utilization import TileUtilization, symmetric_error
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED, draw_rows, groups_of, measured_rows, task_labels
from perfcast.schema.table import Column, Kind, Role
from perfcast.training.loop import reproducible
from perfcast.utils.io import atomic_path, write_json
from perfcast.utils.model_files import read_arrays, read_state

COLUMNS = ("tiles", "tile_flops", "tile_bytes", "sm_count", "fp32_gflops", "memory_gb_per_s", "l2_mib")
"""Columns that the tiles of a kernel and the multiprocessors of a GPU are read from."""
_MIN_SCALE = 1e-6


@dataclass(kw_only=True, eq=False, repr=False)
class NeusightPredictor(Predictor):
    """time = launch + waves x time of a tile at the peak of a multiprocessor / utilization, for every target and task.

    The tile's time is the longer one of its operations and its bytes at the share of the peaks that one multiprocessor
    has. The utilization is alpha - beta / waves, and a small network per task gives alpha and beta from the tile's
    operations, its intensity over the ridge point, and its bytes over the multiprocessor's share of the second-level
    cache. So a GPU enters by ratios alone; they are clipped to the training range. The loss is the symmetric relative
    error. A row or a table without these columns gets the training median of the task.

    Differences from the paper: a launch takes a fitted constant, because most training kernels are small. The size of
    the tile is that of the column `tile_flops`, not looked up among profiled kernels. The networks are smaller.
    Source: Lee, Phanishayee and Mahajan, 2025, NeuSight, ASPLOS, arXiv 2407.13853.
    """

    # the columns of a plain array have other names, so that they tell it nothing
    reads_tags_only: ClassVar[bool] = True

    d_block: int = 128
    n_blocks: int = 4
    epochs: int = 40
    batch_size: int = 1024
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    max_pooled_samples: int = 20_000
    random_state: int = 0

    networks_: dict[str, dict[str, TileUtilization]] = field(init=False)
    """By target and task."""
    scales_: dict[str, dict[str, list[list[float]]]] = field(init=False)
    """Mean, deviation and range of the inputs by target and task."""
    medians_: dict[str, dict[str, float]] = field(init=False)
    """Median of the logarithms by target and task."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        tasks, tiles = task_labels(X, self.columns_), self._tiles(X)
        known = np.isfinite(tiles).all(axis=1)
        self.networks_, self.scales_, self.medians_ = {}, {}, {}
        for index, (target, rows) in enumerate(zip(self.targets_, measured_rows(log_y, self.targets_), strict=True)):
            logs, groups = log_y[:, index], groups_of(tasks, rows)
            self.medians_[target] = {task: float(np.median(logs[mask])) for task, mask in groups.items()}
            self.networks_[target], self.scales_[target] = {}, {}
            for task, mask in groups.items():
                # the pooled network serves unknown tasks alone
                limit = self.max_pooled_samples if task == POOLED and len(groups) > 2 else len(X)
                learned = _draw(mask & known, limit)
                if learned.any():
                    self._fit_task(target, task, tiles[learned], logs[learned])

    def _fit_task(self, target: str, task: str, tiles: np.ndarray, logs: np.ndarray) -> None:
        inputs = tiles[:, 2:]
        scale = [
            *(inputs.mean(axis=0).tolist(), np.maximum(inputs.std(axis=0), _MIN_SCALE).tolist()),
            *(inputs.min(axis=0).tolist(), inputs.max(axis=0).tolist()),
        ]
        numbers, waves, light = _tensors(tiles, scale)
        aims = torch.from_numpy(logs.astype(np.float32))
        with reproducible(self.random_state):
            network = TileUtilization(inputs.shape[1], self.d_block, self.n_blocks, float(logs.min()))
            optimizer = torch.optim.AdamW(network.parameters(), self.learning_rate, weight_decay=self.weight_decay)
            batches = -(-len(logs) // self.batch_size)
            scheduler = torch.optim.lr_scheduler.OneCycleLR(
                optimizer, self.learning_rate, total_steps=self.epochs * batches
            )
            for _ in range(self.epochs):
                for chosen in torch.randperm(len(logs)).tensor_split(batches):
                    optimizer.zero_grad()
                    loss = symmetric_error(network(numbers[chosen], waves[chosen], light[chosen]) - aims[chosen])
                    loss.backward()
                    optimizer.step()
                    scheduler.step()
        self.networks_[target][task], self.scales_[target][task] = network.eval(), scale

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        tiles = self._tiles(X)
        known = np.isfinite(tiles).all(axis=1)
        logs = np.full((len(X), len(self.targets_)), np.nan)
        for index, task, rows in self._outputs(task_labels(X, self.columns_)):
            target = self.targets_[index]
            logs[rows, index] = self.medians_[target].get(task, self.medians_[target][POOLED])
            networks = self.networks_[target]
            name = task if task in networks else POOLED
            usable = rows[known[rows]]
            if name in networks and len(usable):
                numbers, waves, light = _tensors(tiles[usable], self.scales_[target][name])
                with reproducible(0), torch.inference_mode():
                    logs[usable, index] = networks[name](numbers, waves, light).numpy()
        return logs

    def _tiles(self, X: pd.DataFrame) -> np.ndarray:
        """Return waves, the logarithm of the time of all waves at the peaks in ms, and the inputs, (n, 5).

        Not finite where a column is missing or not positive.
        """
        by_name = {column.name: column for column in self.columns_ if self._is_number(column)}
        if not set(COLUMNS) <= set(by_name):
            return np.full((len(X), 5), np.nan)
        values = number_matrix(X, [by_name[name] for name in COLUMNS])
        tiles, flops, moved, sms, peak, bandwidth, l2 = np.where(values > 0, values, np.nan).T
        waves = np.ceil(tiles / sms)
        compute, memory = flops * sms / peak / 1e6, moved * sms / bandwidth / 1e6
        with np.errstate(divide="ignore", invalid="ignore"):
            inputs = [np.log(flops), np.log(compute / memory), np.log(moved * sms / 2**20 / l2)]
            return np.column_stack([waves, np.log(waves * np.maximum(compute, memory)), *inputs])

    @staticmethod
    def _is_number(column: Column) -> bool:
        return column.kind is Kind.NUMERICAL and column.role is Role.FEATURE

    def _save(self, folder: Path) -> None:
        names = [[target, task] for target, networks in self.networks_.items() for task in networks]
        write_json(folder / "tasks.json", {"names": names, "scales": self.scales_, "medians": self.medians_})
        weights = {
            f"{number}/{name}": value.numpy()
            for number, (target, task) in enumerate(names)
            for name, value in self.networks_[target][task].state_dict().items()
        }
        with atomic_path(folder / "networks.npz") as temporary:
            np.savez(temporary, **weights)

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "tasks.json")
        self.scales_, self.medians_ = state["scales"], state["medians"]
        self.networks_ = {target: {} for target in self.medians_}
        arrays = read_arrays(folder / "networks.npz") if state["names"] else {}
        for number, (target, task) in enumerate(state["names"]):
            network = TileUtilization(len(self.scales_[target][task][0]), self.d_block, self.n_blocks)
            begin = f"{number}/"
            network.load_state_dict(
                {
                    name.removeprefix(begin): torch.from_numpy(array)
                    for name, array in arrays.items()
                    if name.startswith(begin)
                }
            )
            self.networks_[target][task] = network.eval()


def _draw(rows: np.ndarray, limit: int) -> np.ndarray:
    """Return at most `limit` of the marked rows. Shapes: (n,) bool -> (n,) bool."""
    drawn = np.zeros(len(rows), dtype=bool)
    places = np.flatnonzero(rows)
    drawn[places[draw_rows(np.full(len(places), "", dtype=object), limit)]] = True
    return drawn


def _tensors(tiles: np.ndarray, scale: list[list[float]]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return scaled inputs (n, inputs), waves (n,) and the logarithm of the time at the peaks (n,)."""
    center, deviation, low, high = np.array(scale)
    numbers = torch.from_numpy(((np.clip(tiles[:, 2:], low, high) - center) / deviation).astype(np.float32))
    waves, light = (torch.from_numpy(tiles[:, place].astype(np.float32)) for place in (0, 1))
    return numbers, waves, light

"""HELP: a latency predictor that is meta-learned on known devices and adapted to a new one by a few measurements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from perfcast.features.encoding.dense import LinearEncoder, labels
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED, measured_rows, task_labels
from perfcast.predictors.transfer import help_network as network
from perfcast.predictors.transfer.task_items import at_most, item_columns
from perfcast.schema.table import Column, Tag
from perfcast.utils.io import read_json, write_json

_EPISODES = 20
"""Episodes of one epoch, after which the error on the rows set aside is looked at."""

_LEARNED = 1e-6
"""Mean squared error of an epoch, on values from 0 to 1, below which nothing is left to learn."""

_FLOOR = 0.1
_ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class _Task:
    """A task's rows to learn from, and what is known of it beforehand.

    Shapes: items (n, inputs), values (n,) over the range of the known values, embedding (references,); `known` are the
    positions of the rows that adapt the network to the task.
    """

    items: np.ndarray
    values: np.ndarray
    embedding: np.ndarray
    known: np.ndarray
    low: float
    spread: float
    floor: float


class HelpPredictor(Predictor):
    """A network of an item and of a task's embedding, meta-learned so that few gradient steps adapt it to a new task.

    The embedding of a task is its values of the reference items, those measured in every task, from 0 to 1. Tasks of
    more than `few_rows` rows teach: an episode adapts the network to each of `tasks` of them by `steps` steps on
    `shots` rows, with learned rates, and moves its parameters by the error on `queries` other rows. A new task adapts
    it by its known rows alone. Tasks with `validation` rows teach nothing and choose the epoch. An item's columns go
    through two layers, where the authors' network of cells is a graph convolution; and it was told a device's range and
    ten rows beside the references. Values are learned as they are, not in logarithms.
    Source: Lee, Lee, Chong and Hwang, NeurIPS 2021, arXiv 2106.08630.
    """

    encoder_: LinearEncoder
    items_: tuple[Column, ...]
    parameters_: dict[str, dict[str, torch.Tensor]]
    known_: dict[str, dict[str, _Task]]
    history_: list[dict[str, Any]]

    def __init__(
        self,
        *,
        epochs: int = 100,
        steps: int = 2,
        shots: int = 10,
        queries: int = 200,
        tasks: int = 8,
        width: int = 100,
        learning_rate: float = 1e-3,
        divergence: float = 0.1,
        few_rows: int = 100,
        task_rows: int = 4000,
        random_state: int = 0,
    ) -> None:
        self.epochs = epochs
        self.steps = steps
        self.shots = shots
        self.queries = queries
        self.tasks = tasks
        self.width = width
        self.learning_rate = learning_rate
        self.divergence = divergence
        self.few_rows = few_rows
        self.task_rows = task_rows
        self.random_state = random_state

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        masks = measured_rows(log_y, self.targets_)
        tasks = task_labels(X, self.columns_).astype(str)
        reference = _references(X, self.columns_, tasks)
        kept = np.union1d(at_most(tasks, self.task_rows), np.flatnonzero(reference >= 0))
        X, tasks, y, validation, reference = (
            X.iloc[kept],
            tasks[kept],
            np.exp(log_y[kept]),
            validation[kept],
            reference[kept],
        )
        self.items_ = item_columns(X, self.columns_)
        self.encoder_ = LinearEncoder(log=False, min_count=2).fit(X, self.items_)
        items = self.encoder_.transform(X)
        self.parameters_, self.known_, self.history_ = {}, {}, []
        for index, (target, mask) in enumerate(zip(self.targets_, masks, strict=True)):
            own = mask[kept]
            # a task with rows set aside chooses; where all tasks have some, none is left to teach but by its other rows
            choosing = {str(task) for task in np.unique(tasks[own & validation])}
            taught = own & ~validation if (own & ~validation).any() else own
            found = {
                str(task): self._task(items, y[:, index], reference, np.flatnonzero(taught & (tasks == task)))
                for task in np.unique(tasks[taught])
            }
            rich = {name: one for name, one in found.items() if len(one.values) > self.few_rows}
            asked = [
                (found[task], np.flatnonzero(own & validation & (tasks == task)))
                for task in sorted(choosing & set(found) - set(rich))
            ]
            evaluated = [(one, items[rows], y[rows, index]) for one, rows in asked]
            self.parameters_[target] = self._meta_learn(list((rich or found).values()), evaluated, index)
            self.known_[target] = {
                **found,
                **self._left(items, y[:, index], reference, np.where(own, tasks, ""), found),
            }

    def _left(
        self, items: np.ndarray, y: np.ndarray, reference: np.ndarray, tasks: np.ndarray, found: dict[str, _Task]
    ) -> dict[str, _Task]:
        """Return the tasks all of whose rows are set aside for choices, and the mean of all tasks.

        Shapes: tasks (n,), "" for a row that has no value.
        """
        others = {
            str(task): self._task(items, y, reference, np.flatnonzero(tasks == task))
            for task in np.unique(tasks)
            if task and str(task) not in found
        }
        every = [*found.values(), *others.values()]
        embedding = np.mean([one.embedding for one in every], axis=0)
        low, spread, floor = (float(np.mean([getattr(t, name) for t in every])) for name in ("low", "spread", "floor"))
        nothing = np.empty((0, items.shape[1]))
        pooled = _Task(nothing, np.empty(0), embedding, np.empty(0, dtype=int), low, spread, floor)
        return {**others, POOLED: pooled}

    def _task(self, items: np.ndarray, y: np.ndarray, reference: np.ndarray, rows: np.ndarray) -> _Task:
        """Describe a task by its rows: its range and embedding are those of its references, where there are any."""
        shown = rows[reference[rows] >= 0]
        known = shown if len(shown) else rows[at_most(np.zeros(len(rows)), self.shots)]
        low, high = float(y[known].min()), float(y[known].max())
        spread = max(high - low, 1e-3 * high)
        count = int(reference.max()) + 1
        embedding = np.full(max(1, count), np.nan)
        embedding[reference[shown]] = (y[shown] - low) / spread
        # a reference that is not there, as one quarantined, is as the others are
        embedding = np.where(np.isnan(embedding), np.nanmean(embedding) if len(shown) else 0.0, embedding)
        adapting = known if len(rows) > self.few_rows else rows
        places = np.searchsorted(rows, adapting)
        floor = _FLOOR * float(y[rows].min())
        return _Task(items[rows], (y[rows] - low) / spread, embedding, places, low, spread, floor)

    def _meta_learn(
        self, teaching: list[_Task], evaluated: list[tuple[_Task, np.ndarray, np.ndarray]], target: int
    ) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(self.random_state)
        random = np.random.default_rng(self.random_state)
        size = (teaching[0].items.shape[1], len(teaching[0].embedding), self.width)
        # half the time of doubles, which forecasts use so that one row and many agree
        first = network.initial(*size, generator)
        parameters = {name: one.float().requires_grad_() for name, one in first.items()}
        optimizer = torch.optim.Adam(parameters.values(), lr=self.learning_rate)
        best, chosen = np.inf, first
        for epoch in range(self.epochs):
            losses = [self._episode(parameters, optimizer, teaching, random, generator) for _ in range(_EPISODES)]
            now = {name: value.detach().double() for name, value in parameters.items()}
            error = float(np.mean([self._error(now, *one) for one in evaluated])) if evaluated else np.nan
            if not evaluated or error < best:
                best, chosen = error, now
            told: dict[str, Any] = {
                "epoch": epoch,
                "target": target,
                "train_loss": float(np.mean(losses)),
                "validation_loss": error,
            }
            self.history_.append(told)
            if told["train_loss"] < _LEARNED:
                break
        return chosen

    def _episode(
        self,
        parameters: dict[str, torch.Tensor],
        optimizer: torch.optim.Optimizer,
        teaching: list[_Task],
        random: np.random.Generator,
        generator: torch.Generator,
    ) -> float:
        """Move the parameters by the error of tasks drawn at random after adaptation to each; return the error."""
        drawn = [teaching[one] for one in random.permutation(len(teaching))[: self.tasks]]
        least = min(len(one.values) for one in drawn)
        shots = min(self.shots, least)
        queries = min(self.queries, least - shots) if least > 2 * shots else 0
        batches = []
        for one in drawn:
            rows = random.permutation(len(one.values))
            support, query = rows[:shots], rows[shots : shots + queries] if queries else rows[:least]
            values = (one.items[support], one.values[support], one.items[query], one.values[query], one.embedding)
            batches.append(values)
        stacked = [torch.from_numpy(np.stack(part)).float() for part in zip(*batches, strict=True)]
        noise = torch.randn((len(drawn), network.modulation_size(self.width)), generator=generator)

        items, known, asked, measured, embedding = stacked
        adapted, divergences = network.adapt(parameters, items, known, embedding, noise, self.steps)
        errors = (network.forward(adapted, asked, embedding) - measured) ** 2
        optimizer.zero_grad()
        (errors.mean() + self.divergence * divergences.mean() / noise.shape[1]).backward()
        optimizer.step()
        return float(errors.detach().mean())

    def _error(self, parameters: dict[str, torch.Tensor], task: _Task, items: np.ndarray, y: np.ndarray) -> float:
        forecast = self._forecast(parameters, task, items)
        return float(np.abs(np.log(np.maximum(forecast, task.floor) / y)).mean())

    def _forecast(self, parameters: dict[str, torch.Tensor], task: _Task, items: np.ndarray) -> np.ndarray:
        """Return a task's values of items, (n,), from the network adapted to its known rows."""
        embedding = torch.from_numpy(task.embedding)[None]
        known, values = (torch.from_numpy(one[task.known])[None] for one in (task.items, task.values))
        noise = torch.zeros((1, network.modulation_size(self.width)), dtype=torch.float64)
        steps = self.steps if values.shape[1] else 0
        adapted, _ = network.adapt(parameters, known, values, embedding, noise, steps)
        with torch.no_grad():
            found = network.forward(adapted, torch.from_numpy(items)[None], embedding)[0].numpy()
        return np.asarray(task.low + task.spread * found)

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        tasks = task_labels(X, self.columns_)
        forecast = np.full((len(X), len(self.targets_)), np.nan)
        items = self.encoder_.transform(X)
        for index, task, rows in self._questions(tasks):
            target = self.targets_[index]
            known = self.known_[target].get(task, self.known_[target][POOLED])
            for start in range(0, len(rows), _ROWS_AT_ONCE):
                part = rows[start : start + _ROWS_AT_ONCE]
                values = self._forecast(self.parameters_[target], known, items[part])
                forecast[part, index] = np.log(np.maximum(values, known.floor))
        return forecast

    def _save(self, folder: Path) -> None:
        state: dict[str, Any] = {
            "items": [column.name for column in self.items_],
            "encoder": self.encoder_.to_state(),
            "targets": {target: list(known) for target, known in self.known_.items()},
        }
        for number, target in enumerate(self.targets_):
            own: dict[str, Any] = {name: value.numpy() for name, value in self.parameters_[target].items()}
            np.savez(folder / f"network_{number}.npz", **own)
            arrays: dict[str, Any] = {}
            for place, one in enumerate(self.known_[target].values()):
                arrays[f"{place}.items"], arrays[f"{place}.values"] = one.items[one.known], one.values[one.known]
                arrays[f"{place}.embedding"] = one.embedding
                arrays[f"{place}.scale"] = np.array([one.low, one.spread, one.floor])
            np.savez(folder / f"tasks_{number}.npz", **arrays)
        write_json(folder / "help.json", state)

    def _load(self, folder: Path) -> None:
        state = read_json(folder / "help.json")
        self.items_ = tuple(column for column in self.columns_ if column.name in set(state["items"]))
        self.encoder_ = LinearEncoder.from_state(state["encoder"], self.items_)
        self.parameters_, self.known_ = {}, {}
        for number, target in enumerate(self.targets_):
            with np.load(folder / f"network_{number}.npz", allow_pickle=False) as arrays:
                self.parameters_[target] = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
            with np.load(folder / f"tasks_{number}.npz", allow_pickle=False) as arrays:
                self.known_[target] = {
                    task: _Task(
                        arrays[f"{place}.items"],
                        arrays[f"{place}.values"],
                        arrays[f"{place}.embedding"],
                        np.arange(len(arrays[f"{place}.values"])),
                        *(float(one) for one in arrays[f"{place}.scale"]),
                    )
                    for place, task in enumerate(state["targets"][target])
                }


def _references(X: pd.DataFrame, columns: tuple[Column, ...], tasks: np.ndarray) -> np.ndarray:
    """Return the number of each row's reference, an entity that nearly every task has a row of; -1 for other rows.

    Shapes: (n,) int. A reference may be missing from a task in ten. The first row of a task and reference counts.
    """
    tagged = [column for column in columns if Tag.ENTITY in column.tags and Tag.TASK not in column.tags]
    none = np.full(len(X), -1)
    count = len(np.unique(tasks))
    if not tagged or count < 2:
        return none
    entity = pd.Series(labels(X, tagged[0]))
    first = ~pd.DataFrame({"entity": entity, "task": tasks}).duplicated() & entity.notna()
    in_tasks = entity[first].value_counts()
    names = sorted(in_tasks[in_tasks >= 0.9 * count].index)
    place = entity.map({name: number for number, name in enumerate(names)})
    return np.where(first & place.notna(), place.fillna(-1), -1).astype(int) if names else none

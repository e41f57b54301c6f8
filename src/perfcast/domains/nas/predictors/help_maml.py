"""HELP: a latency predictor that is meta-learned on known devices and adapted to a new one by a few measurements."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from perfcast.domains.nas.predictors.ridge_transfer import select_item_columns, thin_rows
from perfcast.features.encoding.columns import labels
from perfcast.features.encoding.dense import LinearEncoder
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED, groups_of, measured_rows, task_labels
from perfcast.schema.table import Column, Tag
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_arrays, read_state

_CONVERGED = 1e-6
"""Mean squared error of an epoch, on values from 0 to 1, below which training stops."""

_FLOOR = 0.1
_BLOCK = 8192
Parameters = dict[str, Tensor]

_HEAD = ("head1", "head2", "head3")
_INNER_RATE = 1e-3
_MODULATION = 0.01
"""Initial learning rates of the adaptation, and scale of the modulation of weights (the authors' code)."""


@dataclass(frozen=True)
class _Task:
    """Training rows of a task, and what describes the task to the network.

    Shapes: items (n, inputs), values (n,) over the range of the support values, embedding (references,); `support` are
    the positions of the rows that adapt the network to the task.
    """

    items: np.ndarray
    values: np.ndarray
    embedding: np.ndarray
    support: np.ndarray
    low: float
    spread: float
    floor: float


@dataclass(kw_only=True, eq=False, repr=False)
class HelpMaml(Predictor):
    """Network of an item and a task embedding, meta-learned so that few gradient steps adapt it to a new task.

    The embedding of a task is its values of the reference items, scaled to 0 to 1; references are measured in every
    task. The network is meta-learned on tasks of more than `few_shot_max_samples` rows. An episode draws
    `meta_batch_size` of them. It adapts the network to each by `adaptation_steps` steps on `shots` rows, with learned
    rates, and reduces the error on `queries` other rows. The support rows alone adapt it to a new task. Tasks with
    validation rows choose the epoch, of `episodes_per_epoch` episodes, and are not meta-learned.

    Differences from the paper: an item's columns pass through two layers and not a graph convolution, and a new device
    has neither its range nor ten rows beside the references. Values are not in logarithms.
    Source: Lee, Lee, Chong and Hwang, NeurIPS 2021, arXiv 2106.08630.
    """

    epochs: int = 100
    episodes_per_epoch: int = 20
    adaptation_steps: int = 2
    shots: int = 10
    queries: int = 200
    meta_batch_size: int = 8
    hidden_size: int = 100
    learning_rate: float = 1e-3
    kl_weight: float = 0.1
    few_shot_max_samples: int = 100
    max_samples_per_task: int = 4000
    random_state: int = 0

    encoder_: LinearEncoder = field(init=False)
    items_: tuple[Column, ...] = field(init=False)
    parameters_: dict[str, Parameters] = field(init=False)
    tasks_: dict[str, dict[str, _Task]] = field(init=False)
    """Tasks by target and name, and under POOLED their mean."""
    history_: list[dict[str, Any]] = field(init=False)

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        masks = measured_rows(log_y, self.targets_)
        tasks = task_labels(X, self.columns_).astype(str)
        reference = _reference_numbers(X, self.columns_, tasks)
        rows = np.union1d(thin_rows(tasks, self.max_samples_per_task), np.flatnonzero(reference >= 0))
        X = X.iloc[rows]
        tasks = tasks[rows]
        values = np.exp(log_y[rows])
        validation = validation[rows]
        reference = reference[rows]
        self.items_ = select_item_columns(X, self.columns_)
        self.encoder_ = LinearEncoder(log=False, min_count=2).fit(X, self.items_)
        items = self.encoder_.transform(X)
        self.parameters_ = {}
        self.tasks_ = {}
        self.history_ = []
        for index, (target, mask) in enumerate(zip(self.targets_, masks, strict=True)):
            measured = mask[rows]
            y = values[:, index]
            training = measured & ~validation
            if not training.any():
                # every measured row is a validation row: these are learned too
                training = measured
            describe = partial(self._describe_task, items, y, reference)
            described = {name: describe(group) for name, group in groups_of(tasks, training, pooled=False).items()}
            large = {name: task for name, task in described.items() if len(task.values) > self.few_shot_max_samples}
            evaluated = []
            for name, group in groups_of(tasks, measured & validation, pooled=False).items():
                if name in described and name not in large:
                    evaluated.append((described[name], items[group], y[group]))
            learned = large or described
            self.parameters_[target] = self._meta_learn(list(learned.values()), evaluated, index)

            # tasks of which all rows validate
            for name, group in groups_of(tasks, measured, pooled=False).items():
                if name and name not in described:
                    described[name] = describe(group)
            mean = _mean_task(described.values(), items.shape[1])
            self.tasks_[target] = {**described, POOLED: mean}

    def _describe_task(
        self,
        items: np.ndarray,
        y: np.ndarray,
        reference: np.ndarray,
        group: np.ndarray,
    ) -> _Task:
        """Describe a task by its rows: its range and embedding are those of its references, where there are any."""
        rows = np.flatnonzero(group)
        references = rows[reference[rows] >= 0]
        support = references if len(references) else rows[thin_rows(np.zeros(len(rows)), self.shots)]
        low = float(y[support].min())
        high = float(y[support].max())
        spread = max(high - low, 1e-3 * high)
        embedding = np.full(max(1, int(reference.max()) + 1), np.nan)
        embedding[reference[references]] = (y[references] - low) / spread
        # a missing reference, such as a quarantined one, has the mean of the others
        embedding = np.where(
            np.isnan(embedding),
            np.nanmean(embedding) if len(references) else 0.0,
            embedding,
        )
        adapting = np.searchsorted(rows, support if len(rows) > self.few_shot_max_samples else rows)
        floor = _FLOOR * float(y[rows].min())
        return _Task(items[rows], (y[rows] - low) / spread, embedding, adapting, low, spread, floor)

    def _meta_learn(
        self,
        training: list[_Task],
        evaluated: list[tuple[_Task, np.ndarray, np.ndarray]],
        target: int,
    ) -> Parameters:
        """Return the parameters of the epoch with the smallest error on `evaluated`: tasks, items and values."""
        generator = torch.Generator().manual_seed(self.random_state)
        rng = np.random.default_rng(self.random_state)
        best = initial_parameters(
            training[0].items.shape[1],
            len(training[0].embedding),
            self.hidden_size,
            generator,
        )
        # training takes half the time of doubles, which predictions use so that one row and many agree
        parameters = {name: value.float().requires_grad_() for name, value in best.items()}
        optimizer = torch.optim.Adam(parameters.values(), lr=self.learning_rate)
        smallest = np.inf
        for epoch in range(self.epochs):
            losses = [
                self._run_episode(parameters, optimizer, training, rng, generator)
                for _ in range(self.episodes_per_epoch)
            ]
            current = {name: value.detach().double() for name, value in parameters.items()}
            error = float(np.mean([self._error(current, *entry) for entry in evaluated])) if evaluated else np.nan
            if not evaluated or error < smallest:
                smallest = error
                best = current
            train_loss = float(np.mean(losses))
            self.history_.append(
                {
                    "epoch": epoch,
                    "target": target,
                    "train_loss": train_loss,
                    "validation_loss": error,
                }
            )
            if train_loss < _CONVERGED:
                break
        return best

    def _run_episode(
        self,
        parameters: Parameters,
        optimizer: torch.optim.Optimizer,
        training: list[_Task],
        rng: np.random.Generator,
        generator: torch.Generator,
    ) -> float:
        """Update the parameters by the error of random tasks after adaptation to each; return the error."""
        drawn = [training[position] for position in rng.permutation(len(training))[: self.meta_batch_size]]
        smallest = min(len(task.values) for task in drawn)
        shots = min(self.shots, smallest)
        queries = min(self.queries, smallest - shots) if smallest > 2 * shots else 0
        batches = []
        for task in drawn:
            rows = rng.permutation(len(task.values))
            support = rows[:shots]
            query = rows[shots : shots + queries] if queries else rows[:smallest]
            batches.append(
                (
                    task.items[support],
                    task.values[support],
                    task.items[query],
                    task.values[query],
                    task.embedding,
                )
            )
        items, values, query_items, query_values, embedding = (
            torch.from_numpy(np.stack(arrays)).float() for arrays in zip(*batches, strict=True)
        )
        noise = torch.randn((len(drawn), modulation_size(self.hidden_size)), generator=generator)
        adapted, divergences = adapt(parameters, items, values, embedding, noise, self.adaptation_steps)
        errors = (forward(adapted, query_items, embedding) - query_values) ** 2
        optimizer.zero_grad()
        (errors.mean() + self.kl_weight * divergences.mean() / noise.shape[1]).backward()
        optimizer.step()
        return float(errors.detach().mean())

    def _error(self, parameters: Parameters, task: _Task, items: np.ndarray, y: np.ndarray) -> float:
        return float(np.abs(np.log(self._predict_task(parameters, task, items) / y)).mean())

    def _predict_task(self, parameters: Parameters, task: _Task, items: np.ndarray) -> np.ndarray:
        """Return a task's values of items, (n,), from the network adapted to its support rows."""
        embedding = torch.from_numpy(task.embedding)[None]
        support = torch.from_numpy(task.items[task.support])[None]
        values = torch.from_numpy(task.values[task.support])[None]
        noise = torch.zeros((1, modulation_size(self.hidden_size)), dtype=torch.float64)
        steps = self.adaptation_steps if values.shape[1] else 0
        adapted, _ = adapt(parameters, support, values, embedding, noise, steps)
        with torch.no_grad():
            scaled = forward(adapted, torch.from_numpy(items)[None], embedding)[0].numpy()
        return np.maximum(task.low + task.spread * scaled, task.floor)

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        logs = np.full((len(X), len(self.targets_)), np.nan)
        items = self.encoder_.transform(X)
        for index, name, rows in self._outputs(task_labels(X, self.columns_)):
            target = self.targets_[index]
            task = self.tasks_[target].get(name, self.tasks_[target][POOLED])
            for start in range(0, len(rows), _BLOCK):
                block = rows[start : start + _BLOCK]
                logs[block, index] = np.log(self._predict_task(self.parameters_[target], task, items[block]))
        return logs

    def _save(self, folder: Path) -> None:
        state: dict[str, Any] = {
            "items": [column.name for column in self.items_],
            "encoder": self.encoder_.to_state(),
            "targets": {target: list(tasks) for target, tasks in self.tasks_.items()},
        }
        for number, target in enumerate(self.targets_):
            parameters: dict[str, Any] = {name: value.numpy() for name, value in self.parameters_[target].items()}
            np.savez(folder / f"network_{number}.npz", **parameters)
            arrays: dict[str, Any] = {}
            for position, task in enumerate(self.tasks_[target].values()):
                arrays[f"{position}.items"] = task.items[task.support]
                arrays[f"{position}.values"] = task.values[task.support]
                arrays[f"{position}.embedding"] = task.embedding
                arrays[f"{position}.scale"] = np.array([task.low, task.spread, task.floor])
            np.savez(folder / f"tasks_{number}.npz", **arrays)
        write_json(folder / "help.json", state)

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "help.json")
        self.items_ = tuple(column for column in self.columns_ if column.name in set(state["items"]))
        self.encoder_ = LinearEncoder.from_state(state["encoder"], self.items_)
        self.parameters_ = {}
        self.tasks_ = {}
        for number, target in enumerate(self.targets_):
            network = read_arrays(folder / f"network_{number}.npz")
            self.parameters_[target] = {name: torch.from_numpy(array) for name, array in network.items()}
            arrays = read_arrays(folder / f"tasks_{number}.npz")
            self.tasks_[target] = {
                task: _Task(
                    arrays[f"{position}.items"],
                    arrays[f"{position}.values"],
                    arrays[f"{position}.embedding"],
                    np.arange(len(arrays[f"{position}.values"])),
                    *map(float, arrays[f"{position}.scale"]),
                )
                for position, task in enumerate(state["targets"][target])
            }


def _mean_task(tasks: Collection[_Task], inputs: int) -> _Task:
    """Return a task without rows, with the mean embedding and range of the given ones."""
    embedding = np.mean([task.embedding for task in tasks], axis=0)
    scale = [float(np.mean([getattr(task, name) for task in tasks])) for name in ("low", "spread", "floor")]
    return _Task(
        np.empty((0, inputs)),
        np.empty(0),
        embedding,
        np.empty(0, dtype=int),
        *scale,
    )


def _reference_numbers(X: pd.DataFrame, columns: Sequence[Column], tasks: np.ndarray) -> np.ndarray:
    """Return the number of each row's reference, an entity that at least 90 % of the tasks have; -1 for other rows.

    Shapes: (n,) int. The first row of a task and reference counts.
    """
    tagged = [column for column in columns if Tag.ENTITY in column.tags and Tag.TASK not in column.tags]
    no_reference = np.full(len(X), -1)
    count = len(np.unique(tasks))
    if not tagged or count < 2:
        return no_reference
    entity = pd.Series(labels(X, tagged[0]))
    first = ~pd.DataFrame({"entity": entity, "task": tasks}).duplicated() & entity.notna()
    in_tasks = entity[first].value_counts()
    names = sorted(in_tasks[in_tasks >= 0.9 * count].index)
    number = entity.map({name: position for position, name in enumerate(names)})
    if not names:
        return no_reference
    return np.where(first & number.notna(), number.fillna(-1), -1).astype(int)


def initial_parameters(inputs: int, embedding: int, hidden_size: int, generator: torch.Generator) -> Parameters:
    """Return the parameters of the network, of its adaptation rates (rate.*) and of the modulation (code.*)."""
    head = 2 * hidden_size
    network = _init_layers(
        {
            "item1": (inputs, hidden_size),
            "item2": (hidden_size, hidden_size),
            "task1": (embedding, hidden_size),
            "task2": (hidden_size, hidden_size),
            "head1": (head, head),
            "head2": (head, head),
            "head3": (head, 1),
        },
        generator,
    )
    rates = {f"rate.{name}": torch.full_like(value, _INNER_RATE) for name, value in network.items()}
    codes = _init_layers(
        {"code1": (embedding, 10), "code2": (10, 2 * modulation_size(hidden_size))},
        generator,
    )
    return {**network, **rates, **codes}


def forward(network: Parameters, items: Tensor, task: Tensor) -> Tensor:
    """Return the predicted values of items for tasks.

    Shapes: network (tasks, ..), items (tasks, n, inputs), task (tasks, embedding) -> (tasks, n).
    """
    item = torch.relu(_linear(network, "item1", items))
    item = torch.relu(_linear(network, "item2", item))
    device = torch.relu(_linear(network, "task1", task[:, None, :]))
    device = torch.relu(_linear(network, "task2", device))
    hidden = torch.cat([item, device.expand(-1, items.shape[1], -1)], dim=-1)
    hidden = torch.relu(_linear(network, "head1", hidden))
    hidden = torch.relu(_linear(network, "head2", hidden))
    return _linear(network, "head3", hidden)[:, :, 0]


def adapt(  # noqa: PLR0917 - the description of a task, in the order of its rows
    parameters: Parameters,
    items: Tensor,
    values: Tensor,
    task: Tensor,
    noise: Tensor,
    steps: int,
) -> tuple[Parameters, Tensor]:
    """Return a network per task after `steps` gradient steps on its support rows, and the modulations' divergences.

    Gradients flow to `parameters` where these require them, through the steps as well. Noise 0 gives the mean.
    Shapes: items (tasks, n, inputs), values (tasks, n), task (tasks, embedding), noise (tasks, modulation)
    -> (tasks, ..), (tasks,).
    Source: Lee et al., arXiv 2106.08630, section 3.3; the learned rates are Meta-SGD's (Li et al., arXiv 1707.09835).
    """
    is_training = any(value.requires_grad for value in parameters.values())
    shared = {name: value for name, value in parameters.items() if not name.startswith(("rate.", "code"))}
    network = {name: value.expand(len(task), *value.shape) for name, value in shared.items()}
    network, divergence = _modulate(parameters, network, task, noise)
    for _ in range(steps):
        if not is_training:
            network = {name: value.detach().requires_grad_() for name, value in network.items()}
        loss = ((forward(network, items, task) - values) ** 2).mean(dim=1).sum()
        gradients = torch.autograd.grad(loss, list(network.values()), create_graph=is_training)
        pairs = zip(network.items(), gradients, strict=True)
        network = {name: value - parameters[f"rate.{name}"] * gradient for (name, value), gradient in pairs}
    return network, divergence


def modulation_size(hidden_size: int) -> int:
    """Return the number of values that modulate the network."""
    return 3 * (2 * hidden_size + 1)


def _modulate(parameters: Parameters, network: Parameters, task: Tensor, noise: Tensor) -> tuple[Parameters, Tensor]:
    """Scale the head's weights and shift its biases by a code drawn for each task."""
    hidden = torch.relu(task @ parameters["code1.weight"].T + parameters["code1.bias"])
    mean, raw = (hidden @ parameters["code2.weight"].T + parameters["code2.bias"]).chunk(2, dim=1)
    spread = torch.nn.functional.softplus(raw) + 1e-6
    code = mean + spread * noise
    divergence = 0.5 * (spread**2 + mean**2 - 1 - 2 * torch.log(spread)).sum(dim=1)
    count = (code.shape[1] - len(_HEAD)) // len(_HEAD)
    modulated = dict(network)
    for index, name in enumerate(_HEAD):
        factor = 1 + _MODULATION * code[:, None, index * count : (index + 1) * count]
        modulated[f"{name}.weight"] = network[f"{name}.weight"] * factor
        modulated[f"{name}.bias"] = network[f"{name}.bias"] + _MODULATION * code[:, len(_HEAD) * count + index, None]
    return modulated, divergence


def _init_layers(sizes: dict[str, tuple[int, int]], generator: torch.Generator) -> Parameters:
    """Return weights and biases, uniform within 1 / sqrt(inputs), of layers with (inputs, outputs)."""
    return {
        f"{name}.{kind}": (2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1)
        * (1 / max(1, inputs) ** 0.5)
        for name, (inputs, outputs) in sizes.items()
        for kind, shape in (("weight", (outputs, inputs)), ("bias", (outputs,)))
    }


def _linear(network: Parameters, name: str, inputs: Tensor) -> Tensor:
    """Apply a layer of every task. Shapes: (tasks, n, inputs) -> (tasks, n, outputs)."""
    weight = network[f"{name}.weight"]
    bias = network[f"{name}.bias"]
    return torch.baddbmm(bias[:, None, :], inputs, weight.transpose(1, 2))

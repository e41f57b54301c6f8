"""Generated latencies of networks, shaped like HELP's files, with their defects.

The numbers are made up: a cost per kind of operation and device, with noise. They describe no real device.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from perfcast.domains.nas.datasets.search_spaces import (
    CELL_EDGES,
    CELL_OPERATIONS,
    FBNET_BLOCKS,
)
from perfcast.domains.nas.sources.help import (
    ARCHITECTURES,
    REFERENCES,
    latency_file,
    list_devices,
)

NEAR_ZERO = ("pixel3", "raspi4")
"""Devices that skip operations without effect on the output."""

WHOLE_MS = ("essential_ph_1", "pixel2", "samsung_a50", "samsung_s7")
"""Devices that report whole milliseconds."""

_MIN_ARCHITECTURES = 60
"""Smallest search space that leaves ten references, and enough training and test architectures."""


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write every file of the source: `rows` / 5 architectures of each search space, at least 60, on its devices.

    Three cells do not depend on their input, and two devices skip them. Phones report whole milliseconds. One latency
    of each search space is not a number.
    """
    random = np.random.default_rng(seed)
    count = max(_MIN_ARCHITECTURES, rows // 5)
    for space, draw in _DRAWS.items():
        content, work = draw(count, random)
        _save(folder / space / ARCHITECTURES[space], content)
        _save(folder / space / REFERENCES, random.permutation(count)[:10].tolist())
        for number, device in enumerate(list_devices(space)):
            latency = _draw_latencies(work, random)
            if space == "nasbench201" and device in NEAR_ZERO:
                latency[:: count // 3] = latency.mean() * 1e-3
            listed: list[Any] = [float(value) for value in latency]
            if device in WHOLE_MS:
                listed = [round(value) for value in listed]
            if number == 0:
                listed[count // 2] = float("nan")
            _save(folder / latency_file(space, device), listed)


def _draw_latencies(work: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Draw latencies of networks on a further device in ms. Shapes: work (networks, kinds) -> (networks,)."""
    device_costs = random.uniform(0.3, 3.0, work.shape[1])
    return np.asarray((5.0 + work @ device_costs) * np.exp(random.normal(0, 0.01, len(work))))


def _draw_cells(count: int, random: np.random.Generator) -> tuple[Any, np.ndarray]:
    cells = list(product(CELL_OPERATIONS, repeat=len(CELL_EDGES)))
    chosen = [cells[index] for index in random.choice(len(cells), count, replace=False)]
    texts = ["|{}~0|+|{}~0|{}~1|+|{}~0|{}~1|{}~2|".format(*operations) for operations in chosen]
    work = [[operations.count(name) for name in CELL_OPERATIONS[1:]] for operations in chosen]
    return {text: position for position, text in enumerate(texts)}, np.array(work, dtype=float)


def _draw_fbnet(count: int, random: np.random.Generator) -> tuple[Any, np.ndarray]:
    chosen = random.integers(len(FBNET_BLOCKS), size=(count, 22))
    networks = [{"arch_str": [FBNET_BLOCKS[index] for index in row]} for row in chosen]
    work = np.array([np.bincount(row, minlength=len(FBNET_BLOCKS))[:-1] for row in chosen], dtype=float)
    return {"arch": networks}, work


def _draw_ofa(count: int, random: np.random.Generator) -> tuple[Any, np.ndarray]:
    networks: list[dict[str, Any]] = []
    for _ in range(count):
        network = {
            "ks": random.choice([3, 5, 7], 20).tolist(),
            "e": random.choice([3, 4, 6], 20).tolist(),
            "d": random.choice([2, 3, 4], 5).tolist(),
            "r": np.int64(random.choice(np.arange(128, 225, 4))),  # as published: NumPy's integer
        }
        networks.append(network)
    work = [[sum(network["d"]), network["r"] / 50, np.mean(network["e"])] for network in networks]
    return {"arch": networks}, np.array(work, dtype=float)


_DRAWS = {
    "nasbench201": _draw_cells,
    "fbnet": _draw_fbnet,
    "ofa": _draw_ofa,
}
"""Search space -> function of a number of architectures: their file, and the work of each by kind."""


def _save(path: Path, content: Any) -> None:
    import torch

    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(content, path)

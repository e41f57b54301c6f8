"""Latencies of a deployment as functions of its load that no physics contradicts, from those at a grid of loads.

A predictor that learned from results may say that more requests, or a longer prompt, are answered sooner. Its answers
at a fixed grid of loads are replaced by nearby ones that never fall as the requests or the prompt grow, and never grow
by more than the number of requests: twice the requests can be served one half after the other. Between the points of
the grid, logarithms are interpolated.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from perfcast.domains.llm.accelerators.served_memory import (
    add_backlog,
    running_requests,
    shortest_latencies,
)
from perfcast.inference.cells import Cells, list_rows

TASK = "quantity"
TTFT = "ttft"
TPOT = "tpot"
_FIRST_INPUT = 7
"""Binary logarithm of the shortest prompt of the grid: shorter ones were not measured."""
_LOADS = frozenset(["concurrency", "input_tokens", "memory_gib", TASK])

_CROSS = ((1, 1), (0, 1), (2, 1), (1, 0), (1, 2))
"""Places of a point and its four neighbors: where latencies rise along both axes, the point has their median."""

Predict = Callable[[Cells], np.ndarray]
"""Returns the natural logarithms of the predictions of deployments, (n,)."""


def predict_latencies(cells: Cells, predict: Predict) -> np.ndarray:
    """Return the natural logarithms of the latencies of deployments, (n,).

    Requests whose caches do not fit wait for earlier ones: the load of the grid is that of the requests that run.
    """
    running = running_requests(cells)
    known = np.isfinite(running) & np.isfinite(cells["input_tokens"]) & np.isfinite(cells["output_tokens"])
    logs = np.empty(len(running))
    logs[~known] = predict(cells.take(~known)) if not known.all() else []
    if known.any():
        logs[known] = np.log(_predict_loads(cells.take(known), running[known], predict))
    return logs


def find_least(cells: Cells) -> np.ndarray:
    """Return the time that the latency of a deployment cannot be below, (n,) ms; 0 where a fact is missing."""
    running = running_requests(cells)
    least = shortest_latencies(cells, running)
    first = add_backlog(cells, running, least[TTFT], least[TPOT])
    return np.nan_to_num(np.where(cells[TASK] == TTFT, first, least[TPOT]))


def _predict_loads(cells: Cells, running: np.ndarray, predict: Predict) -> np.ndarray:
    """Return latencies in ms; those to a first token include the wait of requests that do not fit."""
    is_first = cells[TASK] == TTFT
    waits = is_first & (cells["concurrency"] > running)
    further = cells.take(waits)
    both = cells.append(further.assign({TASK: np.full(waits.sum(), TPOT, dtype=object)}))
    runs = np.append(running, running[waits])
    least = shortest_latencies(both, runs)
    bound = np.where(both[TASK] == TTFT, least[TTFT], least[TPOT])
    times = np.fmax(np.exp(_interpolate(both, runs, predict)), bound)
    latencies, steps = np.split(times, [len(running)])
    latencies[waits] = add_backlog(further, running[waits], latencies[waits], steps)
    return np.asarray(latencies)


def _interpolate(cells: Cells, running: np.ndarray, predict: Predict) -> np.ndarray:
    """Return logarithms of latencies from those at the grid, (n,)."""
    batch = np.log2(running)
    prompt = np.log2(np.maximum(cells["input_tokens"], 2.0**_FIRST_INPUT)) - _FIRST_INPUT
    batches = int(np.ceil(batch.max())) + 3
    prompts = int(np.ceil(prompt.max())) + 3
    names = [name for name in cells if name not in _LOADS]
    places = {row: place for place, row in enumerate(dict.fromkeys(list_rows(cells, [*names, TASK])))}
    kind = np.array([places[row] for row in list_rows(cells, [*names, TASK])])
    first = np.unique(kind, return_index=True)[1]
    # a deployment needs the points up to those around its load
    needed = np.zeros((len(first), batches, prompts), dtype=bool)
    ends = np.zeros((2, len(first)), dtype=int)
    np.maximum.at(ends[0], kind, np.floor(batch).astype(int) + 2)
    np.maximum.at(ends[1], kind, np.floor(prompt).astype(int) + 2)
    needed |= np.arange(batches)[:, None] <= ends[0][:, None, None]
    needed &= np.arange(prompts) <= ends[1][:, None, None]
    owner, row, column = np.nonzero(needed)
    points = cells.take(first[owner]).assign(
        {
            "concurrency": 2.0**row,
            "input_tokens": 2.0 ** (column + _FIRST_INPUT),
            # all requests of a point run
            "memory_gib": np.full(len(owner), np.inf),
        }
    )
    grid = np.full(needed.shape, np.nan)
    grid[needed] = predict(points)
    grid = _make_plausible(grid)
    low_batch = np.floor(batch).astype(int)
    low_prompt = np.floor(prompt).astype(int)
    rest_batch = batch - low_batch
    rest_prompt = prompt - low_prompt
    corners = [[grid[kind, low_batch + up, low_prompt + right] for right in (0, 1)] for up in (0, 1)]
    lower, upper = (values[0] + rest_prompt * (values[1] - values[0]) for values in corners)
    return np.asarray(lower + rest_batch * (upper - lower))


def _make_plausible(grid: np.ndarray) -> np.ndarray:
    """Return logarithms, (kinds, batches, prompts), that rise along both axes, by the factor of the batch at most.

    A point needs only those of smaller and neighboring loads, so an answer does not depend on how far the grid goes.
    The median of these stands for it, since one wild answer would raise those of all larger loads.
    """
    padded = np.pad(grid, ((0, 0), (1, 1), (1, 1)), mode="edge")
    around = [padded[:, row : row + grid.shape[1], column : column + grid.shape[2]] for row, column in _CROSS]
    grid = np.median(around, axis=0)
    rising = np.fmax.accumulate(np.fmax.accumulate(grid, axis=1), axis=2)
    steps = np.log(2.0) * np.arange(grid.shape[1])[:, None]
    return np.asarray(np.fmin.accumulate(rising - steps, axis=1) + steps)

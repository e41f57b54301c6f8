"""Batches of requests."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from cachetools import LRUCache

from perfcast.inference.parse import ParsedMachine
from perfcast.serving.request_limits import RefusedRequest
from perfcast.serving.server_metrics import ServerMetrics
from perfcast.utils.errors import UserError

Result = TypeVar("Result")
MachineResult = dict[str, Any] | UserError
"""Result of one machine, or the reason why there is none."""
RunBatch = Callable[[Sequence[ParsedMachine], Any], list[dict[str, Any]]]
"""Returns one result per machine; lines are distinct. Raises: UserError when one machine is invalid."""

MAX_BATCH = 64
"""Machines of a batch."""
_MAX_SHARE = 16
"""Machines of one request in a batch: a large request does not delay small ones."""
_MIN_PART = 4
"""Machines that are worth a second worker: a batch has a fixed cost."""
_GATHER_SECONDS = 0.05
"""Longest wait for as many requests as in the previous batch: clients that got their results together ask again."""
_CACHE_SIZE = 512
"""Results that are cached."""


@dataclass(eq=False)
class _PendingRequest:
    machines: Sequence[ParsedMachine]
    options: Any
    future: asyncio.Future[list[MachineResult]]
    results: list[MachineResult] = field(default_factory=list)

    def next_share(self) -> Sequence[ParsedMachine]:
        return self.machines[len(self.results) : len(self.results) + _MAX_SHARE]


class RequestBatcher:
    """Queue of requests, predicted in batches by workers: one thread for every function of `workers`.

    Idle workers share the waiting requests. Equal machines of a batch are predicted once, and the last results are
    cached. When a batch raises UserError, it is bisected, so that an invalid machine does not fail the others. All
    methods run in the event loop.
    """

    def __init__(self, workers: Sequence[RunBatch], max_waiting: int, metrics: ServerMetrics) -> None:
        self._max_waiting, self._metrics = max_waiting, metrics
        self._queue: deque[_PendingRequest] = deque()
        self._cache: LRUCache[object, dict[str, Any]] = LRUCache(_CACHE_SIZE)
        self._waiting = 0
        self._expected = 0
        self._gathering = False
        self._arrival = asyncio.Event()
        self._idle = list(workers)
        self._tasks: set[asyncio.Task[None]] = set()
        self._threads = ThreadPoolExecutor(len(workers), thread_name_prefix="predictions")
        # a single worker runs in this process: nothing else may use the champion at the same time
        self._other_thread = ThreadPoolExecutor(1, "decisions") if len(workers) > 1 else self._threads

    async def submit(self, machines: Sequence[ParsedMachine], options: Any) -> list[MachineResult]:
        """Return the results in the order of the machines; cached ones do not wait.

        Raises: RefusedRequest when too many requests wait.
        """
        cached = [self._cache.get(_cache_key(machine, options)) for machine in machines]
        if None not in cached:
            self._metrics.machines.inc(len(machines))
            return [_restore(machine, result) for machine, result in zip(machines, cached, strict=True) if result]
        self._check_room()
        request = _PendingRequest(machines, options, asyncio.get_running_loop().create_future())
        self._count_waiting(1)
        self._queue.append(request)
        self._arrival.set()
        self._start_worker()
        try:
            return await request.future
        finally:
            self._count_waiting(-1)

    async def call(self, function: Callable[[], Result]) -> Result:
        """Return the result of a function that runs in a thread; one at a time does.

        Raises: RefusedRequest when too many requests wait.
        """
        self._check_room()
        self._count_waiting(1)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._other_thread, function)
        finally:
            self._count_waiting(-1)

    def _check_room(self) -> None:
        if self._waiting >= self._max_waiting:
            requirement = f"at most {self._max_waiting} requests can wait"
            raise RefusedRequest(503, requirement, "the server is busy", "try again")

    def close(self) -> None:
        """Cancel waiting requests."""
        for request in self._queue:
            request.future.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._other_thread.shutdown(wait=False, cancel_futures=True)

    def _count_waiting(self, change: int) -> None:
        self._waiting += change
        self._metrics.waiting.set(self._waiting)

    def _start_worker(self) -> None:
        if self._queue and self._idle and not self._gathering:
            self._gathering = True
            task = asyncio.create_task(self._work(self._idle.pop()))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work(self, run_batch: RunBatch) -> None:
        try:
            while self._queue:
                self._gathering = True
                await self._gather()
                requests = self._select_requests()
                self._gathering = False
                self._start_worker()
                await self._answer(requests, run_batch)
        finally:
            self._idle.append(run_batch)

    async def _gather(self) -> None:
        """Wait for as many requests as in the previous batch, but not for long."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _GATHER_SECONDS
        while len(self._queue) < self._expected and (remaining := deadline - loop.time()) > 0:
            self._arrival.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._arrival.wait(), remaining)

    async def _answer(self, requests: Sequence[_PendingRequest], run_batch: RunBatch) -> None:
        """Predict the next share of every request; requests with more machines join the queue again."""
        self._expected = len(requests)
        shares = [request.next_share() for request in requests]
        machines = [machine for share in shares for machine in share]
        try:
            results = iter(await self._predict(machines, requests[0].options, run_batch) if machines else [])
        except Exception as error:  # a bug: the clients get status 500, and the worker continues
            for request in requests:
                if not request.future.done():
                    request.future.set_exception(error)
            return
        for request, share in zip(requests, shares, strict=True):
            request.results += [next(results) for _ in share]
            if len(request.results) < len(request.machines):
                self._queue.append(request)
            elif not request.future.done():
                request.future.set_result(request.results)
        self._expected = max(self._expected, len(self._queue))

    def _select_requests(self) -> list[_PendingRequest]:
        """Take requests with equal options from the queue, up to MAX_BATCH machines; drop canceled requests.

        Idle workers get an equal part of the machines.
        """
        selected: list[_PendingRequest] = []
        remaining: deque[_PendingRequest] = deque()
        size = 0
        waiting = sum(len(request.next_share()) for request in self._queue if not request.future.done())
        largest = min(MAX_BATCH, max(_MIN_PART, math.ceil(waiting / (1 + len(self._idle)))))
        for request in self._queue:
            share = len(request.next_share())
            if request.future.done():
                continue
            if not selected or (request.options == selected[0].options and size + share <= largest):
                selected.append(request)
                size += share
            else:
                remaining.append(request)
        self._queue = remaining
        return selected

    async def _predict(
        self, machines: Sequence[ParsedMachine], options: Any, run_batch: RunBatch
    ) -> list[MachineResult]:
        """Return the results of a batch; equal machines are predicted once."""
        keys = [_cache_key(machine, options) for machine in machines]
        results: dict[object, MachineResult] = {key: self._cache[key] for key in keys if key in self._cache}
        new: dict[object, ParsedMachine] = {}
        for key, machine in zip(keys, machines, strict=True):
            if key not in results:
                new.setdefault(key, machine)
        self._metrics.machines.inc(len(machines))
        if new:
            self._metrics.predicted.inc(len(new))
            self._metrics.batches.inc()
            new_results = await self._run_isolated(list(new.values()), options, run_batch)
            results.update(zip(new, new_results, strict=True))
            self._cache.update({key: value for key, value in results.items() if not isinstance(value, UserError)})
        restored: list[MachineResult] = []
        for key, machine in zip(keys, machines, strict=True):
            result = results[key]
            if not isinstance(result, UserError):
                restored.append(_restore(machine, result))
            elif new[key] is machine:
                restored.append(result)
            else:  # the message names the line of the machine
                restored += await self._run_isolated([machine], options, run_batch)
        return restored

    async def _run_isolated(
        self, machines: Sequence[ParsedMachine], options: Any, run_batch: RunBatch
    ) -> list[MachineResult]:
        plain = [replace(machine, notes=()) for machine in machines]  # equal machines share a result, not notes
        return await asyncio.get_running_loop().run_in_executor(self._threads, _bisect, plain, options, run_batch)


def _bisect(machines: Sequence[ParsedMachine], options: Any, run_batch: RunBatch) -> list[MachineResult]:
    """Return the results of machines; halve them until every invalid machine is alone."""
    # lines of several requests can be equal
    lines = [replace(machine, line=line) for line, machine in enumerate(machines, 1)]
    try:
        return list(run_batch(machines if len(machines) == 1 else lines, options))
    except UserError as error:
        if len(machines) == 1:
            return [error]
    half = math.ceil(len(machines) / 2)
    return _bisect(machines[:half], options, run_batch) + _bisect(machines[half:], options, run_batch)


def _cache_key(machine: ParsedMachine, options: Any) -> object:
    return options, tuple(sorted(machine.cells.items()))


def _restore(machine: ParsedMachine, result: dict[str, Any]) -> dict[str, Any]:
    """Return a shared result with the line of the machine, and with its notes too."""
    return {**result, "line": machine.line, "notes": [*result["notes"], *machine.notes]}

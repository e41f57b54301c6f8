"""The thread of a worker that uses the champion; predictions that wait there together are one batch."""

from __future__ import annotations

import asyncio
import faulthandler
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.predict import PredictOptions, predict_batch
from perfcast.inference.prediction import Prediction, Predictions
from perfcast.serving.request_limits import RefusedRequest, RequestLimits
from perfcast.serving.server_metrics import ServerMetrics

Result = TypeVar("Result")

_MAX_BATCH = 64
"""Machines of several requests in a batch; a larger request is one of its own."""
_PART = 250
"""Machines of a request between two looks at whether its client still waits."""
_GATHER_SECONDS = 0.05
"""Longest wait for as many requests as in the last batch: clients that got their answers together ask again."""


@dataclass(eq=False)
class _Request:
    entries: Sequence[MachineEntry]
    options: PredictOptions
    encode: Callable[[Predictions], Any]
    answer: Any = None
    is_abandoned: bool = False


class PredictionThread:
    """Runs what uses the champion in one thread, in turn: a prediction fills a core, and models are not thread-safe."""

    def __init__(self, champion: Champion, limits: RequestLimits, metrics: ServerMetrics) -> None:
        self._champion, self._limits, self._metrics = champion, limits, metrics
        self._pool = ThreadPoolExecutor(1, "predictions")
        self._requests: deque[_Request] = deque()
        self._waiting = self._expected = 0
        self._started: float | None = None

    def is_late(self) -> bool:
        """Return whether what runs now has exceeded the time of a request, so that others have to wait."""
        return self._started is not None and time.monotonic() - self._started > self._limits.seconds

    def close(self) -> None:
        """Cancel what waits."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def predict(
        self, entries: Sequence[MachineEntry], options: PredictOptions, encode: Callable[[Predictions], Result]
    ) -> Result:
        """Predict machines, each as alone, and return what `encode` makes of the answer, in the thread.

        Raises: see `call`, and what `encode` raises.
        """
        request = _Request(entries, options, encode)
        self._requests.append(request)
        try:
            await self.call(partial(self._answer_until, request))
        finally:
            request.is_abandoned = True
        if isinstance(request.answer, Exception):
            raise request.answer
        answer: Result = request.answer
        return answer

    async def call(self, function: Callable[[], Result]) -> Result:
        """Return the result of a function in the thread.

        Raises: RefusedRequest when too many requests wait, or the time of a request has passed.
        """
        limits = self._limits
        if self._waiting >= limits.waiting:
            raise RefusedRequest(503, f"at most {limits.waiting} requests can wait", "the server is busy", "try again")
        self._count_waiting(1)
        try:
            async with asyncio.timeout(limits.seconds):
                return await asyncio.get_running_loop().run_in_executor(self._pool, self._run, function)
        except TimeoutError:
            requirement, fact = f"a request must end within {limits.seconds:g} s", "this one took longer"
            raise RefusedRequest(503, requirement, fact, "send fewer machines, or try again") from None
        finally:
            self._count_waiting(-1)

    def _count_waiting(self, change: int) -> None:
        self._waiting += change
        self._metrics.waiting.set(self._waiting)

    def _run(self, function: Callable[[], Result]) -> Result:
        """Run a function; one that hangs ends the worker, which is then replaced."""
        self._started = time.monotonic()
        faulthandler.dump_traceback_later(self._limits.hung, exit=True, file=2)
        try:
            return function()
        finally:
            faulthandler.cancel_dump_traceback_later()
            self._started = None

    def _answer_until(self, request: _Request) -> None:
        """Answer those that wait in batches, until a request is answered: often it is already."""
        while request.answer is None and not request.is_abandoned:
            deadline = time.monotonic() + _GATHER_SECONDS
            while len(self._requests) < self._expected and time.monotonic() < deadline:
                time.sleep(0.001)
            if requests := self._take_requests():
                self._expected = len(requests)
                self._answer(requests)

    def _take_requests(self) -> list[_Request]:
        taken: list[_Request] = []
        machines = 0
        while self._requests:
            request = self._requests[0]
            fits = machines + len(request.entries) <= _MAX_BATCH and (not taken or request.options == taken[0].options)
            if taken and not fits:
                break
            self._requests.popleft()
            if not request.is_abandoned:
                taken.append(request)
                machines += len(request.entries)
        return taken

    def _answer(self, requests: Sequence[_Request]) -> None:
        try:
            answer = self._predict([entry for request in requests for entry in request.entries], requests)
        except Exception as error:
            if len(requests) == 1:
                requests[0].answer = error
            else:  # a bug, met by one of them
                for request in requests:
                    self._answer([request])
            return
        start = 0
        for request in requests:
            lines = {start + number: entry.line for number, entry in enumerate(request.entries)}
            machines = tuple(replace(each, line=lines[each.line]) for each in answer if each.line in lines)
            start += len(lines)
            try:
                request.answer = request.encode(replace(answer, machines=machines))
            except Exception as error:
                request.answer = error

    def _predict(self, entries: Sequence[MachineEntry], requests: Sequence[_Request]) -> Predictions:
        """Predict machines in parts; their lines are their numbers from 0."""
        numbered = [entry._replace(line=number) for number, entry in enumerate(entries)]
        parts = np.array_split(np.arange(len(entries)), math.ceil(len(entries) / _PART))
        machines: list[Prediction] = []
        for part in parts:
            if all(request.is_abandoned for request in requests):
                raise TimeoutError
            self._metrics.batches.inc()
            self._metrics.machines.inc(len(part))
            answer = predict_batch(numbered[part[0] : part[-1] + 1], self._champion, requests[0].options)
            machines += answer
        return replace(answer, machines=tuple(machines))

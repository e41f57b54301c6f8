"""One prediction at a time; requests that wait for it are answered together, by one vectorized call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.predict import PredictOptions, predict_batch
from perfcast.inference.prediction import Predictions
from perfcast.serving.request_limits import RefusedRequest, RequestLimits

if TYPE_CHECKING:
    from perfcast.serving.app import ServerMetrics

Result = TypeVar("Result")

_MAX_TOGETHER = 64
"""Machines of several requests in one call; a larger request is alone."""


@dataclass(eq=False)
class _Request:
    entries: Sequence[MachineEntry]
    options: PredictOptions
    encode: Callable[[Predictions], Any]
    answer: Any = None


class PredictionQueue:
    """Runs what uses the champion in one thread: models are not thread-safe, and a prediction fills a core."""

    def __init__(self, champion: Champion, limits: RequestLimits, metrics: ServerMetrics) -> None:
        self._champion, self._limits, self._metrics = champion, limits, metrics
        self._thread = ThreadPoolExecutor(1, "predictions")
        self._requests: list[_Request] = []
        self._waiting = 0

    async def predict(
        self, entries: Sequence[MachineEntry], options: PredictOptions, encode: Callable[[Predictions], Result]
    ) -> Result:
        """Predict machines, each as alone, and return what `encode` makes of the answer, in the thread.

        Raises: see `call` and `predict_batch`.
        """
        request = _Request(entries, options, encode)
        self._requests.append(request)
        try:
            await self.call(lambda: self._answer(request))
        finally:
            self._requests.remove(request)
        answer: Result = request.answer
        return answer

    async def call(self, function: Callable[[], Result]) -> Result:
        """Return the result of a function in the thread.

        Raises: RefusedRequest when too many requests wait, or the time of a request has passed.
        """
        limits = self._limits
        if self._waiting >= limits.waiting:
            raise RefusedRequest(503, f"at most {limits.waiting} requests can wait", "the server is busy", "try again")
        self._waiting += 1
        try:
            async with asyncio.timeout(limits.seconds):
                return await asyncio.get_running_loop().run_in_executor(self._thread, function)
        except TimeoutError:
            requirement, fact = f"a request must end within {limits.seconds:g} s", "this one took longer"
            raise RefusedRequest(503, requirement, fact, "send fewer machines, or try again") from None
        finally:
            self._waiting -= 1

    def _answer(self, request: _Request) -> None:
        """Answer a request that has no answer yet, and those with equal options that wait."""
        if request.answer is not None:
            return
        waiting = self._list_waiting(request)
        try:
            self._predict(waiting)
        except Exception:
            if len(waiting) == 1:
                raise
            self._predict([request])  # another one has met a bug

    def _list_waiting(self, request: _Request) -> list[_Request]:
        """Return a request and those that one call answers with it."""
        together, room = [request], _MAX_TOGETHER - len(request.entries)
        for other in list(self._requests):
            is_alike = other is not request and other.answer is None and other.options == request.options
            if is_alike and len(other.entries) <= room:
                together.append(other)
                room -= len(other.entries)
        return together

    def _predict(self, requests: Sequence[_Request]) -> None:
        entries = [entry for request in requests for entry in request.entries]
        numbered = [entry._replace(line=number) for number, entry in enumerate(entries)]
        self._metrics.batches.inc()
        self._metrics.machines.inc(len(entries))
        answer = predict_batch(numbered, self._champion, requests[0].options)
        start = 0
        for request in requests:
            lines = {start + number: entry.line for number, entry in enumerate(request.entries)}
            machines = tuple(replace(each, line=lines[each.line]) for each in answer if each.line in lines)
            request.answer = request.encode(replace(answer, machines=machines))
            start += len(lines)

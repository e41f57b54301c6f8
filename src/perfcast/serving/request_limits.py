"""Limits of HTTP requests, the route class that reads bodies within them, and the queue of predictions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.options import PredictOptions
from perfcast.inference.predict import predict_machines
from perfcast.inference.prediction import Predictions
from perfcast.inference.suites import Suites
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_json_text

BODY = "the body"
EXAMPLE = "send names of GET /fields with values"
"""Remedy for a body that describes no machine."""
_BODY_LEFT = (408, 413)
"""Status of requests whose body is not read to its end: their connection is closed."""
_MAX_DISCARDED = 32
"""Multiple of the largest body that is read and discarded: a client that still sends would not read the response."""


@dataclass(frozen=True)
class RequestLimits:
    """Limits of one worker.

    Units: `body` bytes; `machines` per request; `seconds` until a body or an answer must be there; `waiting` requests
    at once; `neighbors` nearest machines per prediction; `suggestions` suggested names; `explained` machines up to
    which a prediction is explained by default.
    """

    body: int = 1 << 20
    machines: int = 1000
    seconds: float = 10.0
    waiting: int = 64
    neighbors: int = 10
    suggestions: int = 12
    explained: int = 20


DEFAULT_LIMITS = RequestLimits()


class RefusedRequest(HTTPException):
    """A request that gets an HTTP error status and one line with the reason and the remedy."""

    def __init__(self, status: int, requirement: str, fact: str, remedy: str = "") -> None:
        headers = {"retry-after": "1"} if status == 503 else {"connection": "close"} if status in _BODY_LEFT else None
        super().__init__(status, str(UserError(requirement, fact, remedy)), headers)


class JsonRoute(APIRoute):
    """Route that takes only JSON within the limits in `app.state.limits`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return a handler that reads the body before FastAPI does."""
        handle = super().get_route_handler()

        async def handle_json(request: Request) -> Response:
            json_request = _JsonRequest(request.scope, request.receive)
            await json_request.read_body(request.app.state.limits)
            return await handle(json_request)

        return handle_json


class _JsonRequest(Request):
    """Request with a bounded body; refuses duplicate names and NaN, which `json.loads` accepts."""

    async def read_body(self, limits: RequestLimits) -> None:
        """Read the body. Raises: RefusedRequest for a body that is too large, too slow, empty or not JSON."""
        size, chunks = 0, []
        try:
            async with asyncio.timeout(limits.seconds):
                async for chunk in self.stream():
                    size += len(chunk)
                    if size <= limits.body:
                        chunks.append(chunk)
                    elif size > _MAX_DISCARDED * limits.body:
                        break
        except TimeoutError:
            if size <= limits.body:
                requirement = f"{BODY} must arrive within {limits.seconds:g} s"
                raise RefusedRequest(408, requirement, "it did not", "try again") from None
        except ClientDisconnect:
            fact = "the client disconnected"
            raise RefusedRequest(400, f"{BODY} must be complete", fact) from None
        if size > limits.body:
            requirement = f"a request can have at most {limits.body} bytes"
            raise RefusedRequest(413, requirement, "the body is larger", "send fewer machines per request")
        self._body = b"".join(chunks)
        media_type = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            fact = f"the content type is {media_type[:60]!r}" if media_type else "there is no content type"
            remedy = "send it with Content-Type: application/json; `perfcast predict` reads CSV files"
            raise RefusedRequest(415, f"{BODY} must be JSON", fact, remedy)
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        if encoding != "identity":
            fact = f"its content encoding is {encoding[:60]!r}"
            raise RefusedRequest(415, f"{BODY} must not be compressed", fact, "send it as it is")
        counts = Counter(name for name, _ in self.query_params.multi_items())
        if twice := next((name for name, count in counts.items() if count > 1), None):
            raise RefusedRequest(422, "query options must be given once", f"{twice[:60]!r} is given twice", "see /docs")

    async def json(self) -> Any:
        """Return the decoded body. Raises: RefusedRequest."""
        body = await self.body()
        try:
            text = body.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            fact = f"byte {error.start + 1} is not"
            raise RefusedRequest(400, f"{BODY} must be UTF-8 text", fact, "save it as UTF-8") from None
        if not text.strip():
            raise RefusedRequest(400, f"{BODY} must describe a machine", "it is empty", EXAMPLE)
        try:
            return read_json_text(text, BODY)
        except UserError as error:
            raise RefusedRequest(400, error.requirement, error.fact, error.remedy or EXAMPLE) from None


if TYPE_CHECKING:
    from perfcast.serving.app import ServerMetrics

Result = TypeVar("Result")
BOTH = "both"
"""Name of every suite of a server."""


def choose_suites(suites: Suites, suite: str | None) -> Suites:
    """Return the suite whose dataset ends so, all, or for None the first. Raises: UserError when there is none."""
    chosen = [each for each in suites if suite in (None, BOTH) or each.dataset.endswith(str(suite))]
    if not chosen:
        known = " or ".join(each.dataset for each in suites)
        raise UserError(f"suite must be {BOTH} or the end of a dataset", f"it is {suite!r}", known)
    return suites if suite is not None and len(chosen) == len(suites) else Suites(chosen[0])


_MAX_TOGETHER = 64
"""Machines of several requests in one call; a larger request is alone."""


@dataclass(eq=False)
class _Request:
    suites: Suites
    entries: Sequence[MachineEntry]
    options: PredictOptions
    encode: Callable[[Predictions], Any]
    answer: Any = None


class PredictionQueue:
    """Runs what uses champions in one thread: models are not thread-safe, and a prediction fills a core."""

    def __init__(self, limits: RequestLimits, metrics: ServerMetrics) -> None:
        self._limits, self._metrics = limits, metrics
        self._thread = ThreadPoolExecutor(1, "predictions")
        self._requests: list[_Request] = []
        self._waiting = 0

    async def predict(
        self,
        suites: Suites,
        entries: Sequence[MachineEntry],
        options: PredictOptions,
        encode: Callable[[Predictions], Result],
    ) -> Result:
        """Predict machines, each as alone, and return what `encode` makes of the answer, in the thread.

        Raises: see `call` and `predict_machines`.
        """
        request = _Request(suites, entries, options, encode)
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
            is_alike = other.suites.identity == request.suites.identity and other.options == request.options
            if other is not request and other.answer is None and is_alike and len(other.entries) <= room:
                together.append(other)
                room -= len(other.entries)
        return together

    def _predict(self, requests: Sequence[_Request]) -> None:
        entries = [entry for request in requests for entry in request.entries]
        numbered = [entry._replace(line=number) for number, entry in enumerate(entries)]
        self._metrics.batches.inc()
        self._metrics.machines.inc(len(entries))
        answer = predict_machines(numbered, requests[0].suites, requests[0].options)
        start = 0
        for request in requests:
            lines = {start + number: entry.line for number, entry in enumerate(request.entries)}
            machines = tuple(replace(each, line=lines[each.line]) for each in answer if each.line in lines)
            request.answer = request.encode(replace(answer, machines=machines))
            start += len(lines)

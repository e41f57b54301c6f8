"""The web application: its routes, and what OpenAPI says of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import asdict

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from perfcast import __version__
from perfcast.errors import UserError
from perfcast.inference import Champion, MachineEntry, ParsedMachine
from perfcast.inference.impute import ORIGINS
from perfcast.inference.parse import parse_machine
from perfcast.serving import models
from perfcast.serving.answering import Answering, Completion
from perfcast.serving.batching import Batcher, Told
from perfcast.serving.guard import Guard
from perfcast.serving.limits import DEFAULTS, Limits, Refusal, refusal
from perfcast.serving.metrics import Metrics
from perfcast.serving.openapi import asked_of_machines, describe_models, parameter, responses
from perfcast.serving.pages import FILES, PAGES, Page
from perfcast.serving.questions import OPTIONS, entries_from_body, options_from_query
from perfcast.serving.words import vocabulary_of

_ABOUT = """Forecasts of benchmark results that nobody has measured, by the best predictor of a data set.
All numbers are estimates, not official results. Every error is one line that says what was wrong and what to do."""
_MOST_LETTERS = 100

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""The names of a server that answers its own machine alone."""


def create_app(champion: Champion, limits: Limits = DEFAULTS, hosts: Collection[str] | None = LOOPBACK) -> FastAPI:
    """Return the application that answers with a champion; `hosts` as in `Guard`."""
    answering = Answering(champion)
    metrics = Metrics(lambda: batcher.waiting)
    batcher = Batcher(answering, limits.waiting, metrics.add)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        batcher.end()

    app = FastAPI(
        title="perfcast", version=__version__, description=_ABOUT, docs_url=None, redoc_url=None, lifespan=lifespan
    )
    _errors(app)
    _pages(app)
    _facts(app, champion, answering, limits, metrics)
    _asking(app, champion, answering, limits, batcher)
    describe_models(app)
    routes = [path for route in app.routes if (path := getattr(route, "path", None))]
    app.add_middleware(Guard, limits=limits, metrics=metrics, hosts=hosts, routes=routes)
    return app


def _errors(app: FastAPI) -> None:
    def said(status: int, text: str) -> JSONResponse:
        return JSONResponse({"error": text}, status)

    @app.exception_handler(Refusal)
    async def refused(_: Request, error: Refusal) -> JSONResponse:
        return said(error.status, str(error))

    @app.exception_handler(UserError)
    async def wrong(_: Request, error: UserError) -> JSONResponse:
        return said(422, str(error).replace("see --help", "see /vocabulary"))

    @app.exception_handler(HTTPException)
    async def unknown(request: Request, error: HTTPException) -> JSONResponse:
        fact = f"{request.method} {request.url.path[:_MOST_LETTERS]} is none"
        return said(error.status_code, str(UserError("a request must be one that the server knows", fact, "see /docs")))


def _pages(app: FastAPI) -> None:
    def add(path: str, page: Page) -> None:
        @app.get(path, include_in_schema=False)
        async def shown() -> Response:
            return Response(page.content, media_type=page.kind)

    for path, page in {**PAGES, **FILES}.items():
        add(path, page)


def _facts(app: FastAPI, champion: Champion, answering: Answering, limits: Limits, metrics: Metrics) -> None:
    vocabulary = JSONResponse(vocabulary_of(champion))
    typical = sorted(champion.typical)
    health = {
        "status": "ok",
        "version": __version__,
        **answering.about(),
        "tasks": typical,
        "limits": asdict(limits),
        "origins": ORIGINS,
    }
    names = champion.cpu_names

    @app.get(
        "/health",
        summary="Who answers, and what it takes at most",
        responses={200: {"model": models.Health, "description": "The answer"}},
    )
    async def tell_health() -> Response:
        return JSONResponse(health)

    @app.get("/metrics", summary="Counts in the text format of Prometheus", response_class=PlainTextResponse)
    async def tell_metrics() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get(
        "/vocabulary",
        summary="What a machine can be described by",
        responses={200: {"model": models.Words, "description": "The answer"}},
    )
    async def tell_vocabulary() -> Response:
        return vocabulary

    @app.get(
        "/parts",
        summary="Names of processors that begin so",
        responses={200: {"model": models.Parts, "description": "The answer"}},
        openapi_extra={"parameters": [parameter("q", "what was typed, such as `epyc 97`", "string")]},
    )
    async def tell_parts(request: Request) -> Response:
        return JSONResponse(
            {"parts": names.complete(request.query_params.get("q", "")[:_MOST_LETTERS], limits.candidates)}
        )


def _asking(app: FastAPI, champion: Champion, answering: Answering, limits: Limits, batcher: Batcher) -> None:
    about = answering.about()

    async def entries_of(request: Request) -> list[MachineEntry]:
        return entries_from_body(await request.body(), request.headers.get("content-type", ""), limits)

    async def answered(entries: Sequence[MachineEntry], asked: object, partial: bool) -> Response:
        async def work() -> list[Told]:
            until = time.monotonic() + limits.seconds
            read = await asyncio.to_thread(_understood, entries, champion, partial, until)
            right = [one for one in read if isinstance(one, ParsedMachine)]
            told = iter(await _within(batcher, right, asked))
            return [one if isinstance(one, UserError) else next(told) for one in read]

        try:
            told = await asyncio.wait_for(work(), limits.seconds)
        except TimeoutError:
            fact = f"it took longer than {limits.seconds:g} s"
            raise refusal(503, "a request must be answered in time", fact, "ask fewer machines, or try again") from None
        wrong = [(line, one) for (line, _, _), one in zip(entries, told, strict=True) if isinstance(one, UserError)]
        if wrong and not partial:
            raise wrong[0][1]
        errors = {"errors": [{"line": line, "error": str(one)} for line, one in wrong]} if partial else {}
        machines = [one for one in told if not isinstance(one, UserError)]
        return JSONResponse({**about, **errors, "machines": machines})

    @app.post(
        "/forecast",
        summary="Forecast one machine, or several",
        responses=responses(models.Forecasts),
        openapi_extra=asked_of_machines(list(OPTIONS)),
    )
    async def tell_forecast(request: Request) -> Response:
        entries = await entries_of(request)
        options = options_from_query(request.query_params, len(entries), limits)
        return await answered(entries, options.asked, options.partial)

    @app.post(
        "/complete",
        summary="Complete the description of one machine, or several",
        responses=responses(models.Completions),
        openapi_extra=asked_of_machines(["assume", "partial"]),
    )
    async def tell_completed(request: Request) -> Response:
        entries = await entries_of(request)
        options = options_from_query(request.query_params, len(entries), limits)
        return await answered(entries, Completion(options.asked.assume), options.partial)


def _understood(
    entries: Sequence[MachineEntry], champion: Champion, partial: bool, until: float
) -> list[ParsedMachine | UserError]:
    """Read every machine; the first that cannot be read is raised, unless the others are wanted all the same.

    Raises: TimeoutError at `until`, of the monotonic clock: nobody waits for the rest by then.
    """
    found: list[ParsedMachine | UserError] = []
    for entry in entries:
        if time.monotonic() > until:
            raise TimeoutError
        try:
            found.append(parse_machine(entry, champion))
        except UserError as error:
            if not partial:
                raise
            found.append(error)
    return found


async def _within(batcher: Batcher, machines: Sequence[ParsedMachine], asked: object) -> list[Told]:
    """Wait for the batcher; who is given up on takes no more turns."""
    if not machines:
        return []
    answer: Future[list[Told]] = batcher.ask(machines, asked)
    try:
        return await asyncio.wrap_future(answer)
    except asyncio.CancelledError:
        answer.cancel()
        raise

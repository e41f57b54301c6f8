"""FastAPI application: routes, error messages, metrics and middleware."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from perfcast import __version__
from perfcast.inference.cells import ORIGINS
from perfcast.inference.champion import Champion
from perfcast.inference.machine_fields import name_group
from perfcast.inference.prediction import ESTIMATE, Answer, Predictions, as_csv
from perfcast.inference.suites import Suites
from perfcast.schema.display_names import column_label
from perfcast.schema.table import Role, select
from perfcast.serving.api_models import (
    DECISIONS,
    ErrorResponse,
    FieldsResponse,
    HealthResponse,
    NamesResponse,
    PredictQuery,
    PredictResponse,
    RequestBody,
    add_operations,
    describe_errors,
    list_entries,
)
from perfcast.serving.request_limits import (
    DEFAULT_LIMITS,
    JsonRoute,
    PredictionQueue,
    RefusedRequest,
    RequestLimits,
    choose_suites,
)
from perfcast.utils.errors import UserError

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""Host names of a server that only its own machine can reach."""

PAGE_FOLDER = Path(__file__).parent / "page"
_DESCRIPTION = """Predictions of benchmark results by the best predictor of a dataset.
All numbers are estimates, not official results. Every error is one line with the reason and the remedy."""
_MAX_TEXT = 100
_HOST = re.compile(rb"(?P<name>\[[0-9a-f:.]+\]|[^:\[\]]+)(:(?P<port>[0-9]{1,5}))?", re.IGNORECASE)
_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": text}
    for status, text in {
        400: "The body is not JSON, or describes no machine.",
        408: "The body did not arrive in time.",
        413: "Too many bytes or machines.",
        415: "The content type is not JSON.",
        422: "No machine can be used, or with the option strict one of them cannot; or an option is invalid.",
        503: "The server is busy, or the time limit has passed.",
    }.items()
}


_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper ends of the latency histogram. Units: seconds."""
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable with the folder that the workers of one server share, see prometheus_client."""
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""The page loads only from its own server, and no other page may frame it."""
_ENCODED_HEADERS = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]


def create_app(
    suites: Suites, limits: RequestLimits = DEFAULT_LIMITS, hosts: Sequence[str] | None = LOOPBACK
) -> FastAPI:
    """Return the application that serves loaded champions.

    `hosts` are the accepted names in the Host header; None accepts any. Without that check, a page of another site
    whose name resolves to this machine (DNS rebinding) could send requests.
    """
    suites = add_operations(suites)
    metrics = ServerMetrics()
    queue = PredictionQueue(limits, metrics)
    metrics.starts.inc()
    app = FastAPI(
        title="perfcast",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.limits = limits
    _add_error_handlers(app)
    app.mount("/static", StaticFiles(directory=PAGE_FOLDER))
    app.include_router(_create_info_router(suites, limits, metrics))
    app.include_router(_create_prediction_router(suites, limits, queue))
    app.add_middleware(_HostCheck, hosts=hosts)
    app.add_middleware(MetricsMiddleware, metrics=metrics)
    return app


class ServerMetrics:
    """Metrics in a registry of their own, so that several servers can run in one process."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "perfcast_requests", "Requests by route and HTTP status.", ["route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "perfcast_request_seconds", "Time per request.", ["route"], registry=registry, buckets=_BUCKETS
        )
        self.machines = Counter("perfcast_machines", "Machines predicted.", registry=registry)
        self.batches = Counter("perfcast_batches", "Batches of predicted machines.", registry=registry)
        self.failures = Counter("perfcast_failures", "Unexpected errors.", registry=registry)
        self.starts = Counter("perfcast_worker_starts", "Workers started, replaced ones included.", registry=registry)

    def as_text(self) -> bytes:
        """Return the metrics of all workers in the text format of Prometheus."""
        registry: Any = self._registry
        if METRICS_FOLDER in os.environ:
            # a worker that was killed at its start left an empty file
            files = [str(each) for each in Path(os.environ[METRICS_FOLDER]).glob("*.db") if each.stat().st_size]
            registry = SimpleNamespace(collect=partial(MultiProcessCollector.merge, files))
        return generate_latest(registry)


class MetricsMiddleware:
    """Counts requests by route and status, measures their time, and sets security headers."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *_ENCODED_HEADERS]
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Exception:
            self.metrics.failures.inc()
            raise
        finally:
            # only routes of the server: a label per requested path would grow without limit
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.requests.labels(route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(time.perf_counter() - start)


class _HostCheck:
    """Refuses requests that name another host than this server."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str] | None) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; h11 has refused those with several hosts."""
        app = self.app
        if scope["type"] == "http" and not self._is_accepted(dict(scope["headers"]).get(b"host", b"")):
            requirement, remedy = "the Host header must name this server", "--host serves other names than localhost"
            error = UserError(requirement, "it names another", remedy)
            app = _refuse(400, str(error), {"connection": "close"})
        await app(scope, receive, send)

    def _is_accepted(self, given: bytes) -> bool:
        host = _HOST.fullmatch(given)
        if host is None or int(host["port"] or 0) > 65535:
            return False
        return self.hosts is None or host["name"].decode("latin-1").lower() in self.hosts


def _add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def handle_validation_error(_: Request, error: RequestValidationError) -> JSONResponse:
        return _refuse(*describe_errors(error.errors()))

    @app.exception_handler(UserError)
    async def handle_user_error(_: Request, error: UserError) -> JSONResponse:
        return _refuse(422, str(error))

    @app.exception_handler(HTTPException)
    async def handle_http_error(request: Request, error: HTTPException) -> JSONResponse:
        if isinstance(error, RefusedRequest):
            return _refuse(error.status_code, error.detail, error.headers)
        fact = f"there is no {request.method} {request.url.path[:_MAX_TEXT]}"
        return _refuse(error.status_code, str(UserError("a request must use a route of the server", fact, "see /docs")))

    @app.exception_handler(Exception)
    async def handle_bug(_: Request, error: Exception) -> JSONResponse:
        # Starlette raises the error again, so that the log has the traceback and the client has not
        return _refuse(500, "the prediction failed unexpectedly; see the server log", SECURITY_HEADERS)


def _create_info_router(suites: Suites, limits: RequestLimits, metrics: ServerMetrics) -> APIRouter:
    router = APIRouter(responses={422: _REFUSALS[422]})
    first = suites.first
    fields, shown = _describe_fields(first), first.rules.presentation
    health = {
        "status": "ok",
        "version": __version__,
        **_describe_champion(first),
        "suites": [
            {"title": column_label(each.dataset), "champion": each.name, "preset": each.preset, "basis": each.basis}
            for each in reversed(suites)  # the later suite first, as in answers
        ],
        "limits": asdict(limits),
        "origins": {**ORIGINS, **shown.origin_meanings},
        "form": shown.form_fields,
        "named_field": first.named_field,
        "page_texts": shown.page_texts,
    }

    @router.get("/", include_in_schema=False)
    async def get_page() -> Response:
        return FileResponse(PAGE_FOLDER / "index.html")

    @router.get("/docs", include_in_schema=False)
    async def get_api_page() -> Response:
        return FileResponse(PAGE_FOLDER / "api.html")

    @router.get("/health", summary="Return the predictor and the limits of the server", response_model=HealthResponse)
    async def get_health() -> dict[str, Any]:
        return health

    @router.get("/metrics", summary="Return metrics in the text format of Prometheus", response_class=PlainTextResponse)
    async def get_metrics() -> Response:
        return Response(metrics.as_text(), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    @router.get("/fields", summary="List the fields and columns that describe a machine", response_model=FieldsResponse)
    async def get_fields() -> dict[str, Any]:
        return fields

    @router.get("/cpu-models", summary="Find names of entities by a text", response_model=NamesResponse)
    async def get_names(
        q: Annotated[str, Query(description="Text to match, such as epyc 97.")] = "",
    ) -> dict[str, Any]:
        names = [each.entity_names.complete(q[:_MAX_TEXT], limits.suggestions) for each in suites]
        return {"cpu_models": list(dict.fromkeys(chain.from_iterable(names)))[: limits.suggestions]}

    return router


def _create_prediction_router(suites: Suites, limits: RequestLimits, queue: PredictionQueue) -> APIRouter:
    router = APIRouter(route_class=JsonRoute, responses=_REFUSALS)

    @router.post("/predict", summary="Predict one machine, or several", response_model=PredictResponse)
    async def post_predict(body: RequestBody, query: Annotated[PredictQuery, Query()]) -> Response:
        entries = list_entries(body, limits)
        options = query.to_options(len(entries), limits)
        encode = partial(_encode_predictions, strict=query.strict)
        return await queue.predict(choose_suites(suites, query.suite), entries, options, encode)

    def add_decision(name: str, model: type, response: type, summary: str) -> None:
        async def post_decision(body: Any, request: Request) -> Response:
            chosen = body.choose(suites)
            accept = request.headers.get("accept", "")
            return await queue.call(lambda: _encode_answer(body.answer(chosen, limits), accept))

        # FastAPI reads the model of the body from the annotation
        post_decision.__annotations__["body"] = model
        router.post(f"/{name}", summary=summary, response_model=response, operation_id=name)(post_decision)

    for name, models in DECISIONS.items():
        add_decision(name, *models)
    return router


def _refuse(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": message.replace("see --help", "see /fields")}, status, headers)


def _encode_predictions(answer: Predictions, *, strict: bool) -> Response:
    """Return an answer as it is: FastAPI would validate every number again."""
    refused = answer.refused
    if refused and (strict or len(refused) == len(answer.machines)):
        return _refuse(422, refused[0].message)
    return JSONResponse(answer.to_dict())


def _encode_answer(answer: Answer, accept: str) -> Response:
    """Return an answer as JSON, or as the CSV of the commands for an Accept header that asks for it."""
    if "text/csv" in accept:
        return Response(as_csv(answer.to_frame()), media_type="text/csv")
    return JSONResponse(answer.to_dict())


def _describe_champion(champion: Champion) -> dict[str, Any]:
    """Return the fields of an answer that describe the champion."""
    identity = dict(zip(("dataset", "champion", "preset", "results_until"), champion.identity, strict=True))
    return {**identity, "features": len(select(champion.predictor.columns_, role=Role.FEATURE)), "kind": ESTIMATE}


def _describe_fields(champion: Champion) -> dict[str, list[dict[str, Any]]]:
    """Return fields and columns with meaning, unit, and bounds or an example, as in `FieldsResponse`."""
    types, columns = champion.field_types(), champion.fields.columns
    limits = champion.rules.limits
    capacities = {**limits.capacities, **limits.largest_values}

    def describe(name: str, meaning: str, column: str | None) -> dict[str, Any]:
        unit, capacity = (columns[column].unit, capacities.get(column)) if column else ("", None)
        words = {"label": column_label(name), "meaning": meaning}
        return {"name": name, **words, "number": types[name] == "double", "unit": unit, "capacity": capacity}

    fields = []
    for name, field in {each.name: each for each in champion.fields.fields.values() if each.name in types}.items():
        filled = list(field.columns)
        described = describe(name, field.meaning, filled[0] if len(filled) == 1 else None)
        fields.append({**described, "example": field.example, "columns": filled, "aliases": list(field.aliases)})
    listed = [
        {**describe(name, column.meaning, name), "group": name_group(column), "low": column.low, "high": column.high}
        for name, column in columns.items()
    ]
    return {"fields": fields, "columns": listed}

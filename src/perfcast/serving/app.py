"""FastAPI application: routes, error messages and middleware."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from perfcast import __version__
from perfcast.inference.champion import Champion
from perfcast.inference.impute import ORIGINS
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import ParsedMachine
from perfcast.inference.predict import PredictOptions
from perfcast.serving.api_models import (
    CpuModelsResponse,
    ErrorResponse,
    FieldsResponse,
    HealthResponse,
    ImputeResponse,
    PredictQuery,
    PredictResponse,
    RequestBody,
    describe_errors,
    list_entries,
)
from perfcast.serving.batching import MachineResult, RequestBatcher, RunBatch
from perfcast.serving.decision_routes import create_decision_router
from perfcast.serving.prediction_service import ImputeOptions, PredictionService, describe_refusal
from perfcast.serving.request_limits import DEFAULT_LIMITS, JsonRoute, RefusedRequest, RequestLimits
from perfcast.serving.server_metrics import MetricsMiddleware, ServerMetrics
from perfcast.utils.errors import UserError

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""Host names of a server that only its own machine can reach."""

PAGE_FOLDER = Path(__file__).parent / "page"
_DESCRIPTION = """Predictions of benchmark results by the best predictor of a dataset.
All numbers are estimates, not official results. Every error is one line with the reason and the remedy."""
_MAX_TEXT = 100
_WRONG_HOST = str(
    UserError("the Host header must name this server", "it names another", "--host serves other names than localhost")
)
_BODY_LEFT = (408, 413)
"""Status of requests whose body is not read to its end: their connection is closed."""
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


def create_app(
    champion: Champion,
    limits: RequestLimits = DEFAULT_LIMITS,
    hosts: Sequence[str] | None = LOOPBACK,
    workers: Sequence[RunBatch] = (),
) -> FastAPI:
    """Return the application that serves a champion. `workers` predict batches; without them this process does.

    `hosts` are the accepted names in the Host header; None accepts any. Without that check, a page of another site
    whose name resolves to this machine (DNS rebinding) could send requests.
    """
    service, metrics = PredictionService(champion), ServerMetrics()
    batcher = RequestBatcher(workers or [service.run], limits.waiting, metrics)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        batcher.close()

    app = FastAPI(
        title="perfcast",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.limits = limits
    _add_error_handlers(app)
    app.include_router(_create_page_router())
    app.mount("/static", StaticFiles(directory=PAGE_FOLDER))
    app.include_router(_create_info_router(service, limits, metrics))
    app.include_router(_create_prediction_router(service, limits, batcher))
    app.include_router(create_decision_router(champion, limits, batcher, _REFUSALS))
    app.add_middleware(_HostCheck, hosts=["*"] if hosts is None else hosts)
    app.add_middleware(MetricsMiddleware, metrics=metrics)
    return app


class _HostCheck:
    """Refuses other host names, as `TrustedHostMiddleware` does, in JSON."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        is_accepted = False

        async def accept(*_: Any) -> None:
            nonlocal is_accepted
            is_accepted = True

        async def discard(_: Message) -> None:
            pass

        await TrustedHostMiddleware(accept, self.hosts, www_redirect=False)(scope, receive, discard)
        answer = self.app if is_accepted else JSONResponse({"error": _WRONG_HOST}, 400)
        await answer(scope, receive, send)


def _add_error_handlers(app: FastAPI) -> None:
    def respond(status: int, message: str) -> JSONResponse:
        return JSONResponse({"error": message}, status)

    @app.exception_handler(RequestValidationError)
    async def handle_validation_error(_: Request, error: RequestValidationError) -> JSONResponse:
        return respond(*describe_errors(error.errors()))

    @app.exception_handler(UserError)
    async def handle_user_error(_: Request, error: UserError) -> JSONResponse:
        return respond(422, str(error).replace("see --help", "see /fields"))

    @app.exception_handler(HTTPException)
    async def handle_http_error(request: Request, error: HTTPException) -> JSONResponse:
        if isinstance(error, RefusedRequest):
            response = respond(error.status_code, error.detail)
            if error.status_code in _BODY_LEFT:
                response.headers["connection"] = "close"
            return response
        fact = f"there is no {request.method} {request.url.path[:_MAX_TEXT]}"
        return respond(error.status_code, str(UserError("a request must use a route of the server", fact, "see /docs")))

    @app.exception_handler(Exception)
    async def handle_bug(_: Request, error: Exception) -> JSONResponse:
        # Starlette raises the error again, so that the log has the traceback and the client has not
        response = respond(500, "the prediction failed unexpectedly; see the server log")
        response.headers.update(MetricsMiddleware.HEADERS)
        return response


def _create_page_router() -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def get_page() -> Response:
        return FileResponse(PAGE_FOLDER / "index.html")

    @router.get("/docs")
    async def get_api_page() -> Response:
        return FileResponse(PAGE_FOLDER / "api.html")

    return router


def _create_info_router(service: PredictionService, limits: RequestLimits, metrics: ServerMetrics) -> APIRouter:
    router = APIRouter(responses={422: _REFUSALS[422]})
    champion = service.champion
    fields = service.describe_fields()
    health = {
        "status": "ok",
        "version": __version__,
        **service.describe_champion(),
        "tasks": sorted(champion.typical_rows),
        "limits": asdict(limits),
        "origins": {**ORIGINS, **champion.rules.origin_meanings},
        "form": champion.rules.form_fields,
        "short_fields": champion.rules.short_fields,
        "page_texts": champion.rules.page_texts,
    }

    @router.get("/health", summary="Return the predictor and the limits of the server", response_model=HealthResponse)
    async def get_health() -> dict[str, Any]:
        return health

    @router.get("/metrics", summary="Return metrics in the text format of Prometheus", response_class=PlainTextResponse)
    async def get_metrics() -> Response:
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    @router.get("/fields", summary="List the fields and columns that describe a machine", response_model=FieldsResponse)
    async def get_fields() -> dict[str, Any]:
        return fields

    @router.get("/cpu-models", summary="Find CPU models by a text", response_model=CpuModelsResponse)
    async def get_cpu_models(
        q: Annotated[str, Query(description="Text to match, such as epyc 97.")] = "",
    ) -> dict[str, Any]:
        return {"cpu_models": champion.cpu_names.complete(q[:_MAX_TEXT], limits.suggestions)}

    return router


def _create_prediction_router(service: PredictionService, limits: RequestLimits, batcher: RequestBatcher) -> APIRouter:
    router = APIRouter(route_class=JsonRoute, responses=_REFUSALS)
    about = service.describe_champion()

    async def respond(
        entries: Sequence[MachineEntry], options: PredictOptions | ImputeOptions, strict: bool
    ) -> Response:
        try:
            async with asyncio.timeout(limits.seconds):
                results = await predict(entries, options, strict)
        except TimeoutError:
            fact = "this one took longer"
            requirement = f"a request must end within {limits.seconds:g} s"
            raise RefusedRequest(503, requirement, fact, "send fewer machines, or try again") from None
        errors = [result for _, result in results if isinstance(result, UserError)]
        if errors and (strict or len(errors) == len(results)):
            raise errors[0]
        machines = [
            describe_refusal(entry, result, options) if isinstance(result, UserError) else result
            for entry, result in results
        ]
        # FastAPI would validate every number of the answer again
        return JSONResponse({**about, "machines": machines})

    async def predict(
        entries: Sequence[MachineEntry], options: object, strict: bool
    ) -> list[tuple[MachineEntry, MachineResult]]:
        deadline = time.monotonic() + limits.seconds
        parsed = await asyncio.to_thread(service.parse, entries, strict, deadline)
        machines = [machine for _, machine in parsed if isinstance(machine, ParsedMachine)]
        results = iter(await batcher.submit(machines, options))
        return [(entry, each if isinstance(each, UserError) else next(results)) for entry, each in parsed]

    @router.post(
        "/predict",
        summary="Predict one machine, or several",
        response_model=PredictResponse,
    )
    async def post_predict(body: RequestBody, query: Annotated[PredictQuery, Query()]) -> Response:
        entries = list_entries(body, limits)
        return await respond(entries, query.to_options(len(entries), limits), query.strict)

    @router.post(
        "/impute",
        summary="Impute the unknown values of one machine, or several; only the options assume and strict apply",
        response_model=ImputeResponse,
    )
    async def post_impute(body: RequestBody, query: Annotated[PredictQuery, Query()]) -> Response:
        return await respond(list_entries(body, limits), ImputeOptions(query.assume), query.strict)

    return router

"""Metrics of the server, and the middleware that counts requests."""

from __future__ import annotations

import time
from typing import ClassVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper ends of the latency histogram. Units: seconds."""


class ServerMetrics:
    """Metrics in a registry of their own, so that several servers can run in one process."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "perfcast_requests", "Requests by route and HTTP status.", ["route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "perfcast_request_seconds", "Time per request.", ["route"], registry=registry, buckets=_BUCKETS
        )
        self.machines = Counter("perfcast_machines", "Machines answered.", registry=registry)
        self.predicted = Counter(
            "perfcast_predicted_machines", "Machines predicted; the others were cached.", registry=registry
        )
        self.batches = Counter("perfcast_batches", "Batches of predicted machines.", registry=registry)
        self.failures = Counter("perfcast_failures", "Unexpected errors.", registry=registry)
        self.waiting = Gauge("perfcast_waiting", "Requests that wait or are being predicted.", registry=registry)


class MetricsMiddleware:
    """Counts requests by route and status, measures their time, and sets security headers."""

    HEADERS: ClassVar[dict[str, str]] = {
        "content-security-policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store",
    }
    """The page loads only from its own server, and no other page may frame it."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
        self.app, self.metrics = app, metrics
        self._encoded = [(name.encode(), value.encode()) for name, value in self.HEADERS.items()]

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
                message["headers"] = [*message.get("headers", []), *self._encoded]
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

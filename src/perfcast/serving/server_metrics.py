"""Metrics of all workers of the server, and the middleware that counts requests."""

from __future__ import annotations

import os
import time

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
        registry = self._registry
        if METRICS_FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)
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

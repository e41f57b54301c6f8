"""Counts of what a server did, in the text format that Prometheus reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import Lock

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper ends of the latency histogram. Units: seconds."""


class Metrics:
    """Requests by route and status, their times, and forecasts; safe to count from several threads.

    Source of the format: Prometheus, text-based exposition format 0.0.4.
    """

    def __init__(self, waiting: Callable[[], int] = lambda: 0) -> None:
        self._lock = Lock()
        self._waiting = waiting
        self._requests: Counter[tuple[str, int]] = Counter()
        self._within: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request. `route` is one of the server's own, so that there are few."""
        with self._lock:
            self._requests[route, status] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]
            self._within.update((route, bucket) for bucket in BUCKETS if seconds <= bucket)

    def add(self, name: str, count: int = 1) -> None:
        """Count one of `_COUNTERS`."""
        with self._lock:
            self._counts[name] += count

    def text(self) -> str:
        """Return all counts."""
        with self._lock:
            lines = _about("perfcast_requests_total", "counter", "Requests by route and HTTP status.")
            for (route, status), count in sorted(self._requests.items()):
                lines.append(f'perfcast_requests_total{{route="{route}",status="{status}"}} {count}')
            lines += _about("perfcast_request_seconds", "histogram", "Time from a request's head to its answer's end.")
            for route in sorted(self._seconds):
                total = sum(count for (own, _), count in self._requests.items() if own == route)
                for bucket in BUCKETS:
                    within = self._within[route, bucket]
                    lines.append(f'perfcast_request_seconds_bucket{{route="{route}",le="{bucket}"}} {within}')
                lines.append(f'perfcast_request_seconds_bucket{{route="{route}",le="+Inf"}} {total}')
                lines.append(f'perfcast_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
                lines.append(f'perfcast_request_seconds_count{{route="{route}"}} {total}')
            for name, meaning in _COUNTERS.items():
                lines += [*_about(f"perfcast_{name}_total", "counter", meaning)]
                lines.append(f"perfcast_{name}_total {self._counts[name]}")
        lines += [*_about("perfcast_waiting", "gauge", "Requests that wait for a forecast or are being forecast.")]
        lines.append(f"perfcast_waiting {self._waiting()}")
        return "\n".join(lines) + "\n"


_COUNTERS = {
    "machines": "Machines that were answered.",
    "forecast": "Machines that were forecast, the others were known from before.",
    "batches": "Forecasts that were made together.",
    "failures": "Unexpected errors.",
}


def _about(name: str, kind: str, meaning: str) -> list[str]:
    return [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]

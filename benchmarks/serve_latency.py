"""Latency of `perfcast serve` with several concurrent clients over loopback, on distinct machines.

Run: perfcast serve &
     python benchmarks/serve_latency.py http://127.0.0.1:8000 [--clients 20] [--seconds 20]
Every client sends one machine, waits for the response, and sends the next one. No machine is sent twice. The output has
the median, 90th and 99th percentile of the time per request in milliseconds, requests per second, machines per batch,
and the ratio of the 99th percentile to the goal.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import threading
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

GOAL = 400.0
"""99th percentile of a plain prediction. Units: ms."""
QUERIES = {
    "plain": "?explain=false&neighbors=0",
    "with neighbors": "?explain=false&neighbors=3",
    "explained": "?explain=true&neighbors=3",
}


class Machines:
    """Distinct machines: known CPU names with a thermal design power that no product has."""

    def __init__(self, names: list[str]) -> None:
        watts = itertools.count(20_000)
        self._all = ({"processor": name, "chips": 1, "tdp": next(watts) / 200} for name in itertools.cycle(names))
        self._lock = threading.Lock()

    def take(self) -> bytes:
        with self._lock:
            return json.dumps(next(self._all)).encode()


def send_requests(
    address: str, path: str, machines: Machines, until: float, *, times: list[float], errors: list[str]
) -> None:
    connection = http.client.HTTPConnection(address, timeout=60)
    while time.perf_counter() < until:
        body = machines.take()
        start = time.perf_counter()
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        content = reply.read()
        times.append(time.perf_counter() - start)
        if reply.status != 200:
            errors.append(content.decode())


def get(address: str, path: str) -> bytes:
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("GET", path)
    return connection.getresponse().read()


def post(address: str, path: str, body: bytes) -> tuple[int, bytes]:
    """Return status and body of the answer."""
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    reply = connection.getresponse()
    return reply.status, reply.read()


def read_metrics(address: str) -> dict[str, float]:
    lines = [line for line in get(address, "/metrics").decode().splitlines() if not line.startswith(("#", " "))]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


@dataclass(frozen=True)
class Latency:
    """Times of the requests of some clients, sorted, in ms; requests per second, machines per batch, and refusals."""

    times: list[float]
    rate: float
    per_batch: float
    errors: list[str]

    def quantile(self, share: float) -> float:
        """Return the time that a share of the requests took at most. Units: ms."""
        return self.times[min(len(self.times) - 1, int(share * len(self.times)))]


def list_cpu_names(address: str) -> list[str]:
    """Return names of servers that the server knows."""
    letters = ["epyc 9", "epyc 7", "xeon platinum 8", "xeon gold 6", "xeon gold 5", "xeon silver 4"]
    return [
        name
        for text in letters
        for name in json.loads(get(address, f"/cpu-models?q={text.replace(' ', '+')}"))["cpu_models"]
    ]


def measure(address: str, query: str, machines: Machines, *, clients: int, seconds: float) -> Latency:
    """Let clients send machines one after another, and return the times of their requests."""
    times: list[float] = []
    errors: list[str] = []
    before = read_metrics(address)
    until = time.perf_counter() + seconds
    arguments = {"times": times, "errors": errors}
    path = f"/predict{query}"
    threads = [
        threading.Thread(target=send_requests, args=(address, path, machines, until), kwargs=arguments)
        for _ in range(clients)
    ]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - start
    after = read_metrics(address)
    predicted, batches = (after[key] - before[key] for key in ("perfcast_machines_total", "perfcast_batches_total"))
    return Latency(sorted(1000 * each for each in times), len(times) / elapsed, predicted / max(1.0, batches), errors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    address = urlsplit(options.server).netloc
    machines = Machines(list_cpu_names(address))
    for name, query in QUERIES.items():
        measure(address, query, machines, clients=options.clients, seconds=options.seconds / 4)  # warm-up
        latency = measure(address, query, machines, clients=options.clients, seconds=options.seconds)
        p50, p90, p99 = (latency.quantile(share) for share in (0.5, 0.9, 0.99))
        print(
            f"{name}: p50 {p50:.0f} ms, p90 {p90:.0f} ms, p99 {p99:.0f} ms; {latency.rate:.1f} requests/s; "
            f"{latency.per_batch:.1f} machines per batch; p99 is {p99 / GOAL:.1f} x the goal; "
            f"{len(latency.errors)} refused",
            flush=True,
        )
        if latency.errors:
            print(f"  such as {latency.errors[0]}")


if __name__ == "__main__":
    main()

"""Latency of `perfcast serve` with several clients at once, over loopback, on machines that are all distinct.

Run: perfcast serve &
     python benchmarks/serve_latency.py http://127.0.0.1:8000 [--clients 20] [--seconds 20] [--distinct N]
Every client asks one machine, waits for the answer, and asks the next. No description is asked twice, so that nothing
comes from the server's memory of answers; with `--distinct N` the same N are asked again and again, and the times are
those of remembered answers once the warm-up has asked them all. Printed are the median, the 90th and the 99th
percentile of a request's time, in milliseconds, requests per second, machines per joint forecast, and how often the
99th percentile is the goal.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import threading
import time
from urllib.parse import urlsplit

GOAL = 50.0
"""99th percentile of a plain forecast. Units: ms."""
WAYS = {
    "plain": "?explain=false&neighbours=0",
    "with neighbours": "?explain=false&neighbours=3",
    "explained": "?explain=true&neighbours=3",
}


class Machines:
    """Distinct machines of known parts: their chips and a thermal design power that nobody sells."""

    def __init__(self, parts: list[str], distinct: int | None = None) -> None:
        watts = itertools.cycle(range(20_000, 20_000 + distinct)) if distinct else itertools.count(20_000)
        parts = parts[:1] if distinct else parts
        self._all = ({"processor": part, "chips": 1, "tdp": next(watts) / 200} for part in itertools.cycle(parts))
        self._lock = threading.Lock()

    def take(self) -> bytes:
        with self._lock:
            return json.dumps(next(self._all)).encode()


def ask(place: str, path: str, machines: Machines, until: float, *, times: list[float], wrong: list[str]) -> None:
    connection = http.client.HTTPConnection(place, timeout=60)
    while time.perf_counter() < until:
        body = machines.take()
        began = time.perf_counter()
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        told = reply.read()
        times.append(time.perf_counter() - began)
        if reply.status != 200:
            wrong.append(told.decode())


def get(place: str, path: str) -> bytes:
    connection = http.client.HTTPConnection(place, timeout=60)
    connection.request("GET", path)
    return connection.getresponse().read()


def counts(place: str) -> dict[str, float]:
    lines = [line for line in get(place, "/metrics").decode().splitlines() if not line.startswith(("#", " "))]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--distinct", type=int)
    options = parser.parse_args()
    place = urlsplit(options.server).netloc
    letters = ["epyc 9", "epyc 7", "xeon platinum 8", "xeon gold 6", "xeon gold 5", "xeon silver 4"]
    parts = [name for text in letters for name in json.loads(get(place, f"/parts?q={text.replace(' ', '+')}"))["parts"]]
    machines = Machines(parts, options.distinct)
    for name, query in WAYS.items():
        for seconds, shown in ((options.seconds / 4, False), (options.seconds, True)):
            times: list[float] = []
            wrong: list[str] = []
            before = counts(place)
            until = time.perf_counter() + seconds
            threads = [
                threading.Thread(
                    target=ask,
                    args=(place, f"/forecast{query}", machines, until),
                    kwargs={"times": times, "wrong": wrong},
                )
                for _ in range(options.clients)
            ]
            began = time.perf_counter()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            spent = time.perf_counter() - began
            if shown:
                after = counts(place)
                grown = {key: after[key] - before[key] for key in ("perfcast_forecast_total", "perfcast_batches_total")}
                ordered = sorted(1000 * one for one in times)
                p50, p90, p99 = (
                    ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.5, 0.9, 0.99)
                )
                together = grown["perfcast_forecast_total"] / max(1.0, grown["perfcast_batches_total"])
                print(
                    f"{name}: p50 {p50:.0f} ms, p90 {p90:.0f} ms, p99 {p99:.0f} ms; "
                    f"{len(times) / spent:.1f} requests/s; "
                    f"{together:.1f} machines together; p99 is {p99 / GOAL:.1f} x the goal; {len(wrong)} refused",
                    flush=True,
                )
                if wrong:
                    print(f"  such as {wrong[0]}")


if __name__ == "__main__":
    main()

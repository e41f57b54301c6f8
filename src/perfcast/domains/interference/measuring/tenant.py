"""A tenant: a process that runs one workload by a timetable and reports every second.

The loop is a pure function of its clock, so that tests need no time. Operations that span a boundary of seconds count
in both by their share, and latencies in the second of their end. Paced operations are due at fixed times, and their
latency begins when they are due (Tene 2013, "How not to measure latency": coordinated omission).
"""

from __future__ import annotations

import json
import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

CLOSED_LOOP = 1.0
"""Intensity of a tenant that starts the next operation at once."""
_CALIBRATION_SECONDS = 0.4
_MAX_BACKLOG = 1.0
"""Seconds by which a paced tenant can fall behind; more is dropped, as clients give up."""

Clock = Callable[[], float]


@dataclass(frozen=True)
class Interval:
    """Time of activity. Units: seconds since the origin of the run; intensity as a share of the closed loop's rate."""

    start: float
    end: float
    intensity: float = CLOSED_LOOP


@dataclass
class Second:
    """Report of one second. Units: operations, those that span a boundary by their share; latencies in seconds."""

    second: int
    operations: float = 0.0
    latencies: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Return the second as JSON values: operations, ended operations, mean latency and its 99 % quantile."""
        ended = len(self.latencies)
        latency = np.array(self.latencies)
        return {
            "second": self.second,
            "operations": round(self.operations, 4),
            "ended": ended,
            "latency_mean": float(latency.mean()) if ended else None,
            "latency_p99": float(np.quantile(latency, 0.99)) if ended else None,
        }


class SecondBins:
    """Operations by second, in order of time."""

    def __init__(self) -> None:
        self._open: dict[int, Second] = {}

    def add(self, begin: float, end: float, latency: float) -> None:
        """Count an operation from `begin` to `end`. Units: seconds since the origin."""
        first = math.floor(begin)
        last = max(first, math.ceil(end) - 1)  # an end at the very boundary belongs to the second before
        if first == last:
            self._at(first).operations += 1
        else:
            for second in range(first, last + 1):
                overlap = min(end, second + 1) - max(begin, second)
                self._at(second).operations += overlap / (end - begin)
        self._at(last).latencies.append(latency)

    def close(self, now: float) -> list[Second]:
        """Return and forget the seconds that ended before `now`."""
        ready = sorted(second for second in self._open if second + 1 <= now)
        return [self._open.pop(second) for second in ready]

    def _at(self, second: int) -> Second:
        return self._open.setdefault(second, Second(second))


def follow_timetable(
    timetable: Sequence[Interval],
    operate: Callable[[], None],
    *,
    rate: float,
    clock: Clock,
    sleep: Callable[[float], None],
) -> Iterator[Second]:
    """Run operations by a timetable and yield each second once it is over.

    Args:
        rate: Operations per second of the closed loop, which intensities refer to.
        clock: Seconds since the origin of the run.
    """
    bins = SecondBins()
    for interval in timetable:
        if (ahead := interval.start - clock()) > 0:
            sleep(ahead)
        paced = interval.intensity < CLOSED_LOOP
        period = 1 / (rate * interval.intensity) if paced else 0.0
        due = interval.start
        while (begin := clock()) < interval.end:
            if paced and begin < due:
                sleep(min(due, interval.end) - begin)
                begin = clock()
                if due >= interval.end:
                    break
            operate()
            end = clock()
            bins.add(begin, end, end - (due if paced else begin))
            due = max(due + period, end - _MAX_BACKLOG)
            if math.floor(end) > math.floor(begin):
                yield from bins.close(end)
        yield from bins.close(max(clock(), interval.end))
    yield from bins.close(math.inf)


def calibrate(operate: Callable[[], None], clock: Clock, seconds: float = _CALIBRATION_SECONDS) -> float:
    """Return the operations per second of a closed loop, after one to warm up."""
    operate()
    begin, done = clock(), 0
    while (now := clock()) < begin + seconds:
        operate()
        done += 1
    return done / max(clock() - begin, 1e-9) if done else 1 / max(now - begin, 1e-9)


def serve(connection: Connection, name: str, folder: str, seed: int) -> None:
    """Run as a tenant: prepare on command, follow one timetable, and end when the campaign closes the connection.

    Messages are JSON: {"prepare": true} -> {"rate": ...}, then {"origin": ..., "timetable": [[start, end, intensity],
    ...]} -> one report per second and {"done": true}.
    """
    import torch

    from perfcast.domains.interference.measuring.workloads import die_with_parent, load_workload

    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the campaign ends its tenants itself
    torch.set_num_threads(1)
    try:
        connection.recv_bytes()
        workload = load_workload(name)(Path(folder), seed)
        rate = calibrate(workload.operate, time.monotonic)
        _send(connection, {"rate": rate})
        order = json.loads(connection.recv_bytes())
        origin = float(order["origin"])
        timetable = [Interval(*values) for values in order["timetable"]]
        for second in follow_timetable(
            timetable, workload.operate, rate=rate, clock=lambda: time.monotonic() - origin, sleep=time.sleep
        ):
            _send(connection, second.summary())
        _send(connection, {"done": True})
        workload.close()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(0)
    except OSError as error:
        _send(connection, {"error": f"{name}: {error.strerror or error}"})


def _send(connection: Connection, message: dict[str, Any]) -> None:
    connection.send_bytes(json.dumps(message).encode())

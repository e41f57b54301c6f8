"""A tenant: a process that runs one workload by a timetable, and then reports every second.

The loop is a pure function of its clock, so that tests need no time. Paced operations are due at fixed times, and their
latency begins when they are due (Tene 2013, "How not to measure latency": coordinated omission).
"""

from __future__ import annotations

import json
import math
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

CLOSED_LOOP = 1.0
"""Intensity of a tenant that starts the next operation at once."""
_CALIBRATION_SECONDS = 0.4
_MAX_BACKLOG = 1.0
"""Seconds by which a paced tenant can fall behind; more is dropped, as clients give up."""

Clock = Callable[[], float]


class Operation(NamedTuple):
    """One operation. Units: seconds since the origin of the run."""

    begin: float
    end: float
    latency: float


def follow_timetable(
    timetable: Iterable[Sequence[float]],
    operate: Callable[[], None],
    *,
    rate: float,
    clock: Clock,
    sleep: Callable[[float], None],
) -> list[Operation]:
    """Run operations by a timetable and return them in order of time.

    Args:
        timetable: Start, end and intensity of each activity; seconds since the origin of the run, and the share of the
            closed loop's rate.
        rate: Operations per second of the closed loop, which intensities refer to.
        clock: Seconds since the origin of the run.
    """
    done = []
    for start, stop, intensity in timetable:
        if (ahead := start - clock()) > 0:
            sleep(ahead)
        paced = intensity < CLOSED_LOOP
        period = 1 / (rate * intensity) if paced else 0.0
        due = start
        while (begin := clock()) < stop:
            if paced and begin < due:
                sleep(min(due, stop) - begin)
                begin = clock()
                if due >= stop:
                    break
            operate()
            end = clock()
            done.append(Operation(begin, end, end - (due if paced else begin)))
            due = max(due + period, end - _MAX_BACKLOG)
    return done


def summarize_seconds(operations: Iterable[Operation]) -> list[dict[str, Any]]:
    """Return each second with an operation as JSON values: operations, ended ones, the 99 % quantile of their latency.

    Operations that span a boundary of seconds count in both by their share, and latencies in the second of their end.
    """
    counts: dict[int, float] = defaultdict(float)
    latencies: dict[int, list[float]] = defaultdict(list)
    for begin, end, latency in operations:
        first = math.floor(begin)
        last = max(first, math.ceil(end) - 1)  # an end at the very boundary belongs to the second before
        for second in range(first, last + 1):
            share = (min(end, second + 1) - max(begin, second)) / (end - begin) if last > first else 1.0
            counts[second] += share
        latencies[last].append(latency)
    return [
        {
            "second": second,
            "operations": round(counts[second], 4),
            "ended": len(latencies[second]),
            "latency_p99": float(np.quantile(latencies[second], 0.99)) if latencies[second] else None,
        }
        for second in sorted(counts)
    ]


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
    ...]} -> {"seconds": [...]}.
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
        operations = follow_timetable(
            order["timetable"],
            workload.operate,
            rate=rate,
            clock=lambda: time.monotonic() - origin,
            sleep=time.sleep,
        )
        _send(connection, {"seconds": summarize_seconds(operations)})
        workload.close()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(0)
    except OSError as error:
        _send(connection, {"error": f"{name}: {error.strerror or error}"})


def _send(connection: Connection, message: dict[str, Any]) -> None:
    connection.send_bytes(json.dumps(message).encode())

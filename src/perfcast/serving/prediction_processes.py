"""Processes that predict batches beside the process of the server."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

from perfcast.inference.parse import ParsedMachine
from perfcast.serving.batching import RunBatch
from perfcast.utils.errors import UserError

_DEFAULT_WORKERS = 4
"""More processes share the waiting requests in batches that are too small to pay."""


def default_workers() -> int:
    """Return the number of processes for the cores that this process may use."""
    return min(_DEFAULT_WORKERS, len(os.sched_getaffinity(0)))


class PredictionProcess:
    """A fork of this process that predicts batches, one at a time. It ends with the server, however that ends.

    When it dies, its batches are predicted in the server's process from then on.
    """

    def __init__(
        self, run_batch: RunBatch, prepare: Callable[[], None], earlier: Sequence[PredictionProcess] = ()
    ) -> None:
        """Start the process, which first calls `prepare`. `earlier` are the other processes of the server."""
        context = multiprocessing.get_context("fork")
        self._run_batch, self._lock = run_batch, threading.Lock()
        self._connection, theirs = context.Pipe()
        # a fork keeps copies of the server's ends, and with them other processes would wait for a dead server forever
        inherited = [self._connection, *(process._connection for process in earlier)]
        arguments = (run_batch, prepare, theirs, inherited)
        self._process = context.Process(target=_answer_batches, args=arguments, daemon=True)
        self._process.start()
        theirs.close()

    def __call__(self, machines: Sequence[ParsedMachine], options: Any) -> list[dict[str, Any]]:
        """Return one result per machine. Raises: UserError when one of them is invalid."""
        with self._lock:
            try:
                self._connection.send((machines, options))
                results, error = self._connection.recv()
            except (EOFError, OSError):
                if not self._connection.closed:
                    print("perfcast serve: a prediction process ended; the server works on without it", file=sys.stderr)
                    self._connection.close()
                return self._run_batch(machines, options)
        if error is not None:
            raise error if isinstance(error, Exception) else UserError(*error)
        return list(results)

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join()


def start_processes(run_batch: RunBatch, workers: int, prepare: Callable[[], None]) -> list[PredictionProcess]:
    """Return as many processes as `workers`, and none for 1, which is the server's own process."""
    processes: list[PredictionProcess] = []
    for _ in range(workers if workers > 1 else 0):
        processes.append(PredictionProcess(run_batch, prepare, tuple(processes)))
    return processes


def _answer_batches(
    run_batch: RunBatch, prepare: Callable[[], None], connection: Connection, inherited: Sequence[Connection]
) -> None:
    for other in inherited:
        other.close()
    # Ctrl-C reaches all processes of a terminal; the server ends this one when its requests are answered
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    prepare()
    while True:
        try:
            machines, options = connection.recv()
        except (EOFError, OSError):
            return
        answer: tuple[list[dict[str, Any]] | None, tuple[str, str, str] | Exception | None]
        try:
            answer = run_batch(machines, options), None
        except UserError as error:
            answer = None, (error.requirement, error.fact, error.remedy)
        except Exception as error:  # a bug: the server logs it
            answer = None, RuntimeError(f"{type(error).__name__}: {error}")
            sys.excepthook(type(error), error, error.__traceback__)
        connection.send(answer)

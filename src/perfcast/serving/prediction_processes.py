"""Processes that predict batches beside the process of the server."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from perfcast.inference.parse import ParsedMachine
from perfcast.serving.batching import RunBatch
from perfcast.utils.errors import UserError

Load = Callable[[], RunBatch]
"""Loads a champion and returns what predicts with it."""

_DEFAULT_WORKERS = 4
"""More processes share the waiting requests in batches that are too small to pay."""


def default_workers() -> int:
    """Return the number of processes for the cores that this process may use."""
    return min(_DEFAULT_WORKERS, len(os.sched_getaffinity(0)))


class PredictionProcess:
    """A process that loads a champion for itself and predicts batches, one at a time.

    It ends with the server, however that ends. Until the champion is loaded, batches wait.
    """

    def __init__(self, load: Load, earlier: Sequence[PredictionProcess] = ()) -> None:
        """Start the process; `earlier` are the other processes of the server.

        The server may not have loaded a champion yet: a fork loses the threads of OpenMP, and LightGBM and torch would
        then wait for them forever.
        """
        context = multiprocessing.get_context("fork")
        self._lock = threading.Lock()
        self._connection, theirs = context.Pipe()
        # a fork keeps copies of the server's ends, and with them other processes would wait for a dead server forever
        inherited = [self._connection, *(process._connection for process in earlier)]
        self._process = context.Process(target=_answer_batches, args=(load, theirs, inherited), daemon=True)
        self._process.start()
        theirs.close()

    def run(self, machines: Sequence[ParsedMachine], options: Any, otherwise: RunBatch) -> list[dict[str, Any]]:
        """Return one result per machine, of `otherwise` when the process is dead.

        Raises: UserError when one of the machines is invalid.
        """
        with self._lock:
            try:
                self._connection.send((machines, options))
                results, error = self._connection.recv()
            except (EOFError, OSError):
                if not self._connection.closed:
                    print(
                        "perfcast serve: a prediction process ended; the server predicts in its place", file=sys.stderr
                    )
                    self._connection.close()
                return otherwise(machines, options)
        if error is not None:
            raise error if isinstance(error, Exception) else UserError(*error)
        return list(results)

    def close(self) -> None:
        """End the process when its batch is predicted."""
        with self._lock:
            self._connection.close()
        self._process.join()


@contextmanager
def start_processes(load: Load, workers: int) -> Iterator[list[PredictionProcess]]:
    """Start as many processes as `workers`, and none for 1, which is the server's own process; end them afterwards."""
    processes: list[PredictionProcess] = []
    try:
        for _ in range(workers if workers > 1 else 0):
            processes.append(PredictionProcess(load, tuple(processes)))
        yield processes
    finally:
        for process in processes:
            process.close()


def _answer_batches(load: Load, connection: Connection, inherited: Sequence[Connection]) -> None:
    for other in inherited:
        other.close()
    # Ctrl-C reaches all processes of a terminal; the server ends this one when its requests are answered
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the processes share the cores
    try:
        run_batch = load()
    except UserError:  # the server loads the same champion, and says why it cannot
        return
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
        try:
            connection.send(answer)
        except OSError:  # the server died meanwhile
            return

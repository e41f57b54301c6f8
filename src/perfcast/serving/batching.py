"""Forecasts for many at once: whoever waits together is answered together, by one thread."""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from threading import Condition, Thread
from typing import Any

from perfcast.errors import UserError
from perfcast.inference import ParsedMachine
from perfcast.serving.limits import refusal

Told = dict[str, Any] | UserError
"""What is answered of a machine, or why nothing can be."""
Work = Callable[[Sequence[ParsedMachine], Any], list[dict[str, Any]]]
"""Answer machines together, one answer each; lines differ. Raises: UserError when one of them cannot be."""

AT_ONCE = 64
"""Machines that are answered together: a larger batch is done in parts, between which others get their turn."""
_SHARE = 16
"""Machines of one request that are done in a turn."""
_GATHER = 0.05
"""Seconds that a turn waits at the longest for as many requests as were there at the last one: who was answered
together asks again together, and a turn of many takes little longer than one of few."""
_KEPT = 512
"""Answers that are remembered."""


@dataclass
class _Job:
    """One request: its machines, what is known of them so far, and where the answer goes."""

    machines: Sequence[ParsedMachine]
    asked: Any
    answer: Future[list[Told]] = field(default_factory=Future)
    told: list[Told] = field(default_factory=list)


class Batcher:
    """One thread that answers machines with `work`; equal machines are answered once, and the last ones remembered.

    A machine that cannot be spoils nothing: what raises UserError together is halved until the one is found.
    """

    def __init__(
        self, work: Work, waiting: int, counted: Callable[[str, int], None] = lambda name, count: None
    ) -> None:
        self._work, self._most, self._counted = work, waiting, counted
        self._jobs: deque[_Job] = deque()
        self._changed = Condition()
        self._known: OrderedDict[object, dict[str, Any]] = OrderedDict()
        self._expected = 0
        self._ended = False
        self._inside = 0
        self._thread = Thread(target=self._run, name="forecasts", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many requests wait or are being answered."""
        return self._inside

    def ask(self, machines: Sequence[ParsedMachine], asked: Any) -> Future[list[Told]]:
        """Return what will hold the answers in the order of the machines; cancel it to give up.

        What is remembered of every machine is answered at once, however many wait.
        Raises: Refusal when too many wait already, or the server ends.
        """
        job = _Job(machines, asked)
        with self._changed:
            if self._ended:
                raise refusal(503, "a request must come before the server ends", "it is ending", "try another")
            keys = _keys(machines, asked)
            if all(key in self._known for key in keys):
                self._counted("machines", len(machines))
                for key in keys:
                    self._known.move_to_end(key)
                told: list[Told] = [_own(one, self._known[key]) for one, key in zip(machines, keys, strict=True)]
                job.answer.set_result(told)
                return job.answer
            if self._inside >= self._most:
                raise refusal(503, f"at most {self._most} requests can wait", "the server is busy", "try again")
            self._inside += 1
            self._jobs.append(job)
            self._changed.notify()
        return job.answer

    def end(self) -> None:
        """Give up what waits and let the thread end."""
        with self._changed:
            self._ended = True
            for job in self._jobs:
                job.answer.cancel()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._jobs and not self._ended:
                    self._changed.wait()
                if self._ended:
                    return
                until = time.monotonic() + _GATHER
                while len(self._jobs) < self._expected and (left := until - time.monotonic()) > 0:
                    self._changed.wait(left)
                self._expected = len(self._jobs)
            self._turn()

    def _turn(self) -> None:
        """Answer a share of every request that asks like the first one; what is unfinished goes to the end."""
        with self._changed:
            chosen = self._chosen()
        if not chosen:
            return
        parts = [job.machines[len(job.told) : len(job.told) + _SHARE] for job in chosen]
        try:
            told = iter(self._answers([one for part in parts for one in part], chosen[0].asked))
            for job, part in zip(chosen, parts, strict=True):
                job.told += [next(told) for _ in part]
        except Exception as error:  # a bug: whoever waits must hear of it, and the thread must go on
            for job in chosen:
                self._finish(job, error)
            return
        with self._changed:
            self._expected = max(self._expected, len(self._jobs) + len(chosen))
            for job in chosen:
                if len(job.told) < len(job.machines):
                    self._jobs.append(job)
        for job in chosen:
            if len(job.told) == len(job.machines):
                self._finish(job, None)

    def _chosen(self) -> list[_Job]:
        """Take from the queue the requests of the next turn, and forget those that were given up."""
        chosen: list[_Job] = []
        left: deque[_Job] = deque()
        machines = 0
        for job in self._jobs:
            share = min(_SHARE, len(job.machines) - len(job.told))
            if job.answer.cancelled():
                self._inside -= 1
            elif (not chosen or job.asked == chosen[0].asked) and machines + share <= AT_ONCE:
                chosen.append(job)
                machines += share
            else:
                left.append(job)
        self._jobs = left
        return chosen

    def _finish(self, job: _Job, error: Exception | None) -> None:
        with self._changed:
            self._inside -= 1
        if job.answer.set_running_or_notify_cancel():
            if error is None:
                job.answer.set_result(job.told)
            else:
                job.answer.set_exception(error)

    def _answers(self, machines: Sequence[ParsedMachine], asked: Any) -> list[Told]:
        """Answer machines, equal ones once."""
        keys = _keys(machines, asked)
        found: dict[object, Told] = {key: self._known[key] for key in keys if key in self._known}
        new = {key: machine for key, machine in zip(keys, machines, strict=True) if key not in found}
        self._counted("machines", len(machines))
        if new:
            self._counted("forecast", len(new))
            self._counted("batches", 1)
            told = self._halved(list(new.values()), asked)
            found.update(zip(new, told, strict=True))
            self._remember(found)
        return [
            self._told(machine, found[key], asked, alone=new.get(key) is machine)
            for key, machine in zip(keys, machines, strict=True)
        ]

    def _told(self, machine: ParsedMachine, told: Told, asked: Any, *, alone: bool) -> Told:
        """Return an answer as the machine's own; an error names the line, so it is made again."""
        if isinstance(told, UserError):
            return told if alone else self._halved([machine], asked)[0]
        return _own(machine, told)

    def _halved(self, machines: Sequence[ParsedMachine], asked: Any) -> list[Told]:
        own = machines if len(machines) == 1 else [replace(one, line=place) for place, one in enumerate(machines, 1)]
        try:
            return list(self._work(own, asked))
        except UserError as error:
            if len(machines) == 1:
                return [error]
        half = math.ceil(len(machines) / 2)
        return self._halved(machines[:half], asked) + self._halved(machines[half:], asked)

    def _remember(self, found: Mapping[object, Told]) -> None:
        with self._changed:
            for key, told in found.items():
                if not isinstance(told, UserError):
                    self._known[key] = told
                    self._known.move_to_end(key)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)


def _keys(machines: Sequence[ParsedMachine], asked: Any) -> list[object]:
    """Return by what an answer is remembered: what is asked, and of what machine."""
    return [(asked, tuple(sorted(machine.cells.items()))) for machine in machines]


def _own(machine: ParsedMachine, told: dict[str, Any]) -> dict[str, Any]:
    """Return an answer under the machine's own line and notes."""
    return {**told, "line": machine.line, "notes": list(machine.notes)}

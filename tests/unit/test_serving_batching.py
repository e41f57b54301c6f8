"""Forecasts for many at once: who waits together is answered together, and nobody spoils another's answer."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError

import pytest

from perfcast.errors import UserError
from perfcast.inference import ParsedMachine
from perfcast.serving.batching import AT_ONCE, Batcher
from perfcast.serving.limits import Refusal


def machines_of(*names):
    return [ParsedMachine(line, {"name": name}, (f"note of {name}",)) for line, name in enumerate(names, 1)]


class _Work:
    """Notes what is asked together; a machine called "bad" cannot be."""

    def __init__(self):
        self.calls = []
        self.gate = threading.Event()
        self.gate.set()
        self.begun = threading.Event()

    def __call__(self, machines, asked):
        self.begun.set()
        self.gate.wait(10)
        self.calls.append([one.cells["name"] for one in machines])
        assert len({one.line for one in machines}) == len(machines)
        for one in machines:
            if one.cells["name"] == "bad":
                raise UserError("it must be", f"machine {one.line} cannot", "mend it")
        return [{"line": one.line, "name": one.cells["name"], "asked": asked} for one in machines]


def test_who_waits_together_is_answered_together_and_equal_machines_once():
    work = _Work()
    batcher = Batcher(work, waiting=10)
    work.gate.clear()
    first = batcher.ask(machines_of("first"), "x")
    assert work.begun.wait(5)
    others = [batcher.ask(machines_of(name), "x") for name in ("a", "b", "a")]
    another = batcher.ask(machines_of("a"), "y")
    assert batcher.waiting == 5
    work.gate.set()
    told = [other.result(5)[0] for other in (first, *others, another)]
    assert work.calls == [["first"], ["a", "b"], ["a"]]
    assert [one["name"] for one in told] == ["first", "a", "b", "a", "a"]
    assert [one["asked"] for one in told] == ["x", "x", "x", "x", "y"]
    assert all(one["line"] == 1 for one in told)
    assert told[1]["notes"] == ["note of a"]
    assert batcher.ask(machines_of("b"), "x").result(5)[0]["name"] == "b"
    assert len(work.calls) == 3, "the last answers are remembered"
    assert batcher.waiting == 0
    batcher.end()


def test_what_is_remembered_waits_for_nobody():
    work = _Work()
    batcher = Batcher(work, waiting=1)
    batcher.ask(machines_of("a", "b"), "x").result(5)
    work.gate.clear()
    work.begun.clear()
    busy = batcher.ask(machines_of("new"), "x")
    assert work.begun.wait(5)
    told = batcher.ask(machines_of("b", "a", "b"), "x").result(0)
    assert [(one["name"], one["line"], one["notes"]) for one in told] == [
        ("b", 1, ["note of b"]),
        ("a", 2, ["note of a"]),
        ("b", 3, ["note of b"]),
    ]
    with pytest.raises(Refusal, match="the server is busy"):
        batcher.ask(machines_of("a"), "y")
    work.gate.set()
    assert busy.result(5)[0]["name"] == "new"
    assert work.calls == [["a", "b"], ["new"]]
    batcher.end()


def test_a_wrong_machine_spoils_no_other_and_is_told_its_own_line():
    work = _Work()
    batcher = Batcher(work, waiting=10)
    told = batcher.ask(machines_of("a", "b", "bad", "c", "bad"), "x").result(5)
    assert [one if isinstance(one, UserError) else one["name"] for one in told] == ["a", "b", told[2], "c", told[4]]
    assert [str(told[place]) for place in (2, 4)] == [
        f"it must be, however: machine {line} cannot; mend it" for line in (3, 5)
    ]
    assert [told[place]["line"] for place in (0, 1, 3)] == [1, 2, 4]
    batcher.end()


def test_a_large_batch_lets_others_in_between():
    work = _Work()
    batcher = Batcher(work, waiting=10)
    work.gate.clear()
    large = batcher.ask(machines_of(*[f"m{place}" for place in range(3 * AT_ONCE)]), "x")
    assert work.begun.wait(5)
    small = batcher.ask(machines_of("small"), "y")
    work.gate.set()
    assert small.result(5)[0]["name"] == "small"
    assert [one["line"] for one in large.result(10)] == list(range(1, 3 * AT_ONCE + 1))
    assert ["small"] in work.calls[:3]
    assert max(map(len, work.calls)) <= AT_ONCE
    batcher.end()


def test_what_is_given_up_is_not_worked_on_and_the_queue_is_bounded():
    work = _Work()
    batcher = Batcher(work, waiting=3)
    work.gate.clear()
    first = batcher.ask(machines_of("first"), "x")
    assert work.begun.wait(5)
    given_up, last = batcher.ask(machines_of("given up"), "x"), batcher.ask(machines_of("last"), "x")
    with pytest.raises(Refusal, match="the server is busy; try again"):
        batcher.ask(machines_of("too many"), "x")
    given_up.cancel()
    work.gate.set()
    assert (first.result(5)[0]["name"], last.result(5)[0]["name"]) == ("first", "last")
    with pytest.raises(CancelledError):
        given_up.result(5)
    assert work.calls == [["first"], ["last"]]
    assert batcher.waiting == 0
    batcher.end()
    with pytest.raises(Refusal, match="it is ending"):
        batcher.ask(machines_of("late"), "x")

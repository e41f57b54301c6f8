"""The queue of a worker: what waits together is one batch, with the answers that each request has alone."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest
from champion_project import project
from serving_project import KNOWN, WRONG

from perfcast.inference.machine_files import read_tree
from perfcast.inference.options import PredictOptions
from perfcast.inference.predict import predict_machines
from perfcast.inference.suites import Suites
from perfcast.serving import request_limits
from perfcast.serving.app import ServerMetrics
from perfcast.serving.request_limits import DEFAULT_LIMITS, PredictionQueue
from perfcast.utils.errors import UserError

PLAIN = PredictOptions(neighbors=0, explain=False)
KNOWN_ONE = [{**KNOWN, "chips": 1}]


def run(scenario, limits=DEFAULT_LIMITS):
    """Run a scenario with a queue that is busy until the event is set."""

    async def start():
        queue = PredictionQueue(limits, ServerMetrics())
        gate = threading.Event()
        busy = asyncio.create_task(queue.call(gate.wait))
        await asyncio.sleep(0)
        try:
            await scenario(queue, gate)
        finally:
            gate.set()
            await asyncio.wait([busy])

    asyncio.run(asyncio.wait_for(start(), 120))


def enqueue(queue, machines, options=PLAIN, encode=lambda answer: answer):
    entries = read_tree(machines, "the body")
    return asyncio.create_task(queue.predict(Suites(project().champion), entries, options, encode))


@pytest.fixture
def batches(monkeypatch):
    """Sizes of the batches; a machine with the field `bug` meets one."""
    sizes = []

    def record(entries, suites, options):
        sizes.append(len(entries))
        if any("bug" in entry.values for entry in entries):
            raise ZeroDivisionError("a bug")
        return predict_machines(entries, suites, options)

    monkeypatch.setattr(request_limits, "predict_machines", record)
    return sizes


def test_waiting_requests_with_equal_options_are_one_batch_with_the_answers_of_each_alone(batches):
    bodies = [[KNOWN, WRONG, {"processor": "Zeus 1"}], KNOWN_ONE, [KNOWN], [KNOWN] * 3]
    options = [PLAIN, PLAIN, replace(PLAIN, level=0.5), PLAIN]
    expected = [
        predict_machines(read_tree(body, "the body"), Suites(project().champion), chosen)
        for body, chosen in zip(bodies, options, strict=True)
    ]

    async def scenario(queue, gate):
        tasks = [enqueue(queue, body, chosen) for body, chosen in zip(bodies, options, strict=True)]
        await asyncio.sleep(0)
        gate.set()
        assert await asyncio.gather(*tasks) == expected
        assert batches == [7, 1]

    run(scenario)


def test_errors_belong_to_their_request(batches):
    def refuse(answer):
        raise UserError("it must be good", "it is not")

    async def scenario(queue, gate):
        tasks = [
            enqueue(queue, [KNOWN]),
            enqueue(queue, [{**KNOWN, "bug": 1}]),
            enqueue(queue, [WRONG]),
            enqueue(queue, [KNOWN], encode=refuse),
        ]
        await asyncio.sleep(0)
        gate.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(answer).__name__ for answer in answers] == [
            "Predictions",
            "ZeroDivisionError",
            "UserError",
            "UserError",
        ]
        assert "(machine 1)" in str(answers[2])

    run(scenario)


def test_a_large_request_is_predicted_alone_and_a_canceled_one_never(batches):
    machines = [{**KNOWN, "tdp": 100 + number} for number in range(81)]

    async def scenario(queue, gate):
        canceled, large, small = enqueue(queue, [KNOWN]), enqueue(queue, machines), enqueue(queue, KNOWN_ONE)
        await asyncio.sleep(0)
        canceled.cancel()
        await asyncio.sleep(0)
        gate.set()
        assert [machine.line for machine in await large] == list(range(1, 82))
        assert len((await small).machines) == 1
        assert batches == [81, 1]

    run(scenario)

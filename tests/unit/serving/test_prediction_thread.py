"""The thread of a worker: what waits together is one batch, with the answers that each request has alone."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace

import pytest
from champion_project import project
from serving_project import KNOWN, WRONG

from perfcast.inference.machine_files import read_tree
from perfcast.inference.predict import PredictOptions, predict_batch
from perfcast.serving import prediction_thread
from perfcast.serving.prediction_thread import PredictionThread
from perfcast.serving.request_limits import DEFAULT_LIMITS, RefusedRequest
from perfcast.serving.server_metrics import ServerMetrics
from perfcast.utils.errors import UserError

PLAIN = PredictOptions(neighbors=0, explain=False)
KNOWN_ONE = [{**KNOWN, "chips": 1}]


def run(scenario, limits=DEFAULT_LIMITS):
    """Run a scenario with a thread that is busy until the event is set."""

    async def start():
        thread = PredictionThread(project().champion, limits, ServerMetrics())
        gate = threading.Event()
        busy = asyncio.create_task(thread.call(gate.wait))
        await asyncio.sleep(0)
        try:
            await scenario(thread, gate)
        finally:
            gate.set()
            await asyncio.wait([busy])
            thread.close()

    asyncio.run(asyncio.wait_for(start(), 120))


def enqueue(thread, machines, options=PLAIN, encode=lambda answer: answer):
    return asyncio.create_task(thread.predict(read_tree(machines, "the body"), options, encode))


@pytest.fixture
def batches(monkeypatch):
    """Sizes of the batches; a machine with the field `bug` meets one."""
    sizes = []

    def record(entries, champion, options):
        sizes.append(len(entries))
        if any("bug" in entry.values for entry in entries):
            raise ZeroDivisionError("a bug")
        return predict_batch(entries, champion, options)

    monkeypatch.setattr(prediction_thread, "predict_batch", record)
    return sizes


def test_waiting_requests_with_equal_options_are_one_batch_with_the_answers_of_each_alone(batches):
    bodies = [[KNOWN, WRONG, {"processor": "Zeus 1"}], KNOWN_ONE, [KNOWN], [KNOWN] * 3]
    options = [PLAIN, PLAIN, replace(PLAIN, level=0.5), PLAIN]
    expected = [
        predict_batch(read_tree(body, "the body"), project().champion, chosen)
        for body, chosen in zip(bodies, options, strict=True)
    ]

    async def scenario(thread, gate):
        tasks = [enqueue(thread, body, chosen) for body, chosen in zip(bodies, options, strict=True)]
        await asyncio.sleep(0)
        gate.set()
        assert await asyncio.gather(*tasks) == expected
        assert batches == [4, 1, 3]

    run(scenario)


def test_errors_belong_to_their_request(batches):
    def refuse(answer):
        raise UserError("it must be good", "it is not")

    async def scenario(thread, gate):
        tasks = [
            enqueue(thread, [KNOWN]),
            enqueue(thread, [{**KNOWN, "bug": 1}]),
            enqueue(thread, [WRONG]),
            enqueue(thread, [KNOWN], encode=refuse),
        ]
        await asyncio.sleep(0)
        gate.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(answer).__name__ for answer in answers] == [
            *("Predictions", "ZeroDivisionError", "UserError", "UserError")
        ]
        assert "(machine 1)" in str(answers[2])

    run(scenario)


def test_a_large_request_is_predicted_alone_in_parts_until_its_client_goes(batches, monkeypatch):
    monkeypatch.setattr(prediction_thread, "_PART", 40)
    machines = [{**KNOWN, "tdp": 100 + number} for number in range(81)]

    async def scenario(thread, gate):
        large, small = enqueue(thread, machines), enqueue(thread, [KNOWN])
        await asyncio.sleep(0)
        gate.set()
        assert [machine.line for machine in await large] == list(range(1, 82))
        assert len((await small).machines) == 1
        assert batches == [27, 27, 27, 1]
        batches.clear()
        left = enqueue(thread, machines)
        while not batches:
            await asyncio.sleep(0.001)
        left.cancel()
        await enqueue(thread, [KNOWN])
        assert len(batches) < 4

    run(scenario)


def test_canceled_and_excess_requests_are_not_predicted(batches):
    async def scenario(thread, gate):
        canceled, last = enqueue(thread, [KNOWN]), enqueue(thread, KNOWN_ONE)
        await asyncio.sleep(0)
        with pytest.raises(RefusedRequest) as refusal:
            await enqueue(thread, [KNOWN])
        assert (refusal.value.status_code, "the server is busy" in refusal.value.detail) == (503, True)
        canceled.cancel()
        await asyncio.sleep(0)
        gate.set()
        assert len((await last).machines) == 1
        assert batches == [1]

    run(scenario, replace(DEFAULT_LIMITS, waiting=3))


def test_a_call_that_hangs_ends_the_process():
    code = """
        import asyncio, time
        from perfcast.serving.prediction_thread import PredictionThread
        from perfcast.serving.request_limits import RequestLimits
        from perfcast.serving.server_metrics import ServerMetrics

        async def hang():
            await PredictionThread(None, RequestLimits(hung=0.5), ServerMetrics()).call(lambda: time.sleep(60))

        asyncio.run(hang())
    """
    words = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, "Timeout" in done.stderr) == (1, True)

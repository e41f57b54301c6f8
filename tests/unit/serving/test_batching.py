"""Dynamic batching: waiting requests are predicted together, and an invalid machine fails no other."""

from __future__ import annotations

import asyncio
import threading

import pytest

from perfcast.inference.parse import ParsedMachine
from perfcast.serving.batching import MAX_BATCH, RequestBatcher
from perfcast.serving.request_limits import RefusedRequest
from perfcast.serving.server_metrics import ServerMetrics
from perfcast.utils.errors import UserError


def make_machines(*names):
    return [ParsedMachine(line, {"name": name}, (f"note of {name}",)) for line, name in enumerate(names, 1)]


class _Model:
    """Model that records its batches, waits for a gate, and refuses a machine called "bad"."""

    def __init__(self):
        self.batches = []
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, machines, options):
        self.batches.append([machine.cells["name"] for machine in machines])
        self.gate.wait(10)
        assert len({machine.line for machine in machines}) == len(machines)
        for machine in machines:
            if machine.cells["name"] == "bad":
                raise UserError("it must be good", f"machine {machine.line} is not", "correct it")
        return [
            {"line": machine.line, "name": machine.cells["name"], "options": options, "notes": list(machine.notes)}
            for machine in machines
        ]


@pytest.fixture
def model():
    return _Model()


def run(scenario):
    asyncio.run(asyncio.wait_for(scenario, 30))


def waiting(metrics):
    return metrics.registry.get_sample_value("perfcast_waiting")


async def start(batcher, model, *names, options="x"):
    """Submit a request and wait until the model has started on its batch."""
    batches = len(model.batches)
    task = asyncio.create_task(batcher.submit(make_machines(*names), options))
    while len(model.batches) == batches:
        await asyncio.sleep(0.001)
    return task


async def enqueue(batcher, *names, options="x"):
    task = asyncio.create_task(batcher.submit(make_machines(*names), options))
    await asyncio.sleep(0)
    return task


def test_waiting_requests_share_a_batch_and_equal_machines_are_predicted_once(model):
    async def scenario():
        metrics = ServerMetrics()
        batcher = RequestBatcher([model], 10, metrics)
        model.gate.clear()
        tasks = [await start(batcher, model, "first")]
        tasks += [await enqueue(batcher, name) for name in ("a", "b", "a")]
        tasks.append(await enqueue(batcher, "a", options="y"))
        assert waiting(metrics) == 5
        model.gate.set()
        results = [result for (result,) in await asyncio.gather(*tasks)]
        assert model.batches == [["first"], ["a", "b"], ["a"]]
        assert [result["name"] for result in results] == ["first", "a", "b", "a", "a"]
        assert [result["options"] for result in results] == ["x", "x", "x", "x", "y"]
        assert all(result["line"] == 1 for result in results)
        assert results[1]["notes"] == ["note of a"]
        assert (await batcher.submit(make_machines("b"), "x"))[0]["name"] == "b"
        assert len(model.batches) == 3, "the last results are cached"
        assert waiting(metrics) == 0
        batcher.close()

    run(scenario())


def test_cached_results_do_not_wait_and_the_queue_is_bounded(model):
    async def scenario():
        batcher = RequestBatcher([model], 1, ServerMetrics())
        await batcher.submit(make_machines("a", "b"), "x")
        model.gate.clear()
        busy = await start(batcher, model, "new")
        results = await batcher.submit(make_machines("b", "a", "b"), "x")
        assert [(result["name"], result["line"], result["notes"]) for result in results] == [
            ("b", 1, ["note of b"]),
            ("a", 2, ["note of a"]),
            ("b", 3, ["note of b"]),
        ]
        with pytest.raises(RefusedRequest) as refusal:
            await batcher.submit(make_machines("a"), "y")
        assert (refusal.value.status_code, "the server is busy" in refusal.value.detail) == (503, True)
        model.gate.set()
        assert (await busy)[0]["name"] == "new"
        batcher.close()

    run(scenario())


def test_invalid_machines_fail_no_others_and_errors_name_their_lines(model):
    async def scenario():
        batcher = RequestBatcher([model], 10, ServerMetrics())
        results = await batcher.submit(make_machines("a", "b", "bad", "c", "bad"), "x")
        assert [results[number]["name"] for number in (0, 1, 3)] == ["a", "b", "c"]
        assert [results[number]["line"] for number in (0, 1, 3)] == [1, 2, 4]
        assert [results[number].fact for number in (2, 4)] == ["machine 3 is not", "machine 5 is not"]
        batcher.close()

    run(scenario())


def test_a_large_request_does_not_delay_small_ones(model):
    async def scenario():
        batcher = RequestBatcher([model], 10, ServerMetrics())
        model.gate.clear()
        large = await start(batcher, model, *[f"m{number}" for number in range(3 * MAX_BATCH)])
        small = await enqueue(batcher, "small", options="y")
        model.gate.set()
        assert (await small)[0]["name"] == "small"
        assert not large.done()
        assert [result["line"] for result in await large] == list(range(1, 3 * MAX_BATCH + 1))
        assert ["small"] in model.batches[:3]
        assert max(map(len, model.batches)) <= MAX_BATCH
        batcher.close()

    run(scenario())


def test_canceled_requests_are_not_predicted(model):
    async def scenario():
        metrics = ServerMetrics()
        batcher = RequestBatcher([model], 10, metrics)
        model.gate.clear()
        first = await start(batcher, model, "first")
        canceled, last = await enqueue(batcher, "canceled"), await enqueue(batcher, "last")
        canceled.cancel()
        await asyncio.sleep(0)
        model.gate.set()
        assert ((await first)[0]["name"], (await last)[0]["name"]) == ("first", "last")
        with pytest.raises(asyncio.CancelledError):
            await canceled
        assert model.batches == [["first"], ["last"]]
        assert waiting(metrics) == 0
        batcher.close()

    run(scenario())


def test_a_bug_reaches_every_request_of_the_batch_and_the_worker_continues():
    def fail_once(machines, options):
        if options == "broken":
            raise ZeroDivisionError
        return [{"name": machine.cells["name"], "notes": []} for machine in machines]

    async def scenario():
        batcher = RequestBatcher([fail_once], 10, ServerMetrics())
        broken = await asyncio.gather(
            *(batcher.submit(make_machines(name), "broken") for name in "ab"), return_exceptions=True
        )
        assert [type(error) for error in broken] == [ZeroDivisionError, ZeroDivisionError]
        assert (await batcher.submit(make_machines("a"), "x"))[0]["name"] == "a"
        batcher.close()

    run(scenario())


def test_idle_workers_share_the_waiting_requests():
    models = [_Model(), _Model()]

    async def scenario():
        batcher = RequestBatcher(models, 100, ServerMetrics())
        for model in models:
            model.gate.clear()
        tasks = [asyncio.create_task(batcher.submit(make_machines(f"m{number}"), "x")) for number in range(20)]
        while not all(model.batches for model in models):
            await asyncio.sleep(0.001)
        assert sorted(len(model.batches[0]) for model in models) == [10, 10]
        for model in models:
            model.gate.set()
        names = [result["name"] for (result,) in await asyncio.gather(*tasks)]
        assert names == [f"m{number}" for number in range(20)]
        await asyncio.gather(*(batcher.submit(make_machines(name), "x") for name in "abc"))
        assert sum(len(model.batches) for model in models) == 3, "few machines are not shared"
        batcher.close()

    run(scenario())

"""Properties of served language models: physics that no estimate and no end of an interval breaks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from deployment_project import champion
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from perfcast.domains.llm.accelerators.accelerator_catalog import read_gpus, read_models
from perfcast.inference import PredictOptions
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.predict import predict_batch

PLAIN = PredictOptions(neighbors=0, explain=False)
SLACK = 1 + 1e-9
"""Rounding of sums of logarithms."""
CASES = settings(max_examples=25, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate])
BYTES = {"bf16": 2.0, "fp8": 1.0, "int4": 0.53}
DEPLOYMENTS = st.fixed_dictionaries(
    {
        "gpu": st.sampled_from(["H100", "H200", "B200", "L40S"]),
        "model": st.sampled_from(["llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "deepseek-r1", "gpt-oss-120b"]),
        "batch": st.integers(1, 3000),
        "input": st.integers(1, 30_000),
        "output": st.integers(1, 8000),
        "tensor-parallel": st.sampled_from([1, 2, 4, 8]),
        "precision": st.sampled_from(list(BYTES)),
        "backend": st.sampled_from(["vllm", "sglang", "trtllm"]),
    }
)


def answer(deployment, name, values):
    """Return the answers by value of one field, of those that are possible."""
    entries = [MachineEntry(line, "it", {**deployment, name: value}) for line, value in enumerate([*values, values[0]])]
    answers = predict_batch(entries, champion(), PLAIN)
    return {values[each.line]: each for each in list(answers)[:-1] if each.status == "ok"}


def latency(prediction, task):
    return next(each for each in prediction.estimates if each.task == task)


def throughput(prediction):
    return next(each for each in prediction.derived if each.name == "tokens_per_second")


@CASES
@given(DEPLOYMENTS, st.lists(st.floats(10, 400), min_size=4, max_size=6, unique=True))
def test_less_memory_never_gives_more_tokens(deployment, memories):
    answers = answer(deployment, "memory_gib", sorted(memories))
    assume(len(answers) > 1)
    rates = [throughput(each).median for each in answers.values()]
    assert all(less <= more * SLACK for less, more in pairwise(rates))
    times = [latency(each, "ttft").median for each in answers.values()]
    assert all(less * SLACK >= more for less, more in pairwise(times))


@CASES
@given(DEPLOYMENTS, st.lists(st.integers(1, 5000), min_size=4, max_size=6, unique=True))
def test_a_larger_batch_is_never_faster_for_its_users(deployment, batches):
    answers = answer(deployment, "batch", sorted(batches))
    assume(len(answers) > 1)
    for task in ("tpot", "ttft"):
        times = [latency(each, task).median for each in answers.values()]
        assert all(less <= more * SLACK for less, more in pairwise(times))


@CASES
@given(DEPLOYMENTS, st.lists(st.integers(1, 30_000), min_size=4, max_size=6, unique=True))
def test_a_longer_input_never_gives_an_earlier_token(deployment, inputs):
    answers = answer(deployment, "input", sorted(inputs))
    assume(len(answers) > 1)
    times = [latency(each, "ttft").median for each in answers.values()]
    assert all(less <= more * SLACK for less, more in pairwise(times))


@CASES
@given(DEPLOYMENTS)
def test_nothing_is_faster_than_memory_and_arithmetic(deployment):
    answers = answer(deployment, "batch", [deployment["batch"]])
    assume(answers)
    (prediction,) = answers.values()
    gpu, model = read_gpus().loc[deployment["gpu"]], _shape(deployment["model"])
    size, gpus = BYTES[deployment["precision"]], deployment["tensor-parallel"]
    element = 1.0 if deployment["precision"] == "fp8" else 2.0
    length = deployment["input"] + deployment["output"] / 2
    tokens = model["full_layers"] * length + model["window_layers"] * min(length, model["window"])
    cache, weights = model["kv_elements"] * tokens * element, model["total_params_1e9"] * 1e9 * size
    running = max(min(deployment["batch"], (0.9 * gpus * gpu["memory_gib"] * 2**30 - weights) / cache), 1.0)
    share = model["experts_per_token"] / model["experts"] if model["experts"] else 1.0
    shared = 0.35 * model["active_params_1e9"] / model["total_params_1e9"] if model["experts"] else 0.0
    read = weights * (shared + (1 - shared) * (1 - (1 - share) ** running))
    peak = gpu["fp8_tflops" if deployment["precision"] == "fp8" else "bf16_tflops"] * gpus * 1e9
    step = max(
        (read + running * cache) / (gpus * gpu["memory_gb_per_s"] * 1e6),
        2e9 * model["active_params_1e9"] * running / peak,
    )
    prompt = 2e9 * model["active_params_1e9"] * deployment["input"] / peak
    for task, least in (("tpot", step), ("ttft", prompt)):
        each = latency(prediction, task)
        assert each.median * SLACK >= least and each.low * SLACK >= least and each.low <= each.median <= each.high


def _shape(name):
    models = read_models()
    return next(row for _, row in models.iterrows() if name in row["names"].lower().split("|"))


@pytest.mark.parametrize("memory", [80, 90])
def test_memory_is_full_at_nine_tenths(memory):
    """The weights of DeepSeek-V3 take 625 of 640 GiB, and of 720 GiB nine tenths are 648."""
    known = {"gpu": "H100", "model": "deepseek-v3", "batch": 64, "input": 1024, "output": 1024, "precision": "fp8"}
    entries = [MachineEntry(line, "it", {**known, "gpus": 8, "memory_gib": memory}) for line in (1, 2)]
    each = next(iter(predict_batch(entries, champion(), PLAIN)))
    assert each.status == ("refused" if memory == 80 else "ok")
    assert memory == 90 or "more than the 576 GiB that are 90 % of 8 GPUs" in each.message

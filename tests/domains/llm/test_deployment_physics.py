"""Properties of served language models: physics that no estimate and no end of an interval breaks."""

from itertools import pairwise

from deployment_project import champion
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from perfcast.domains.llm.accelerators.accelerator_catalog import read_gpus, read_models
from perfcast.inference import PredictOptions
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.predict import predict_machines
from perfcast.inference.suites import Suites

PLAIN = PredictOptions(neighbors=0, explain=False)
SLACK = 1 + 1e-9
"""Rounding of sums of logarithms."""
CASES = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
)
BYTES = {"bf16": 2.0, "fp8": 1.0, "int4": 0.53}
DEPLOYMENTS = st.fixed_dictionaries(
    {
        "gpu": st.sampled_from(["H100", "H200", "B200", "L40S"]),
        "model": st.sampled_from(
            [
                "llama-3.1-8b",
                "llama-3.1-70b",
                "qwen3-32b",
                "deepseek-r1",
                "gpt-oss-120b",
            ]
        ),
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
    answers = predict_machines(entries, Suites(champion()), PLAIN)
    return {values[each.line]: each for each in list(answers)[:-1] if each.status == "ok"}


def latency(prediction, task):
    return next(each for each in prediction.estimates if each.task == task)


def throughput(prediction):
    return next(each for each in prediction.derived if each.name == "tokens_per_second")


def rising(values):
    return all(less <= more * SLACK for less, more in pairwise(values))


@CASES
@given(
    DEPLOYMENTS,
    st.lists(st.floats(10, 400), min_size=3, max_size=4, unique=True),
    st.lists(st.integers(1, 5000), min_size=3, max_size=4, unique=True),
    st.lists(st.integers(1, 30_000), min_size=3, max_size=4, unique=True),
)
def test_memory_batch_and_input_change_times_in_one_direction(deployment, memories, batches, inputs):
    answers = answer(deployment, "memory_gib", sorted(memories)).values()
    assert rising([throughput(each).median for each in answers]), "less memory never gives more tokens"
    assert rising([latency(each, "ttft").median for each in answers][::-1])
    answers = answer(deployment, "batch", sorted(batches)).values()
    for task in ("tpot", "ttft"):
        assert rising([latency(each, task).median for each in answers]), "a larger batch is never faster for its users"
    answers = answer(deployment, "input", sorted(inputs)).values()
    assert rising([latency(each, "ttft").median for each in answers]), "a longer input never gives an earlier token"


@CASES
@given(DEPLOYMENTS)
def test_nothing_is_faster_than_memory_and_arithmetic(deployment):
    answers = answer(deployment, "batch", [deployment["batch"]])
    assume(answers)
    (prediction,) = answers.values()
    gpu = read_gpus().loc[deployment["gpu"]]
    model = _shape(deployment["model"])
    size = BYTES[deployment["precision"]]
    gpus = deployment["tensor-parallel"]
    element = 1.0 if deployment["precision"] == "fp8" else 2.0
    length = deployment["input"] + deployment["output"] / 2
    tokens = model["full_layers"] * length + model["window_layers"] * min(length, model["window"])
    cache = model["kv_elements"] * tokens * element
    weights = model["total_params_1e9"] * 1e9 * size
    running = max(
        min(
            deployment["batch"],
            (0.9 * gpus * gpu["memory_gib"] * 2**30 - weights) / cache,
        ),
        1.0,
    )
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

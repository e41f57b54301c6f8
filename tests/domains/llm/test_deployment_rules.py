"""Deployments of language models are parsed, completed and refused by the rules of their dataset."""

from __future__ import annotations

import json

import numpy as np
import pytest
from deployment_project import CONFIG, GPU_FACTS, KNOWN, champion

from perfcast.decisions.display import format_predictions
from perfcast.domains.llm.deployment_fields import DERIVED_OUTPUTS
from perfcast.inference import PredictOptions, predict_machines
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import parse_machines
from perfcast.inference.predict import predict_batch
from perfcast.inference.prediction import derive_values
from perfcast.inference.rules import DerivedOutput, find_rules
from perfcast.utils.errors import UserError

EXPLAINED = PredictOptions()
PLAIN = PredictOptions(neighbors=0, explain=False)


def predict(options=PLAIN, **changed):
    entry = MachineEntry(1, "it", {name: value for name, value in {**KNOWN, **changed}.items() if value is not None})
    (prediction,) = predict_machines(parse_machines([entry], champion()), champion(), options)
    return prediction


def values(**changed):
    return {each.column: (each.value, each.origin) for each in predict(EXPLAINED, **changed).values}


def test_a_deployment_has_both_latencies_with_intervals():
    by_task = {each.task: each for each in predict(EXPLAINED).estimates}
    assert set(by_task) == {"ttft", "tpot"}
    for each in by_task.values():
        assert each.unit == "ms" and 0 < each.low < each.median < each.high and 0 < each.in_domain_score <= 1
        assert each.neighbors


def test_facts_of_gpu_and_model_are_looked_up_and_the_layout_is_implied():
    known = values()
    assert known["memory_gib"] == (141, "looked up") and known["layers"] == (80, "looked up")
    assert known["gpus"] == (4, "implied") and known["attention_data_parallel"] == (1, "implied")
    assert known["moe_expert_parallel"] == (1, "implied")
    assert known["precision"][1] == known["backend"][1] == "assumed"


@pytest.mark.parametrize(
    ("changed", "layout"),
    [
        ({"model": "gpt-oss-120b"}, (4, 4, 1)),
        ({"model": "gpt-oss-120b", "expert-parallel": 4}, (4, 1, 4)),
        ({"model": "gpt-oss-120b", "tensor-parallel": 1, "attention-dp": 4}, (4, 1, 4)),
        ({"model": "gpt-oss-120b", "tensor-parallel": 2, "attention-dp": 2, "moe-tp": 2}, (4, 2, 2)),
        ({"tensor-parallel": None, "gpus": 8}, (8, 1, 1)),
        ({"pipeline-parallel": 2}, (8, 1, 1)),
    ],
)
def test_layouts(changed, layout):
    known = values(**changed)
    assert tuple(known[name][0] for name in ("gpus", "moe_tensor_parallel", "moe_expert_parallel")) == layout


def test_without_a_layout_the_fewest_gpus_that_hold_the_model_are_assumed():
    assert values(**{"tensor-parallel": None, "precision": "fp8"})["tensor_parallel"] == (1, "assumed")
    assert values(**{"tensor-parallel": None, "precision": "bf16", "batch": 64})["tensor_parallel"] == (2, "assumed")
    big = {"tensor-parallel": None, "gpu": "H100", "model": "deepseek-r1", "precision": "fp8"}
    assert values(**big)["tensor_parallel"][0] == 16


def test_given_values_stay():
    known = values(precision="bf16", backend="SGLang", memory_gib=160)
    assert known["precision"] == ("bf16", "given") and known["backend"] == ("sglang", "given")
    assert known["memory_gib"] == (160, "given")


def test_a_name_may_tell_the_number_format():
    assert values(model="Qwen3-32B-NVFP4", gpu="B200")["precision"] == ("fp4", "given")
    with pytest.raises(UserError, match="model and precision must agree"):
        predict(model="Qwen3-32B-NVFP4", precision="fp8")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"gpu": "H800"}, "gpu must be a known GPU, but it has 'H800'; write one of H200, H100"),
        ({"gpu": None}, "gpu must be a known GPU, but it names none"),
        ({"model": "llama-4-405b"}, "model must be a known model"),
        ({"model": "config.json"}, "model must be a known model"),
        ({"batch": None}, "a deployment must have batch, input, output, but it has no batch"),
        ({"input": None, "output": None}, "but it has no input, output"),
        ({"precision": "fp6"}, "precision must be one of bf16, fp8, fp4, int4, but it has 'fp6'"),
        ({"backend": "llama.cpp"}, "backend must be one of vllm, sglang, trtllm"),
        ({"batch": 0}, "batch must be between 1"),
        ({"batch": -3}, "batch must be between 1"),
        ({"batch": 2.5}, "batch must be a whole number"),
        ({"batch": 10**9}, "batch: 1e+09 are more than the 1000000"),
        ({"input": 10**12}, "input: 1e+12 are more than"),
        ({"tensor-parallel": 4096}, "tensor-parallel: they are more than 1024 GPUs"),
        ({"gpus": 8}, "gpus: tensor x pipeline x attention-data parallel are 4 GPUs, not 8"),
        ({"expert-parallel": 2}, "expert-parallel: the model has no experts"),
        (
            {"model": "gpt-oss-120b", "expert-parallel": 8},
            "expert-parallel: experts on 8 GPUs are more than the 4 GPUs",
        ),
        (
            {"precision": "bf16", "gpu": "H100", "tensor-parallel": 1},
            "132 GiB, more than the 72 GiB that are 90 % of 1 GPU",
        ),
        ({"model": "deepseek-r1", "gpu": "H100"}, "in the smallest format take"),
        ({"gpu": "H100", "tensor-parallel": 1, "precision": "fp8", "input": 100_000}, "cache of one request"),
        ({"tensor-parallel": 3}, "tensor-parallel: 3 GPUs cannot share 64 heads of attention"),
        ({"tensor-parallel": None, "gpus": 7}, "gpus: 7 GPUs cannot share 64 heads"),
        ({"model": "phi-4", "tensor-parallel": 4}, "4 GPUs cannot share 40 heads of attention with 10 of keys"),
        ({"pipeline-parallel": 90, "tensor-parallel": 1}, "90 stages are more than the 80 layers"),
        ({"input": 131_000}, "of 131256 tokens is longer than the context of Llama-3.1-70B, 131072 tokens"),
        ({"model": "llama3 70b", "input": 8000}, "of 8256 tokens is longer than the context of Llama-3-70B, 8192"),
        ({"precision": "fp4"}, "precision: H200 computes bf16, fp8, not fp4; use bf16 or fp8, or int4"),
        ({"gpu": "A100", "precision": "fp8"}, "precision: A100 computes bf16, not fp8"),
        ({"gpu": "MI300X", "backend": "trtllm"}, "backend: trtllm runs on GPUs of NVIDIA"),
    ],
)
def test_refusals(changed, message):
    with pytest.raises(UserError) as error:
        predict(**changed)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_new_gpu_is_described_by_its_facts():
    prediction = predict(gpu="My GPU", **GPU_FACTS)
    assert "no data names the GPU 'My GPU'" in prediction.notes[1]
    assert {each.trust for each in prediction.estimates} == {"low: never measured"}
    assert all(np.isfinite(each.median) for each in prediction.estimates)
    with pytest.raises(UserError, match=r"add memory_gib$"):
        predict(gpu="My GPU", **{name: value for name, value in GPU_FACTS.items() if name != "memory_gib"})


def test_a_faster_gpu_is_faster():
    slow, fast = (predict(gpu="My GPU", **{**GPU_FACTS, "memory_gb_per_s": rate}) for rate in (1000, 8000))
    assert slow.estimates[0].task == "tpot" and slow.estimates[0].median > fast.estimates[0].median


def test_a_model_comes_from_its_config(tmp_path):
    path = tmp_path / "mine" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(CONFIG))
    rules = find_rules("llm_serving")
    read = rules.read_files({**KNOWN, "model": str(path)})
    assert read["model"] == "mine (config.json)" and read["layers"] == 80
    named, described = predict(precision="fp8"), predict(precision="fp8", **read)
    assert "no data names the model" in described.notes[0]
    for known, other in zip(named.estimates, described.estimates, strict=True):
        assert other.median == pytest.approx(known.median, rel=0.02)
    assert rules.read_files({**KNOWN, "model": str(path), "layers": 40})["layers"] == 40, "given facts stay"
    assert rules.read_files(KNOWN) == KNOWN


def test_notes_tell_formats_memory_and_what_was_never_measured():
    (note,) = predict(model="gpt-oss-120b", precision="fp4").notes
    assert note == "H200 has no fp4 arithmetic: the weights are stored in it, and computed in bfloat16"
    (note,) = predict(precision="fp8", **{"tensor-parallel": 1, "batch": 256, "input": 8192}).notes
    assert "requests fit in memory at once" in note
    notes = predict(gpu="MI300X", model="mistral-7b").notes
    assert notes == ("never measured: the GPU MI300X, the model Mistral-7B",)


def test_what_is_assumed_breaks_no_limit():
    """An assumed value that is typed back is accepted."""
    assert values(gpu="A100")["precision"] == ("bf16", "implied")
    known = values(model="qwen2.5-7b", precision="bf16", gpu="L4", **{"tensor-parallel": None, "batch": 1024})
    assert known["tensor_parallel"][0] == 4 and known["pipeline_parallel"] == (2, "assumed"), "28 heads on 8 GPUs"
    for case in (
        {"gpu": "H100", "tensor-parallel": 1},
        {"gpu": "MI300X"},
        {"gpu": "RTX 4090", "model": "phi-4", "tensor-parallel": 2},
    ):
        answer = values(**case)
        predict(**case, precision=answer["precision"][0], backend=answer["backend"][0])


def test_derived_quantities_follow_from_the_latencies():
    prediction = predict()
    ttft, tpot = ({each.task: each for each in prediction.estimates}[name] for name in ("ttft", "tpot"))
    derived = {each.name: each for each in prediction.derived}
    seconds = (ttft.median + 256 * tpot.median) / 1000
    assert derived["tokens_per_second"].median == pytest.approx(32 * 256 / seconds)
    assert derived["tokens_per_second_per_user"].median == pytest.approx(256 / seconds)
    assert derived["tokens_per_second_per_gpu"].median == pytest.approx(32 * 256 / seconds / 4)
    slow = (ttft.high + 256 * tpot.high) / 1000
    assert derived["tokens_per_second"].low == pytest.approx(32 * 256 / slow)
    assert all(each.low < each.median < each.high for each in prediction.derived)
    assert predict(quantity="ttft").derived == (), "one latency alone gives no throughput"


def test_derived_quantities_need_all_tasks_and_numbers():
    cells = {"output_tokens": 10.0, "concurrency": 2.0, "gpus": 1.0}
    scores = {"ttft": (50.0, None, None), "tpot": (5.0, 4.0, 6.0)}
    values = derive_values(DERIVED_OUTPUTS, scores, cells)
    assert [each.median for each in values] == [200.0, 100.0, 200.0] and {each.low for each in values} == {None}
    assert derive_values(DERIVED_OUTPUTS, {"tpot": scores["tpot"]}, cells) == ()
    assert [each.name for each in derive_values(DERIVED_OUTPUTS, scores, {**cells, "gpus": np.nan})] == [
        "tokens_per_second_per_user"
    ]
    assert isinstance(DERIVED_OUTPUTS[0], DerivedOutput)


def test_the_text_and_the_table_label_what_is_derived_and_assumed():
    answer = predict_batch([MachineEntry(1, "it", KNOWN)], champion(), EXPLAINED)
    text = format_predictions(answer)
    assert "batch x output / (ttft + tpot x output)" in text and "derived from the estimates" in text
    assert "a fact of the GPU or of the model" in text and "facts of H200, public from 2023-11-13" in text
    assert "4 x H200, Llama-3.1-70B" in text
    assert answer.to_frame().groupby("target").size().to_dict() == {"latency": 2, "derived": 3}


def test_one_bad_deployment_of_many_is_refused_alone():
    entries = [MachineEntry(1, "line 2", KNOWN), MachineEntry(2, "line 3", {**KNOWN, "gpu": "foo"})]
    answer = predict_batch(entries, champion(), PLAIN)
    assert [each.status for each in answer] == ["ok", "refused"]


def test_drawn_setups_fit_the_memory():
    known = values(model="qwen3-32b", gpu="L40S", **{"tensor-parallel": 1, "batch": 2, "input": 256})
    assert known["precision"][0] != "bf16", "61 GiB of weights do not fit in 45 GiB"

"""Deployments are parsed, completed and refused by their rules, then ranked, varied and compared: less is better."""

import json
from functools import cache

import numpy as np
import pytest
from deployment_project import CONFIG, FLAGS, GPU_FACTS, KNOWN, champion, results

from perfcast.cli.main import main
from perfcast.cli.rank import make_candidates
from perfcast.decisions.criteria import read_request
from perfcast.decisions.display import format_predictions
from perfcast.decisions.ranking import rank_machines
from perfcast.decisions.variants import read_varied_fields
from perfcast.decisions.what_if import predict_grid
from perfcast.domains.llm.deployment_fields import DERIVED_OUTPUTS
from perfcast.inference import PredictOptions
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.predict import predict_machines
from perfcast.inference.prediction import derive_values
from perfcast.inference.rules.description_rules import find_rules
from perfcast.inference.suites import Suites
from perfcast.utils.errors import UserError

EXPLAINED = PredictOptions()
PLAIN = PredictOptions(neighbors=0, explain=False)
ENTRY = MachineEntry(1, "it", KNOWN)


def predict(options=PLAIN, **changed):
    entry = MachineEntry(
        1,
        "it",
        {name: value for name, value in {**KNOWN, **changed}.items() if value is not None},
    )
    (prediction,) = predict_machines([entry], Suites(champion()), options)
    return prediction


def values(**changed):
    return {each.column: (each.value, each.origin) for each in predict(EXPLAINED, **changed).values}


def test_both_latencies_have_intervals_from_values_looked_up_implied_assumed_or_given():
    by_task = {each.task: each for each in predict(EXPLAINED).estimates}
    assert set(by_task) == {"ttft", "tpot"}
    for each in by_task.values():
        assert each.unit == "ms" and 0 < each.low < each.median < each.high and 0 < each.in_domain_score <= 1
        assert each.neighbors
    known = values()
    assert known["memory_gib"] == (141, "looked up") and known["layers"] == (
        80,
        "looked up",
    )
    assert known["gpus"] == (4, "implied") and known["attention_data_parallel"] == (
        1,
        "implied",
    )
    assert known["moe_expert_parallel"] == (1, "implied")
    assert known["precision"][1] == known["backend"][1] == "assumed"
    known = values(precision="bf16", backend="SGLang", memory_gib=160)
    assert known["precision"] == ("bf16", "given") and known["backend"] == (
        "sglang",
        "given",
    )
    assert known["memory_gib"] == (160, "given")
    assert values(model="Qwen3-32B-NVFP4", gpu="B200")["precision"] == (
        "fp4",
        "given",
    ), "the name tells it"
    known = values(
        model="qwen3-32b",
        gpu="L40S",
        **{"tensor-parallel": 1, "batch": 2, "input": 256},
    )
    assert known["precision"][0] != "bf16", "61 GiB of weights do not fit in 45 GiB"


LAYOUT = ("gpus", "tensor_parallel", "moe_tensor_parallel", "moe_expert_parallel")


def test_layouts():
    for changed, layout in (
        ({"model": "gpt-oss-120b"}, (4, 4, 4, 1)),
        ({"model": "gpt-oss-120b", "expert-parallel": 4}, (4, 4, 1, 4)),
        (
            {
                "model": "gpt-oss-120b",
                "tensor-parallel": 1,
                "attention-dp": 4,
            },
            (4, 1, 1, 4),
        ),
        ({"tensor-parallel": None, "gpus": 8}, (8, 8, 1, 1)),
        ({"pipeline-parallel": 2}, (8, 4, 1, 1)),
        # without a layout the fewest GPUs that hold the model are assumed
        ({"tensor-parallel": None, "precision": "fp8"}, (1, 1, 1, 1)),
        (
            {
                "tensor-parallel": None,
                "gpu": "H100",
                "model": "deepseek-r1",
                "precision": "fp8",
            },
            (16, 16, 16, 1),
        ),
    ):
        known = values(**changed)
        assert tuple(known[name][0] for name in LAYOUT) == layout


def test_refusals():
    for changed, message in (
        (
            {"gpu": "H800"},
            "gpu must be a known GPU, but it has 'H800'; write one of H200, H100",
        ),
        ({"gpu": None}, "gpu must be a known GPU, but it names none"),
        ({"model": "llama-4-405b"}, "model must be a known model"),
        (
            {"batch": None},
            "a deployment must have batch, input, output, but it has no batch",
        ),
        (
            {"precision": "fp6"},
            "precision must be one of bf16, fp8, fp4, int4, but it has 'fp6'",
        ),
        ({"backend": "llama.cpp"}, "backend must be one of vllm, sglang, trtllm"),
        ({"batch": 0}, "batch must be between 1"),
        ({"batch": 2.5}, "batch must be a whole number"),
        ({"batch": 10**9}, "batch: 1e+09 are more than the 1000000"),
        ({"tensor-parallel": 4096}, "tensor-parallel: they are more than 1024 GPUs"),
        (
            {"gpus": 8},
            "gpus: tensor x pipeline x attention-data parallel are 4 GPUs, not 8",
        ),
        ({"expert-parallel": 2}, "expert-parallel: the model has no experts"),
        (
            {"model": "gpt-oss-120b", "expert-parallel": 8},
            "expert-parallel: experts on 8 GPUs are more than the 4 ",
        ),
        (
            {"precision": "bf16", "gpu": "H100", "tensor-parallel": 1},
            "132 GiB, more than the 72 GiB that are 90 %",
        ),
        ({"model": "deepseek-r1", "gpu": "H100"}, "in the smallest format take"),
        (
            {
                "gpu": "H100",
                "tensor-parallel": 1,
                "precision": "fp8",
                "input": 100_000,
            },
            "cache of one request",
        ),
        (
            {"tensor-parallel": 3},
            "tensor-parallel: 3 GPUs cannot share 64 heads of attention",
        ),
        (
            {"model": "phi-4", "tensor-parallel": 4},
            "4 GPUs cannot share 40 heads of attention with 10 of keys",
        ),
        (
            {"pipeline-parallel": 90, "tensor-parallel": 1},
            "90 stages are more than the 80 layers",
        ),
        (
            {"input": 131_000},
            "of 131256 tokens is longer than the context of Llama-3.1-70B, 131072 tokens",
        ),
        (
            {"precision": "fp4"},
            "precision: H200 computes bf16, fp8, not fp4; use bf16 or fp8, or int4",
        ),
        (
            {"gpu": "MI300X", "backend": "trtllm"},
            "backend: trtllm runs on GPUs of NVIDIA",
        ),
        (
            {"model": "Qwen3-32B-NVFP4", "precision": "fp8"},
            "model and precision must agree",
        ),
        ({"gpu": "My GPU", **GPU_FACTS, "memory_gib": None}, "add memory_gib"),
    ):
        with pytest.raises(UserError) as error:
            predict(**changed)
        assert message in str(error.value) and "\n" not in str(error.value)


def test_a_new_gpu_is_described_by_its_facts():
    prediction = predict(gpu="My GPU", **GPU_FACTS)
    assert any("no data names the GPU 'My GPU'" in note for note in prediction.notes)
    assert {each.trust for each in prediction.estimates} == {"low: never measured"}
    assert all(np.isfinite(each.median) for each in prediction.estimates)
    slow, fast = (predict(gpu="My GPU", **{**GPU_FACTS, "memory_gb_per_s": rate}) for rate in (1000, 8000))
    assert slow.estimates[0].task == "tpot" and slow.estimates[0].median > fast.estimates[0].median


def test_a_model_comes_from_its_config(tmp_path):
    path = tmp_path / "mine" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(CONFIG))
    rules = find_rules("llm_serving")
    read = rules.names.read_files({**KNOWN, "model": str(path)})
    assert read["model"] == "mine (config.json)" and read["layers"] == 80
    named = predict(precision="fp8")
    described = predict(precision="fp8", **read)
    assert "no data names the model" in described.notes[0]
    for known, other in zip(named.estimates, described.estimates, strict=True):
        assert other.median == pytest.approx(known.median, rel=0.02)
    assert rules.names.read_files({**KNOWN, "model": str(path), "layers": 40})["layers"] == 40, "given facts stay"
    assert rules.names.read_files(KNOWN) == KNOWN


def test_notes_tell_what_was_never_measured_and_what_is_assumed_breaks_no_limit():
    (note,) = predict(model="gpt-oss-120b", precision="fp4").notes
    assert note == "H200 has no fp4 arithmetic: the weights are stored in it, and computed in bfloat16"
    first, *_ = predict(gpu="L40S", model="mistral-7b").notes
    assert first == "never measured: the GPU L40S, the model Mistral-7B"
    assert values(gpu="A100")["precision"] == ("bf16", "implied")
    known = values(
        model="qwen2.5-7b",
        precision="bf16",
        gpu="L4",
        **{"tensor-parallel": None, "batch": 1024},
    )
    assert known["tensor_parallel"][0] == 4 and known["pipeline_parallel"] == (
        2,
        "assumed",
    ), "28 heads on 8 GPUs"
    phi = {"gpu": "RTX 4090", "model": "phi-4", "tensor-parallel": 2}
    for case in ({"gpu": "H100", "tensor-parallel": 1}, phi):
        answer = values(**case)
        predict(**case, precision=answer["precision"][0], backend=answer["backend"][0])


def test_a_vendor_without_a_deployment_is_refused():
    with pytest.raises(UserError) as caught:
        predict(gpu="MI300X")
    assert str(caught.value) == (
        "gpu must be of a vendor with results in llm_serving, but it has one of AMD; these are NVIDIA"
    )


def test_an_assumed_number_format_is_named_with_the_formats_that_do_not_fit():
    formats = values()["precision"][0]
    assert f"the number format {formats} is assumed; give precision" in predict(EXPLAINED).notes
    assert not any("number format" in note for note in predict(EXPLAINED, precision="fp8").notes)
    cells = {
        "precision": "int4",
        "gpus": 1.0,
        "memory_gib": 44.99,
        "total_params_1e9": 70.6,
    }
    (note,) = find_rules("llm_serving").presentation.list_assumed_notes(cells, {"precision"})
    assert note == (
        "the number format int4 is assumed: weights in bf16 and fp8 do not fit into 40 GiB of memory; give precision"
    )


def test_the_note_on_waiting_requests_counts_whole_ones():
    load = {"tensor-parallel": 1, "batch": 128, "input": 4100}
    answer = predict(precision="fp8", **load)
    cache = 80 * 2048 * (4100 + 128)  # bytes: 8-bit keys and values of 80 layers, half of the answer
    fitting = (0.9 * 141 * 2**30 - 70.6e9) / cache
    assert fitting % 1 > 0.5, "rounding would count one too many"
    assert any(note.startswith(f"the caches of {int(fitting)} of 128 requests") for note in answer.notes)


def test_derived_quantities_follow_from_the_latencies():
    prediction = predict()
    ttft, tpot = ({each.task: each for each in prediction.estimates}[name] for name in ("ttft", "tpot"))
    derived = {each.name.removeprefix("tokens_per_second"): each for each in prediction.derived}
    seconds, slow = (
        (first + 256 * each) / 1000 for first, each in ((ttft.median, tpot.median), (ttft.high, tpot.high))
    )
    medians = {
        "": 32 * 256 / seconds,
        "_per_user": 256 / seconds,
        "_per_gpu": 32 * 256 / seconds / 4,
    }
    assert {name: each.median for name, each in derived.items()} == pytest.approx(medians)
    assert derived[""].low == pytest.approx(32 * 256 / slow)
    assert all(each.low < each.median < each.high for each in prediction.derived)
    assert predict(quantity="ttft").derived == (), "one latency alone gives no throughput"
    scores = {"ttft": (50.0, None, None), "tpot": (5.0, 4.0, 6.0)}
    cells = {"output_tokens": 10.0, "concurrency": 2.0, "gpus": np.nan}
    (left,), _ = derive_values(DERIVED_OUTPUTS, scores, cells)
    assert (left.name, left.median, left.low) == (
        "tokens_per_second_per_user",
        100.0,
        None,
    )
    wide = {"ttft": (50.0, 5.0, 500.0), "tpot": (5.0, 0.5, 50.0)}
    derived, notes = derive_values(DERIVED_OUTPUTS, wide, {**cells, "gpus": 4.0})
    assert derived == ()
    assert notes[0] == ("tokens_per_second is left out: its interval would span a factor of 100, more than 20")


def test_the_text_and_the_table_label_what_is_derived_and_assumed_and_one_bad_deployment_is_refused_alone():
    bad = MachineEntry(2, "line 3", {**KNOWN, "gpu": "foo"})
    assert [each.status for each in predict_machines([ENTRY, bad], Suites(champion()), PLAIN)] == ["ok", "refused"]
    answer = predict_machines([ENTRY], Suites(champion()), EXPLAINED)
    text = format_predictions(answer, explain=True)
    for words in (
        "batch x output / (ttft + tpot x output)",
        "derived from the estimates",
        "4 x H200, Llama-3.1-70B",
        "a fact of the GPU or of the model",
        "facts of H200, public from 2023-11-13",
    ):
        assert words in text
    assert answer.to_frame().groupby("target").size().to_dict() == {
        "latency": 2,
        "derived": 3,
    }


VARIED = ["gpu=H100|H200|B200", "tensor-parallel=2,4,8"]
NAME = "gpu H200, tensor-parallel 4"


def candidates(*vary, **changed):
    varied = read_varied_fields(list(vary or VARIED), champion().fields)
    given = {name: value for name, value in {**KNOWN, **changed}.items() if name not in [each.name for each in varied]}
    return make_candidates(given, varied)


@cache
def rank(*targets, vary=(), prices=(), **chosen):
    """Rank all candidates; `prices` are those of an hour of H100, H200 and B200."""
    request = read_request(list(targets), Suites(champion()), **chosen)
    listed = candidates(*vary)
    if prices:
        price = dict(zip(("H100", "H200", "B200"), prices, strict=True))
        listed = [each._replace(carried={**each.carried, "price": price[each.values["gpu"]]}) for each in listed]
    return rank_machines(listed, Suites(champion()), request, PLAIN)


def test_the_lowest_latency_is_first_and_throughput_is_derived():
    ranking = rank()
    scores = [each.score for each in ranking.candidates]
    assert len(scores) == 9 and scores == sorted(scores) and ranking.ascending
    ascending = {
        "tpot": True,
        "tokens_per_second": False,
        "tokens_per_second/price": False,
    }
    assert {by: read_request([], Suites(champion()), by=by).criterion.ascending for by in ascending} == ascending
    ranking = rank(by="tokens_per_second_per_gpu")
    total = rank(by="tokens_per_second")
    values = [each.value for each in ranking.candidates]
    assert values == sorted(values, reverse=True)
    assert all(each.value_low < each.value < each.value_high for each in ranking.candidates)
    alone, together = (
        {each.name: each.value for each in each_ranking.candidates}[NAME] for each_ranking in (ranking, total)
    )
    assert together == pytest.approx(4 * alone)


def test_what_is_assumed_is_equal_for_all_candidates():
    ranking = rank(vary=("gpu=H100|B200|A100", "tensor-parallel=4"))
    held = [note for note in ranking.notes if "is assumed for all candidates" in note]
    assert [note.partition(":")[0] for note in held] == ["precision", "backend"]
    assert "precision: bf16" in held[0], "an A100 computes nothing else"
    assert any("never measured: the GPU A100" in note for note in ranking.notes)
    stated = rank(vary=("gpu=H100|B200", "precision=bf16,fp8", "tensor-parallel=4"))
    assert not any(note.startswith("precision") for note in stated.notes)


def test_targets_have_probabilities_and_unlikely_candidates_come_last():
    middle = rank().candidates[4].score
    ranking = rank(f"ttft <= {middle * 4:g}", f"tpot <= {middle:g}", sure=0.5)
    for each in ranking.candidates:
        assert all(0 <= share <= 1 for share in each.probabilities)
        assert each.joint_probability_min <= min(each.probabilities)
    sure = [each.sure for each in ranking.candidates]
    assert sure == sorted(sure, reverse=True) and len(set(sure)) == 2
    relaxed, strict = (rank(f"tpot <= {limit}").candidates for limit in (1000, 0.001))
    assert relaxed[0].probabilities[0] > 0.99 > strict[0].probabilities[0]


def test_a_target_may_name_its_unit_and_another_form_is_one_line():
    def read(typed):
        (constraint,) = read_request([typed], Suites(champion())).constraints
        return constraint

    for typed in ("tpot <= 30", "TPOT<=30ms", "tpot <= 0.03 s"):
        assert (read(typed).output.task, read(typed).threshold) == (
            "tpot",
            pytest.approx(30),
        )
    form = "TASK <= NUMBER"
    for typed, words in {"fast": form, "tpot <= 30 GB": "positive"}.items():
        with pytest.raises(UserError, match=words):
            read(typed)


def test_a_price_is_one_of_a_gpu_and_hour():
    by = "tokens_per_second/price"
    ranking = rank(by=by, prices=(2, 3, 5))
    prices = {each.name: each.price for each in ranking.candidates}
    assert (prices[NAME], prices["gpu H100, tensor-parallel 2"]) == (12, 4)
    assert all(each.cost is None and each.cost_per_score_year is None for each in ranking.candidates)
    assert any("price: the given one of an hour x gpus" in note for note in ranking.notes)
    assert all(each.watts_assumed for each in ranking.candidates)
    first = rank(by="tokens_per_second_per_gpu").candidates[0].name
    assert rank(by=by, prices=(2, 2, 2)).candidates[0].name == first, "with one price for all the order is that per GPU"
    assert {each.message.partition(" needs ")[0] for each in rank(by=by).refused} == {f"--by {by}"}


def test_impossible_candidates_are_refused_and_the_others_ranked():
    entries = candidates("gpu=H100,H200", "tensor-parallel=1,4", precision="bf16")
    ranking = rank_machines(entries, Suites(champion()), read_request([], Suites(champion())), PLAIN)
    assert [each.name for each in ranking.refused] == [f"gpu {gpu}, tensor-parallel 1" for gpu in ("H100", "H200")]
    assert "more than the 72 GiB that are 90 % of 1 GPU" in ranking.refused[0].message and len(ranking.candidates) == 2


def grid(*vary, **changed):
    entry = MachineEntry(1, "it", {**KNOWN, **changed})
    return predict_grid(entry, read_varied_fields(list(vary), champion().fields), champion(), ())


def test_combinations_are_predicted_or_impossible_and_an_unknown_one_is_refused():
    answer = grid("batch=1,8,64", "input=512,8192", precision="fp8")
    assert len(answer.possible) == 6
    by_batch = [each.derived[0].median for each in answer.possible if each.values["input"] == "512"]
    assert by_batch == sorted(by_batch), "more requests give more tokens per second"
    answer = grid("tensor-parallel=1,2", gpu="H100", precision="bf16")
    assert [bool(each.violation) for each in answer.combinations] == [True, False]
    with pytest.raises(UserError, match="model must be a known model, but --vary has 'foo'"):
        grid("model=llama-3.1-8b,foo")
    with pytest.raises(UserError, match="gpu is given and varied"):
        make_candidates(KNOWN, read_varied_fields(["gpu=H1"], champion().fields))
    with pytest.raises(UserError, match="must not name the cost"):
        rank(by="tokens_per_second/cost")


def run(command, *words):
    return main(
        [
            command,
            "--dataset",
            "llm_serving",
            "--results",
            str(results()),
            *words,
        ]
    )


def test_the_commands_answer(capsys, tmp_path):
    config = tmp_path / "config.json"
    table = tmp_path / "deployments.csv"
    config.write_text(json.dumps(CONFIG))
    assert run("predict", *FLAGS, "--tensor-parallel", "4", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["machines"][0]["derived"]) == 3 and answer["kind"] == "estimates, not official results"
    flags = [
        "--vary",
        "gpu=H100,H200",
        "--tp",
        "4",
        "--set",
        "price=2.5",
        "--by",
        "tokens_per_second/price",
    ]
    for words, printed in (
        (
            [
                "predict",
                *FLAGS[:2],
                "--model",
                str(config),
                *FLAGS[4:],
                "--tp",
                "4",
                "--csv",
            ],
            "(config.json)",
        ),
        (
            [
                "rank",
                *FLAGS[2:],
                *flags,
                "--target",
                "tpot <= 30",
            ],
            "tokens_per_second/price",
        ),
        (["similar", *FLAGS, "--tp", "4", "--count", "2"], ""),
        (
            [
                "compare",
                "4 x H200",
                "H100; tp=2; precision=fp8",
                *FLAGS[2:],
            ],
            "4 x H200, Llama-3.1-70B",
        ),
    ):
        assert run(*words) == 0 and printed in capsys.readouterr().out
    table.write_text(f"gpu,model,batch,input,output,tp\nH200,{config},32,2048,256,4\nfoo,llama-3.1-8b,32,2048,256,4\n")
    assert run("predict", str(table), "--csv") == 3
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 5 + 1 and "refused" in lines[-1]


def test_mistakes_are_one_line(capsys):
    for words, message in (
        (["--processor", "EPYC 9654"], "has 'processor'"),
        (["--set", "bf16_tflops=1e999", *FLAGS], "bf16_tflops must be a number"),
        ([], "try --gpu H200"),
        (
            [
                *FLAGS[:2],
                "--model",
                "/etc/passwd.json",
                *FLAGS[4:],
            ],
            "there is no file",
        ),
        ([*FLAGS[:2], "--model", "\x1b[31m", *FLAGS[4:]], "text that can be printed"),
    ):
        assert run("predict", *words) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1

"""Rankings, what-if grids, comparisons and commands answer for deployments, where less is better."""

from __future__ import annotations

import json

import numpy as np
import pytest
from deployment_project import CONFIG, FLAGS, KNOWN, champion, results

from perfcast.cli.main import main
from perfcast.cli.rank import make_candidates
from perfcast.decisions.criteria import read_request
from perfcast.decisions.machine_comparison import compare_machines
from perfcast.decisions.nearest_machines import find_nearest_machines
from perfcast.decisions.ranking import rank_machines
from perfcast.decisions.variants import read_varied_fields
from perfcast.decisions.what_if import predict_grid
from perfcast.inference import PredictOptions
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import parse_machines
from perfcast.utils.errors import UserError

PLAIN = PredictOptions(neighbors=0, explain=False)
VARIED = ["gpu=H100|H200|B200", "tensor-parallel=2,4,8"]


ALIKE = dict.fromkeys(("H100", "H200", "B200"), 2)


def candidates(*vary, **changed):
    varied = read_varied_fields(list(vary or VARIED), champion().fields)
    names = {name for field in varied for name in (field.name,)}
    given = {name: value for name, value in {**KNOWN, **changed}.items() if name not in names}
    return make_candidates(given, varied)


def rank(*targets, vary=(), prices=None, **chosen):
    """Rank all candidates; `prices` are those of an hour by GPU."""
    request = read_request(list(targets), champion(), **chosen)
    listed = candidates(*vary)
    if prices:
        listed = [each._replace(carried={**each.carried, "price": prices[each.values["gpu"]]}) for each in listed]
    return rank_machines(listed, champion(), request, PLAIN)


def test_the_lowest_latency_is_first_by_default():
    ranking = rank()
    scores = [each.score for each in ranking.candidates]
    assert len(scores) == 9 and scores == sorted(scores) and ranking.ascending
    assert rank(by="tpot").ascending and not rank(by="tokens_per_second").ascending
    assert rank(by="price*tpot", prices=ALIKE).ascending and rank(by="price/tokens_per_second", prices=ALIKE).ascending


def test_what_is_assumed_is_equal_for_all_candidates():
    ranking = rank(vary=["gpu=H100|B200|A100", "tensor-parallel=4"])
    held = [note for note in ranking.notes if "is assumed for all candidates" in note]
    assert [note.partition(":")[0] for note in held] == ["precision", "backend"]
    assert "precision: bf16" in held[0], "an A100 computes nothing else"
    assert any("never measured: the GPU A100" in note for note in ranking.notes)
    stated = rank(vary=["gpu=H100|B200", "precision=bf16,fp8", "tensor-parallel=4"])
    assert not any(note.startswith("precision") for note in stated.notes)


def test_throughput_is_derived_from_both_latencies():
    ranking = rank(by="tokens_per_second_per_gpu")
    values = [each.value for each in ranking.candidates]
    assert values == sorted(values, reverse=True)
    assert all(each.value_low < each.value < each.value_high for each in ranking.candidates)
    per_gpu = {each.name: each.value for each in ranking.candidates}
    total = {each.name: each.value for each in rank(by="tokens_per_second").candidates}
    assert total["gpu H200, tensor-parallel 4"] == pytest.approx(4 * per_gpu["gpu H200, tensor-parallel 4"])


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


@pytest.mark.parametrize("typed", ["tpot <= 30", "tpot<=30ms", "TPOT <= 30 ms", "tpot <= 0.03 s", "tpot <= 3e4 us"])
def test_a_target_may_name_its_unit(typed):
    assert rank(typed).targets == rank("tpot <= 30").targets


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("fast", "TASK <= NUMBER, such as 'tpot <= 100'"),
        ("tpot <= 30 GB", "positive"),
        ("tpot <= inf", "positive"),
        ("tpot <= 1 2", "TASK <= NUMBER"),
    ],
)
def test_a_target_of_another_form_is_one_line(typed, words):
    with pytest.raises(UserError, match=words):
        rank(typed)


def test_a_price_is_one_of_a_gpu_and_hour():
    ranking = rank(by="tokens_per_second/price", prices={"H100": 2, "H200": 3, "B200": 5})
    by_name = {each.name: each for each in ranking.candidates}
    assert by_name["gpu H200, tensor-parallel 4"].price == 12 and by_name["gpu H100, tensor-parallel 2"].price == 4
    assert all(each.cost is None and each.cost_per_score_year is None for each in ranking.candidates)
    assert any("price: the given one of an hour x gpus" in note for note in ranking.notes)
    assert all(each.watts_assumed for each in ranking.candidates)
    alike = rank(by="tokens_per_second/price", prices=ALIKE)
    first = rank(by="tokens_per_second_per_gpu").candidates[0].name
    assert alike.candidates[0].name == first, "with one price for all the order is that per GPU"


def test_a_ranking_by_price_needs_prices_and_no_cost():
    assert {each.message.partition(" needs ")[0] for each in rank(by="tokens_per_second/price").refused} == {
        "--by tokens_per_second/price"
    }
    with pytest.raises(UserError, match="must not name the cost"):
        rank(by="tokens_per_second/cost")
    with pytest.raises(UserError, match="tokens_per_second"):
        rank(by="tokens_per_minute")


def test_impossible_candidates_are_refused_and_the_others_ranked():
    entries = candidates("gpu=H100,H200", "tensor-parallel=1,4", precision="bf16")
    ranking = rank_machines(entries, champion(), read_request([], champion()), PLAIN)
    assert [each.name for each in ranking.refused] == [f"gpu {gpu}, tensor-parallel 1" for gpu in ("H100", "H200")]
    assert "more than the 72 GiB that are 90 % of 1 GPU" in ranking.refused[0].message and len(ranking.candidates) == 2


def test_a_field_is_given_or_varied():
    with pytest.raises(UserError, match="gpu is given and varied"):
        make_candidates(KNOWN, read_varied_fields(["gpu=H100"], champion().fields))


def grid(*vary, tasks=(), **changed):
    entry = MachineEntry(1, "it", {**KNOWN, **changed})
    return predict_grid(entry, read_varied_fields(list(vary), champion().fields), champion(), tasks)


def test_what_if_over_batch_and_input():
    answer = grid("batch=1,8,64", "input=512,8192", precision="fp8")
    assert len(answer.possible) == 6 and {each.task for each in answer.possible[0].estimates} == {"ttft", "tpot"}
    by_batch = [each.derived[0].median for each in answer.possible if each.values["input"] == "512"]
    assert by_batch == sorted(by_batch), "more requests give more tokens per second"
    frame = answer.to_frame()
    assert set(frame["task"]) >= {"ttft", "tpot", "tokens_per_second"} and np.isfinite(frame["estimate"]).all()


def test_what_if_follows_the_varied_model_gpu_and_layout():
    by_model = {
        each.values["model"]: each
        for each in grid("model=llama-3.1-8b,llama-3.1-70b", tasks=["tpot"], precision="fp8").possible
    }
    small, large = (by_model[name].estimates[0].median for name in ("llama-3.1-8b", "llama-3.1-70b"))
    assert small < large
    assert len(grid("gpu=H100,B200", "tensor-parallel=2,8", gpus=4, precision="fp8").possible) == 4
    answer = grid("tensor-parallel=1,2", gpu="H100", precision="bf16")
    assert [bool(each.violation) for each in answer.combinations] == [True, False]


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ("model=llama-3.1-8b,foo", "model must be a known model, but --vary has 'foo'"),
        ("gpu=H100,foo", "gpu must be a known GPU"),
        ("precision=fp8,fp6", "precision must be one of bf16"),
        ("batch=0,1", "batch must be between 1"),
    ],
)
def test_what_if_refuses_unknown_values(vary, message):
    with pytest.raises(UserError, match=message):
        grid(vary)


def test_comparisons_and_nearest_results():
    entries = [MachineEntry(1, "a", KNOWN), MachineEntry(2, "b", {**KNOWN, "gpu": "H100"})]
    comparison = compare_machines(entries, champion(), PLAIN)
    assert {pair.task for pair in comparison.pairs} == {"ttft", "tpot"}
    nearest = find_nearest_machines(parse_machines(entries[:1], champion()), champion(), count=3)
    assert len(nearest.machines[0].similar) == 6 and "H200" in nearest.machines[0].machine


COMMON = ["--dataset", "llm_serving", "--results"]


def run(command, *words):
    return main([command, *COMMON, str(results()), *words])


def test_the_commands_answer(capsys, tmp_path):
    assert run("predict", *FLAGS, "--tensor-parallel", "4", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["machines"][0]["derived"]) == 3 and answer["kind"] == "estimates, not official results"
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))
    assert run("predict", *FLAGS[:2], "--model", str(config), *FLAGS[4:], "--tp", "4", "--csv") == 0
    assert "(config.json)" in capsys.readouterr().out
    flags = ["--vary", "gpu=H100,H200", "--tp", "4", "--set", "price=2.5", "--by", "tokens_per_second/price"]
    assert run("rank", *FLAGS[2:], *flags, "--target", "tpot <= 30") == 0
    assert "tokens_per_second/price" in capsys.readouterr().out
    assert run("what-if", *FLAGS, "--tp", "4", "--vary", "batch=1,2", "--out", str(tmp_path / "a.csv")) == 0
    assert run("similar", *FLAGS, "--tp", "4", "--count", "2") == 0
    assert run("compare", "4 x H200", "H100; tp=2; precision=fp8", *FLAGS[2:]) == 0
    assert "4 x H200, Llama-3.1-70B" in capsys.readouterr().out


def test_a_table_of_deployments_may_name_config_files(capsys, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))
    table = tmp_path / "deployments.csv"
    rows = [f"{gpu},{model},32,2048,256,4" for gpu in ("H200", "B200") for model in ("llama-3.1-8b", config)]
    table.write_text("\n".join(["gpu,model,batch,input,output,tp", *rows, "foo,llama-3.1-8b,32,2048,256,4"]))
    assert run("predict", str(table), "--csv") == 3
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 4 * 5 + 1 and "refused" in lines[-1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--processor", "EPYC 9654"], "has 'processor'"),
        (["--set", "bf16_tflops=1e999", *FLAGS], "bf16_tflops must be a number"),
        (FLAGS[:2], "model must be a known model"),
        ([], "try --gpu H200"),
        ([*FLAGS[:2], "--model", "/etc/passwd.json", *FLAGS[4:]], "there is no file"),
        ([*FLAGS[:2], "--model", "\x1b[31m", *FLAGS[4:]], "text that can be printed"),
        ([*FLAGS[:2], "--model", "x" * 501, *FLAGS[4:]], "at most 500 letters"),
    ],
)
def test_mistakes_are_one_line(words, message, capsys):
    assert run("predict", *words) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1

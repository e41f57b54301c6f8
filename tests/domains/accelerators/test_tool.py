"""Answers about accelerators and served models: whole systems, measured power, energy and its cost."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from accelerator_project import champion, results

from perfcast.cli.main import main
from perfcast.decisions.criteria import Output, read_criterion, read_request
from perfcast.decisions.display import format_ranking
from perfcast.decisions.fleet import Sizing, size_fleet
from perfcast.decisions.ranking import Ranking, rank_machines
from perfcast.decisions.sizing_request import read_sizing
from perfcast.domains.accelerators.accelerator_rules import ESTIMATE
from perfcast.domains.accelerators.catalog import FACTS, read_accelerators
from perfcast.inference import PredictOptions, read_machines
from perfcast.inference.parse import parse_machines
from perfcast.inference.predict import predict_machines
from perfcast.inference.prediction import Prediction
from perfcast.inference.suites import Suites
from perfcast.utils.errors import UserError

MLPERF = "mlperf_inference"
TASK = "llama2-70b-99.9/Offline"
H100 = {"accelerator": "H100 SXM"}
SERVED: dict[str, object] = {"model": "acorn/A-8B", "gpu": "B200", "batch": 64}


def task_of(dataset: str, start: str = "bert-99.9/Off") -> str:
    return next(task for task in champion(dataset).tasks if task.startswith(start))


def sized(onto: dict[str, object], *rows: dict[str, object], mix: str = "") -> Sizing:
    chosen = champion(MLPERF)
    request = read_sizing(chosen, mix or task_of(MLPERF))
    return size_fleet(read_machines(list(rows)), read_machines([onto]), chosen, request)


def ranked(
    machines: list[dict[str, object]],
    by: str,
    targets: tuple[str, ...] = (),
    dataset: str = MLPERF,
) -> Ranking:
    request = read_request(targets, Suites(champion(dataset)), by=by)
    return rank_machines(read_machines(machines), Suites(champion(dataset)), request)


def predicted(dataset: str, machine: dict[str, object], level: float = 0.9) -> Prediction:
    (answer,) = predict_machines(
        read_machines([machine]),
        Suites(champion(dataset)),
        PredictOptions(level=level),
    ).machines
    return answer


def newest_of(count: int) -> float:
    """Return the throughput of an H100 in systems of some size, of the newest round that has one."""
    frame = champion(MLPERF).reference_data.measured.frame
    wanted = {
        "accelerator": "H100 SXM",
        "count": count,
        "task": task_of(MLPERF),
        "variant": "base",
    }
    rows = frame[(frame[list(wanted)] == pd.Series(wanted)).all(axis=1)]
    return float(rows.loc[rows["published"] == rows["published"].max(), "throughput"].median())


def test_a_system_of_eight_replaces_eight_of_one_in_the_newest_round_of_each() -> None:
    fleet = {**H100, "accelerators": 1, "count": 80, "utilization": 1}
    for count in (1, 2):
        (target,) = sized({**H100, "accelerators": 8}, {**fleet, "accelerators": count}).targets
        assert target.ratio == pytest.approx(8 / count * newest_of(8) / newest_of(count), rel=0.05)


def test_no_fleet_without_an_estimate_and_none_of_efficiency() -> None:
    with pytest.raises(UserError, match="add up"):
        read_sizing(champion("mlperf_power"))
    with pytest.raises(UserError, match="known accelerator"):
        sized({"accelerator": "Accelerator of nobody"}, {**H100, "count": 3})


def test_scores_of_a_ranking_are_those_of_systems() -> None:
    task = task_of(MLPERF)
    systems = [{**H100, "accelerators": count, "price": 1000 * count, "name": str(count)} for count in (1, 4, 8)]
    ranking = ranked(systems, task)
    assert [each.name for each in ranking.candidates] == ["8", "4", "1"]
    alone = predicted(MLPERF, {**H100, "accelerators": 8, "task": task})
    (whole,) = alone.derived
    assert ranking.candidates[0].score == pytest.approx(whole.median) == pytest.approx(8 * alone.estimates[0].median)
    assert list(ranking.weights) == [task]
    by_price = ranked(systems, f"{task}/price")
    values = [each.value for each in by_price.candidates]
    assert max(values) / min(values) < 1.5
    assert "price of a system" in format_ranking(by_price)


def test_a_criterion_names_a_task_with_a_slash() -> None:
    task = task_of(MLPERF)
    suites = Suites(champion(MLPERF))
    criterion = read_criterion(f"{task.upper()} / price", suites)
    assert (criterion.quantity, criterion.per) == (Output(task, "throughput"), "price")
    assert read_criterion(task, suites).quantity == Output(task, "throughput")


def test_per_watt_needs_measured_watts() -> None:
    machines = [
        {**H100, "accelerators": 8, "watts": 6000},
        {"accelerator": "8 x B200"},
    ]
    ranking = ranked(machines, f"{task_of(MLPERF)}/watts")
    assert len(ranking.candidates) == 1
    assert "measured of the whole system" in ranking.refused[0].message
    assert not ranking.candidates[0].watts_assumed


def test_the_month_asked_is_the_year_of_an_answer() -> None:
    entries = read_machines([{**H100, "accelerators": 8, "task": task_of(MLPERF)}])
    (now,), (later,) = (
        predict_machines(entries, Suites(champion(MLPERF)), PredictOptions(when=when)).machines
        for when in (None, pd.Timestamp("2027-07-01"))
    )
    years = [{value.column: value.value for value in answer.values}["year"] for answer in (now, later)]
    assert float(years[1]) == 2027.5 > float(years[0])
    widths = [answer.estimates[0].high / answer.estimates[0].low for answer in (now, later)]
    assert widths[1] > widths[0]


@pytest.mark.parametrize(("dataset", "batch"), [("ml_energy", 64), ("ml_energy_diffusion", 32)])
def test_published_results_of_a_served_model_are_those_of_its_gpus_and_batch(dataset: str, batch: int) -> None:
    frame = champion(dataset).reference_data.measured.frame
    chosen = frame[frame["concurrency"] == batch].iloc[0]
    names = [
        "model",
        "gpu",
        "gpus",
        *(["workload"] if dataset == "ml_energy" else []),
    ]
    alike = frame[(frame[[*names, "concurrency"]] == chosen[[*names, "concurrency"]]).all(axis=1)]
    for estimate in predicted(dataset, {**chosen[names], "batch": batch}, level=0.5).estimates:
        assert estimate.published is not None
        assert estimate.published.count == (alike["quantity"] == estimate.task).sum()


def test_a_gpu_without_a_number_is_one() -> None:
    answer = predicted("ml_energy", SERVED)
    assert answer.machine == "acorn/A-8B, 1 x B200, batch 64"
    four = predicted("ml_energy", {**SERVED, "tensor_parallel": 4})
    assert four.machine == "acorn/A-8B, 4 x B200, batch 64"
    # latencies and watts have units, and limits may be in others
    units = {each.task: each.unit for each in answer.estimates}
    assert units.pop("watts") == "W"
    assert units and set(units.values()) == {"ms"}
    (limit,) = read_request(("median_itl <= 0.05 s",), Suites(champion("ml_energy"))).constraints
    assert limit.threshold == pytest.approx(50)


def test_measured_power_is_named() -> None:
    answer = predicted(
        "mlperf_power",
        {**H100, "accelerators": 8, "task": task_of("mlperf_power")},
        level=0.5,
    )
    assert any("measured system power" in note and ESTIMATE in note for note in answer.notes)
    assert answer.estimates[0].unit == "per J"
    assert answer.derived == ()


@pytest.mark.parametrize(
    ("dataset", "batch", "items"),
    [("ml_energy", 64, 1e6), ("ml_energy_diffusion", 8, 1e3)],
)
def test_energy_has_a_cost_where_a_price_is_given(dataset: str, batch: int, items: float) -> None:
    machine = {**SERVED, "gpu": "H100", "batch": batch}
    names = {each.name: each for each in predicted(dataset, machine).derived}
    assert not any(name.startswith("electricity") for name in names)
    answer = predicted(dataset, {**machine, "electricity-price": 0.25})
    priced = {each.name: each for each in answer.derived}
    score = {each.task: each.median for each in answer.estimates}
    joules = score.get("item_joules") or score["watts"] * score["token_ms"] / 1000
    kwh = next(each for name, each in priced.items() if name.startswith("kwh"))
    cost = next(each for name, each in priced.items() if name.startswith("electricity"))
    assert kwh.median == pytest.approx(joules * items / 3.6e6)
    assert cost.median == pytest.approx(0.25 * kwh.median)
    if items == 1e3:
        assert priced["seconds_per_batch"].median == pytest.approx(joules * batch / score["watts"])
    assert cost.low is not None and cost.high is not None and cost.low < cost.median < cost.high


def test_commands_answer_about_accelerators(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = tmp_path / "fleet.csv"
    fleet.write_text("accelerator,accelerators,count\nA100 SXM 80GB,8,12\nH100 SXM,8,4\nnobody,8,4\n")
    chosen = ["--dataset", MLPERF, "--results", str(results(MLPERF))]
    assert (
        main(
            [
                "size",
                str(fleet),
                "--onto",
                "8 x B200",
                "--mix",
                f"{task_of(MLPERF)}:1",
                *chosen,
            ]
        )
        == 3
    )
    captured = capsys.readouterr()
    assert "8 x B200" in captured.out and ESTIMATE in " ".join(captured.out.split())
    assert "nobody" in captured.out
    vary = [
        "--accelerator",
        "B200",
        "--vary",
        "accelerators=1,8",
        "--task",
        task_of(MLPERF),
    ]
    assert main(["what-if", *vary, *chosen]) == 0
    assert "of the whole machine" in capsys.readouterr().out


def given_facts(name: str) -> dict[str, float]:
    """Return the facts of the catalog that a user may type, with the kind of a processor."""
    row = read_accelerators().loc[name]
    facts = {fact: float(row[fact]) for fact in FACTS if pd.notna(row[fact])}
    return {**facts, "is_processor": 1.0, "memory_gib": 512.0} if row["kind"] == "cpu" else facts


def test_a_clone_under_another_name_has_the_answer_of_its_original() -> None:
    names = ("A100 SXM 80GB", "L40S", "B200", "MI300X", "Xeon Platinum 8592+")
    machines = [
        {"accelerators": 8, "task": "bert-99.9/Offline", **named}
        for name in names
        for named in (
            {"accelerator": name},
            {"accelerator": "Mine 1", **given_facts(name)},
        )
    ]
    narrow = PredictOptions(level=0.05, neighbors=0, explain=False)  # intervals of clones are too wide for 90 %
    answers = predict_machines(read_machines(machines), Suites(champion(MLPERF)), narrow).machines
    medians = [each.estimates[0].median for each in answers]
    for name, original, clone in zip(names, medians[::2], medians[1::2], strict=True):
        assert 0.8 < clone / original < 1.25, name
    assert {each.estimates[0].trust for each in answers[1::2]} == {"low: never measured"}
    # what defines the kind of an own accelerator is filled
    facts = {fact: given_facts("B200")[fact] for fact in ("bf16_tflops", "memory_gb_per_s", "memory_gib")}
    machine = {
        "accelerator": "Mine 1",
        "accelerators": 8,
        "task": "bert-99.9/Offline",
        **facts,
    }
    answer = predicted(MLPERF, machine, level=0.05)
    assert {each.column: each.value for each in answer.values}["is_processor"] == 0
    assert answer.estimates[0].trust == "low: never measured"
    assert "never measured: the accelerator Mine 1" in answer.notes


def test_power_of_a_vendor_without_measured_power_is_refused_in_one_line() -> None:
    with pytest.raises(UserError, match="must be of a vendor with results in mlperf_power, but") as caught:
        predicted("mlperf_power", {"accelerator": "TPU v6e Trillium", "accelerators": 8})
    assert "\n" not in str(caught.value) and "AMD, Intel, NVIDIA" in str(caught.value)


def test_weights_that_do_not_fit_are_refused() -> None:
    machine = {
        "accelerator": "Mine 1",
        "bf16_tflops": 120,
        "memory_gb_per_s": 300,
        "memory_gib": 24,
    }
    answer = predicted(MLPERF, {**machine, "accelerators": 1, "task": "llama2-70b/Offline"})
    assert answer.status == "refused" and answer.estimates == ()
    assert "llama2-70b/Offline cannot be predicted: the weights alone" in answer.message
    assert "use 2 or more accelerators" in answer.message
    assert predicted(
        MLPERF,
        {**machine, "accelerators": 2, "task": "llama2-70b/Offline"},
        level=0.05,
    ).estimates


@pytest.mark.parametrize(
    ("dataset", "field", "others"),
    [
        (MLPERF, "accelerator", {"task": "gptj/Offline"}),
        ("ml_energy", "gpu", {"model": "acorn/A-8B", "batch": 64}),
    ],
)
def test_eight_of_a_bare_name_are_read_in_every_dataset(dataset: str, field: str, others: dict[str, object]) -> None:
    (machine,) = read_machines([{field: "8 x H100", **others}])
    parsed = parse_machines([machine], champion(dataset))
    assert parsed.cells[field][0] == "H100 SXM"
    assert parsed.cells["count" if field == "accelerator" else "gpus"][0] == 8


def test_only_the_newest_round_of_a_machine_counts() -> None:
    chosen = champion(MLPERF)
    frame = chosen.reference_data.measured.frame
    keys = ["accelerator", "count", "task"]
    published = frame[frame["variant"] == "base"].groupby(keys)["published"].agg(["nunique", "max"])
    accelerator, count, task = published[published["nunique"] > 1].index[0]
    machine = {"accelerator": accelerator, "accelerators": count, "task": task}
    (estimate,) = predicted(MLPERF, machine).estimates
    of_machine = frame[(frame[keys] == [accelerator, count, task]).all(axis=1) & (frame["variant"] == "base")]
    newest = of_machine[of_machine["published"] == of_machine["published"].max()]
    assert len(newest) < len(of_machine)
    assert estimate.published is not None and estimate.published.count == len(newest)
    assert estimate.published.median == pytest.approx(newest["throughput"].median())


def test_limits_on_watts_and_racks_refuse_candidates() -> None:
    task = task_of(MLPERF)
    limited = {
        "fits": {"watts": 6000, "racks": 1},
        "hot": {"watts": 9000, "racks": 1},
        "large": {"watts": 6000, "racks": 3},
        "unknown": {"watts": 6000},
    }
    machines = [{**H100, "accelerators": 8, "name": name, **of_name} for name, of_name in limited.items()]
    ranking = ranked(machines, task, ("watts <= 7 kW", "racks < 2"))
    assert [each.name for each in ranking.candidates] == ["fits"]
    messages = [each.message for each in ranking.refused]
    assert messages[0] == "watts must be <= 7000, but hot has 9000"
    assert messages[1] == "racks must be < 2, but large has 3"
    assert messages[2] == "racks must be < 2, but unknown has none; add the column racks"
    assert any("watts <= 7000: candidates beyond it are refused" in note for note in ranking.notes)
    with pytest.raises(UserError, match="must be a limit"):
        ranked(machines, task, ("watts >= 7000",))

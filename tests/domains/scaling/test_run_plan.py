"""Training runs by the rules of their dataset, and plans of them from the command line."""

import json

import numpy as np
import pytest
from training_run_project import results

from perfcast.cli.main import main
from perfcast.domains.scaling.run_plan import list_candidates
from perfcast.domains.scaling.training_rules import read_quantity
from perfcast.inference.cells import Cells
from perfcast.inference.rules import find_rules
from perfcast.utils.errors import UserError

RULES = find_rules("llm_ladder")


def cells(**known):
    columns = {name: np.array([known.get(name, np.nan)]) for name in ("params", "tokens", "compute", "multiplier")}
    return Cells(columns, np.array([1]))


def test_quantities_are_read_with_suffixes_and_names_of_runs_and_tasks():
    quantities = {"32B": 32e9, "6T": 6e12, "190 m": 190e6, "1.3b": 1.3e9, "7e9": 7e9, "20": 20}
    assert {text: read_quantity(text, "params") for text in quantities} == quantities
    for text in ("32X", "", "-3B", "B", "3 B B", "1e999", "nan"):
        with pytest.raises(UserError, match=r"params must be a number that may end in M, B or T"):
            read_quantity(text, "params")
    with pytest.raises(UserError, match="has no tokens"):
        RULES.list_notes({"params": 1e9}, {}, "it")
    assert RULES.list_notes({"params": 1e9, "compute": 120.0}, {}, "it") == ()
    aliases = RULES.alias_tasks(["mmlu_bpb", "mmlu_accuracy", "pile_loss"])
    assert aliases == {"mmlu": "mmlu_accuracy", "pile": "pile_loss"}
    assert RULES.name_machine("model_size", {"params": 32e9, "tokens": 6e12}) == "32B parameters, 6T tokens"


def test_two_quantities_imply_the_third_and_impossible_runs_are_refused():
    filled = RULES.fill_implied(cells(params=1e9, tokens=2e10))
    assert filled["compute"] == pytest.approx(120) and filled["multiplier"] == pytest.approx(1)
    assert RULES.fill_implied(cells(params=1e9, compute=120.0))["tokens"] == pytest.approx(2e10)
    for known, columns in (
        ({"params": 1e9, "tokens": 2e10, "compute": 120.0}, []),
        ({"params": 32, "tokens": 6e12}, ["params"]),
        ({"params": 1e9, "tokens": 1e17}, ["tokens"]),
        ({"params": 1e9, "tokens": 2e10, "compute": 5.0}, ["compute"]),
    ):
        assert [violation.columns[0] for violation in RULES.find_violations(cells(**known))] == columns, known


FLAGS = ["--params", "32B", "--tokens", "6T"]
BUDGET = "5e20"


def plan(capsys, *words, code=0):
    command = ["plan", "--dataset", "llm_ladder", "--results", str(results()), *FLAGS, *words]
    assert main(command) == code
    return capsys.readouterr()


def as_json(capsys, *words):
    return json.loads(plan(capsys, "--budget", BUDGET, "--task", "mmlu,pile_loss", "--json", *words).out)


def test_runs_are_within_the_budget_and_narrow_the_intervals(capsys):
    answer = as_json(capsys)
    runs = answer["runs"]
    assert 1 <= len(runs) <= 5 and len({(run["params"], run["tokens"]) for run in runs}) == len(runs)
    assert sum(run["compute"] for run in runs) <= float(BUDGET)
    assert sum(run["share_of_budget"] for run in runs) <= 1
    for run in runs:
        assert run["compute"] == pytest.approx(6 * run["params"] * run["tokens"])
    for task, estimate in enumerate(answer["estimates"]):
        intervals = [estimate, *(run["intervals"][task] for run in runs)]
        lows, highs = ([each[end] for each in intervals] for end in ("low", "high"))
        assert lows == sorted(set(lows)) and highs == sorted(set(highs), reverse=True)
    small, large = (as_json(capsys, "--budget", budget)["runs"][-1]["intervals"][0] for budget in ("3e18", "2e21"))
    assert large["high"] / large["low"] < small["high"] / small["low"]


def test_the_text_is_a_short_table_and_refusals_one_line(capsys):
    printed = plan(capsys, "--budget", BUDGET, "--task", "mmlu")
    assert printed.out.startswith("mmlu_accuracy of 32B parameters, 6T tokens: ")
    for words in ("interval of mmlu_accuracy", f"% of {float(BUDGET):.3g} FLOP"):
        assert words in printed.out
    assert "runs planned by ridge" in printed.err
    assert "mean width" in plan(capsys, "--budget", BUDGET).out, "of many tasks"
    for words, message in (
        (["--budget", "1e13"], "--budget must pay for a run, but 1e+13 FLOP pay for none"),
        (["--budget", "x"], "--budget must be a number from 1e+12 to 1e+30"),
        (["--budget", BUDGET, "--task", "nothing"], "nothing"),
        ([], "--budget is missing"),
    ):
        printed = plan(capsys, *words, code=2).err
        assert message in printed and printed.count("\n") == 1


def predict(capsys, *words):
    """Return the estimates of predict as (task, estimate)."""
    assert main(["predict", "--dataset", "llm_ladder", "--results", str(results()), *FLAGS, "--json", *words]) == 0
    (machine,) = json.loads(capsys.readouterr().out)["machines"]
    return {estimate["task"]: estimate for estimate in machine["estimates"]}


def test_own_runs_are_read_as_predict_reads_them_and_no_accuracy_is_above_1(capsys, tmp_path):
    runs_file = tmp_path / "runs.csv"
    runs_file.write_text("params,tokens,task,value\n7B,1T,mmlu,0.2\n7B,2T,mmlu,0.9\n")
    estimate = predict(capsys, "--task", "mmlu", "--measured", str(runs_file))["mmlu_accuracy"]
    planned = plan(capsys, "--budget", BUDGET, "--task", "mmlu", "--json", "--measured", str(runs_file))
    first = json.loads(planned.out)["estimates"][0]
    assert (first["median"], first["low"]) == pytest.approx((estimate["median"], estimate["low"]))
    assert "times its prediction" in planned.err
    highs = {task: each["high"] for task, each in predict(capsys, "--level", "0.99").items()}
    assert all(high <= 1 for task, high in highs.items() if task.endswith("_accuracy"))
    assert max(highs.values()) > 1, "losses may be"


def test_candidates_stay_within_the_measured_lengths_and_below_the_large_run():
    logs = np.log([[1e8, 1e9], [1e9, 2e11]])
    candidates = list_candidates(logs, np.log([4e9, 8e10]), 1e21)
    lengths = np.exp(candidates[:, 1] - candidates[:, 0])
    assert candidates[:, 0].min() == pytest.approx(np.log(1e8)) and np.exp(candidates[:, 0].max()) <= 4.1e9
    assert lengths.min() >= 10 and lengths.max() <= 200
    assert (6 * np.exp(candidates.sum(axis=1)) <= 1e21).all()
    with pytest.raises(UserError, match="pay for none"):
        list_candidates(logs, np.log([4e9, 8e10]), 1e15)

"""Plans of training runs from the command line: runs, intervals, own runs, refusals."""

import json

import numpy as np
import pytest
from training_run_project import results

from perfcast.cli.main import main
from perfcast.domains.scaling.run_plan import list_candidates
from perfcast.utils.errors import UserError

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
    assert 1 <= len(runs) <= 5
    assert sum(run["compute"] for run in runs) <= float(BUDGET)
    assert sum(run["share_of_budget"] for run in runs) <= 1
    for run in runs:
        assert run["compute"] == pytest.approx(6 * run["params"] * run["tokens"])
    assert len({(run["params"], run["tokens"]) for run in runs}) == len(runs)
    for task, estimate in enumerate(answer["estimates"]):
        ends = [(estimate["low"], estimate["high"])]
        ends += [(run["intervals"][task]["low"], run["intervals"][task]["high"]) for run in runs]
        lows, highs = zip(*ends, strict=True)
        assert list(lows) == sorted(set(lows)) and list(highs) == sorted(set(highs), reverse=True)


def test_a_larger_budget_narrows_more(capsys):
    small, large = (as_json(capsys, "--budget", budget)["runs"][-1]["intervals"][0] for budget in ("3e18", "2e21"))
    assert large["high"] / large["low"] < small["high"] / small["low"]


def test_the_text_is_a_short_table(capsys):
    printed = plan(capsys, "--budget", BUDGET, "--task", "mmlu")
    assert printed.out.startswith("mmlu_accuracy of 32B parameters, 6T tokens: ")
    assert "interval of mmlu_accuracy" in printed.out
    assert f"% of {float(BUDGET):.3g} FLOP" in printed.out
    assert "runs planned by ridge" in printed.err


def test_many_tasks_have_their_mean_width(capsys):
    assert "mean width" in plan(capsys, "--budget", BUDGET).out


def test_own_runs_are_read_as_predict_reads_them(capsys, tmp_path):
    runs_file = tmp_path / "runs.csv"
    runs_file.write_text("params,tokens,task,value\n7B,1T,mmlu,0.2\n7B,2T,mmlu,0.9\n")
    measured = ["--measured", str(runs_file)]
    words = ["predict", "--dataset", "llm_ladder", "--results", str(results()), *FLAGS, "--task", "mmlu", "--json"]
    assert main([*words, *measured]) == 0
    printed = capsys.readouterr()
    estimate = json.loads(printed.out)["machines"][0]["estimates"][0]
    planned = as_json(capsys, *measured)["estimates"][0]
    assert (planned["median"], planned["low"]) == pytest.approx((estimate["median"], estimate["low"]))
    assert "times its prediction" in printed.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--budget", "1e13"], "--budget must pay for a run, but 1e+13 FLOP pay for none"),
        (["--budget", "x"], "--budget must be a number from 1e+12 to 1e+30"),
        (["--budget", BUDGET, "--task", "nothing"], "nothing"),
        ([], "--budget is missing"),
    ],
)
def test_requests_that_cannot_be_planned_are_refused(words, message, capsys):
    printed = plan(capsys, *words, code=2).err
    assert message in printed
    assert printed.count("\n") == 1


def test_candidates_stay_within_the_measured_lengths_and_below_the_large_run():
    logs = np.log([[1e8, 1e9], [1e9, 2e11]])
    candidates = list_candidates(logs, np.log([4e9, 8e10]), 1e21)
    lengths = np.exp(candidates[:, 1] - candidates[:, 0])
    assert candidates[:, 0].min() == pytest.approx(np.log(1e8)) and np.exp(candidates[:, 0].max()) <= 4.1e9
    assert lengths.min() >= 10 and lengths.max() <= 200
    assert (6 * np.exp(candidates.sum(axis=1)) <= 1e21).all()
    with pytest.raises(UserError, match="pay for none"):
        list_candidates(logs, np.log([4e9, 8e10]), 1e15)


def test_no_accuracy_is_above_1(capsys):
    command = ["predict", "--dataset", "llm_ladder", "--results", str(results()), *FLAGS, "--level", "0.99", "--json"]
    assert main(command) == 0
    (machine,) = json.loads(capsys.readouterr().out)["machines"]
    highs = {estimate["task"]: estimate["high"] for estimate in machine["estimates"]}
    assert all(high <= 1 for task, high in highs.items() if task.endswith("_accuracy"))
    assert max(highs.values()) > 1, "losses may be"

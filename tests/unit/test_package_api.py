"""perfcast for Python: the answers of the commands, explicit arguments, short and safe representations."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from dataclasses import replace
from datetime import date
from pathlib import Path

import pandas as pd
import pytest
from champion_project import KNOWN, project

import perfcast
from perfcast.cli.main import main
from perfcast.decisions.ranking import Ranking
from perfcast.inference.options import read_month
from perfcast.inference.prediction import REFUSED, Estimate, Prediction, Predictions
from perfcast.serving.api_models import PredictQuery
from perfcast.serving.request_limits import DEFAULT_LIMITS
from perfcast.utils.errors import UserError

ROOT = Path(__file__).parents[2]
FLAGS = ["--processor", "Xeon Gold 6148", "--chips", "2"]


@pytest.fixture(scope="module")
def champion():
    return perfcast.load_champion(project().folder)


def printed(capsys, *words):
    assert main([*words, "--champion", str(project().folder), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def plain(answer):
    return json.loads(json.dumps(answer.to_dict()))


def test_answers_are_those_of_the_commands(champion, capsys, tmp_path):
    machines = tmp_path / "machines.csv"
    machines.write_text("processor,chips,price\nXeon Gold 6148,2,9000\nXeon Gold 6148,1,5000\n")
    target = "CINT2017rate >= 100"
    shown = printed(capsys, "predict", *FLAGS)["machines"][0]["estimates"]
    for answer in (champion.predict(KNOWN), perfcast.predict(KNOWN, project().folder)):
        assert plain(answer)["machines"][0]["estimates"] == shown
    ranked = champion.rank(machines, targets=target, by="score/price")
    options = ["--target", target, "--by", "score/price"]
    assert plain(ranked) == printed(capsys, "rank", str(machines), *options)
    grid = champion.what_if(
        KNOWN, vary={"memory": ["12 x 32 GB DDR4-2666", "12 x 16 GB DDR4-2666"]}, tasks="CINT2017rate"
    )
    vary = "memory=12 x 32 GB DDR4-2666|12 x 16 GB DDR4-2666"
    command = printed(capsys, "what-if", *FLAGS, "--vary", vary, "--task", "CINT2017rate")
    assert plain(grid)["combinations"] == command["combinations"]
    similar = champion.similar(KNOWN, count=2, tasks=["CINT2017rate"])
    command = printed(capsys, "similar", *FLAGS, "--count", "2", "--task", "CINT2017rate")
    assert plain(similar)["machines"][0]["similar"] == command["machines"][0]["similar"]


def test_a_month_is_a_text_a_date_or_that_of_the_newest_result_at_every_door(champion, monkeypatch):
    assert read_month("2020-06") == read_month(date(2020, 6, 1)) == pd.Timestamp(2020, 6, 1)
    assert read_month(None) is None
    requested = []
    monkeypatch.setattr("perfcast.api.predict_machines", lambda *arguments, strict: requested.append(arguments[2]))
    for when in (None, "2020-06"):
        champion.predict(KNOWN, when=when)
    newest = PredictQuery().to_options(1, DEFAULT_LIMITS)
    assert requested == [newest, replace(newest, when=pd.Timestamp(2020, 6, 1))]


def test_a_wrong_value_is_a_value_error_that_names_the_argument(champion):
    for call, words in [
        (lambda: champion.predict(KNOWN, when="0001-01"), "when must be a month such as 2026-03, from 1990 to 2099"),
        (lambda: champion.predict(KNOWN, level=90), "level must be between 0 and 1, but it is 90; 0.9 means 90 %"),
        (lambda: champion.predict(KNOWN, level="nonsense"), "level must be between 0 and 1, but it is 'nonsense'"),
        (lambda: champion.rank(KNOWN, targets=["fast"]), "targets must be TASK >= NUMBER"),
        (lambda: champion.rank(KNOWN, sure=0.5), "sure needs a target, but there is no targets"),
        (lambda: champion.what_if(KNOWN, vary={}), "there is no vary"),
        (lambda: champion.similar(KNOWN, tasks="CINT2071rate"), "tasks"),
        (lambda: champion.similar(KNOWN, count=0), "count must be between 1 and 1000"),
    ]:
        with pytest.raises(ValueError) as error:
            call()
        assert isinstance(error.value, UserError) and words in str(error.value)
        assert "--" not in str(error.value), "arguments instead of options"


def test_a_wrong_keyword_names_the_nearest(champion):
    with pytest.raises(TypeError, match=r"predict\(\) has no argument 'wen'; did you mean 'when'"):
        champion.predict(KNOWN, wen=3)
    with pytest.raises(TypeError, match="'levels'; did you mean 'level'"):
        perfcast.predict(KNOWN, champion, levels=0.5)
    with pytest.raises(TypeError, match="'alpha'; did you mean 'alphas'"):
        perfcast.estimator("Ridge", alpha=1.0)


def test_estimator_takes_presets_of_the_configuration():
    quick, full = (perfcast.estimator("hybrid_trees", preset=preset) for preset in ("quick", "full"))
    trees = [predictor.get_params()["learners"]["extra_trees"] for predictor in (quick, full)]
    assert trees[0]["n_estimators"] < trees[1]["n_estimators"]
    few = perfcast.estimator("hybrid_trees", preset="full", learners={"extra_trees": {"n_estimators": 7}})
    assert few.get_params()["learners"]["extra_trees"] == {**trees[1], "n_estimators": 7}
    assert perfcast.estimator("hybrid_trees").get_params() == full.get_params()
    assert type(perfcast.estimator("AnalyticalPredictor", preset="quick")).__name__ == "AnalyticalPredictor"
    assert perfcast.estimator("ridge").get_params() == perfcast.estimator("Ridge").get_params()
    with pytest.raises(ValueError, match="preset must be quick or full, but it is 'quik'"):
        perfcast.estimator("ridge", preset="quik")


def test_answers_have_short_representations_and_escape_texts(champion):
    answer = champion.predict({**KNOWN, "suite": "CINT2017rate"})
    for value in (champion, answer, answer.machines[0], answer.machines[0].estimates[0], champion.similar(KNOWN)):
        assert len(repr(value)) < 150
        assert repr(value).startswith("<")
    html = answer._repr_html_()
    assert "SPECrate2017_int_base" in html and "not official results" in html
    name = "<script>alert('a')</script>"
    estimate = Estimate(name, name, 1.0, None, None, 0.9, "", None, None, 0, 0)
    hostile = Predictions(name, name, name, "", (Prediction(1, name, (estimate,)),), 1)
    assert "<script" not in hostile._repr_html_()
    assert "&lt;script" in hostile._repr_html_()
    for machine in (*hostile.machines, Prediction(1, name, (), status=REFUSED, message=name)):
        assert "<script" not in machine._repr_html_()
        assert "&lt;script" in machine._repr_html_()
    assert Ranking.__repr__ is Predictions.__repr__
    shown = champion._repr_html_()
    count = len(champion.reference_data.measured.frame)
    for value in (champion.dataset, champion.name, f"{count:,}", *champion.tasks, *champion.predictor.targets_):
        assert f"{value}" in shown
    assert "<script" not in replace(champion, name="<script>")._repr_html_()
    assert "Ridge" in perfcast.estimator("ridge")._repr_html_()


def test_inference_imports_no_learning_library():
    # their import takes longer than a prediction; the predictor of the champion imports what it needs
    heavy = ["sklearn", "scipy", "torch", "mlflow", "pytorch_lightning", "matplotlib", "rich"]
    code = (
        "import sys, perfcast.inference, perfcast.domains.servers.predictors.shift_weights, perfcast.predictors.trees\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"[]\n"


def test_import_is_lazy():
    code = "import sys, time; t = time.perf_counter(); import perfcast; print(time.perf_counter() - t, *sys.modules)"
    command = [sys.executable, "-c", code]
    printed = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(3)]
    assert min(float(words[0]) for words in printed) < 0.2
    assert not {"numpy", "pandas", "perfcast.api"} & set(printed[0])


SAMPLE = """
from dataclasses import replace
from datetime import date
import perfcast

champion = perfcast.load_champion("champion.zip")
machine = {"processor": "EPYC 9654", "chips": 2}
answer = perfcast.predict(machine, champion, when=date(2026, 3, 1), level=0.8)
median: float = answer.machines[0].estimates[0].median
best: str = champion.rank([machine], targets=["CINT2017rate >= 1500"]).candidates[0].name
grid = champion.what_if(machine, vary={"cores": [64, 96]})
forest = perfcast.estimator("hybrid_trees", preset="quick", learners={"extra_trees": {"n_estimators": 5}})
perfcast.predict(machine, champion, wen=3)  # wrong
perfcast.predict(machine, champion, level="nonsense")  # wrong
champion.similar(machine, count="ten")  # wrong
perfcast.estimator("ridge", preset="fast")  # wrong
answer.machine  # wrong
"""


@pytest.mark.slow
def test_wrong_arguments_do_not_type_check(tmp_path):
    (tmp_path / "sample.py").write_text(textwrap.dedent(SAMPLE))
    command = ["mypy", "--config-file", str(ROOT / "pyproject.toml"), "--follow-imports", "silent", "sample.py"]
    done = subprocess.run(
        [sys.executable, "-m", *command, "--cache-dir", str(tmp_path / "cache")],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    wrong = [number for number, line in enumerate(SAMPLE.splitlines(), start=1) if line.endswith("# wrong")]
    marked = [int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line]
    assert marked == wrong, done.stdout + done.stderr


NOTEBOOK = ROOT / "examples" / "predict.ipynb"


def cells():
    return [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]


def test_notebook_runs(tmp_path, monkeypatch):
    import matplotlib as mpl

    mpl.use("Agg")
    (tmp_path / "results").symlink_to(project().results)
    (tmp_path / "examples").mkdir()
    monkeypatch.chdir(tmp_path / "examples")
    names = {}
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells())
    for cell in cells():
        source = "".join(cell["source"])
        exec(compile(source, NOTEBOOK.name, "exec"), names)
    assert names["after"].machines[0].estimates[2].median > names["rate"].median
    assert len(names["curve"]) == len(names["counts"])
    assert set(names["errors"]) == {"Ridge", "LightgbmPredictor"}


@pytest.mark.parametrize(
    ("name", "parameters", "kind", "words"),
    [("RigdePredictor", {}, UserError, "Ridge"), ("Ridge", {"clap": 1}, TypeError, "'clip' or 'alphas'")],
)
def test_estimator_refuses_unknown_names(name, parameters, kind, words):
    with pytest.raises(kind) as error:
        perfcast.estimator(name, **parameters)
    assert words in str(error.value)


def test_package_exports_its_names():
    assert sorted(perfcast.__all__) == dir(perfcast)
    assert {"load_champion", "predict", "estimator"} <= set(dir(perfcast))
    with pytest.raises(AttributeError, match="no attribute 'predict_all'"):
        _ = perfcast.predict_all

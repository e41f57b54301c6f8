"""Comparison of two results folders: planted changes are reported, equal results have none."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import yaml

from perfcast.cli.main import main
from perfcast.evaluation import AVERAGE
from perfcast.evaluation.results_diff import find_changes, open_side
from perfcast.evaluation.results_diff.diff_page import as_page
from perfcast.evaluation.results_diff.diff_text import as_text
from perfcast.evaluation.results_diff.input_changes import ABSENT
from perfcast.evaluation.results_diff.metric_changes import METRICS, Only, assign_verdicts
from perfcast.schema.table_files import read_table, write_table
from perfcast.testing.generated_results import LESS_TRAINING, write_results
from perfcast.utils.errors import UserError
from perfcast.utils.result_digests import record_digests

SPLITS = ("random", "unseen_cpu", "forward_2023")
RUNS = 5 * (len(SPLITS) + len(LESS_TRAINING))
CONFIG = {
    "predictor": {"name": "any", "settings": {"quick": {"alpha": 1.0, "depth": 3}}},
    "preset": "quick",
    "seeds": [0],
}


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """A results folder as the pipeline leaves it, with a configuration beside every run."""
    folder = tmp_path_factory.mktemp("compare") / "before"
    write_results(folder, rows=600, seed=0)
    for run in (folder / "runs").glob("*/*/*"):
        (run / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    return folder


def copied(before, tmp_path, name="after"):
    shutil.copytree(before, tmp_path / name)
    return tmp_path / name


def change(folder, predictor, errors, splits=SPLITS):
    """Replace the log errors of one predictor: `errors` maps the old ones to new ones."""
    for split in splits:
        path = folder / "runs" / "fake" / split / predictor / "predictions.parquet"
        frame = pd.read_parquet(path)
        logs = errors(np.log(frame["predicted"] / frame["measured"]).to_numpy())
        frame.assign(predicted=frame["measured"] * np.exp(logs)).to_parquet(path, index=False)


def again(logs):
    """Other errors of the same size, shared by nothing."""
    return np.random.default_rng(3).permutation(logs)


def compared(before, after, **options):
    with open_side(str(before), before.parent) as a, open_side(str(after), before.parent) as b:
        return find_changes(a, b, before.parent, resamples=200, **options)


@pytest.fixture(scope="module")
def changes(before, tmp_path_factory):
    """A planted improvement, a planted worsening, errors drawn anew, and what nothing happened to."""
    after = copied(before, tmp_path_factory.mktemp("compare"))
    change(after, "ridge", lambda logs: 0.7 * logs)
    change(after, "power_law", lambda logs: 1.4 * logs, splits=["random"])
    change(after, "forest", again)
    return compared(before, after)


def test_find_changes_of_equal_folders_is_empty(before):
    diff = compared(before, before)
    frame = diff.metrics.frame
    assert len(frame) == RUNS * 3 * len(METRICS)
    assert (frame["difference"] == 0).all()
    assert set(frame["verdict"]) == {"no real change"}
    assert not (diff.sources or diff.tables or diff.code or diff.parameters or diff.metrics.left_out)
    assert diff.same_tables == 2 + len(SPLITS) + len(LESS_TRAINING)
    assert not diff.worse
    content = as_text(diff)
    compared_metrics = RUNS * 3 * len(METRICS)
    assert content.splitlines()[0] == f"{before} -> {before}: all metrics are the same (of {compared_metrics} compared)"


def test_find_changes_reports_a_planted_improvement_only(changes):
    frame = changes.metrics.frame
    mape = frame[(frame["metric"] == "mape") & (frame["task"] == AVERAGE)].set_index(["split", "predictor"])
    for split in SPLITS:
        row = mape.loc[split, "ridge"]
        assert row["verdict"] == "better"
        assert row["low"] < row["difference"] < row["high"] < 0
        assert row["after"] == pytest.approx(0.7 * row["before"], rel=0.05)
        assert mape.loc[split, "forest"]["verdict"] == "no real change"
        assert mape.loc[split, "forest"]["difference"] != 0
        for predictor in ("nearest", "network"):
            assert mape.loc[split, predictor]["difference"] == 0
    assert mape.loc["random", "power_law"]["verdict"] == "worse"
    assert mape.loc["forward_2023", "power_law"]["difference"] == 0
    assert changes.worse


def test_coverage_changes_are_rated_by_distance_from_the_level(changes):
    frame = changes.metrics.frame
    rows = frame[(frame["metric"] == "coverage") & (frame["task"] == AVERAGE) & (frame["split"] == "random")]
    row = rows.set_index("predictor").loc["power_law"]
    assert row["after"] < row["before"] - 3
    assert row["verdict"] == "worse"
    widths = frame[(frame["metric"] == "width") & (frame["predictor"] == "power_law")]
    assert (widths["difference"] == 0).all(), "backtests are the same"


def test_metric_changes_equal_the_evaluation(changes, before):
    content = json.loads((before / "evaluation" / "fake" / "summary.json").read_text())["metrics"]
    for row in changes.metrics.frame.to_dict("records"):
        assert row["before"] == pytest.approx(
            content[row["split"]][row["predictor"]][row["task"]][row["metric"]], rel=1e-5
        )


def test_text_lists_real_changes_first(changes):
    short, full = as_text(changes), as_text(changes, everything=True)
    assert "better" in short.splitlines()[0] and "worse" in short.splitlines()[0]
    assert "\x1b" not in short
    assert "forest" not in short
    lines = [line for line in full.splitlines() if line.startswith(("random", "unseen_cpu", "forward_2023"))]
    assert len(lines) == RUNS * 3 * len(METRICS)
    real = [line.rsplit("  ", 1)[-1] != "no real change" for line in lines]
    assert real == sorted(real, reverse=True)
    assert max(map(len, short.splitlines())) < 220  # the first line has both paths


def test_diff_page_is_deterministic_and_loads_nothing(changes):
    page = as_page(changes)
    assert page == as_page(changes)
    assert page.count("<svg") == 1
    assert "http://www.w3.org" not in page.replace("xmlns", "") or "src=" not in page
    for loads in ("<link", "src=", "@import", "fetch("):
        assert loads not in page
    assert page.count("<table") == page.count("</table>") == 2


def test_compare_command_writes_json(changes, before, tmp_path, capsys):
    after = copied(before, tmp_path)
    change(after, "ridge", lambda logs: 2 * logs)
    arguments = ["results", "compare", str(before), str(after), "--json", "--predictors", "ridge", "--resamples", "100"]
    assert main(arguments) == 0
    tree = json.loads(capsys.readouterr().out)
    assert {row["predictor"] for row in tree["metrics"]} == {"ridge"}
    assert tree["summary"]["real"]["worse"] > 0
    assert main([*arguments, "--fail-if-worse", "--html", str(tmp_path / "page.html")]) == 1
    assert main(["results", "compare", str(after), str(before), *arguments[4:], "--fail-if-worse"]) == 0
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_parameter_changes_are_listed_by_key(before, tmp_path):
    after = copied(before, tmp_path)
    for run in (after / "runs").glob("*/*/*"):
        changed = {**CONFIG, "preset": "full", "predictor": {"name": "any", "settings": {"full": {"depth": 3}}}}
        if run.name == "ridge":
            changed["predictor"]["settings"]["full"] = {"depth": 4, "alpha": 1.0}
        (run / "config.yaml").write_text(yaml.safe_dump(changed))
    summary = after / "evaluation" / "fake" / "summary.json"
    summary.write_text(summary.read_text().replace('"level": 0.9', '"level": 0.8'))
    record_digests(summary.parent)
    changes = compared(before, after, only=Only(predictors=["nearest"]))
    parameters = {parameter.key: parameter for parameter in changes.parameters}
    assert set(parameters) == {"evaluation.level", "preset", "predictor.settings.depth", "predictor.settings.alpha"}
    assert (parameters["preset"].before, parameters["preset"].after) == ("quick", "full")
    assert len(parameters["preset"].where) == RUNS
    assert {run.split("/")[-1] for run in parameters["predictor.settings.depth"].where} == {"ridge"}
    assert parameters["predictor.settings.alpha"].after == ABSENT
    content = as_text(changes)
    assert f"preset: quick -> full ({RUNS} runs of 5 predictors)" in content
    assert f"predictor.settings.depth: 3 -> 4 ({RUNS // 5} runs of ridge)" in content


def test_changed_level_changes_width_and_no_error(before, tmp_path):
    after = copied(before, tmp_path)
    summary = after / "evaluation" / "fake" / "summary.json"
    summary.write_text(summary.read_text().replace('"level": 0.9', '"level": 0.5'))
    record_digests(summary.parent)
    frame = compared(before, after, only=Only(predictors=["ridge"], splits=["random"])).metrics.frame
    assert (frame.loc[frame["metric"] == "mape", "difference"] == 0).all()
    assert set(frame.loc[frame["metric"] == "width", "verdict"]) == {"narrower"}


def test_missing_rows_are_reported_and_unpaired(before, tmp_path):
    after = copied(before, tmp_path)
    table = read_table(after / "standard" / "fake.parquet")
    gone = set(table.frame["id"].iloc[::10])
    frame = table.frame[~table.frame["id"].isin(gone)].assign(
        chips=lambda frame: frame["chips"].where(frame["chips"] < 4, 8)
    )
    write_table(
        type(table)(table.dataset, frame.reset_index(drop=True), table.columns), after / "standard" / "fake.parquet"
    )
    tested = 0
    for path in (after / "runs").rglob("predictions.parquet"):
        content = pd.read_parquet(path)
        if path.parent.parent.name == "random":
            tested = content["row"].isin(gone)[content["seed"] == 0].sum()
            content = content[~content["row"].isin(gone)]
            content.to_parquet(path, index=False)
    diff = compared(before, after, only=Only(splits=["random"]))
    (change,) = diff.tables
    assert (change.removed, change.added) == (60, 0)
    assert set(change.columns_changed) == {"chips"}
    assert change.changed == change.columns_changed["chips"] == (frame["chips"] == 8).sum()
    (rows,) = diff.metrics.rows
    assert (rows.only_before, rows.only_after) == (tested, 0)
    assert (diff.metrics.frame["difference"] == 0).all(), "shared rows have equal predictions"
    assert f"left out {tested} only before, 0 only after" in as_text(diff)


def test_changed_measured_scores_are_reported(before, tmp_path):
    after = copied(before, tmp_path)
    for path in (after / "runs" / "fake" / "random").rglob("predictions.parquet"):
        frame = pd.read_parquet(path)
        frame.loc[frame["row"].isin(sorted(set(frame["row"]))[:7]), "measured"] *= 1.5
        frame.to_parquet(path, index=False)
    diff = compared(before, after, only=Only(splits=["random"]))
    assert diff.metrics.rows[0].remeasured == 7
    assert "7 shared rows have another measured score" in as_text(diff)


def test_seeds_are_averaged_where_they_differ(before, tmp_path):
    after = copied(before, tmp_path)
    path = after / "runs" / "fake" / "random" / "network" / "predictions.parquet"
    frame = pd.read_parquet(path)
    frame[frame["seed"] == 0].to_parquet(path, index=False)
    row = compared(before, after, only=Only(predictors=["network"], splits=["random"])).metrics.frame.iloc[0]
    assert row["difference"] != 0
    assert row["verdict"] == "no real change"


def test_sources_are_compared_by_checksum(before, tmp_path):
    after = copied(before, tmp_path)
    path = after / "raw" / "fake" / "manifest.json"
    path.write_text(path.read_text().replace("0" * 64, "1" * 64))
    diff = compared(before, after, only=Only(predictors=["nearest"]))
    assert [(source.source, source.file, source.after) for source in diff.sources] == [
        ("fake", "fake.csv.gz", "1" * 64)
    ]
    assert f"source fake/fake.csv.gz: {'0' * 12} -> {'1' * 12}" in as_text(diff)


def test_run_of_one_side_is_reported(before, tmp_path):
    after = copied(before, tmp_path)
    shutil.rmtree(after / "runs" / "fake" / "random" / "ridge")
    diff = compared(before, after, only=Only(splits=["random"], predictors=["nearest", "ridge"]))
    assert diff.metrics.left_out == [
        f"predictor fake/random/ridge: {after} has no runs/fake/random/ridge/predictions.parquet"
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{before}", "nothing_of_that_name"], "neither a folder nor a tag, branch, commit"),
        (["{empty}", "{before}"], "must hold an evaluation"),
        (["{before}", "{before}", "--predictors", "oracle"], "must share a dataset, a split and a predictor"),
        (["{before}", "{other}"], "dataset fake: only before"),
        (["{before}", "{bare}"], "has no runs/fake/"),
    ],
)
def test_compare_command_reports_mistakes_in_one_line(arguments, words, before, tmp_path, capsys):
    places = {name: tmp_path / name for name in ("empty", "other", "bare")}
    places["empty"].mkdir()
    shutil.copytree(before / "evaluation" / "fake", places["other"] / "evaluation" / "another")
    shutil.copytree(before / "evaluation", places["bare"] / "evaluation")
    options = [argument.format(before=before, **places) for argument in arguments]
    assert main(["results", "compare", *options, "--project", str(tmp_path)]) == 2
    content = capsys.readouterr().err
    assert content.count("\n") == 1
    assert words in content


def test_find_changes_needs_shared_test_rows(before, tmp_path):
    after = copied(before, tmp_path)
    for path in (after / "runs").rglob("predictions.parquet"):
        frame = pd.read_parquet(path)
        frame.assign(row="x" + frame["row"]).to_parquet(path, index=False)
    with pytest.raises(UserError, match="none of their test rows have the same key"):
        compared(before, after)


@pytest.mark.parametrize(("after", "verdict"), [(95.0, "better"), (70.0, "worse"), (98.0, "moved")])
def test_coverage_is_compared_by_its_distance_from_the_level(after, verdict):
    random = np.random.default_rng(0)
    values = np.array([82.0]), np.array([after])
    draws = tuple(value[:, None] + random.normal(0, 0.5, (1, 500)) for value in values)
    (row,) = assign_verdicts("coverage", values, draws, (90.0, 90.0), clusters=30)
    assert row["verdict"] == verdict
    assert row["difference"] == after - 82


def test_verdict_of_one_cluster_is_undecided():
    draws = np.ones((1, 50)), np.zeros((1, 50))
    (row,) = assign_verdicts("mape", (np.array([1.0]), np.array([0.0])), draws, (90.0, 90.0), clusters=1)
    assert row["verdict"] == "cannot tell"

import dataclasses

import numpy as np
import pandas as pd
import pytest
from generated_results import LESS_TRAINING, PUBLISHED, fake_table, write_in_domain, write_runs

from perfcast.evaluation import (
    AVERAGE,
    choose_champion,
    evaluate,
    headline,
    metrics_tree,
    read_evaluation,
    write_evaluation,
)
from perfcast.evaluation.predictor_comparison import clear_winner
from perfcast.evaluation.run_predictions import read_backtests, read_predictions, with_intervals
from perfcast.evaluation.supplementary_tables import estimate_noise_floor
from perfcast.schema.table import Column, Kind, Role, Tag, build_table
from perfcast.utils.errors import UserError


@pytest.fixture(scope="module")
def table():
    return fake_table(rows=1500, seed=0)


@pytest.fixture(scope="module")
def runs(table, tmp_path_factory):
    return write_runs(table, tmp_path_factory.mktemp("runs"), seed=1)


@pytest.fixture(scope="module")
def in_domain(table, tmp_path_factory):
    return write_in_domain(table, tmp_path_factory.mktemp("in_domain"), seed=1)


@pytest.fixture(scope="module")
def evaluation(table, runs, in_domain):
    return evaluate(runs, table, resamples=200, seed=0, published=PUBLISHED, in_domain=in_domain)


def test_evaluate_puts_every_metric_inside_its_interval(evaluation):
    assert len(evaluation.metrics) == (3 + len(LESS_TRAINING)) * 5 * 3 * 10
    assert (evaluation.metrics["low"] <= evaluation.metrics["value"] + 0.5).all()
    assert (evaluation.metrics["high"] >= evaluation.metrics["value"] - 0.5).all()
    assert evaluation.ranking() == ["network", "forest", "ridge", "power_law", "nearest"]


def test_mape_is_pooled_over_folds_and_averaged_over_tasks_and_seeds(evaluation, runs):
    frame = pd.read_parquet(runs["unseen_cpu", "network"] / "predictions.parquet")
    error = 100 * (frame["predicted"] / frame["measured"] - 1).abs()
    by_task = error.groupby([frame["task"], frame["seed"]]).mean().unstack()
    row = evaluation.value("unseen_cpu", "network")
    assert row["value"] == pytest.approx(by_task.to_numpy().mean())
    assert row["seed_sd"] == pytest.approx(by_task.mean().std())
    assert row["seeds"] == 2
    assert row["rows"] == frame["row"].nunique()


def test_seed_sd_of_one_seed_is_nan(evaluation):
    assert np.isnan(evaluation.value("random", "nearest")["seed_sd"])


def test_paired_differences_are_narrower_than_the_intervals_they_compare(evaluation):
    rows = evaluation.tables["paired"].query("against == 'baseline' and task == @AVERAGE and metric == 'mape'")
    assert set(rows["predictor"]) == {"network", "forest", "ridge", "power_law"}
    network = rows[(rows["predictor"] == "network") & (rows["split"] == "random")].iloc[0]
    value = [evaluation.value("random", name)["value"] for name in ("network", "nearest")]
    assert network["difference"] == pytest.approx(value[0] - value[1])
    assert network["claim"] == "better"
    assert clear_winner(evaluation.tables["paired"], "random", AVERAGE, "mape") == "network"


def test_equal_predictors_have_no_claim(table, tmp_path):
    runs = write_runs(table, tmp_path, seed=1, errors={"nearest": 0.1, "ridge": 0.1})
    for (split, predictor), folder in list(runs.items()):
        if predictor == "ridge":
            runs[split, predictor] = runs[split, "nearest"]
            assert folder != runs[split, predictor]
    result = evaluate(runs, table, resamples=100, seed=0)
    assert (result.tables["paired"]["difference"] == 0).all()
    assert (result.tables["paired"]["claim"] == "undecided").all()
    assert clear_winner(result.tables["paired"], "random", AVERAGE, "mape") is None


def test_slices_are_the_tasks_the_tagged_columns_and_the_year(evaluation):
    assert list(dict.fromkeys(evaluation.tables["slices"]["slice"])) == [
        "suite",
        "machine_vendor",
        "generation",
        "year",
    ]
    rows = evaluation.tables["slices"].query("split == 'random' and predictor == 'nearest'")
    totals = rows.groupby("slice")["rows"].sum()
    assert totals.nunique() == 1


def test_noise_floor_matches_values_computed_by_hand():
    columns = (
        Column("id", Kind.CATEGORICAL, Role.KEY, "provenance", tags=(Tag.ROW,)),
        Column("machine", Kind.CATEGORICAL, Role.FEATURE, "system", tags=(Tag.CONFIG,)),
        Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
    )
    frame = pd.DataFrame({"id": list("abcde"), "machine": ["m", "m", "n", None, None], "score": [9, 11, 5, 20, 20]})
    floor = estimate_noise_floor(pd.DataFrame({"task": ["only"]}), build_table("small", frame, columns))
    only = floor[floor["task"] == "only"].iloc[0]
    cv = 100 * np.std([9, 11], ddof=1) / 10
    assert (only["configurations"], only["rows"]) == (2, 4)
    assert only["cv_mean"] == pytest.approx(cv / 2)
    assert only["mape_floor"] == pytest.approx(100 * np.sqrt(2) * (1 / 9 + 1 / 11) / 4)


def test_noise_floor_recovers_the_error_of_an_oracle():
    random = np.random.default_rng(0)
    columns = (
        Column("id", Kind.NUMERICAL, Role.KEY, "provenance", tags=(Tag.ROW,)),
        Column("machine", Kind.NUMERICAL, Role.FEATURE, "system", tags=(Tag.CONFIG,)),
        Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
    )
    noise = random.normal(0, 0.02, 4000)
    frame = pd.DataFrame({"id": range(4000), "machine": np.arange(4000) // 2, "score": 50 * np.exp(noise)})
    floor = estimate_noise_floor(pd.DataFrame({"task": ["only"]}), build_table("noisy", frame, columns))
    assert floor.iloc[0]["mape_floor"] == pytest.approx(100 * np.abs(noise).mean(), rel=0.05)


def test_evaluate_accepts_a_dataset_without_configurations_and_slices(table, runs):
    plain = dataclasses.replace(
        table,
        columns=tuple(
            dataclasses.replace(column, tags=tuple(set(column.tags) & {Tag.ROW, Tag.TASK})) for column in table.columns
        ),
    )
    result = evaluate(runs, plain, resamples=20, seed=0)
    assert result.tables["noise"].empty
    assert set(result.tables["slices"]["slice"]) == {"suite"}
    assert "noise floor" not in headline(result)


def test_write_evaluation_is_deterministic(table, runs, evaluation, in_domain, tmp_path):
    write_evaluation(evaluation, tmp_path / "one")
    again = evaluate(runs, table, resamples=200, seed=0, published=PUBLISHED, in_domain=in_domain)
    write_evaluation(again, tmp_path / "two")
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert len(names) == 16
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_intervals_are_calibrated_on_every_split(evaluation):
    metrics = evaluation.metrics[evaluation.metrics["split"].isin(evaluation.ranked_splits)]
    coverage = metrics[metrics["metric"] == "coverage"]
    # what was backtested erred a tenth more than the test rows, but for the errors that a part's rows share
    assert coverage["value"].between(84, 97).all()
    assert (
        evaluation.value("random", "nearest", metric="width")["value"]
        > 3 * (evaluation.value("random", "network", metric="width")["value"])
    )
    for name in ("machine_vendor", "generation", "year"):
        assert (
            evaluation.tables["slices"]
            .loc[evaluation.tables["slices"]["slice"] == name, "coverage"]
            .between(60, 100)
            .all()
        )


def test_in_domain_table_has_errors_by_score(evaluation):
    in_domain_rows = evaluation.tables["in_domain"][
        (evaluation.tables["in_domain"]["split"] == "random") & (evaluation.tables["in_domain"]["predictor"] == "ridge")
    ]
    assert (in_domain_rows["from"] <= in_domain_rows["in_domain_score"]).all() and (
        in_domain_rows["in_domain_score"] <= in_domain_rows["to"]
    ).all()
    assert in_domain_rows["rows"].sum() == evaluation.value("random", "ridge")["rows"]
    assert (in_domain_rows["mape"] > 0).all()


def test_evaluate_without_distances_or_backtests_has_no_intervals(table, runs, in_domain):
    plain = evaluate(runs, table, resamples=10, seed=0)
    assert plain.metrics.loc[plain.metrics["metric"] == "coverage", "value"].isna().all()
    assert plain.tables["in_domain"].empty


def test_with_intervals_calibrates_each_fold_by_its_backtests(runs, in_domain):
    folder = runs["unseen_cpu", "ridge"]
    predictions, backtests = (pd.read_parquet(folder / f"{name}.parquet") for name in ("predictions", "backtest"))
    far = pd.read_parquet(in_domain["unseen_cpu"])
    before = with_intervals(predictions, backtests, far, 0.9)
    backtests.loc[backtests["fold"] == 2, "predicted"] *= 2
    after = with_intervals(predictions, backtests, far, 0.9)
    same = before["half_width"] == after["half_width"]
    assert same[predictions["fold"] != 2].all()
    assert (after["half_width"] > before["half_width"])[predictions["fold"] == 2].all()
    none = with_intervals(predictions, backtests[backtests["fold"] != 2], far, 0.9)
    assert none["half_width"].isna().equals(predictions["fold"] == 2)


def test_read_evaluation_returns_what_was_written(evaluation, tmp_path):
    write_evaluation(evaluation, tmp_path / "eval")
    again = read_evaluation(tmp_path / "eval")
    assert headline(again) == headline(evaluation)
    for name in ("metrics", "slices", "paired", "noise", "history", "published"):
        pd.testing.assert_frame_equal(again.tables[name], evaluation.tables[name], rtol=1e-5, check_dtype=False)


def test_metrics_tree_holds_plain_rounded_numbers(evaluation):
    tree = metrics_tree(evaluation)
    value = tree["random"]["nearest"]["float"]["mape"]
    assert isinstance(value, float)
    assert value == float(f"{value:.6g}")
    assert set(tree["random"]["nearest"]) == {"float", "integer", AVERAGE}


def test_headline_shows_baseline_and_noise_floor(evaluation):
    lines = headline(evaluation).splitlines()
    assert lines[1].split() == ["predictor", "random", "unseen_cpu", "forward_2023"]
    assert lines[-3].startswith("nearest (baseline)")
    assert lines[-2].startswith("noise floor")


def test_champion_is_the_smallest_inner_error_over_all_splits():
    inner = pd.DataFrame(
        [
            ("random", "a", 1.0),
            ("forward", "a", 9.0),
            ("random", "b", 2.0),
            ("forward", "b", 4.0),
            ("random", "c", 0.1),
        ],
        columns=["split", "predictor", "error"],
    )
    assert choose_champion(inner) == "b"
    with pytest.raises(UserError, match="champion"):
        choose_champion(inner[inner["predictor"] == "c"].assign(error=np.nan))


def test_leaking_split_is_not_compared(evaluation):
    names = {"random": "shuffled"}
    best = (evaluation.metrics["split"] == "random") & (evaluation.metrics["predictor"] == "nearest")
    metrics = evaluation.metrics.assign(value=evaluation.metrics["value"].mask(best, 1e-9))
    renamed = evaluation.with_tables(metrics=metrics.assign(split=metrics["split"].replace(names)))
    assert (renamed.ranked_splits, renamed.comparison_splits) == (["unseen_cpu", "forward_2023"], ["shuffled"])
    assert renamed.ranking()[-1] == "nearest"
    assert headline(renamed).splitlines()[-2].startswith("shuffled: only for comparison")
    alone = renamed.with_tables(metrics=renamed.metrics[renamed.metrics["split"] == "shuffled"])
    assert (alone.ranked_splits, alone.ranking()[0]) == (["shuffled"], "nearest")


def test_learning_curve_splits_are_measured_and_not_compared(evaluation):
    assert evaluation.splits == evaluation.ranked_splits == ["random", "unseen_cpu", "forward_2023"]
    assert evaluation.comparison_splits == []
    assert evaluation.learning_curve_splits == list(LESS_TRAINING)
    assert evaluation.value("random_05_percent", "ridge")["value"] > evaluation.value("random", "ridge")["value"]
    best = evaluation.metrics["split"].isin(LESS_TRAINING) & (evaluation.metrics["predictor"] == "nearest")
    changed = evaluation.with_tables(
        metrics=evaluation.metrics.assign(value=evaluation.metrics["value"].mask(best, 1e-9))
    )
    assert changed.ranking() == evaluation.ranking()
    assert headline(changed).splitlines()[-1] == "3 learning-curve splits: see the plots; not counted"
    assert not any(split in "\n".join(headline(changed).splitlines()) for split in LESS_TRAINING)
    alone = changed.with_tables(metrics=changed.metrics[changed.metrics["split"].isin(LESS_TRAINING)])
    assert alone.splits == alone.ranked_splits == list(LESS_TRAINING)
    assert alone.comparison_splits == []


def test_published_values_need_known_tasks(evaluation, runs, table):
    rows = evaluation.tables["published"][["task", "metric", "value"]].to_numpy().tolist()
    assert rows == [
        ["float", "mape", 4.0],
        ["integer", "mape", 3.5],
        ["float", "spearman", 0.95],
        [AVERAGE, "spearman", 0.9],
    ]
    wrong = [{**PUBLISHED[0], "mape": {"flaot": 4.0}}]
    with pytest.raises(UserError, match=r"float, integer.*flaot"):
        evaluate(runs, table, resamples=10, seed=0, published=wrong)


def test_evaluate_refuses_different_test_rows(table, tmp_path):
    runs = write_runs(table, tmp_path, seed=1)
    path = runs["random", "ridge"] / "predictions.parquet"
    pd.read_parquet(path).iloc[1:].to_parquet(path)
    with pytest.raises(UserError, match="same rows"):
        evaluate(runs, table, resamples=10, seed=0)


def test_evaluate_refuses_missing_runs(table, tmp_path):
    with pytest.raises(UserError, match="predictions"):
        evaluate({("random", "ridge"): tmp_path}, table, resamples=10, seed=0)
    with pytest.raises(UserError, match="runs"):
        evaluate({}, table, resamples=10, seed=0)
    with pytest.raises(UserError, match="evaluation"):
        read_evaluation(tmp_path)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        *(("predicted", bad, "predicted scores must be positive and finite") for bad in (0.0, -1.0, np.nan, np.inf)),
        ("measured", -1.0, "measured scores must be positive and finite"),
        ("row", "twice", "a row stands twice within a seed"),
        ("fold", None, "must have the column 'fold'"),
    ],
)
def test_evaluate_refuses_predictions_of_another_kind(table, tmp_path, column, value, words):
    runs = write_runs(table, tmp_path, seed=1, errors={"ridge": 0.1})
    path = runs["random", "ridge"] / "predictions.parquet"
    frame = pd.read_parquet(path)
    if value is None:
        frame = frame.drop(columns=column)
    else:
        frame.loc[frame.index[:2], column] = value
        frame.loc[frame.index[:2], "task"] = frame["task"].iloc[0]
    frame.to_parquet(path)
    with pytest.raises(UserError, match=words):
        evaluate(runs, table, resamples=10, seed=0)


def test_targets_that_were_not_measured_are_left_out(table, tmp_path):
    runs = write_runs(table, tmp_path, seed=1, errors={"ridge": 0.1})
    path = runs["random", "ridge"] / "predictions.parquet"
    frame = pd.read_parquet(path)
    frame.loc[frame.index[0], ["measured", "predicted"]] = np.nan
    frame.to_parquet(path)
    assert len(read_predictions("random", "ridge", path.parent).frame) == len(frame) - 1


def test_read_backtests_ignores_empty_files(tmp_path):
    """A training that had nothing to backtest on leaves such a file."""
    path = tmp_path / "backtest.parquet"
    assert read_backtests(tmp_path) is None
    pd.DataFrame({"row": [], "backtest": []}).to_parquet(path)
    assert read_backtests(tmp_path) is None
    pd.DataFrame({"row": ["a"], "backtest": [0]}).to_parquet(path)
    with pytest.raises(UserError, match="must have the column 'fold'"):
        read_backtests(tmp_path)

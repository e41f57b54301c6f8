"""Every predictor against every other: the family of claims holds its error rate, and B resamples suffice for it."""

import numpy as np
import pandas as pd
import pytest
from generated_results import fake_table, write_runs

from perfcast.evaluation import AVERAGE, evaluate
from perfcast.evaluation.predictor_comparison import ERROR_RATE, PAIR_COLUMNS, compare_all_pairs, step_down_test


def results(values, draws):
    """As `evaluate` hands them over: name -> metric -> (value, draws)."""
    named = {f"p{number:02d}": (values[number], draws[number]) for number in range(len(values))}
    return {name: {"mape": value, "medape": value} for name, value in named.items()}


def table_of(values, draws, clusters=100):
    frame = pd.DataFrame(compare_all_pairs("random", AVERAGE, results(values, draws), clusters), columns=PAIR_COLUMNS)
    return frame[frame["metric"] == "mape"]


def test_compare_all_pairs_separates_325_pairs_with_1000_resamples():
    random = np.random.default_rng(0)
    values = np.arange(26.0)
    table = table_of(values, values[:, None] + random.normal(0, 0.05, (26, 1000)))
    assert len(table) == 325
    assert (table["claim"] == "better").all()
    holm = table["p"].min() * len(table)
    assert holm > ERROR_RATE
    assert table["p_family"].max() == pytest.approx(1 / 1001)


def test_compare_all_pairs_bounds_false_claims():
    """26 equal predictors, evaluated again and again: uncorrected claims abound, corrected ones are rare."""
    random = np.random.default_rng(1)
    false = alone = 0
    for _ in range(100):
        draws = random.normal(0, 1, (26, 300)) + random.normal(0, 2, 300)
        values = random.normal(0, 1, 26)
        table = table_of(values, draws + values[:, None])
        false += bool((table["claim"] != "undecided").any())
        alone += bool((table["p"] < ERROR_RATE).any())
    assert false / 100 < 2 * ERROR_RATE
    assert alone / 100 > 0.5


def test_step_down_is_as_powerful_as_the_bands():
    random = np.random.default_rng(2)
    values = np.array([0.0, 0.1, 0.5, 2.0, 2.05, 8.0])
    table = table_of(values, values[:, None] + random.normal(0, 0.15, (6, 999)))
    outside = (table["band_low"] > 0) | (table["band_high"] < 0)
    claimed = table["claim"] != "undecided"
    assert (claimed | ~outside).all()
    assert claimed.sum() > outside.sum() or claimed.equals(outside)
    assert (table["p_family"] >= table["p"] - 1e-12).all()
    assert (table["band_high"] - table["band_low"] > table["high"] - table["low"]).all()
    assert {"better", "undecided"} == set(table["claim"])


def test_compare_all_pairs_leaves_equal_predictors_undecided():
    draws = np.random.default_rng(4).normal(5, 1, 100)
    table = table_of([5.0, 5.0, 9.0], np.array([draws, draws, draws + 4]))
    equal = table[(table["predictor"] == "p00") & (table["other"] == "p01")].iloc[0]
    assert (equal["claim"], equal["p_family"], equal["band_low"]) == ("undecided", 1.0, 0.0)
    alone = table_of([1.0, 9.0], np.array([draws, draws + 8]), clusters=1)
    assert alone["p_family"].isna().all()
    assert (alone["claim"] == "undecided").all()
    assert compare_all_pairs("random", AVERAGE, results([1.0], np.ones((1, 9))), 5) == []


def test_pairs_are_those_of_the_evaluated_predictors(tmp_path):
    table = fake_table(rows=400, seed=0)
    evaluation = evaluate(write_runs(table, tmp_path / "runs", seed=1), table, resamples=100, seed=0)
    assert len(evaluation.tables["pairs"]) == evaluation.metrics["split"].nunique() * 3 * 2 * 10
    row = evaluation.tables["pairs"].query("split == 'random' and task == @AVERAGE and metric == 'mape'")
    row = row[(row["predictor"] == "nearest") & (row["other"] == "network")].iloc[0]
    assert row["claim"] == "worse"
    value = [evaluation.value("random", name)["value"] for name in ("nearest", "network")]
    assert row["difference"] == pytest.approx(value[0] - value[1])


def adjusted(values, draws):
    return step_down_test(values, draws, 0.05).adjusted


def test_step_down_matches_its_definition():
    """The corrected p-value by the book: remove the largest, take the maximum over those that remain, never falling."""
    random = np.random.default_rng(3)
    values, draws = random.normal(0, 0.4, 5), random.normal(0, 0.3, (5, 200))
    draws += values[:, None]
    corrected = adjusted(values, draws)
    error = (draws - values[:, None]).std(axis=1, ddof=1)
    sizes, drawn = np.abs(values) / error, np.abs(draws - values[:, None]) / error[:, None]
    left, before = list(range(5)), 0.0
    while left:
        first = max(left, key=lambda index: sizes[index])
        p = (1 + sum(drawn[left, b].max() >= sizes[first] for b in range(200))) / 201
        before = max(before, p)
        assert corrected[first] == pytest.approx(before)
        left.remove(first)


def test_step_down_of_one_hypothesis_is_the_plain_p_value():
    draws = np.random.default_rng(0).normal(0.5, 1, (1, 999))
    plain = (1 + (np.abs(draws[0] - 0.5) >= 0.5).sum()) / 1000
    assert adjusted(np.array([0.5]), draws)[0] == pytest.approx(plain)


def test_copies_of_one_difference_count_once():
    same = np.repeat(np.random.default_rng(1).normal(2.2, 1, (1, 999)), 8, axis=0)
    assert adjusted(np.full(8, 2.2), same)[0] < 0.05


def test_step_down_ignores_constant_and_missing_differences():
    draws = np.zeros((3, 100))
    draws[1] = np.nan
    decisions = adjusted(np.array([0.0, 1.0, 2.0]), draws + np.array([[0.0], [0.0], [2.0]]))
    assert decisions[0] == 1
    assert np.isnan(decisions[1])
    assert decisions[2] == pytest.approx(1 / 101)

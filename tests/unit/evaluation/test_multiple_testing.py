"""Correction for many differences: few false claims, and correlated differences count once."""

import numpy as np
import pytest

from perfcast.evaluation.predictor_comparison import step_down_test


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


def test_step_down_controls_familywise_errors_of_correlated_predictors():
    random = np.random.default_rng(1)
    wrong = {"alone": 0, "together": 0}
    for _ in range(300):
        differences = random.normal(0, 1, 8)
        p = adjusted(differences, differences[:, None] + random.normal(0, 1, (8, 400)))
        plain = [
            adjusted(differences[[column]], differences[[column], None] + random.normal(0, 1, (1, 400)))
            for column in range(8)
        ]
        wrong["together"] += (p <= 0.05).any()
        wrong["alone"] += (np.array(plain) <= 0.05).any()
    assert wrong["together"] < 30 < 60 < wrong["alone"]
    same = np.repeat(random.normal(2.2, 1, (1, 999)), 8, axis=0)
    assert adjusted(np.full(8, 2.2), same)[0] < 0.05, "eight copies count once"


def test_step_down_ignores_constant_and_missing_differences():
    draws = np.zeros((3, 100))
    draws[1] = np.nan
    decisions = adjusted(np.array([0.0, 1.0, 2.0]), draws + np.array([[0.0], [0.0], [2.0]]))
    assert decisions[0] == 1
    assert np.isnan(decisions[1])
    assert decisions[2] == pytest.approx(1 / 101)

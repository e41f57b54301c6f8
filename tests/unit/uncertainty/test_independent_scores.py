"""Number of independent scores that scores of alike entities are worth."""

import numpy as np
import pytest

from perfcast.uncertainty.conformal import independent_count

RNG = np.random.default_rng(0)
ENTITIES = np.repeat(np.arange(40), 25)


def test_scores_without_likeness_count_each():
    assert independent_count(RNG.exponential(size=1000), ENTITIES) > 700
    assert independent_count(np.arange(5.0), np.arange(5)) == 5


def test_equal_scores_of_an_entity_count_once():
    assert independent_count(RNG.exponential(size=40)[ENTITIES], ENTITIES) == pytest.approx(40)


def test_partial_likeness_is_between():
    shared = RNG.normal(size=40)[ENTITIES]
    mixed = [shared + spread * RNG.normal(size=1000) for spread in (0.3, 1.0, 3.0)]
    counts = [independent_count(scores, ENTITIES) for scores in mixed]
    assert 40 <= counts[0] < counts[1] < counts[2] < 1000
    # a correlation of 1 / (1 + 1) in groups of 25 gives 1000 / (1 + 24 / 2)
    assert counts[1] == pytest.approx(1000 / 13, rel=0.3)


def test_a_large_entity_among_small_ones_is_worth_little():
    entities = np.append(np.zeros(500, dtype=int), np.arange(1, 41))
    scores = np.append(np.full(500, 9.0) + RNG.uniform(size=500) / 100, RNG.exponential(size=40))
    assert independent_count(scores, entities) < 120


def test_one_entity_and_equal_scores_count_all_rows():
    assert independent_count(RNG.exponential(size=30), np.zeros(30)) == 30
    assert independent_count(np.ones(30), np.arange(30) % 3) == 30

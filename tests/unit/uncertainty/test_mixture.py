"""Mixtures of draws: medians by hand, quantiles against a numeric integral."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from perfcast.uncertainty.mixture import mixture_quantiles, weighted_medians

# sizes of errors of a standard normal distribution: 1000 draws of it have these quantiles nearly exactly
GRID = np.linspace(0, 1, 4001)
NORMAL = norm.ppf((1 + np.minimum(GRID, 1 - 1e-7)) / 2)


def quantiles(medians, errors, weights, levels, owners=None):
    zeros = np.zeros(len(medians), dtype=int)
    return mixture_quantiles(
        np.array(medians, dtype=float),
        zeros if owners is None else np.array(owners),
        np.array(weights, dtype=float),
        errors=np.array(errors, dtype=float),
        outputs=np.array(["fp"] * len(medians)),
        scores={"": NORMAL.tolist()},
        levels=levels,
    )


def test_quantiles_of_a_mixture_agree_with_a_numeric_integral():
    medians, errors, weights = [0.0, 0.3, 1.0], [0.1, 0.2, 0.1], [0.5, 0.3, 0.2]

    def density(x):
        parts = zip(medians, errors, weights, strict=True)
        return sum(weight * norm.pdf(x, median, error) for median, error, weight in parts)

    ends = quantiles(medians, errors, weights, (0.05, 0.5, 0.95))[0]
    for level, value in zip((0.05, 0.5, 0.95), ends, strict=True):
        integral, _ = quad(density, -3, value, points=[0.0, 0.3, 1.0], limit=200)
        assert integral == pytest.approx(level, abs=2e-3)


def test_one_component_has_its_own_quantiles_and_owners_are_apart():
    ends = quantiles([0.0, 5.0], [0.1, 0.2], [1.0, 1.0], (0.05, 0.95), owners=[0, 1])
    assert ends[0] == pytest.approx([-0.1645, 0.1645], abs=1e-3)
    assert ends[1] == pytest.approx([5 - 0.329, 5 + 0.329], abs=1e-3)


def test_draws_that_differ_widen_the_interval():
    (narrow,), (wide,) = (quantiles([-gap, gap], [0.1, 0.1], [0.5, 0.5], (0.05, 0.95)) for gap in (0.0, 0.5))
    assert narrow[1] - narrow[0] == pytest.approx(0.329, abs=1e-3)
    assert wide[1] - wide[0] > 1.0


def test_weighted_medians():
    values = np.array([3.0, 1.0, 2.0, 7.0, 4.0, 6.0])
    owners = np.array([0, 0, 0, 1, 2, 2])
    weights = np.array([0.2, 0.2, 0.6, 1.0, 0.5, 0.5])
    assert weighted_medians(values, owners, weights).tolist() == [2.0, 7.0, 5.0]
    heavy = np.array([0.6, 0.2, 0.2, 1.0, 0.4, 0.6])
    assert weighted_medians(values, owners, heavy).tolist() == [3.0, 7.0, 6.0]


def test_half_of_the_weight_is_reached_whatever_its_rounding():
    """Sums of tenths miss one half by a bit: for every owner the median is the mean of the middle two."""
    values, owners = np.tile(np.arange(10.0), 5), np.repeat(np.arange(5), 10)
    assert weighted_medians(values, owners, np.full(50, 0.1)).tolist() == [4.5] * 5


def test_a_quantile_in_a_gap_is_the_least_value_that_reaches_the_level():
    """As everywhere: the distribution is flat between two draws that are far apart."""
    ends = mixture_quantiles(
        np.array([0.0, 10.0]), np.zeros(2, dtype=int), np.array([0.5, 0.5]),
        errors=np.ones(2), outputs=np.array(["a", "a"]), scores={"": [0.0, 1.0]}, levels=(0.5,),
    )  # fmt: skip
    assert ends[0] == pytest.approx([1.0])

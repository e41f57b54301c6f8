"""Fit of non-negative rates."""

import numpy as np
import pytest

from perfcast.predictors.roofline import fit_rates


def test_rates_are_found_in_spite_of_one_disturbed_row():
    random = np.random.default_rng(0)
    design = np.column_stack([np.ones(40), random.uniform(1, 100, (40, 2)), np.zeros(40)])
    time = design @ np.array([0.5, 2.0, 0.1, 0.0])
    time[3] *= 5
    assert fit_rates(design, time, np.ones(40, dtype=bool)) == pytest.approx([0.5, 2.0, 0.1, 0.0], abs=1e-3)


def test_no_rate_is_negative_and_other_rows_have_no_influence():
    design = np.column_stack([np.ones(6), np.arange(1.0, 7)])
    rates = fit_rates(design, np.array([6.0, 5, 4, 3, 1e9, 1e9]), np.arange(6) < 4)
    assert min(rates) >= 0
    assert max(rates) < 10

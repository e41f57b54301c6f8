"""Fits of scaling laws: values by hand, known parameters."""

import numpy as np
import pytest

from perfcast.domains.scaling.predictors import curve_fit
from perfcast.domains.scaling.predictors.curve_fit import (
    MIN_RUNS,
    BrokenLaw,
    SharesOfRuns,
    Sigmoid,
    fit_broken_laws,
)
from perfcast.domains.scaling.predictors.law_fit import (
    PUBLISHED_EXPONENTS,
    PowerSum,
    fit_power_sums,
)


def fit_power_sum(logs, values, tied=False):
    return fit_power_sums([(logs, values)], tied=tied)[0]


def fit_sigmoid(x, shares, chance, *, rising):
    return curve_fit.fit_sigmoids([SharesOfRuns(x, shares, chance)], rising=rising)[0]


def runs(count=30, seed=0):
    random = np.random.default_rng(seed)
    params = 10 ** random.uniform(7, 9, count)
    return np.log(np.column_stack([params, params * 10 ** random.uniform(0.7, 2.3, count)]))


def true_loss(logs, constant=1.7, first=400.0, alpha=0.34, second=410.0, beta=0.28):
    return constant + first * np.exp(-alpha * logs[:, 0]) + second * np.exp(-beta * logs[:, 1])


def test_laws_have_the_values_computed_by_hand():
    fitted = PowerSum(2.0, (8.0, 27.0), (0.5, 1 / 3), (0.0, 0.0))
    # 2 + 8 / sqrt(16) + 27 / cube root of 27
    assert fitted.evaluate(np.log([[16.0, 27.0]]))[0] == pytest.approx(2 + 2 + 9)
    assert PowerSum.from_state(fitted.to_state()) == fitted
    # 0.25 + 0.75 / (1 + exp(-2 * ln(3) / 2)) = 0.25 + 0.75 * 0.75
    values = Sigmoid(2.0, 5.0, 0.25).evaluate(np.array([5.0, 5.0 + np.log(3) / 2]))
    assert values == pytest.approx([0.625, 0.8125])


def test_the_fit_recovers_the_parameters_and_extrapolates_also_with_one_wrong_run_in_thirty():
    logs = runs()
    far = np.log([[7e10, 1.4e12]])
    values = true_loss(logs)
    fitted = fit_power_sum(logs, values)
    assert fitted.identified
    assert (fitted.constant, *fitted.exponents) == pytest.approx((1.7, 0.34, 0.28), abs=0.01)
    assert fitted.evaluate(far) == pytest.approx(true_loss(far), rel=1e-3)
    values[3] *= 1.5
    assert fit_power_sum(logs, values).evaluate(far) == pytest.approx(true_loss(far), rel=5e-3)
    tied = fit_power_sum(logs, true_loss(logs, alpha=0.3, beta=0.3), tied=True)
    assert tied.exponents[0] == tied.exponents[1] == pytest.approx(0.3, abs=0.01)


def test_few_runs_do_not_identify_a_law_and_one_gives_its_value():
    logs = runs()
    logs[:, 0] = np.where(
        logs[:, 0] > logs[:, 0].mean(),
        np.log(1e9),
        np.log(1e8),
    )
    fitted = fit_power_sum(logs, true_loss(logs))
    assert not fitted.identified and fitted.exponents == PUBLISHED_EXPONENTS
    assert fit_power_sum(logs[:1], np.array([3.0])).evaluate(logs[:1])[0] == pytest.approx(3.0, rel=1e-3)
    sigmoid = fit_sigmoid(
        np.array([1.0, 2.0]),
        np.array([0.4, 0.5]),
        0.25,
        rising=True,
    )
    assert not sigmoid.identified and sigmoid.evaluate(np.array([1.5]))[0] == pytest.approx(0.45)
    parts = [(COMPUTE[:count], BROKEN.evaluate(COMPUTE[:count])) for count in (MIN_RUNS - 1, len(COMPUTE))]
    few, many = fit_broken_laws(parts)
    assert (few.identified, many.identified) == (
        False,
        True,
    ) and few.before == few.after


@pytest.mark.parametrize("rising", [True, False])
def test_the_fit_of_a_sigmoid_recovers_slope_and_middle(rising):
    sign = 1 if rising else -1
    x = np.linspace(-3, 1, 25)
    fitted = fit_sigmoid(x, Sigmoid(sign * 1.5, 0.7, 0.2).evaluate(x), 0.2, rising=rising)
    assert (fitted.slope, fitted.middle) == pytest.approx((sign * 1.5, 0.7), abs=0.02)


COMPUTE = np.linspace(np.log(1e18), np.log(1e22), 24)
BROKEN = BrokenLaw(
    constant=1.5,
    factor=1.2,
    before=0.05,
    after=0.25,
    place=0.5,
    center=float(COMPUTE.mean()),
)


def test_a_break_is_found_and_a_law_without_one_with_an_outlier_and_with_a_rise_is_fitted():
    (fit,) = fit_broken_laws([(COMPUTE[:18], BROKEN.evaluate(COMPUTE[:18]))])
    later = COMPUTE[18:]
    assert np.abs(fit.evaluate(later) / BROKEN.evaluate(later) - 1).max() < 0.08
    assert fit.identified and fit.before < fit.after
    straight = BrokenLaw(1.5, 1.2, 0.1, 0.1, 0.0, float(COMPUTE.mean()))
    (fit,) = fit_broken_laws([(COMPUTE[:18], straight.evaluate(COMPUTE[:18]))])
    np.testing.assert_allclose(fit.evaluate(COMPUTE), straight.evaluate(COMPUTE), rtol=0.01)
    true = BROKEN.evaluate(COMPUTE)
    (fit,) = fit_broken_laws([(COMPUTE, np.where(np.arange(len(true)) == 7, 1.3 * true, true))])
    np.testing.assert_allclose(
        np.delete(fit.evaluate(COMPUTE), 7),
        np.delete(true, 7),
        rtol=0.02,
    )
    (fit,) = fit_broken_laws([(COMPUTE, np.exp(0.05 * (COMPUTE - COMPUTE[0])))])
    assert min(fit.before, fit.after) > 0

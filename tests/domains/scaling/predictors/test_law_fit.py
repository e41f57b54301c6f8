"""Fits of scaling laws: values computed by hand, recovery of known parameters, laws that runs do not identify."""

import numpy as np
import pytest

from perfcast.domains.scaling.predictors.curve_fit import (
    MIN_RUNS,
    BrokenLaw,
    SharesOfRuns,
    Sigmoid,
    fit_broken_laws,
    fit_sigmoids,
)
from perfcast.domains.scaling.predictors.law_fit import PUBLISHED_EXPONENTS, PowerSum, fit_power_sums


def fit_power_sum(logs, values, tied=False):
    return fit_power_sums([(logs, values)], tied=tied)[0]


def fit_sigmoid(x, shares, chance, *, rising):
    return fit_sigmoids([SharesOfRuns(x, shares, chance)], rising=rising)[0]


def runs(count=30, seed=0):
    random = np.random.default_rng(seed)
    params = 10 ** random.uniform(7, 9, count)
    return np.log(np.column_stack([params, params * 10 ** random.uniform(0.7, 2.3, count)]))


def true_loss(logs, constant=1.7, first=400.0, alpha=0.34, second=410.0, beta=0.28):
    return constant + first * np.exp(-alpha * logs[:, 0]) + second * np.exp(-beta * logs[:, 1])


def test_a_power_sum_has_the_value_computed_by_hand():
    fitted = PowerSum(2.0, (8.0, 27.0), (0.5, 1 / 3), (0.0, 0.0))
    # 2 + 8 / sqrt(16) + 27 / cube root of 27
    assert fitted.evaluate(np.log([[16.0, 27.0]]))[0] == pytest.approx(2 + 2 + 9)
    assert PowerSum.from_state(fitted.to_state()) == fitted


def test_the_fit_recovers_the_parameters_and_extrapolates():
    logs = runs()
    fitted = fit_power_sum(logs, true_loss(logs))
    assert fitted.identified
    assert fitted.constant == pytest.approx(1.7, abs=0.01)
    assert fitted.exponents == pytest.approx((0.34, 0.28), abs=0.01)
    far = np.log([[7e10, 1.4e12]])
    assert fitted.evaluate(far) == pytest.approx(true_loss(far), rel=1e-3)


def test_one_wrong_run_in_thirty_hardly_moves_the_law():
    logs = runs()
    values = true_loss(logs)
    values[3] *= 1.5
    far = np.log([[7e10, 1.4e12]])
    assert fit_power_sum(logs, values).evaluate(far) == pytest.approx(true_loss(far), rel=5e-3)


def test_tied_exponents_are_equal_and_recovered():
    logs = runs()
    fitted = fit_power_sum(logs, true_loss(logs, alpha=0.3, beta=0.3), tied=True)
    assert fitted.exponents[0] == fitted.exponents[1] == pytest.approx(0.3, abs=0.01)


def test_two_sizes_do_not_identify_the_exponents():
    logs = runs()
    logs[:, 0] = np.where(logs[:, 0] > logs[:, 0].mean(), np.log(1e9), np.log(1e8))
    fitted = fit_power_sum(logs, true_loss(logs))
    assert not fitted.identified
    assert fitted.exponents == PUBLISHED_EXPONENTS


def test_one_run_gives_its_value():
    logs = runs(1)
    assert fit_power_sum(logs, np.array([3.0])).evaluate(logs)[0] == pytest.approx(3.0, rel=1e-3)


def test_a_sigmoid_has_the_value_computed_by_hand():
    fitted = Sigmoid(2.0, 5.0, 0.25)
    assert fitted.evaluate(np.array([5.0]))[0] == pytest.approx(0.625)
    # 0.25 + 0.75 / (1 + exp(-2 * ln(3) / 2)) = 0.25 + 0.75 * 0.75
    assert fitted.evaluate(np.array([5.0 + np.log(3) / 2]))[0] == pytest.approx(0.8125)


@pytest.mark.parametrize("rising", [True, False])
def test_the_fit_of_a_sigmoid_recovers_slope_and_middle(rising):
    sign = 1 if rising else -1
    x = np.linspace(-3, 1, 25)
    fitted = fit_sigmoid(x, Sigmoid(sign * 1.5, 0.7, 0.2).evaluate(x), 0.2, rising=rising)
    assert (fitted.slope, fitted.middle) == pytest.approx((sign * 1.5, 0.7), abs=0.02)


def test_too_few_runs_do_not_identify_a_sigmoid():
    fitted = fit_sigmoid(np.array([1.0, 2.0]), np.array([0.4, 0.5]), 0.25, rising=True)
    assert not fitted.identified
    assert fitted.evaluate(np.array([1.5]))[0] == pytest.approx(0.45)


COMPUTE = np.linspace(np.log(1e18), np.log(1e22), 24)
BROKEN = BrokenLaw(constant=1.5, factor=1.2, before=0.05, after=0.25, place=0.5, center=float(COMPUTE.mean()))


def test_a_break_is_found_and_carried_on():
    (fit,) = fit_broken_laws([(COMPUTE[:18], BROKEN.evaluate(COMPUTE[:18]))])
    later = COMPUTE[18:]
    plain = fit_power_sum(COMPUTE[:18, None], BROKEN.evaluate(COMPUTE[:18]))
    error = np.abs(fit.evaluate(later) / BROKEN.evaluate(later) - 1).max()
    assert error < 0.08
    assert error < 0.4 * np.abs(plain.evaluate(later[:, None]) / BROKEN.evaluate(later) - 1).max()
    assert fit.before < fit.after
    assert fit.identified


def test_without_a_break_it_is_the_plain_power():
    straight = BrokenLaw(1.5, 1.2, 0.1, 0.1, 0.0, float(COMPUTE.mean()))
    (fit,) = fit_broken_laws([(COMPUTE[:18], straight.evaluate(COMPUTE[:18]))])
    np.testing.assert_allclose(fit.evaluate(COMPUTE), straight.evaluate(COMPUTE), rtol=0.01)


def test_an_outlier_does_not_rule():
    values = BROKEN.evaluate(COMPUTE)
    values[7] *= 1.3
    (fit,) = fit_broken_laws([(COMPUTE, values)])
    others = np.arange(len(values)) != 7
    np.testing.assert_allclose(fit.evaluate(COMPUTE)[others], BROKEN.evaluate(COMPUTE)[others], rtol=0.02)


def test_few_runs_do_not_identify_a_break():
    few, many = fit_broken_laws(
        [(COMPUTE[: MIN_RUNS - 1], BROKEN.evaluate(COMPUTE[: MIN_RUNS - 1])), (COMPUTE, BROKEN.evaluate(COMPUTE))]
    )
    assert (few.identified, many.identified) == (False, True)
    assert few.before == few.after


def test_both_exponents_are_positive():
    rising = np.exp(0.05 * (COMPUTE - COMPUTE[0]))
    (fit,) = fit_broken_laws([(COMPUTE, rising)])
    assert fit.before > 0
    assert fit.after > 0

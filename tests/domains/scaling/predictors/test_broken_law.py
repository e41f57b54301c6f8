"""The broken law finds a break that a plain power misses, and is a plain power where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from perfcast.domains.scaling.predictors.curve_fit import MIN_RUNS, BrokenLaw, fit_broken_laws
from perfcast.domains.scaling.predictors.law_fit import fit_power_sum

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


def test_a_law_survives_its_state():
    assert BrokenLaw.from_state(BROKEN.to_state()) == BROKEN
    assert BROKEN.evaluate(COMPUTE)[-1] == pytest.approx(
        1.5 + 1.2 * np.exp(-0.05 * (COMPUTE[-1] - BROKEN.center) - 0.2 * (COMPUTE[-1] - BROKEN.center - 0.5)), rel=1e-3
    )

"""Factors of the half-width by level of description, from backtests that are described in the same way."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from champion_project import KNOWN, project

from perfcast.experiment import described
from perfcast.experiment.described import DescribedData, fit_scales
from perfcast.inference import parse_machines, read_machines
from perfcast.inference.draws import DrawPredictions, impute_draws

ROWS = 400


def lines(level, backtest, error):
    """Return predictions with a draw's half-width of 0.1, draws that add 0.05, and errors evenly up to `error`."""
    errors = np.linspace(0, error, ROWS) * np.where(np.arange(ROWS) % 2, 1, -1)
    return pd.DataFrame(
        {
            "level": level,
            "backtest": backtest,
            "predicted": 100.0,
            "measured": 100 * np.exp(errors),
            "low": 100 * np.exp(-0.15),
            "high": 100 * np.exp(0.15),
            "half_width": 0.1,
        }
    )


@pytest.fixture
def fit(monkeypatch):
    known = project()
    data = DescribedData(known.standard, known.standard, known.raw, ())

    def fit_to(*parts):
        monkeypatch.setattr(described, "_predict_backtests", lambda *_, **__: iter(parts))
        return fit_scales(data, [(None, None)], known.champion.calibrated, seed=0)

    return fit_to


def test_the_factor_makes_intervals_hold_the_level_and_leaves_the_spread_of_draws(fit):
    factor, last = fit(lines(1, 0, 0.5), lines(4, 0, 0.5))
    # 90 % of the errors are up to 0.45: the draws add 0.05, the half-width of a draw must be 0.40
    assert factor == pytest.approx(4.0, rel=0.01)
    assert last == 1.0


def test_the_factor_is_that_of_the_worst_backtest_and_is_fitted_by_level(fit):
    first, second, last = fit(
        *(lines(1, backtest, error) for backtest, error in ((0, 0.1), (1, 0.5))), lines(2, 0, 0.1), lines(3, 0, 0.5)
    )
    assert first == pytest.approx(4.0, rel=0.01)
    assert second == pytest.approx(0.4, abs=0.01)
    assert last == 1.0


def test_a_factor_widens_by_the_half_width_of_a_draw():
    champion = project().champion
    machines = parse_machines(read_machines([{**KNOWN, "suite": "CINT2017rate"}]), champion)
    drawn = impute_draws(machines, champion)
    assert len(drawn.owners) > 1
    ends = {}
    for factor in (1.0, 3.0):
        calibrated = replace(champion.calibrated, scales=(factor,) * 4)
        ends[factor] = DrawPredictions(drawn, replace(champion, calibrated=calibrated)).intervals(0).iloc[0]
    for side in ("below", "above"):
        assert ends[3.0][side] == pytest.approx(ends[1.0][side] + 2 * ends[1.0]["half_width"])

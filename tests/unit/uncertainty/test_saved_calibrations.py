"""Saved calibrations: all parts come back, and values that no backtest gives are refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perfcast.schema.table import Column, Kind, Role
from perfcast.uncertainty.conformal import ConformalCalibration, UncertaintyModel
from perfcast.uncertainty.correlation import ErrorCorrelation
from perfcast.uncertainty.in_domain import InDomainModel
from perfcast.utils.errors import UserError

RISING = np.linspace(0, 2, 201).tolist()


def state(**changes):
    values = {"base": 0.1, "weights": {"a": 0.1, "b": 0.0}, "farthest": {"a": 2.0}, "most": 1.0}
    return values | {"quantiles": {"": RISING, "t": RISING}} | changes


@pytest.mark.parametrize(
    "changes",
    [
        {"base": 0.0},
        {"base": -0.1},
        {"base": 1.5},
        {"weights": {"a": 0.1, "b": -1e-6}},
        {"farthest": {"a": -1.0}},
        {"quantiles": {"t": RISING}},
        {"quantiles": {"": RISING, "t": RISING[:-1]}},
        {"quantiles": {"": RISING, "t": [*RISING, 3.0]}},
        {"quantiles": {"": RISING[::-1]}},
        {"quantiles": {"": RISING, "t": [*RISING[:100], 0.5, *RISING[101:]]}},
        {"quantiles": {"": [-0.01, *RISING[1:]]}},
    ],
    ids=str,
)
@pytest.mark.reliability("a calibration with impossible values")
def test_impossible_values_are_refused(changes):
    with pytest.raises(UserError, match="a calibration must be one of backtests"):
        ConformalCalibration.from_state(state(**changes))


@pytest.mark.parametrize(
    "changes",
    [{}, {"base": 1.0}, {"weights": {}}, {"weights": {"a": 0.0}}, {"quantiles": {"": [0.0] * 201}}],
    ids=str,
)
def test_values_at_the_bounds_are_accepted(changes):
    given = state(**changes)
    assert ConformalCalibration.from_state(given).to_state() == given


def test_correlation_survives_its_folder(tmp_path):
    calibration = ConformalCalibration.from_state(state())
    in_domain = InDomainModel().fit(pd.DataFrame({"size": [1.0, 2.0]}), [])
    rng = np.random.default_rng(0)
    labels = pd.DataFrame({"model": rng.integers(0, 30, 300).astype(str)})
    residuals = rng.normal(0, 0.1, 300) + rng.normal(0, 0.2, 30)[labels["model"].astype(int)]
    correlation = ErrorCorrelation().fit(
        residuals, labels, np.full(300, "t"), backtests=np.zeros(300, dtype=int), expected_errors=np.full(300, 0.2)
    )
    for name, fitted in (("with", correlation), ("without", None)):
        (tmp_path / name).mkdir()
        UncertaintyModel(in_domain, calibration, fitted).save(tmp_path / name)
    loaded = UncertaintyModel.load(tmp_path / "with")
    assert loaded.correlation is not None
    assert loaded.correlation.to_state() == correlation.to_state()
    assert loaded.calibration.to_state() == calibration.to_state()
    assert UncertaintyModel.load(tmp_path / "without").correlation is None


def test_ignored_cells_count_in_the_interval_alone():
    """An unknown cell makes no machine unlike others, but its error is as large as that of a far one."""
    rows = pd.DataFrame({"size": [1.0, 2.0, 3.0]})
    in_domain = InDomainModel().fit(rows, [Column("size", Kind.NUMERICAL, Role.FEATURE, "memory")])
    weights = {name: 0.5 if name == "memory" else 0.0 for name in in_domain.names}
    calibration = ConformalCalibration.from_state(state(weights=weights, most=9.0))
    model, far = UncertaintyModel(in_domain, calibration), pd.DataFrame({"size": [30.0]})
    known, ignored, near = (
        model.intervals(X, np.array(["t"]), ignored=cells).iloc[0]
        for X, cells in ((far, None), (far, far > 0), (rows.head(1), None))
    )
    assert known["in_domain_score"] < ignored["in_domain_score"] == near["in_domain_score"] == 1
    assert (known["least_similar_group"], ignored["least_similar_group"]) == ("memory", "")
    names = ["below", "above", "expected_error"]
    assert ignored[names].tolist() == known[names].tolist()
    assert (known[names] > near[names]).all()

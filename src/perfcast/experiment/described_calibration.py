"""Calibration of intervals by level of description: backtests whose machines are described with columns left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from perfcast.experiment.described_rows import DescribedData, draw_machines, find_cut, predict_described
from perfcast.experiment.fitting import Backtest
from perfcast.experiment.selection import PredictorFactory
from perfcast.experiment.uncertainty_fit import fit_in_domain, fit_uncertainty, plan_final_backtests
from perfcast.inference.champion import Champion
from perfcast.inference.reference_data import ReferenceData
from perfcast.inference.rules import find_rules
from perfcast.predictors.predictor import Predictor
from perfcast.uncertainty.conformal import LEVEL, UncertaintyModel, weighted_quantile

_MAX_MACHINES = 100
"""Most machines of a backtest: they are described at every level."""


def fit_scales(
    data: DescribedData,
    backtests: Sequence[tuple[Backtest, Predictor]],
    calibrated: UncertaintyModel | None,
    *,
    seed: int,
    at_the_cut: bool = False,
) -> tuple[float, ...]:
    """Return by level the factor of a draw's half-width with which intervals hold 90 % of the backtests' scores.

    What is assumed was measured before, while a tested machine runs newer software, so errors are larger than a draw
    looks; the spread of the draws needs no factor. Every backtest has the same weight, and the factor is no less than
    that of any single one. The last level, everything that is published, has the factor 1: the calibration was made
    for it. Without backtests or levels there is no factor.
    Source: conformal scores as the distance past an interval (Romano et al., "Conformalized quantile regression", 2019)
    in units of the expected error. On backtests of forward splits, those that share no row held out in turn, it was
    better than factors of the whole width, by output, by side and of the mixture's level, and an added constant.

    Args: `backtests` have their fitted predictors. `at_the_cut`: whether only the facts of processors count that were
    public before the first row of a backtest.
    """
    if calibrated is None or not backtests or not find_rules(data.table.dataset).description_levels:
        return ()
    lines = pd.concat(list(_predict_backtests(data, backtests, calibrated, seed=seed, at_the_cut=at_the_cut)))
    above = np.log(lines["measured"] / lines["predicted"])
    width = np.where(above > 0, np.log(lines["high"] / lines["predicted"]), np.log(lines["predicted"] / lines["low"]))
    scores = lines.assign(score=1 + (np.abs(above) - width) / lines["half_width"])
    return (*[_find_factor(part) for _, part in scores.groupby("level", sort=True)][:-1], 1.0)


def _find_factor(scores: pd.DataFrame) -> float:
    """Return the largest of the quantiles of the scores of all backtests together and of each one."""
    size = scores.groupby("backtest")["score"].transform("size")
    parts = [scores.assign(share=1 / size), *(part.assign(share=1.0) for _, part in scores.groupby("backtest"))]
    return max(weighted_quantile(part["score"].to_numpy(), part["share"].to_numpy(), LEVEL) for part in parts)


def fit_described_uncertainty(
    data: DescribedData, make: PredictorFactory, seed: int, label_outlier: float | None, limit: int
) -> UncertaintyModel | None:
    """Fit the uncertainty of a predictor that is fitted on every row, with a factor by level of description.

    None with too few rows for a backtest; see `fit_uncertainty`.
    """
    fitted: list[Predictor] = []

    def remember(random_state: int) -> Predictor:
        fitted.append(make(random_state))
        return fitted[-1]

    calibrated = fit_uncertainty(data.table, remember, seed, label_outlier, limit)
    if calibrated is None:
        return None
    backtests = plan_final_backtests(data.table, seed, label_outlier, limit)
    pairs = list(zip(backtests, fitted, strict=False))  # set-ups are held out after them
    return replace(calibrated, scales=fit_scales(data, pairs, calibrated, seed=seed))


def _predict_backtests(
    data: DescribedData,
    backtests: Sequence[tuple[Backtest, Predictor]],
    calibrated: UncertaintyModel,
    *,
    seed: int,
    at_the_cut: bool,
) -> Iterator[pd.DataFrame]:
    table = data.table
    for backtest, predictor in backtests:
        cut = find_cut(table, backtest.fitting, backtest.testing) if at_the_cut else None
        reference_data = ReferenceData.gather(data.standard, data.raw, data.features, rows=backtest.fitting, as_of=cut)
        fitted = replace(calibrated, in_domain=fit_in_domain(table, backtest.fitting), scales=())
        champion = Champion(table.dataset, "", "", data.features, predictor, reference_data, fitted, None)
        rows = draw_machines(table, backtest.testing, seed, _MAX_MACHINES)
        yield predict_described(champion, data.standard, rows).assign(backtest=backtest.number)

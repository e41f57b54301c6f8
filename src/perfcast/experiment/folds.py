"""Fits of one predictor on every fold and seed of a split, and the summary of their errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from perfcast.experiment.backtesting import first_error, plan_backtests, run_backtests
from perfcast.experiment.fitting import fit_rows, predict_rows
from perfcast.experiment.row_masks import tested_rows, training_rows
from perfcast.experiment.selection import CandidateChoice, FoldCandidates, select_candidate
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Table


@dataclass(frozen=True)
class FoldFit:
    """One fitted predictor with its predictions of the test rows, and the backtest predictions of its fold."""

    fold: int
    seed: int
    choice: CandidateChoice
    predictor: Predictor
    test: pd.DataFrame
    backtest: pd.DataFrame


def fit_folds(
    table: Table,
    folds: pd.DataFrame,
    candidates: FoldCandidates,
    seeds: Sequence[int],
    label_outlier: float | None,
    *,
    max_backtests: int = 1,
) -> Iterator[FoldFit]:
    """Fit on the training rows of every fold and seed and predict its test rows, one at a time.

    Every fold selects among its candidates and is backtested inside its own training part: in a cross-validation the
    validation rows of one fold are test rows of another. Backtests use the first seed.
    Shapes: `folds` has one string column per fold, values train | validation | test | unused, in the table's row order.
    """
    for fold, name in enumerate(folds.columns):
        subset = folds[name].to_numpy()
        training = training_rows(table, subset, label_outlier)
        testing = tested_rows(table, subset)
        factories = candidates(fold)
        choice = select_candidate(table, subset, factories, seeds[0], label_outlier) if len(factories) > 1 else None
        chosen = choice.candidate if choice else next(iter(factories))
        backtests = plan_backtests(table, subset, label_outlier, max_backtests)
        backtest = run_backtests(table, backtests, factories[chosen], seeds[0], fold)
        choice = choice or CandidateChoice(chosen, {chosen: first_error(backtest)})
        for seed in seeds:
            predictor = fit_rows(factories[chosen](seed), table, training, subset[training] == "validation")
            predictions = predict_rows(predictor, table, testing, fold, seed)
            yield FoldFit(fold, seed, choice, predictor, predictions, backtest)


def summarize_errors(predictions: pd.DataFrame) -> dict[str, float]:
    """Return MAPE and MedAPE in per cent, per task and averaged over the tasks, under `<task>/<metric>` names."""
    errors = (predictions["predicted"] / predictions["measured"] - 1).abs() * 100
    by_task = errors.groupby(predictions["task"])
    summary: dict[str, float] = {}
    for metric, values in {"mape": by_task.mean(), "medape": by_task.median()}.items():
        summary[f"mean/{metric}"] = float(values.mean())
        summary |= {f"{task}/{metric}": float(value) for task, value in values.items()}
    return summary

"""First results of new entities: what training and the levels of errors make of them together."""

from dataclasses import replace

import numpy as np
import pandas as pd
from leakage_project import machines

from perfcast import splits
from perfcast.experiment.fitting import of_known_tasks
from perfcast.experiment.training import average_first_results, fit_folds
from perfcast.predictors.linear import Ridge
from perfcast.uncertainty.levels import ErrorLevels


def fit_few_shot(table):
    folds = splits.make("few_shot_3", table, 0)
    return next(iter(fit_folds(table, folds, [lambda seed: Ridge()], [0], None, max_backtests=2))), folds["fold_0"]


def test_predictions_of_a_few_shot_split_know_first_results_and_no_test_score():
    table = machines(900)
    fit, subset = fit_few_shot(table)
    tested = (subset == "test").to_numpy()
    hidden = table.frame.assign(score=np.where(tested, 3 * table.frame["score"], table.frame["score"]))
    without, _ = fit_few_shot(replace(table, frame=hidden))
    np.testing.assert_allclose(without.test["predicted"], fit.test["predicted"])
    pd.testing.assert_frame_equal(without.backtest, fit.backtest)
    alone = fit.predictor.predict(table.frame.set_index("id").loc[fit.test["row"]].reset_index())
    errors = [
        np.abs(np.log(each / fit.test["measured"].to_numpy())).mean()
        for each in (fit.test["predicted"], alone["score"])
    ]
    assert errors[0] < errors[1], "the hidden factor of a CPU model is a level of its errors"


def test_a_common_error_of_first_results_corrects_half_of_the_mean_where_the_task_was_known():
    table = machines(60)
    levels = ErrorLevels()
    levels.variances, levels.noise = {"everything": 1.0}, 1e-8
    rows = table.frame["id"].head(20).tolist()
    frozen = pd.DataFrame({"row": rows, "target": "score", "task": "rate", "measured": 1.25, "predicted": 1.0})
    trained = frozen.tail(15).assign(predicted=2.0, measured=9.0)
    answer = average_first_results(trained, frozen, levels, table)
    np.testing.assert_allclose(answer["predicted"], np.sqrt(2.0 * 1.25), rtol=1e-6)
    few = average_first_results(trained, frozen.head(12), levels, table)["predicted"]
    np.testing.assert_allclose(few, [np.sqrt(2.0 * 1.25)] * 7 + [2.0] * 8, rtol=1e-6)
    assert of_known_tasks(table, np.zeros(len(table.frame), dtype=bool)).sum() == 0

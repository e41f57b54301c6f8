"""The base of the neural predictors, tested with the cheapest one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from perfcast.predictors.neural.mlp import MLP
from perfcast.schema.table import Column, Kind, Role, Tag

COLUMNS = (
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
)
SMALL: dict[str, Any] = {"d_embedding": 4, "d_block": 16, "n_blocks": 1, "batch_size": 32, "epochs": 4, "min_steps": 0}


def rows(count: int = 128, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    cores = np.exp(rng.uniform(0, np.log(32), count))
    suite = rng.choice(["rate", "speed"], count)
    score = np.where(suite == "rate", 5 * cores, 100 * cores**0.2)
    return pd.DataFrame({"cores": cores, "suite": suite}), pd.Series(score, name="score")


def fitted(validation: np.ndarray | None = None, **changes: Any) -> MLP:
    X, y = rows()
    return MLP(**{**SMALL, **changes}).fit(X, y, columns=COLUMNS, validation=validation)


def error(predictor: MLP, X: pd.DataFrame, y: pd.Series) -> float:
    return float(np.abs(np.log(predictor.predict(X)["score"] / y)).mean())


VALID = np.arange(128) >= 96


def test_history_has_the_curves_of_both_steps() -> None:
    history = pd.DataFrame(fitted(VALID).history_)
    assert list(history["epoch"]) == [1, 2, 3, 4]
    assert history[["train_loss", "validation_loss", "validation_error", "learning_rate"]].notna().all(axis=None)
    chosen = int(history["validation_error"].argmin()) + 1
    assert history["refit_loss"].notna().sum() == chosen


def test_without_validation_rows_there_is_one_step() -> None:
    predictor = fitted()
    history = pd.DataFrame(predictor.history_)
    assert history["refit_loss"].notna().all()
    assert history["validation_loss"].isna().all()
    assert np.isnan(predictor.validation_mape_)


def test_refit_learns_from_the_validation_rows_too() -> None:
    X, y = rows()
    # Validation rows alone hold the second suite: only a refit can know its level.
    X = X.assign(suite=np.where(VALID, "speed", "rate"))
    y = pd.Series(np.where(VALID, 1000.0, 1.0) * X["cores"], name="score")
    errors = {
        refit: error(
            MLP(**{**SMALL, "epochs": 20}, refit=refit).fit(X, y, columns=COLUMNS, validation=VALID), X[VALID], y[VALID]
        )
        for refit in (True, False)
    }
    assert errors[True] < 1.0
    assert errors[False] > 2.0


def test_choices_do_not_see_validation_targets_in_the_weights() -> None:
    X, y = rows()
    other = y.where(~VALID, y * 7)
    unseen = fitted(VALID, refit=False, epochs=1).predict(X)
    seen = MLP(**{**SMALL, "epochs": 1}, refit=False, linear_skip=False).fit(
        X, other, columns=COLUMNS, validation=VALID
    )
    same = fitted(VALID, refit=False, epochs=1, linear_skip=False)
    pd.testing.assert_frame_equal(seen.predict(X), same.predict(X))
    assert np.isfinite(unseen).all(axis=None)


def test_inner_error_is_the_mape_of_the_validation_rows() -> None:
    X, y = rows()
    predictor = fitted(VALID, refit=False)
    predicted = predictor.predict(X[VALID])["score"]
    assert predictor.validation_mape_ == pytest.approx(100 * np.abs(predicted / y[VALID] - 1).mean())


def test_linear_skip_goes_on_beyond_the_largest_machine() -> None:
    X, _ = rows(seed=1)
    beyond = X.assign(cores=128.0)
    truth = pd.Series(np.where(X["suite"] == "rate", 5 * 128.0, 100 * 128.0**0.2))
    with_skip, without = (fitted(linear_skip=choice, epochs=20) for choice in (True, False))
    assert error(with_skip, beyond, truth) < 0.05
    assert error(without, beyond, truth) > 2 * error(with_skip, beyond, truth)


def test_an_unknown_task_takes_the_line_of_all_rows() -> None:
    X, _ = rows()
    predicted = fitted().predict(X.assign(suite="other"))["score"]
    assert np.isfinite(predicted).all()
    assert 1 < predicted.median() < 1000


def test_seeds_differ() -> None:
    X, _ = rows()
    assert not fitted(random_state=0).predict(X).equals(fitted(random_state=1).predict(X))


def test_without_early_stopping_all_rows_are_learned_for_every_epoch() -> None:
    predictor = fitted(VALID, early_stopping=False, epochs=3)
    history = pd.DataFrame(predictor.history_)
    assert len(history) == 3
    assert history["refit_loss"].notna().all()
    assert history["validation_loss"].isna().all()

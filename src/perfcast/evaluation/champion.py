"""The choice of the predictor that `predict` uses, made without looking at a test row."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.errors import UserError


def choose_champion(inner: pd.DataFrame) -> str:
    """Return the predictor with the smallest geometric mean of the inner validation error over the splits.

    `inner` has the columns split, predictor and valid_mape, in %, measured inside the training parts. The geometric
    mean weighs relative gains alike on easy and on hard splits. Only predictors with an error on every split compete;
    ties go to the first name. Raises: UserError when there is no such predictor.
    """
    errors = inner.pivot(index="predictor", columns="split", values="valid_mape").astype(float)
    complete = errors[(np.isfinite(errors) & (errors >= 0)).all(axis=1)]
    if complete.empty:
        raise UserError(
            "a champion must have an inner validation error on every split",
            f"none of {', '.join(map(str, errors.index)) or 'no predictors'} has",
            "train the predictors on all splits",
        )
    return str(np.log(complete.clip(lower=1e-9)).mean(axis=1).sort_index().idxmin())

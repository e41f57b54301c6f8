"""Quantile regression forest, corrected by conformalized quantile regression on the validation rows.

Source: Romano, Patterson and Candes, "Conformalized quantile regression" (2019).
"""

import sys
from pathlib import Path

import numpy as np
from quantile_forest import RandomForestQuantileRegressor

sys.path.insert(0, str(Path(__file__).parents[1]))
from peer import encode, inner_rows, run_peer

SETTINGS = {"n_estimators": 200, "max_features": 0.3, "min_samples_leaf": 2, "random_state": 0, "n_jobs": 1}
QUANTILES = [0.05, 0.5, 0.95]
LEVEL = 0.9


def predict(fold, logs):
    """Widen the quantiles of all rows by what a forest without the validation rows misses of them."""
    train, test = encode(fold, one_hot=True)
    fitting, held_out = inner_rows(fold)
    inner = RandomForestQuantileRegressor(**SETTINGS).fit(train[fitting].to_numpy(), logs[fitting].to_numpy())
    low, _, high = inner.predict(train[held_out].to_numpy(), quantiles=QUANTILES).T
    truth = logs[held_out].to_numpy()
    misses = np.maximum(low - truth, truth - high)
    share = min(1.0, np.ceil((len(misses) + 1) * LEVEL) / len(misses))
    margin = np.quantile(misses, share)
    forest = RandomForestQuantileRegressor(**SETTINGS).fit(train.to_numpy(), logs.to_numpy())
    low, point, high = forest.predict(test.to_numpy(), quantiles=QUANTILES).T
    return point, low - margin, high + margin


run_peer(predict)

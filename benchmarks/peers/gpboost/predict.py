"""GPBoost: boosted trees with random effects of CPU model, family and vendor, a model for each suite."""

import sys
from pathlib import Path

import gpboost
import numpy as np
import pandas as pd
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).parents[1]))
from peer import encode, inner_rows, run_peer

GROUPS = ["family", "cpu_vendor"]
"""Features that are random effects beside the entity; a table without them has that of the entity alone."""
SETTINGS = {"learning_rate": 0.05, "num_leaves": 31, "min_data_in_leaf": 10, "feature_fraction": 0.5, "verbose": -1}
SETTINGS |= {"num_threads": 1, "seed": 0, "objective": "gaussian"}
MAX_ROUNDS = 500


def predict(fold, logs):
    """Fit a model for each task, with the rounds that the validation rows choose."""
    train, test = encode(fold)
    train, test = train.drop(columns=GROUPS, errors="ignore"), test.drop(columns=GROUPS, errors="ignore")
    groups_train, groups_test = _groups(fold.X_train, fold.keys_train), _groups(fold.X_test, fold.keys_test)
    fitting, held_out = inner_rows(fold)
    mean, spread = np.empty(len(test)), np.empty(len(test))
    for task in sorted(fold.keys_test["task"].unique()):
        rows = (fold.keys_train["task"] == task).to_numpy()
        tested = (fold.keys_test["task"] == task).to_numpy()
        known, later = rows & fitting, rows & held_out
        model = gpboost.GPModel(group_data=groups_train[known], likelihood="gaussian")
        model.set_prediction_data(group_data_pred=groups_train[later])
        data = gpboost.Dataset(train[known], logs[known])
        check = gpboost.Dataset(train[later], logs[later], reference=data)
        inner = gpboost.train(
            SETTINGS,
            data,
            gp_model=model,
            num_boost_round=MAX_ROUNDS,
            valid_sets=check,
            early_stopping_rounds=20,
            use_gp_model_for_validation=True,
            verbose_eval=False,
        )
        whole = gpboost.GPModel(group_data=groups_train[rows], likelihood="gaussian")
        booster = gpboost.train(
            SETTINGS,
            gpboost.Dataset(train[rows], logs[rows]),
            gp_model=whole,
            num_boost_round=max(20, inner.best_iteration),
            verbose_eval=False,
        )
        made = booster.predict(test[tested], group_data_pred=groups_test[tested], predict_var=True, pred_latent=False)
        mean[tested] = made["response_mean"]
        spread[tested] = np.sqrt(made["response_var"])
    half = norm.ppf(0.95) * spread
    return mean, mean - half, mean + half


def _groups(features, keys):
    """Return the labels of the random effects, (n, effects)."""
    named = [keys["entity"], *(features[name] for name in GROUPS if name in features)]
    return pd.concat(named, axis=1).astype("str").to_numpy()


run_peer(predict)

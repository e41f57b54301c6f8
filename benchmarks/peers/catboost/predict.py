"""CatBoost with its own categories: a model of the mean absolute error, and one of the 5 % and 95 % quantiles."""

import sys
from pathlib import Path

import pandas as pd
from catboost import CatBoostRegressor, Pool

sys.path.insert(0, str(Path(__file__).parents[1]))
from peer import inner_rows, run_peer

SETTINGS = {
    "iterations": 400,
    # combinations of categories take most of the time
    "max_ctr_complexity": 1,
    "random_seed": 0,
    "thread_count": 1,
    "verbose": False,
    "allow_writing_files": False,
}


def predict(fold, logs):
    """Fit with early stopping on the validation rows; then on all rows with as many trees."""
    texts = [name for name in fold.X_train if not pd.api.types.is_numeric_dtype(fold.X_train[name])]
    train, test = fold.X_train.copy(), fold.X_test.copy()
    for frame in (train, test):
        frame[texts] = frame[texts].fillna("")
    fitting, held_out = inner_rows(fold)
    made = []
    for loss in ("MAE", "MultiQuantile:alpha=0.05,0.95"):
        settings = {**SETTINGS, "loss_function": loss}
        first = CatBoostRegressor(**settings, early_stopping_rounds=50)
        first.fit(Pool(train[fitting], logs[fitting], texts), eval_set=Pool(train[held_out], logs[held_out], texts))
        settings["iterations"] = max(50, first.get_best_iteration() + 1)
        model = CatBoostRegressor(**settings).fit(Pool(train, logs, texts))
        made.append(model.predict(Pool(test, cat_features=texts)))
    return made[0], made[1][:, 0], made[1][:, 1]


run_peer(predict)

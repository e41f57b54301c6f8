"""RealMLP and TabM of pytabkit with their tuned defaults, and conformal intervals: --model realmlp or tabm."""

import sys
from pathlib import Path

from pytabkit import RealMLP_TD_Regressor, TabM_D_Regressor

sys.path.insert(0, str(Path(__file__).parents[1]))
from peer import conformal_margin, encode, inner_rows, run_peer

MODELS = {"realmlp": RealMLP_TD_Regressor, "tabm": TabM_D_Regressor}
place = sys.argv.index("--model") if "--model" in sys.argv else sys.exit("--model must be realmlp or tabm")
MODEL = MODELS[sys.argv[place + 1]]
del sys.argv[place : place + 2]


def predict(fold, logs):
    """Stop early on the validation rows; these give the width of the intervals, too."""
    train, test = encode(fold, one_hot=True)
    fitting, held_out = inner_rows(fold)
    inner = MODEL(device="cpu", random_state=0, n_cv=1)
    inner.fit(train[fitting], logs[fitting].to_numpy(), train[held_out], logs[held_out].to_numpy())
    misses = logs[held_out].to_numpy() - inner.predict(train[held_out])
    half = conformal_margin(misses, fold.keys_train["task"][held_out], fold.keys_test["task"])
    model = MODEL(device="cpu", random_state=0, n_cv=1)
    model.fit(train, logs.to_numpy())
    point = model.predict(test)
    return point, point - half, point + half


run_peer(predict)

"""AutoGluon, ten minutes a fold, without models whose weights come from a hub."""

import sys
import tempfile
from pathlib import Path

from autogluon.tabular import TabularPredictor

sys.path.insert(0, str(Path(__file__).parents[1]))
from peer import QUANTILES, inner_rows, run_peer

SECONDS = 600
FROM_HUB = ["TABPFN", "TABPFNV2", "TABPFNMIX", "TABICL", "MITRA", "TABDPT", "FT_TRANSFORMER"]
LABEL = "log score"


def predict(fold, logs):
    """Give half of the time to the point and half to the quantiles; the validation rows tune and weigh the models."""
    fitting, held_out = inner_rows(fold)
    rows = fold.X_train.assign(**{LABEL: logs})
    made = []
    for problem in ("regression", "quantile"):
        levels = {"quantile_levels": list(QUANTILES)} if problem == "quantile" else {}
        with tempfile.TemporaryDirectory() as folder:
            predictor = TabularPredictor(LABEL, problem_type=problem, path=folder, verbosity=0, **levels)
            predictor.fit(
                rows[fitting],
                tuning_data=rows[held_out],
                time_limit=SECONDS / 2,
                excluded_model_types=FROM_HUB,
                num_cpus=1,
                num_gpus=0,
            )
            made.append(predictor.predict(fold.X_test).to_numpy())
    return made[0], made[1][:, 0], made[1][:, -1]


run_peer(predict)

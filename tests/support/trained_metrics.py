"""Train predictors on a table and write their metrics as metrics.json has them: FOLDER OUT PREDICTOR...

FOLDER has table.parquet and split.parquet. `kernels` in the output are those that the libraries of NumPy and SciPy use.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import scipy.linalg  # noqa: F401 - its library must be loaded to be listed
from threadpoolctl import threadpool_info

from perfcast.config.conf_files import read_conf
from perfcast.evaluation import evaluate, metrics_tree
from perfcast.experiment.training import TrainingJob, train_predictor
from perfcast.experiment.uncertainty_fit import fold_distances
from perfcast.schema.table_files import read_table
from perfcast.splits import read_folds

SPLIT = "forward_2026_05"


def write_metrics(folder: Path, out: Path, predictors: list[str]) -> None:
    """Train and evaluate on the rows of FOLDER."""
    table_file, folds_file = folder / "table.parquet", folder / "split.parquet"
    table, out = read_table(table_file), out.with_suffix("")
    for predictor in predictors:
        conf = read_conf(Path(__file__).parents[2] / "conf", "predictor", predictor)
        job = TrainingJob(table.dataset, SPLIT, predictor, table_file, folds_file, out / predictor)
        config = {"dataset": {"name": table.dataset}, "split": SPLIT, "predictor": conf, "preset": "quick"}
        train_predictor(job, table, {**config, "seeds": [0], "trainer": {}})
    distances = out / "in_domain.parquet"
    fold_distances(table, read_folds(folds_file, table), None, 1, None).to_parquet(distances)
    runs = {(SPLIT, predictor): out / predictor for predictor in predictors}
    choices = {"described": None, "tables": {}, "level": 0.9, "resamples": 20, "seed": 0}
    metrics = metrics_tree(evaluate(runs, table, in_domain={SPLIT: distances}, **choices))
    kernels = sorted(each["architecture"] for each in threadpool_info() if each["internal_api"] == "openblas")
    out.with_suffix(".json").write_text(json.dumps({"kernels": kernels, "metrics": metrics[SPLIT]}))


if __name__ == "__main__":
    write_metrics(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])

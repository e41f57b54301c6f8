"""Search the hyperparameters of a predictor on one split, with one Optuna study per fold.

    python benchmarks/tune.py spec_cpu2017 forward_2023 lightgbm results/full 12

The last words are the folder of results and the trials per fold. A trial is evaluated on validation rows inside the
training part; no test row takes part. The first one has the values of the conf. A stopped search continues.
Printed is an entry for conf/tuned/<dataset>/<predictor>.yaml.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import optuna

from perfcast.config.conf_files import read_yaml
from perfcast.config.dataset_conf import read_dataset
from perfcast.config.predictor_conf import Choices, Dimension, read_predictor
from perfcast.experiment.fitting import FoldRows, first_error, run_backtests
from perfcast.experiment.selection import predictor_factory
from perfcast.schema.table_files import read_table
from perfcast.splits import read_folds


def suggest(trial: optuna.Trial, name: str, dimension: Dimension) -> object:
    if isinstance(dimension, Choices):
        return trial.suggest_categorical(name, dimension.choices)
    kind = trial.suggest_int if dimension.whole else trial.suggest_float
    return kind(name, dimension.low, dimension.high, log=dimension.log)


def main(dataset: str, split: str, predictor: str, results: str, trials: str) -> None:
    conf, machine = read_predictor(Path("conf"), predictor), read_yaml(Path("conf/trainer/default.yaml"))
    table = read_table(Path(results, "features", f"{dataset}.parquet"))
    folds = read_folds(Path(results, "splits", dataset, f"{split}.parquet"), table)
    outlier = read_dataset(Path("conf"), dataset).label_outlier
    place = Path(results, f"tuning_{predictor}.db")
    print(f"- splits: [{split}]\n  command: {shlex.join(['python', *sys.argv])}\n  folds:")
    for number, fold in enumerate(folds.columns):

        def measure(trial: optuna.Trial, fold: str = fold) -> float | None:
            values = {name: suggest(trial, name, dimension) for name, dimension in conf.space.items()}
            make = predictor_factory(conf, {**conf.params, **values}, machine)
            rows = FoldRows.plan(table, folds[fold].to_numpy(), outlier, 1)
            return first_error(run_backtests(table, rows.backtests, make, 0, 0))

        storage, sampler = f"sqlite:///{place}", optuna.samplers.TPESampler(seed=number)
        name = f"{dataset}/{split}/{fold}"
        study = optuna.create_study(study_name=name, storage=storage, sampler=sampler, load_if_exists=True)
        done = len(study.trials)
        if not done:
            defaults = predictor_factory(conf, conf.params, machine)(0).get_params(deep=False)
            study.enqueue_trial({name: defaults[name] for name in conf.space})
        study.optimize(measure, n_trials=max(0, int(trials) - done), catch=(ValueError,))
        print(f"  - {json.dumps(study.best_params)}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

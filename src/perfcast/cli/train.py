"""Train one predictor on every fold and seed of one split, and record it in MLflow."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfcast.cli import _numbers
from perfcast.cli._common import BASE, add_project
from perfcast.config import compose

if TYPE_CHECKING:
    import pandas as pd

    from perfcast.experiment import Choice, Fitted
    from perfcast.predictors.base import Predictor
    from perfcast.schema import Table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("dataset")
    parser.add_argument("split")
    parser.add_argument("predictor")
    parser.add_argument("--table", type=Path, required=True, help="the table with features")
    parser.add_argument("--folds", type=Path, required=True, help="the split")
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--schedule", choices=["quick", "full"], default="full")
    parser.add_argument("--seeds", type=_numbers.seed, nargs="+", default=[0])
    parser.add_argument(
        "--rehearsals", type=_numbers.rehearsals, default=1, help="most rehearsals of a question about the future"
    )
    parser.add_argument("--override", action="append", default=[], metavar="KEY=VALUE", help="Hydra override")
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Train, write the run's folder, record."""
    config = compose(
        options.project,
        [
            f"dataset={options.dataset}",
            f"predictor={options.predictor}",
            f"split={options.split}",
            f"schedule={options.schedule}",
            f"seeds=[{','.join(map(str, options.seeds))}]",
            *options.override,
        ],
    )
    import contextlib

    from perfcast import tracking
    from perfcast.table_files import read_table

    table = read_table(options.table)
    name = f"{options.predictor} on {options.split}"
    store = tracking.store_from(config["tracking"], options.project, os.environ)
    with contextlib.ExitStack() as stack:
        record = None
        if config["trainer"].get("num_nodes", 1) > 1:
            from perfcast.training.devices import is_first

            if not is_first(os.environ):  # it trains along: the first process of the first node writes and records
                store, options.out = None, Path(stack.enter_context(tempfile.TemporaryDirectory())) / "run"
        if store is not None:
            tags = {
                "perfcast.kind": "training",
                "dataset": options.dataset,
                "split": options.split,
                "predictor": options.predictor,
                "schedule": options.schedule,
            }
            record = stack.enter_context(tracking.start_run(store, f"perfcast/{options.dataset}", name, tags))
        _train(table, config, options, record)
    return 0


def _train(table: Table, config: dict[str, Any], options: argparse.Namespace, record: Any) -> None:
    """Do the work inside an open run, `record`, or without one."""
    import yaml

    from perfcast import experiment
    from perfcast.config import PredictorConf, validated
    from perfcast.digest import code_digest
    from perfcast.io import atomic_folder, sha256, write_text
    from perfcast.splits import read_folds

    conf = validated(PredictorConf, f"conf/predictor/{options.predictor}.yaml", config["predictor"])
    folds = read_folds(options.folds, table)
    question = (options.dataset, options.split, *([folds.attrs[BASE]] if BASE in folds.attrs else []))
    settings = conf.tuned_settings(config["schedule"], *question) or conf.settings(config["schedule"])
    seeds = config["seeds"] if conf.stochastic else config["seeds"][:1]
    outlier = config["dataset"]["label_outlier"]

    used = {
        "dataset": config["dataset"],
        "split": config["split"],
        "predictor": {
            "name": options.predictor,
            "_target_": conf.target,
            "settings": settings,
            "without_columns": conf.without_columns,
        },
        "schedule": config["schedule"],
        "seeds": seeds,
    }
    if record is not None:
        record.log_params(used)
        record.log_dataset(options.dataset, sha256(options.table), options.split)
        record.set_tags({"code_digest": code_digest("perfcast.cli.train", conf.module)})
    candidates = experiment.fold_makers(conf, config["schedule"], config["trainer"], question, len(folds.columns))
    told, started = _Told(), time.perf_counter()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_folder(options.out) as folder:
        most = options.rehearsals
        runs = experiment.run_folds(table, folds, candidates, seeds, outlier, most_rehearsals=most)
        for number, fitted in enumerate(runs):
            if number == 0:
                first = fitted.predictor
                _keep(first, table, folds.iloc[:, 0] == "test", folder)
            told.add(fitted)
            error = experiment.error_summary(fitted.test)["mean/mape"]
            print(
                f"{options.dataset}/{options.split}/{options.predictor} fold {fitted.fold} seed {fitted.seed} "
                f"{fitted.choice.candidate}: "
                f"test MAPE {error:.2f} % ({time.perf_counter() - started:.0f} s)",
                file=sys.stderr,
                flush=True,
            )
        everything, curves, inner = told.write(folder)
        write_text(folder / "config.yaml", yaml.safe_dump(used, sort_keys=True))
        if record is not None:
            errors = experiment.error_summary(everything)
            record.log_metrics({f"{options.split}/{name}": value for name, value in errors.items()})
            record.log_metrics({"inner_valid_mape": inner if inner is not None else float("nan")})
            if "epoch" in curves:
                record.log_history(curves)
            record.log_artifacts(folder / "config.yaml", folder / "predictions.parquet")
            example = table.frame[first.input_names()].head(3)
            record.log_model(folder / "model", example, first.predict(example))


class _Told:
    """What the folds and seeds of a job told, one after the other."""

    def __init__(self) -> None:
        self.predictions: list[pd.DataFrame] = []
        self.history: list[pd.DataFrame] = []
        self.rehearsed: dict[int, pd.DataFrame] = {}
        self.choices: dict[int, Choice] = {}

    def add(self, fitted: Fitted) -> None:
        import pandas as pd

        self.predictions.append(fitted.test)
        self.choices[fitted.fold], self.rehearsed[fitted.fold] = fitted.choice, fitted.rehearsed
        epochs = getattr(fitted.predictor, "history_", [])
        self.history.append(pd.DataFrame(epochs).assign(seed=fitted.seed, fold=fitted.fold))

    def write(self, folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, float | None]:
        """Write the tables of the run; return predictions, learning curves and the first fold's inner error."""
        import pandas as pd

        from perfcast.io import write_json

        everything = pd.concat(self.predictions, ignore_index=True)
        everything.to_parquet(folder / "predictions.parquet", index=False)
        curves = pd.concat(self.history, ignore_index=True)
        leading = [name for name in ("seed", "fold", "epoch") if name in curves]
        curves = curves[[*leading, *[name for name in curves if name not in leading]]]
        curves.to_csv(folder / "history.csv", index=False, lineterminator="\n")
        held = [one for one in self.rehearsed.values() if not one.empty] or [self.rehearsed[0]]
        pd.concat(held, ignore_index=True).to_parquet(folder / "rehearsals.parquet", index=False)
        inner = self.choices[0].valid_mape[self.choices[0].candidate]
        choices = [asdict(choice) for choice in self.choices.values()]
        write_json(folder / "inner.json", {"valid_mape": inner, "choices": choices})
        return everything, curves, inner


def _keep(predictor: Predictor, table: Table, tested: pd.Series, folder: Path) -> None:
    """Store the model of the first fold, and what it rests on when asked about rows that it has not seen."""
    from perfcast.explanation import write_explanation
    from perfcast.parts import measured_rows

    predictor.save(folder / "model")
    write_explanation(predictor, table, tested.to_numpy() & measured_rows(table), 0, folder / "explanation")

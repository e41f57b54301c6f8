"""Training of one predictor on every fold and seed of a split, written as a run folder with its record."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.code_hash import code_digest
from perfcast.config.conf_files import validated
from perfcast.config.predictor_conf import PredictorConf
from perfcast.experiment.fitting import (
    Backtest,
    FoldRows,
    first_error,
    fit_backtest,
    measured_rows,
    predict_rows,
    run_backtests,
)
from perfcast.experiment.selection import PredictorFactory, fold_factories, list_fits
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Role, Table, Tag
from perfcast.schema.table_files import read_table
from perfcast.splits import BASE, VERSION, check_version, read_folds
from perfcast.tracking import RECORD, Store
from perfcast.uncertainty.levels import ErrorLevels, KnownErrors
from perfcast.uncertainty.rolling import error_rows, fit_levels, log_errors
from perfcast.utils.io import atomic_folder, atomic_path, sha256, write_json, write_text
from perfcast.utils.nested import flattened
from perfcast.utils.result_digests import record_digests
from perfcast.utils.safe_yaml import yaml_text


def correct_backtests(
    predictions: pd.DataFrame, table: Table, backtests: Sequence[Backtest], make: PredictorFactory, seed: int
) -> tuple[pd.DataFrame, ErrorLevels | None]:
    """Return predictions of backtests that know first results, corrected, and the levels of errors without them.

    Without first results nothing is corrected, and the levels are None. See `average_first_results`.
    """
    few_shot = [backtest for backtest in backtests if backtest.revealed is not None and backtest.revealed.any()]
    if not few_shot:
        return predictions, None
    without = [backtest.without_first_results(table) for backtest in few_shot]
    frozen = run_backtests(table, without, make, seed, 0)
    levels = fit_levels(frozen, table)
    parts = [
        average_first_results(part, frozen[frozen["backtest"] == number], levels, table)
        for number, part in predictions.groupby("backtest")
    ]
    return pd.concat(parts, ignore_index=True), levels


def average_first_results(
    trained: pd.DataFrame, frozen: pd.DataFrame, levels: ErrorLevels, table: Table
) -> pd.DataFrame:
    """Return the geometric mean of predictions `trained` on first results and `frozen` ones corrected by their levels.

    `frozen` predicts the first results too: rows that are not in `trained`. Rows of a task that only first results have
    are not in `frozen`, and stay as they are. In forecasts of 2020 and 2021, 24 months
    with three first results each, the errors were 3.00 and 3.48 % of the trained, 3.26 and 3.41 % of the corrected
    predictions, and 2.82 and 3.28 % of their mean.
    """
    keys = ["row", "target"]
    known = frozen[~frozen["row"].isin(trained["row"])]
    rows = trained[keys].merge(frozen, on=keys, how="left")
    first_results = KnownErrors(levels, log_errors(known), error_rows(known, table))
    expected, _ = first_results.predict(error_rows(trained, table))
    corrected = rows["predicted"].to_numpy(dtype=float) * np.exp(expected)
    alone = trained["predicted"].to_numpy(dtype=float)
    return trained.assign(predicted=np.where(np.isnan(corrected), alone, np.sqrt(alone * corrected)))


@dataclass(frozen=True)
class FoldFit:
    """One fitted predictor with its predictions of test rows, and the backtest predictions of its fold."""

    fold: int
    seed: int
    validation_mape: float | None
    predictor: Predictor
    test: pd.DataFrame
    backtest: pd.DataFrame


def fit_folds(
    table: Table,
    folds: pd.DataFrame,
    makes: Sequence[PredictorFactory],
    seeds: Sequence[int],
    label_outlier: float | None,
    *,
    max_backtests: int = 1,
) -> Iterator[FoldFit]:
    """Fit on the training rows of every fold and seed and predict its test rows, one at a time.

    Every fold is backtested inside its own training part: in a cross-validation the validation rows of one fold are
    test rows of another. Backtests use the first seed. `makes` has the factory of each fold.
    Shapes: `folds` has one string column per fold, values train | validation | test | unused, in the table's row order.
    """
    for fold, name in enumerate(folds.columns):
        rows = FoldRows.plan(table, folds[name].to_numpy(), label_outlier, max_backtests)
        make = makes[fold]
        fits, remember = list_fits(make)
        backtest = run_backtests(table, rows.backtests, remember, seeds[0], fold)
        # a stack fits its parts on the same rows again: it takes what is fitted already
        fitted = {
            np.flatnonzero(planned.fitting).tobytes(): fit for planned, fit in zip(rows.backtests, fits, strict=True)
        }
        backtest, levels = correct_backtests(backtest, table, rows.backtests, make, seeds[0])
        for seed in seeds:
            predictor = make(seed)
            predictor.backtested = fitted if seed == seeds[0] else None
            predictor = fit_backtest(predictor, table, rows.final)
            predictions = predict_rows(predictor, table, rows.final.testing, fold, seed)
            if levels is not None:
                without = rows.final.without_first_results(table)
                frozen = run_backtests(table, [without], make, seed, fold)
                predictions = average_first_results(predictions, frozen, levels, table)
            yield FoldFit(fold, seed, first_error(backtest), predictor, predictions, backtest)


def summarize_errors(predictions: pd.DataFrame) -> dict[str, float]:
    """Return MAPE and MedAPE in per cent: averaged over the tasks, and per task under `<metric>/<task>`."""
    errors = (predictions["predicted"] / predictions["measured"] - 1).abs() * 100
    by_task = errors.groupby(predictions["task"])
    summary: dict[str, float] = {}
    for metric, values in {"mape": by_task.mean(), "medape": by_task.median()}.items():
        summary[metric] = float(values.mean())
        summary |= {f"{metric}/{task}": float(value) for task, value in values.items()}
    return summary


@dataclass(frozen=True)
class TrainingJob:
    """A predictor, by name, to be trained on a split of a dataset: the files read, and the folder written."""

    dataset: str
    split: str
    predictor: str
    table_file: Path
    """Table with features."""
    folds_file: Path
    """File of the split."""
    out: Path
    """Folder of the run."""
    max_backtests: int = 1
    """Most backtests of a fold of a forward split."""
    checkpoints: Path | None = None
    """Folder from which a job that was killed continues, if given; it is removed at the end."""

    def names(self) -> dict[str, str]:
        """Return dataset, split and predictor."""
        return {"dataset": self.dataset, "split": self.split, "predictor": self.predictor}


def run_training(job: TrainingJob, config: Mapping[str, Any], store: Store | None) -> None:
    """Train; a live store, if any, shows the curves meanwhile."""
    table = read_table(job.table_file)
    if store is None or not store.live:
        train_predictor(job, table, config)
        return
    from perfcast.tracking.live import live_record  # imports Lightning, which takes seconds

    tags = {**job.names(), "preset": config["preset"]}
    with live_record(store, f"perfcast/{job.dataset}", f"{job.predictor}-{job.split}", tags) as live:
        train_predictor(job, table, {**config, "trainer": {**config["trainer"], "logger": live or False}})
        if live:
            live.name_record(sha256(job.out / RECORD))


def train_predictor(job: TrainingJob, table: Table, config: Mapping[str, Any]) -> None:
    """Train on every fold and seed, and write the run's folder.

    `config` is the composed configuration: dataset, split, predictor, trainer, preset, seeds.
    Raises: UserError when the configuration or a file is not valid.
    """
    folds = read_folds(job.folds_file, table)
    version = int(folds.attrs.get(VERSION, 1))
    check_version(job.split, version, job.folds_file)
    preset = config["preset"]
    outlier = config["dataset"].get("label_outlier")
    conf = validated(PredictorConf, f"conf/predictor/{job.predictor}.yaml", config["predictor"])
    seeds = config["seeds"] if conf.stochastic else config["seeds"][:1]
    # a learning-curve split uses what was tuned on the split that it is of
    key = (job.dataset, job.split, *([folds.attrs[BASE]] if BASE in folds.attrs else []))
    settings = conf.tuned_settings(preset, *key) or conf.settings(preset)
    used = {
        "dataset": config["dataset"],
        "split": config["split"],
        "preset": preset,
        "seeds": seeds,
        "predictor": {
            "name": job.predictor,
            "_target_": conf.target,
            "settings": settings,
            "without_columns": conf.without_columns,
        },
    }
    code = code_digest("perfcast.cli.pipeline:train", *conf.modules)
    trainer = config["trainer"]
    if job.checkpoints:
        trainer = {**trainer, "default_root_dir": str(job.checkpoints / code)}
    makes = fold_factories(conf, preset, trainer, key, len(folds.columns))
    ((name, arguments),) = (settings[0] if isinstance(settings, list) else settings).items()
    job.out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_folder(job.out) as folder:
        fits = fit_folds(table, folds, makes, seeds, outlier, max_backtests=job.max_backtests)
        errors, metrics = _write_fits(job, fits, table, folds, folder)
        choices = [{"candidate": name, "validation_mape": {name: error}} for error in errors]
        write_json(folder / "validation.json", {"validation_mape": errors[0], "choices": choices})
        write_text(folder / "config.yaml", yaml_text(used, sort_keys=True))
        parameters = {
            **flattened(arguments),
            "candidate": name,
            "class": conf.target.rpartition(".")[2],
            "preset": preset,
            "seeds": seeds,
            "without_columns": conf.without_columns,
            "label_outlier": outlier,
        }
        files = {"table": job.table_file, "folds": job.folds_file, "predictions": folder / "predictions.parquet"}
        record = {
            **job.names(),
            VERSION: version,
            "parameters": {name: str(value) for name, value in parameters.items() if value not in (None, [], {})},
            "metrics": {name: value for name, value in metrics.items() if math.isfinite(value)},
            "tags": {"preset": preset, "code_digest": code},
            "rows": {name: int((folds.iloc[:, 0] == name).sum()) for name in ("train", "validation", "test")},
            "sha256": {name: sha256(path) for name, path in files.items()},
            "curves": "history.csv",
            "model": "model",
        }
        write_json(folder / RECORD, record)
        record_digests(folder)
    if job.checkpoints:
        shutil.rmtree(job.checkpoints, ignore_errors=True)


def _write_fits(
    job: TrainingJob, fits: Iterable[FoldFit], table: Table, folds: pd.DataFrame, folder: Path
) -> tuple[list[float | None], dict[str, float]]:
    """Write the first model, and the tables of all folds and seeds; return the inner error by fold, and the metrics."""
    predictions: list[pd.DataFrame] = []
    backtests: list[pd.DataFrame] = []
    curves: list[pd.DataFrame] = []
    errors: dict[int, float | None] = {}
    started = time.perf_counter()
    for fit in fits:
        if not errors:  # the model of the first fold is kept, with its explanation on rows that it has not seen
            fit.predictor.save(folder / "model")
            tested = (folds.iloc[:, 0] == "test").to_numpy() & measured_rows(table)
            write_explanation(fit.predictor, table, tested, 0, folder / "explanation")
        if fit.fold not in errors:
            backtests.append(fit.backtest)
        errors[fit.fold] = fit.validation_mape
        predictions.append(fit.test)
        history = pd.DataFrame(getattr(fit.predictor, "history_", []))
        curves.append(history.assign(seed=fit.seed, fold=fit.fold))
        _report_progress(job, fit, time.perf_counter() - started)
    _write_parquet(predictions, folder / "predictions.parquet")
    _write_parquet(backtests, folder / "backtest.parquet")
    _write_curves(curves, folder / "history.csv")
    inner = errors[0]
    metrics = summarize_errors(pd.concat(predictions))
    metrics["validation_mape"] = math.nan if inner is None else inner
    return list(errors.values()), metrics


def _report_progress(job: TrainingJob, fit: FoldFit, seconds: float) -> None:
    error = summarize_errors(fit.test)["mape"]
    names = f"{job.dataset}/{job.split}/{job.predictor} fold {fit.fold} seed {fit.seed}"
    print(f"{names}: test MAPE {error:.2f} % ({seconds:.0f} s)", file=sys.stderr, flush=True)


def _write_parquet(frames: Sequence[pd.DataFrame], path: Path) -> None:
    """Write the rows of all folds and seeds."""
    filled = [frame for frame in frames if not frame.empty] or frames[:1]
    joined = pd.concat(filled, ignore_index=True)
    joined.to_parquet(path, index=False, write_page_checksum=True)


def _write_curves(curves: Sequence[pd.DataFrame], path: Path) -> None:
    """Write the learning curves of all folds and seeds."""
    history = pd.concat(curves, ignore_index=True)
    leading = [name for name in ("seed", "fold", "epoch") if name in history]
    others = [name for name in history if name not in leading]
    history[leading + others].to_csv(path, index=False, lineterminator="\n")


MAX_ROWS = 1000
"""Most rows of an explanation: more only cost time."""


def group_importance(predictor: Predictor, table: Table, rows: np.ndarray, seed: int) -> pd.DataFrame:
    """Return the growth of the error when the columns of one group are shuffled together among rows of one task.

    A group is shuffled as a whole: its columns repeat one another, and shuffling a single one hides its importance.
    Shapes: `rows` (n,) bool; one line per group of features: group, mape, increase. Units: percent, percentage points.
    Source: Breiman, 2001, Machine Learning 45(1), for groups of columns.
    """
    generator = np.random.default_rng(seed)
    frame = table.frame.loc[_sample(rows, generator)]
    tasks = frame[table.column_of(Tag.TASK)].astype(str).to_numpy()
    measured = frame[list(predictor.targets_)].to_numpy(dtype=float)
    X = frame[predictor.input_names()]

    def error(inputs: pd.DataFrame) -> float:
        return float(np.nanmean(np.abs(predictor.predict(inputs).to_numpy() / measured - 1)) * 100)

    used = [column for column in predictor.columns_ if column.role is Role.FEATURE and Tag.TASK not in column.tags]
    before = error(X)
    lines = []
    for group in sorted({column.group for column in used}):
        names = [column.name for column in used if column.group == group]
        order = _within(tasks, generator)
        shuffled = X.assign(**{name: X[name].iloc[order].set_axis(X.index) for name in names})
        after = error(shuffled)
        lines.append({"group": group, "mape": after, "increase": after - before})
    return pd.DataFrame(lines, columns=["group", "mape", "increase"])


def write_explanation(predictor: Predictor, table: Table, rows: np.ndarray, seed: int, folder: Path) -> None:
    """Write importance.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    importance = group_importance(predictor, table, rows, seed).set_index("group")
    with atomic_path(folder / "importance.csv") as temporary:
        importance.round(6).to_csv(temporary, lineterminator="\n")


def _sample(rows: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Mark at most MAX_ROWS of the given rows, (n,) bool."""
    numbers = np.flatnonzero(rows)
    chosen = generator.choice(numbers, min(MAX_ROWS, len(numbers)), replace=False)
    marked = np.zeros(len(rows), dtype=bool)
    marked[chosen] = True
    return marked


def _within(tasks: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Return an order of rows that shuffles the rows of each task, (n,) int."""
    order = np.arange(len(tasks))
    for task in np.unique(tasks):
        rows = np.flatnonzero(tasks == task)
        order[rows] = generator.permutation(rows)
    return order

"""Training of one predictor on every fold and seed of a split, written as a run folder with its record."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.code_hash import code_digest
from perfcast.config.conf_files import validated
from perfcast.config.predictor_conf import PredictorConf
from perfcast.experiment.fitting import (
    Backtest,
    first_error,
    fit_rows,
    measured_rows,
    of_known_tasks,
    plan_backtests,
    predict_rows,
    revealed_rows,
    run_backtests,
    tested_rows,
    training_rows,
)
from perfcast.experiment.selection import CandidateChoice, FoldCandidates, fold_candidates, list_fits, select_candidate
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
    predictions: pd.DataFrame,
    table: Table,
    backtests: Sequence[Backtest],
    make: Callable[[int], Predictor],
    seed: int,
) -> tuple[pd.DataFrame, ErrorLevels | None]:
    """Return predictions of backtests that know first results, corrected, and the levels of errors without them.

    Without first results nothing is corrected, and the levels are None. See `average_first_results`.
    """
    without = [
        Backtest(each.number, earlier, (each.testing | each.revealed) & of_known_tasks(table, earlier))
        for each in backtests
        if each.revealed is not None and each.revealed.any()
        for earlier in [each.fitting & ~each.revealed]
    ]
    if not without:
        return predictions, None
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
    choice: CandidateChoice
    predictor: Predictor
    test: pd.DataFrame
    backtest: pd.DataFrame


def fit_folds(
    table: Table,
    folds: pd.DataFrame,
    candidates: FoldCandidates,
    seeds: Sequence[int],
    label_outlier: float | None,
    *,
    max_backtests: int = 1,
) -> Iterator[FoldFit]:
    """Fit on the training rows of every fold and seed and predict its test rows, one at a time.

    Every fold selects among its candidates and is backtested inside its own training part: in a cross-validation the
    validation rows of one fold are test rows of another. Backtests use the first seed.
    Shapes: `folds` has one string column per fold, values train | validation | test | unused, in the table's row order.
    """
    for fold, name in enumerate(folds.columns):
        subset = folds[name].to_numpy()
        training = training_rows(table, subset, label_outlier)
        testing = tested_rows(table, subset)
        factories = candidates(fold)
        choice = select_candidate(table, subset, factories, seeds[0], label_outlier) if len(factories) > 1 else None
        chosen = choice.candidate if choice else next(iter(factories))
        backtests = plan_backtests(table, subset, label_outlier, max_backtests)
        fits, remember = list_fits(factories[chosen])
        backtest = run_backtests(table, backtests, remember, seeds[0], fold)
        known = {np.flatnonzero(each.fitting).tobytes(): fit for each, fit in zip(backtests, fits, strict=True)}
        backtest, levels = correct_backtests(backtest, table, backtests, factories[chosen], seeds[0])
        shown = training & revealed_rows(table, subset)
        choice = choice or CandidateChoice(chosen, {chosen: first_error(backtest)})
        for seed in seeds:
            predictor = factories[chosen](seed)
            predictor.backtested = known if seed == seeds[0] else None
            predictor = fit_rows(predictor, table, training, subset[training] == "validation")
            predictions = predict_rows(predictor, table, testing, fold, seed)
            if levels is not None:
                earlier = training & ~shown
                frozen = fit_rows(factories[chosen](seed), table, earlier, subset[earlier] == "validation")
                without = predict_rows(frozen, table, (testing | shown) & of_known_tasks(table, earlier), fold, seed)
                predictions = average_first_results(predictions, without, levels, table)
            yield FoldFit(fold, seed, choice, predictor, predictions, backtest)


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
    """A predictor, by name, to be trained on a split of a dataset: the files read, and the folder written.

    `table_file` is the table with features, `folds_file` the split; `max_backtests` limits those of a forward split.
    `checkpoints` is a folder from which a job that was killed continues, if given; it is removed at the end.
    """

    dataset: str
    split: str
    predictor: str
    table_file: Path
    folds_file: Path
    out: Path
    max_backtests: int = 1
    checkpoints: Path | None = None

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
    conf = validated(PredictorConf, f"conf/predictor/{job.predictor}.yaml", config["predictor"])
    key = (job.dataset, job.split, *([folds.attrs[BASE]] if BASE in folds.attrs else []))
    seeds = config["seeds"] if conf.stochastic else config["seeds"][:1]
    settings = conf.tuned_settings(config["preset"], *key) or conf.settings(config["preset"])
    used = {name: config[name] for name in ("dataset", "split", "preset")} | {"seeds": seeds}
    used["predictor"] = {"name": job.predictor, "_target_": conf.target, "settings": settings}
    used["predictor"]["without_columns"] = conf.without_columns
    code, trainer = code_digest("perfcast.cli.pipeline:train", *conf.modules), config["trainer"]
    if job.checkpoints:
        trainer = {**trainer, "default_root_dir": str(job.checkpoints / code)}
    candidates = fold_candidates(conf, config["preset"], trainer, key, len(folds.columns))
    outlier = config["dataset"].get("label_outlier")
    tables: dict[str, list[pd.DataFrame]] = {"predictions": [], "backtest": []}
    curves, choices, started = list[pd.DataFrame](), dict[int, CandidateChoice](), time.perf_counter()
    job.out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_folder(job.out) as folder:
        fits = fit_folds(table, folds, candidates, seeds, outlier, max_backtests=job.max_backtests)
        for fit in fits:
            if not choices:  # the model of the first fold is kept, with its explanation on rows that it has not seen
                fit.predictor.save(folder / "model")
                tested = (folds.iloc[:, 0] == "test").to_numpy() & measured_rows(table)
                write_explanation(fit.predictor, table, tested, 0, folder / "explanation")
            if fit.fold not in choices:
                tables["backtest"].append(fit.backtest)
            choices[fit.fold] = fit.choice
            tables["predictions"].append(fit.test)
            curves.append(pd.DataFrame(getattr(fit.predictor, "history_", [])).assign(seed=fit.seed, fold=fit.fold))
            _report_progress(job, fit, time.perf_counter() - started)
        _write_tables(tables, curves, folder)
        chosen = choices[0].candidate
        inner = choices[0].validation_mape[chosen]
        content = {"validation_mape": inner, "choices": [asdict(choice) for choice in choices.values()]}
        write_json(folder / "validation.json", content)
        write_text(folder / "config.yaml", yaml_text(used, sort_keys=True))
        first = settings[0] if isinstance(settings, list) else settings
        parameters = {
            **flattened(first[chosen]),
            **{"candidate": chosen, "class": conf.target.rpartition(".")[2], "preset": config["preset"]},
            **{"seeds": seeds, "without_columns": conf.without_columns, "label_outlier": outlier},
        }
        metrics = {
            **summarize_errors(pd.concat(tables["predictions"])),
            "validation_mape": math.nan if inner is None else inner,
        }
        read = {"table": job.table_file, "folds": job.folds_file, "predictions": folder / "predictions.parquet"}
        record = {
            **job.names(),
            VERSION: version,
            "parameters": {name: str(value) for name, value in parameters.items() if value not in (None, [], {})},
            "metrics": {name: value for name, value in metrics.items() if math.isfinite(value)},
            "tags": {"preset": config["preset"], "code_digest": code},
            "rows": {name: int((folds.iloc[:, 0] == name).sum()) for name in ("train", "validation", "test")},
            "sha256": {name: sha256(path) for name, path in read.items()},
            **{"curves": "history.csv", "model": "model"},
        }
        write_json(folder / RECORD, record)
        record_digests(folder)
    if job.checkpoints:
        shutil.rmtree(job.checkpoints, ignore_errors=True)


def _report_progress(job: TrainingJob, fit: FoldFit, seconds: float) -> None:
    error = summarize_errors(fit.test)["mape"]
    names = f"{job.dataset}/{job.split}/{job.predictor} fold {fit.fold} seed {fit.seed} {fit.choice.candidate}"
    print(f"{names}: test MAPE {error:.2f} % ({seconds:.0f} s)", file=sys.stderr, flush=True)


def _write_tables(tables: Mapping[str, Sequence[pd.DataFrame]], curves: Sequence[pd.DataFrame], folder: Path) -> None:
    """Write the tables of all folds and seeds, and the learning curves."""
    for name, frames in tables.items():
        filled = [frame for frame in frames if not frame.empty] or frames[:1]
        joined = pd.concat(filled, ignore_index=True)
        joined.to_parquet(folder / f"{name}.parquet", index=False, write_page_checksum=True)
    history = pd.concat(curves, ignore_index=True)
    leading = [name for name in ("seed", "fold", "epoch") if name in history]
    history = history[[*leading, *[name for name in history if name not in leading]]]
    history.to_csv(folder / "history.csv", index=False, lineterminator="\n")


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

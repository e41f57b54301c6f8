"""Evaluation of described machines: test machines go through the path of a user's description, level by level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.config.conf_files import read_yaml
from perfcast.config.dataset_conf import DatasetConf, read_dataset
from perfcast.config.predictor_conf import read_predictor
from perfcast.experiment.fitting import Backtest, fit_rows, plan_backtests, tested_rows, training_rows
from perfcast.experiment.selection import PredictorFactory, list_fits, predictor_factory
from perfcast.experiment.uncertainty_fit import fit_in_domain, fit_uncertainty, plan_final_backtests
from perfcast.inference.bridge import Bridge
from perfcast.inference.champion import Champion
from perfcast.inference.champion_files import load_base
from perfcast.inference.imputation import impute_machines
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.machine_predictions import MachinePredictions
from perfcast.inference.parse import parse_batch
from perfcast.inference.reference_data import ReferenceData
from perfcast.inference.rules.description_rules import find_rules
from perfcast.predictors.predictor import Predictor, load_predictor
from perfcast.schema.table import Kind, Table, Tag
from perfcast.schema.table_files import read_parquet, read_table
from perfcast.sources.locations import present_sources
from perfcast.splits import read_folds
from perfcast.uncertainty.conformal import LEVEL, ConformalCalibration, UncertaintyModel, weighted_quantile
from perfcast.uncertainty.levels import outputs_of
from perfcast.utils.io import read_json

MAX_MACHINES = 300
"""Most test machines of a split, drawn by a seed: more cost time and change the metrics little."""


@dataclass(frozen=True)
class DescribedData:
    """Tables of a dataset with rows in the same order, folders of its ingested sources, and names of feature modules.

    `standard` is the table that descriptions are taken from, `table` the one with features.
    """

    standard: Table
    table: Table
    raw: Mapping[str, Path]
    features: tuple[str, ...]
    base: Bridge | None = None

    @classmethod
    def read(cls, conf: DatasetConf, table: Path, standard: Path, raw: Path, base: Path | None = None) -> Self:
        """Read the tables of a dataset, its `base` champion, if any, and find its sources below the folder `raw`."""
        sources = present_sources(raw, (*conf.sources.required, *conf.sources.optional))
        bridge = None if conf.bridge is None else conf.bridge.model_dump()
        return cls(read_table(standard), read_table(table), sources, tuple(conf.features), load_base(base, bridge))


def find_cut(table: Table, training: np.ndarray, testing: np.ndarray) -> pd.Timestamp | None:
    """Return the month of the first test row where all training rows are earlier: the cut of a forward split."""
    times = table.select(tag=Tag.TIME)
    if not times:
        return None
    when = table.frame[times[0]]
    first = pd.Timestamp(when[testing].min())
    return first if when[training].max() < first else None


def draw_machines(table: Table, rows: np.ndarray, seed: int, most: int = MAX_MACHINES) -> np.ndarray:
    """Return the row numbers of at most `most` machines, by submission where there are such, else by row."""
    blocks = table.frame[(table.select(tag=Tag.BLOCK) or [table.column_of(Tag.ROW)])[0]]
    distinct = np.sort(blocks[rows].astype(str).unique())
    count = min(most, len(distinct))
    drawn = np.random.default_rng(seed).choice(distinct, count, replace=False)
    return np.flatnonzero(rows & blocks.astype(str).isin(drawn).to_numpy())


def predict_described(champion: Champion, standard: Table, rows: np.ndarray, level: float = LEVEL) -> pd.DataFrame:
    """Return the predictions of some rows of a standard table at every level, see `predict_described_fold`."""
    frame = standard.frame.iloc[rows]
    levels = champion.description_levels
    parts = [
        _predict_level(champion, standard, frame, columns, level).assign(level=number)
        for number, columns in enumerate(levels, start=1)
    ]
    return pd.concat(parts, ignore_index=True)


def _predict_level(
    champion: Champion, standard: Table, frame: pd.DataFrame, columns: tuple[str, ...], level: float
) -> pd.DataFrame:
    entries = list(describe_rows(frame, standard, columns))
    machines = parse_batch(entries, champion)
    if (column := champion.rules.typical_values.enumerated) is not None:
        # of the answers for every value of this column, a user reads that of the own machine
        expected = frame[column].to_numpy()[list(map(machines.line_of, machines.keys))]
        machines = machines.take(machines.cells[column] == expected)
    times = standard.select(tag=Tag.TIME)
    months = frame[times[0]].iloc[list(map(machines.line_of, machines.keys))].reset_index(drop=True) if times else None
    predictions = MachinePredictions(impute_machines(machines, champion, months), champion)
    lines = list(map(machines.line_of, predictions.completed.cells.index.tolist()))
    measured = frame.iloc[lines].reset_index(drop=True)
    about, parts = {"row": measured[standard.column_of(Tag.ROW)]}, []
    about["found"] = pd.Series(predictions.find_levels(champion.description_levels))
    about |= {tag.value: measured[standard.column_of(tag)].astype(str) for tag in (Tag.ENTITY, Tag.TASK)}
    for number, target in enumerate(champion.predictor.targets_):
        scores = {
            "measured": measured[target].where(predictions.has_output[:, number]),
            "predicted": predictions.medians[:, number],
        }
        part = pd.DataFrame({**about, "target": target, **scores})
        intervals = predictions.intervals(number, level)
        if intervals is None:
            intervals = pd.DataFrame({"below": np.nan, "above": np.nan, "half_width": np.nan}, index=part.index)
        part["low"] = part["predicted"] * np.exp(-intervals["below"].to_numpy())
        part["high"] = part["predicted"] * np.exp(intervals["above"].to_numpy())
        part["half_width"] = intervals["half_width"].to_numpy()
        parts.append(part)
    long = pd.concat(parts, ignore_index=True)
    return long[long["measured"].notna()]


def describe_rows(frame: pd.DataFrame, table: Table, columns: Sequence[str]) -> Iterator[MachineEntry]:
    """Yield every row as a user would type it, with the known cells of some columns; lines are numbered from 0."""
    dates = {column.name for column in table.columns if column.kind is Kind.DATE}
    names = [name for name in columns if name in frame]
    for line, cells in enumerate(frame[names].itertuples(index=False, name=None)):
        values: dict[str, object] = {
            name: f"{cell:%Y-%m}" if name in dates else cell
            for name, cell in zip(names, cells, strict=True)
            if not pd.isna(cell)
        }
        yield MachineEntry(line, f"machine {line}", values)


_MAX_MACHINES = 100
"""Most machines of a backtest: they are described at every level."""


def fit_scales(
    data: DescribedData,
    backtests: Sequence[tuple[Backtest, Predictor]],
    calibrated: UncertaintyModel | None,
    *,
    seed: int,
    at_the_cut: bool = False,
) -> tuple[float, ...]:
    """Return by level the factor of the half-width with which intervals hold 90 % of the backtests' scores.

    What is assumed was measured before, while a tested machine runs newer software, so errors are larger than those of
    a full description. Every backtest has the same weight, and the factor is no less than that of any single large
    one, nor than that of a fuller description. The last level, everything that is published, has the factor 1: the
    calibration was made for it. Without backtests or levels there is no factor.
    Source: conformal scores as the distance past an interval (Romano et al., "Conformalized quantile regression", 2019)
    in units of the expected error. On backtests of forward splits, those that share no row held out in turn, it was
    better than factors of the whole width, by output, by side and of the mixture's level, and an added constant.

    Args: `backtests` have their fitted predictors. `at_the_cut`: whether only the facts of entities count that were
    public before the first row of a backtest.
    """
    if calibrated is None or not backtests or not find_rules(data.table.dataset).names.description_levels:
        return ()
    lines = pd.concat(list(_predict_backtests(data, backtests, calibrated, seed=seed, at_the_cut=at_the_cut)))
    # two descriptions of a machine that come to the same level have the same answer, which counts once
    lines = lines.drop_duplicates(["backtest", "level", "row", "task", "target"])
    above = np.log(lines["measured"] / lines["predicted"])
    width = np.where(above > 0, np.log(lines["high"] / lines["predicted"]), np.log(lines["predicted"] / lines["low"]))
    scores = lines.assign(score=1 + (np.abs(above) - width) / lines["half_width"])
    levels = sorted(set(scores["level"].tolist()))
    by_level = {level: _find_factor(scores[scores["level"] == level]) for level in levels}
    below = list[float]()
    for level in range(1, max(by_level)):
        # a level that no backtest has is as wide as the one below it
        below.append(by_level.get(level, below[-1] if below else by_level[min(by_level)]))
    factors = [1.0]
    for factor in reversed(below):
        # who says less is not surer
        factors.insert(0, max(factors[0], factor))
    return tuple(factors)


_MIN_SCORES = 100
"""Scores from which a backtest counts by itself: the 90 % quantile of fewer is that of a few machines."""


def _find_factor(scores: pd.DataFrame) -> float:
    """Return the largest of the quantiles of the scores of all backtests together and of each large one."""
    size = scores.groupby("backtest")["score"].transform("size")
    parts = [scores.assign(share=1 / size)]
    parts += [part.assign(share=1.0) for _, part in scores[size >= _MIN_SCORES].groupby("backtest")]
    return max(weighted_quantile(part["score"].to_numpy(), part["share"].to_numpy(), LEVEL) for part in parts)


def fit_described_uncertainty(
    data: DescribedData, make: PredictorFactory, seed: int, label_outlier: float | None, limit: int
) -> UncertaintyModel | None:
    """Fit the uncertainty of a predictor that is fitted on every row, with a factor by level of description.

    None with too few rows for a backtest; see `fit_uncertainty`.
    """
    fitted, remember = list_fits(make)
    calibrated = fit_uncertainty(data.table, remember, seed, label_outlier, limit)
    if calibrated is None:
        return None
    backtests = plan_final_backtests(data.table, seed, label_outlier, limit)
    pairs = list(zip(backtests, fitted, strict=False))  # set-ups are held out after them
    return replace(calibrated, scales=fit_scales(data, pairs, calibrated, seed=seed))


def _predict_backtests(
    data: DescribedData,
    backtests: Sequence[tuple[Backtest, Predictor]],
    calibrated: UncertaintyModel,
    *,
    seed: int,
    at_the_cut: bool,
) -> Iterator[pd.DataFrame]:
    table = data.table
    for backtest, predictor in backtests:
        cut = find_cut(table, backtest.fitting, backtest.testing) if at_the_cut else None
        reference_data = ReferenceData.gather(data.standard, data.raw, data.features, rows=backtest.fitting, as_of=cut)
        fitted = replace(calibrated, in_domain=fit_in_domain(table, backtest.fitting), scales=())
        champion = Champion(table.dataset, "", "", data.features, predictor, reference_data, fitted, base=data.base)
        rows = draw_machines(table, backtest.testing, seed, _MAX_MACHINES)
        predicted = predict_described(champion, data.standard, rows)
        # a machine whose typed values are the usual ones has the interval of a lower level
        yield predicted.assign(level=predicted["found"], backtest=backtest.number)


AT_THE_CUT, ALL_FACTS = "at the cut", "all"
"""Facts of entities that count: those that were public before the first test row of a forward split, or all."""


def predict_described_splits(
    dataset: str,
    described: Sequence[str],
    *,
    runs: Path,
    splits: Sequence[str],
    predictors: Sequence[str],
    in_domain: Path,
    folds: Path,
    project: Path,
    seed: int,
    level: float = LEVEL,
    **files: Path,
) -> pd.DataFrame:
    """Return the predictions of the described test machines of splits by the champion, see `predict_described_fold`.

    Args: `runs`, `folds` and `in_domain` are folders by split, `files` those that `DescribedData.read` takes.
    """
    from perfcast.experiment.champion import select_champion  # which calibrates champions with this module

    conf, name = project / "conf", select_champion(runs, splits, predictors).predictor
    declared = read_dataset(conf, dataset)
    data = DescribedData.read(declared, **files)
    trainer, chosen = read_yaml(conf / "trainer" / "default.yaml"), read_predictor(conf, name)
    parts = []
    for split in described:
        run, distances = runs / split / name, in_domain / f"{split}.parquet"
        subset = read_folds(folds / f"{split}.parquet", data.table).iloc[:, 0].to_numpy()
        make = predictor_factory(chosen, _read_settings(run), trainer)
        options: dict[str, Any] = {"label_outlier": declared.label_outlier, "seed": seed, "level": level}
        predictions = predict_described_fold(data, subset, run, make, distances=distances, **options)
        parts.append(predictions.assign(split=split))
    return pd.concat(parts, ignore_index=True)


def _read_settings(run: Path) -> dict[str, Any]:
    """Return the hyperparameters of the first fold of a run."""
    settings = read_yaml(run / "config.yaml")["predictor"]["settings"]
    candidate = read_json(run / "validation.json")["choices"][0]["candidate"]
    first = settings[0] if isinstance(settings, list) else settings
    return dict(first[candidate])


def predict_described_fold(
    data: DescribedData,
    subset: np.ndarray,
    run: Path,
    make: PredictorFactory,
    *,
    distances: Path,
    label_outlier: float | None,
    seed: int,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Return the predictions of the test machines of a split's first fold, described at every level.

    The reference data has the training rows alone. Machines of a forward split are predicted twice: with the facts of
    entities that were public before the first test row, and with all of them, as on the day of a launch.
    Intervals are calibrated by level on the backtests of the fold, which predictors of `make` are fitted for. Machines
    that break a limit are left out. Shapes: subset (rows of the table,) -> one row per facts, level, row of
    the table and target, with its measured score, prediction and interval.
    """
    table = data.table
    training = training_rows(table, subset, label_outlier)
    cut = find_cut(table, np.isin(subset, ["train", "validation"]), subset == "test")
    predictor = load_predictor(run / "model")
    calibrated, count = _calibrate(table, training, run / "backtest.parquet", distances)
    backtests = plan_backtests(table, subset, label_outlier, count)
    fitted = [(backtest, fit_rows(make(seed), table, backtest.fitting, None)) for backtest in backtests]
    drawn = draw_machines(table, tested_rows(table, subset), seed)
    parts = []
    for facts, as_of in {AT_THE_CUT: cut, ALL_FACTS: None}.items():
        if facts == ALL_FACTS or as_of is not None:
            scales = fit_scales(data, fitted, calibrated, seed=seed, at_the_cut=as_of is not None)
            scaled = None if calibrated is None else replace(calibrated, scales=scales)
            reference_data = ReferenceData.gather(data.standard, data.raw, data.features, rows=training, as_of=as_of)
            champion = Champion(table.dataset, run.name, "", data.features, predictor, reference_data, scaled, None)
            parts.append(predict_described(champion, data.standard, drawn, level).assign(facts=facts))
    return pd.concat(parts, ignore_index=True)


def _calibrate(
    table: Table, training: np.ndarray, backtest: Path, distances: Path
) -> tuple[UncertaintyModel | None, int]:
    """Return the uncertainty of a fold from its backtests and their distances, None without any, and their number."""
    backtests = read_parquet(backtest)
    if backtests.empty:
        return None, 0
    lines = backtests.merge(read_parquet(distances), on=["fold", "backtest", "row"])
    lines = lines[lines["fold"] == 0]
    in_domain = fit_in_domain(table, training)
    residuals = np.log(lines["predicted"].to_numpy(dtype=float) / lines["measured"].to_numpy(dtype=float))
    outputs, numbers = outputs_of(lines["task"], lines["target"]), lines["backtest"].to_numpy()
    calibration = ConformalCalibration().fit(
        residuals, outputs, numbers, lines[in_domain.names], entities=lines["entity"].to_numpy()
    )
    return UncertaintyModel(in_domain, calibration), int(lines["backtest"].nunique())

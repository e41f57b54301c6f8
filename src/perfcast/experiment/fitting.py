"""Fits of a predictor on masked rows of a fold, and the backtests inside its training part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Role, Table, Tag
from perfcast.splits.forward import first_results
from perfcast.splits.row_groups import by_tag
from perfcast.uncertainty.backtest import backtest_pairs
from perfcast.uncertainty.conformal import DEVIATION, TEST

_MIN_PEERS = 5
"""Fewest measured peers for which a training label may be an outlier."""


def label_outliers(table: Table, rows: np.ndarray, threshold: float | None) -> np.ndarray:
    """Mark training rows whose score is implausible beside its peers: same TASK and IDENTITY, at least five of them.

    Shapes: `rows` and the result are boolean over the table's rows; marked rows are a subset of `rows`.
    `threshold` is the largest absolute natural logarithm of score over the peers' median; None marks nothing. Only the
    given rows are compared, so no test score takes part. Source: counts of the published results, where deviations
    beyond 0.3 are typing errors or crippled configurations, all on the low side.
    """
    marked = np.zeros(len(table.frame), dtype=bool)
    if threshold is None or not rows.any():
        return marked
    peers = table.select(tag=Tag.TASK) + table.select(tag=Tag.IDENTITY)
    frame = table.frame.loc[rows]
    for target in table.select(role=Role.TARGET):
        logs = np.log(frame[target])
        groups = logs.groupby([frame[name] for name in peers], dropna=False)
        far = (logs - groups.transform("median")).abs() > threshold
        marked[np.flatnonzero(rows)] |= (far & (groups.transform("count") >= _MIN_PEERS)).to_numpy()
    return marked


def measured_rows(table: Table) -> np.ndarray:
    """Mark the rows that have at least one score and may be used, (n,) bool."""
    unused = (table.frame[table.select(tag=Tag.UNUSED)] == 1).any(axis=1)
    return np.asarray(table.frame[table.select(role=Role.TARGET)].notna().any(axis=1) & ~unused, dtype=bool)


def training_rows(table: Table, subset: np.ndarray, label_outlier: float | None) -> np.ndarray:
    """Mark the rows of one fold that a predictor may learn from: measured, in training, label not an outlier."""
    rows = np.isin(subset, ["train", "validation"]) & measured_rows(table)
    return np.asarray(rows & ~label_outliers(table, rows, label_outlier), dtype=bool)


def evaluated_rows(table: Table) -> np.ndarray:
    """Mark the rows that count in the metrics, (n,) bool: all but those that an EXCLUDED column excludes."""
    rows = np.ones(len(table.frame), dtype=bool)
    for name in table.select(tag=Tag.EXCLUDED):
        rows &= (table.frame[name] != 1).to_numpy()
    return rows


def tested_rows(table: Table, subset: np.ndarray) -> np.ndarray:
    """Mark the test rows of one fold that count in the metrics."""
    return np.asarray((subset == "test") & evaluated_rows(table), dtype=bool)


def last_year(table: Table, rows: np.ndarray) -> np.ndarray | None:
    """Mark the last round, or twelve months, of the given rows, None where the dataset has no dates."""
    names = table.select(tag=Tag.TIME)
    if not names:
        return None
    when = table.frame.loc[rows, names[0]]
    if table.select(tag=Tag.ROUND):
        return np.asarray(when == when.max(), dtype=bool)
    return np.asarray(when > when.max() - pd.DateOffset(months=12), dtype=bool)


def _inputs(table: Table, rows: np.ndarray) -> pd.DataFrame:
    return table.frame.loc[rows, [column.name for column in table.columns if column.role is not Role.TARGET]]


def fit_rows(predictor: Predictor, table: Table, rows: np.ndarray, validation: np.ndarray | None) -> Predictor:
    """Fit on some rows of the table; `validation` marks, among them, those that choices are made on."""
    # a score that no training row has cannot be learned, and is not predicted
    targets = table.frame.loc[rows, table.select(role=Role.TARGET)].dropna(axis=1, how="all")
    times = table.select(tag=Tag.TIME)
    when = table.frame.loc[rows, times[0]] if times else None
    return predictor.fit(_inputs(table, rows), targets, columns=table.columns, validation=validation, when=when)


def predict_rows(predictor: Predictor, table: Table, rows: np.ndarray, fold: int, seed: int) -> pd.DataFrame:
    """Return long predictions: one line per row and target that is measured, and that training has for the task.

    Those of a predictor of its deviations have the column DEVIATION.
    """
    frame = table.frame.loc[rows]
    X = _inputs(table, rows)
    predicted = predictor.predict(X)
    learned = predictor.requested_outputs(X)
    deviations = predictor.predict_deviations(X)
    tags = {"row": Tag.ROW, "task": Tag.TASK, "entity": Tag.ENTITY}
    about = {name: frame[table.column_of(tag)] for name, tag in tags.items()} | {"fold": fold, "seed": seed}
    lines = []
    for index, target in enumerate(predicted.columns):
        scores = {"measured": frame[target].where(learned[:, index]), "predicted": predicted[target]}
        known = {} if deviations is None else {DEVIATION: deviations[:, index]}
        lines.append(pd.DataFrame({**about, "target": target, **scores, **known}))
    long = pd.concat(lines, ignore_index=True)
    return long[long["measured"].notna()].reset_index(drop=True)


@dataclass(frozen=True)
class Backtest:
    """Rows to fit on and rows to predict; those of a fold's own fit have the number TEST.

    Shapes: (rows of the table,) bool.
    """

    number: int
    fitting: np.ndarray
    testing: np.ndarray
    revealed: np.ndarray | None = None
    """Of the rows to fit on, those that are first results of new entities."""
    validation: np.ndarray | None = None
    """Rows that a predictor makes its own choices on, where they are among those to fit on."""

    def without_first_results(self, table: Table) -> Backtest:
        """Return the same without first results: they are predicted too, as are rows of tasks that remain known."""
        assert self.revealed is not None
        earlier = self.fitting & ~self.revealed
        tested = (self.testing | self.revealed) & of_known_tasks(table, earlier)
        return replace(self, fitting=earlier, testing=tested, revealed=None)


@dataclass(frozen=True)
class FoldRows:
    """Rows of a table by their use in a fold: its own fit, and the backtests inside its training part."""

    final: Backtest
    backtests: list[Backtest]

    @classmethod
    def plan(cls, table: Table, subset: np.ndarray, label_outlier: float | None, limit: int) -> FoldRows:
        """Return the rows of a fold with at most `limit` backtests.

        Shapes: subset (rows of the table,) of train | validation | test | unused.
        """
        training = training_rows(table, subset, label_outlier)
        revealed = training & revealed_rows(table, subset)
        final = Backtest(TEST, training, tested_rows(table, subset), revealed, subset == "validation")
        return cls(final, plan_backtests(table, subset, label_outlier, limit))


def plan_backtests(table: Table, subset: np.ndarray, label_outlier: float | None, limit: int) -> list[Backtest]:
    """Return at most `limit` backtests of a fold, that on its validation rows first; none without such rows.

    Backtests of a few-shot split are few-shot forecasts too: as many first results of every new entity are known.
    A task without a row to fit on has no level, and is not tested.
    Shapes: subset (rows of the table,) of train | validation | test | unused.
    """
    known = training_rows(table, subset, None)
    times = table.select(tag=Tag.TIME)
    shown = revealed_rows(table, subset)
    shots = int(table.frame.loc[shown, table.column_of(Tag.ENTITY)].value_counts().max()) if shown.any() else 0
    known &= ~shown
    when = pd.DatetimeIndex(table.frame.loc[known, times[0]]) if times else None
    pairs = backtest_pairs(subset[known] == "validation", when, by_round=bool(table.select(tag=Tag.ROUND)))
    backtests = []
    for number, (fitting, testing) in enumerate(pairs[:limit]):
        inner = np.full(len(subset), "held out", dtype=object)
        inner[np.flatnonzero(known)[fitting]] = "train"
        inner[np.flatnonzero(known)[testing]] = "test"
        earlier = inner == "train"
        if shots:
            _reveal_first(table, inner, shots)
        training = training_rows(table, inner, label_outlier)
        tested = (inner == "test") & evaluated_rows(table) & of_known_tasks(table, training)
        backtests.append(Backtest(number, training, tested, training & ~earlier))
    return [backtest for backtest in backtests if backtest.fitting.any() and backtest.testing.any()]


def of_known_tasks(table: Table, known: np.ndarray) -> np.ndarray:
    """Return the rows of tasks that the known rows have, (n,) bool."""
    tasks = table.frame[table.column_of(Tag.TASK)].astype(str)
    return np.asarray(tasks.isin(tasks[known]))


def revealed_rows(table: Table, subset: np.ndarray) -> np.ndarray:
    """Mark the training rows later than all validation rows, where those are later than a training row, (n,) bool."""
    if not table.select(tag=Tag.TIME):
        return np.zeros(len(subset), dtype=bool)
    when = table.frame[table.column_of(Tag.TIME)]
    trained = subset == "train"
    validated = subset == "validation"
    newest = when[validated].max()
    is_dated = bool(when[trained | validated].notna().all())
    is_forward = is_dated and validated.any() and bool((when[trained] < when[validated].min()).any())
    later = trained & (when > newest).to_numpy()
    between = trained & ((when >= when[validated].min()) & (when <= newest)).to_numpy()
    return later if is_forward and not between.any() else np.zeros(len(subset), dtype=bool)


def _reveal_first(table: Table, subset: np.ndarray, shots: int) -> None:
    """Move the first results of entities without training rows to train; rows of their blocks are held out."""
    entities = by_tag(table, Tag.ENTITY)
    blocks = by_tag(table, Tag.BLOCK)
    new = (subset == "test") & ~np.isin(entities, entities[subset == "train"])
    months = table.frame[table.column_of(Tag.TIME)].to_numpy()
    shown = first_results(entities, months, new, shots, np.random.default_rng(0))
    subset[(subset == "test") & np.isin(blocks, blocks[shown])] = "held out"
    subset[shown] = "train"


def fit_backtest(predictor: Predictor, table: Table, backtest: Backtest) -> Predictor:
    """Fit on the rows to fit on."""
    validation = None if backtest.validation is None else backtest.validation[backtest.fitting]
    return fit_rows(predictor, table, backtest.fitting, validation)


def run_backtests(
    table: Table, backtests: Sequence[Backtest], make: Callable[[int], Predictor], seed: int, fold: int
) -> pd.DataFrame:
    """Return the predictions of every backtest, as `predict_rows` with the column `backtest`, its number."""
    lines = [pd.DataFrame(columns=["row", "task", "entity", "target", "measured", "predicted", "backtest"])]
    for backtest in backtests:
        predictor = fit_backtest(make(seed), table, backtest)
        predictions = predict_rows(predictor, table, backtest.testing, fold, seed)
        lines.append(predictions.assign(backtest=backtest.number))
    filled = [frame for frame in lines if not frame.empty]
    return pd.concat(filled, ignore_index=True) if filled else lines[0]


def first_error(predictions: pd.DataFrame) -> float | None:
    """Return the MAPE (%) of the first backtest, None where there is none."""
    first = predictions[predictions["backtest"] == 0]
    if first.empty:
        return None
    return float((first["predicted"] / first["measured"] - 1).abs().mean() * 100)

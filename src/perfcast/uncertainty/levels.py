"""Levels of prediction errors: what rows with a common label miss alike, and what known errors tell of others."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.schema.table_files import read_parquet
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from scipy.sparse.linalg import SuperLU

_MAX_ROWS = 2500
"""Errors of a backtest that the variances are fitted to: more only cost time."""
_MAX_ERROR = 0.5
"""Error (natural logarithm) at which it is cut off, known ones too: a mistyped score tells nothing of others."""
_FREEDOM = 4.0
"""Degrees of freedom of the noise: of many errors a few are far off, and they say little of the others."""
_PRIOR_EFFECTS = 4.0
"""Effects of a group that its variance has had before the first one is seen, each with an eighth of the mean square
error: a backtest has two vendors, and REML alone gives them whatever variance their sum leaves open. 0, 2, 4 and 8 are
equally good for predictions of 2020 to 2022."""
_HALVING = 3.0
"""Submissions among the training rows of a predictor that halve the variance of the effect of their label: what was
learned has little left to move. 1, 3 and 30 were compared on results of 2022 to 2024."""
WIDTH_POWER = 0.5
"""Power of the share of the deviation that remains in the width of an interval: what is far from the training rows also
has few known labels. Interval scores of 2020 to 2022 with 0, 0.5 and 1: 22.3, 21.4 and 22.2."""
_MIN_VARIANCE = 1e-8
_ITERATIONS = 40
_TOLERANCE = 0.1
_REWEIGHTINGS = 3
_PROBES = 32
_BLOCK = 64
_SYMMETRIC = {"SymmetricMode": True}
"""Options of SuperLU."""
_ALL = "everything"
_STATE = "levels.json"
_ERRORS = "later_errors.parquet"
_TRAINED = "trained_labels.parquet"
_OUTPUT = "output of the error"
_ERROR = "error"
_MONTH = "month of the error"
_BY_OUTPUT = " by output"

TrainedLabels = Mapping[str, pd.Series]
"""How many submissions of training rows have each label, by group: one number per label, with the label as index."""


def outputs_of(tasks: pd.Series, targets: pd.Series | str) -> np.ndarray:
    """Return the output of every row, its task and target, (n,) str: each output has its own quantiles."""
    listed = [targets] * len(tasks) if isinstance(targets, str) else targets.tolist()
    outputs = np.empty(len(tasks), dtype=object)
    outputs[:] = [f"{task}\x1f{target}" for task, target in zip(tasks.tolist(), listed, strict=True)]
    return outputs


def shared_labels(table: Table) -> pd.DataFrame:
    """Return labels that rows share with others, (n, labels) text, NaN where unknown.

    They are everything, the slices of the entity's group of columns (vendor, family), the entity, the entity with its
    set-up, its identity, and the columns with the tag LEVEL.
    """
    frame = table.frame
    entity = table.column_of(Tag.ENTITY)
    names = (*entity_slices(table), entity, *table.select(tag=Tag.LEVEL))
    text = {name: frame[name].astype(object).where(frame[name].notna(), np.nan) for name in dict.fromkeys(names)}
    labels = {_ALL: pd.Series(_ALL, index=frame.index), **text}
    for tag in (Tag.SETUP, Tag.IDENTITY):
        narrow = [name for name in table.select(tag=tag) if name != entity]
        if narrow:
            labels[tag.value] = text[entity].astype(str).str.cat(frame[narrow].astype(str), sep="\x1f", na_rep="?")
    return pd.DataFrame(labels)


def entity_slices(table: Table) -> list[str]:
    """Return the slices of the entity's group of columns, the wider ones first: vendor, family."""
    group = next(column.group for column in table.columns if Tag.ENTITY in column.tags)
    return table.select(group=group, tag=Tag.SLICE)


@dataclass(frozen=True)
class ErrorRows:
    """Rows of errors. Shapes: labels (n, labels) text, NaN where unknown; outputs (n,) text."""

    labels: pd.DataFrame
    outputs: np.ndarray

    @classmethod
    def of(cls, table: Table, outputs: np.ndarray) -> Self:
        """Return the rows of a table."""
        return cls(shared_labels(table).reset_index(drop=True), outputs)

    def join(self, others: ErrorRows) -> ErrorRows:
        """Return these rows and others; labels that only one of both has are unknown."""
        labels = pd.concat([self.labels.astype(object), others.labels.astype(object)], ignore_index=True)
        return ErrorRows(labels, np.concatenate([self.outputs, others.outputs]))

    def take(self, rows: np.ndarray) -> ErrorRows:
        """Return some rows, by a mask or by number."""
        return ErrorRows(self.labels.loc[rows] if rows.dtype == bool else self.labels.iloc[rows], self.outputs[rows])

    def keys(self) -> dict[str, np.ndarray]:
        """Return the labels alone, which all outputs share, and by output, (n,) each, None where unknown."""
        keys = {}
        outputs, names = pd.factorize(self.outputs)
        for name, values in self.labels.items():
            labels, texts = pd.factorize(values)  # -1 where unknown
            keys[str(name)] = _take(list(texts), labels)
            # most rows share their text with others, and it is made once
            pairs, numbers = np.unique(np.where(labels < 0, -1, labels * len(names) + outputs), return_inverse=True)
            joined = [
                None if pair < 0 else f"{texts[pair // len(names)]}\x1f{names[pair % len(names)]}"
                for pair in pairs.tolist()
            ]
            keys[f"{name}{_BY_OUTPUT}"] = _take(joined, numbers)
        return keys

    def count(self, units: np.ndarray) -> dict[str, pd.Series]:
        """Return how many units, such as submissions, have each label; units (n,) are those of the rows."""
        codes, distinct = pd.factorize(units)
        counts = {}
        for name, keys in self.keys().items():
            labels, texts = pd.factorize(keys)
            pairs = pd.unique((labels * len(distinct) + codes)[labels >= 0])
            counts[name] = pd.Series(np.bincount(pairs // len(distinct), minlength=len(texts)), index=texts)
        return counts


def _take(values: list[Any], numbers: np.ndarray) -> np.ndarray:
    """Return values by number, None for -1, (n,) object."""
    taken: np.ndarray = np.array([*values, None], dtype=object)[numbers]
    return taken


def _prior_shares(trained: TrainedLabels, name: str, labels: np.ndarray | pd.Index) -> np.ndarray:
    """Return the shares of the variance of a group that training rows leave to the effects of labels, (n,)."""
    if name not in trained:
        return np.ones(len(labels))
    counts = trained[name].reindex(pd.Index(labels)).fillna(0.0).to_numpy(dtype=float)
    return np.asarray(_HALVING / (_HALVING + counts))


class _Design:
    """Effects of the labels of rows: `places` (n, groups) numbers that of every row and group, -1 for none.

    `groups` (effects,) are those of the effects, and `shares` (effects,) what training rows leave of the variance of
    their group. Effects are numbered in an order in which the factors of their precision have few entries: to find it
    takes four times as long as to factorize, and it holds for all weights of rows.
    """

    def __init__(self, rows: ErrorRows, variances: Mapping[str, float], trained: TrainedLabels) -> None:
        # an unknown label is one that no other row has
        alone = np.array([f"\x00{row}" for row in range(len(rows.outputs))], dtype=object)
        keys = {name: np.where(pd.isna(labels), alone, labels) for name, labels in rows.keys().items()}
        self.index = {name: pd.Index(pd.unique(keys[name])) for name in variances}
        sizes = np.array([len(index) for index in self.index.values()])
        self.starts = np.cumsum(sizes) - sizes
        self.groups = np.repeat(np.arange(len(sizes)), sizes)
        self.shares = np.concatenate([_prior_shares(trained, name, index) for name, index in self.index.items()])
        self.numbers = np.arange(len(self.groups))
        self.places = self.place(keys)
        self.order = self._find_order()
        self._number(self.order)

    def _find_order(self) -> np.ndarray:
        from scipy import sparse
        from scipy.sparse.linalg import splu

        if not len(self.groups):
            return self.numbers
        matrix = self.build(self.places)
        normal = (matrix.T @ matrix + sparse.identity(matrix.shape[1])).tocsc()
        factors = splu(normal, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=_SYMMETRIC)
        return np.argsort(factors.perm_c)

    def _number(self, effects: np.ndarray) -> None:
        """Leave these effects, by their numbers, in this order."""
        numbers = np.full(len(self.groups) + 1, -1)  # the last one for none
        numbers[effects] = np.arange(len(effects))
        self.numbers = numbers[self.numbers]
        self.places = numbers[self.places]
        self.groups = self.groups[effects]
        self.shares = self.shares[effects]

    def divide(self, known: np.ndarray, others: np.ndarray) -> tuple[_Design, np.ndarray]:
        """Return the design of some rows, with their effects alone, and the places of other rows in it.

        Shapes: known and others (n,) bool, the places (others, groups).
        """
        taken = copy(self)
        taken._number(np.unique(self.places[known]))
        places = taken.places[others]
        taken.places = taken.places[known]
        return taken, places

    def place(self, keys: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the effect of every row and group, -1 where none is known, (n, groups)."""
        places = np.stack([index.get_indexer(pd.Index(keys[name])) for name, index in self.index.items()], axis=1)
        return np.append(self.numbers, -1)[np.where(places < 0, -1, places + self.starts)]

    def build(self, places: np.ndarray) -> csr_matrix:
        """Return the matrix of rows with given effects, (n, effects): 1 where a row has an effect."""
        from scipy import sparse  # most predictions need none of it

        rows, groups = np.nonzero(places >= 0)
        return sparse.csr_matrix((np.ones(len(rows)), (rows, places[rows, groups])), (len(places), len(self.groups)))

    def solve(
        self, levels: ErrorLevels, matrix: csr_matrix, weights: np.ndarray, errors: np.ndarray
    ) -> tuple[SuperLU, np.ndarray]:
        """Return the factors of the effects' precision, and the effects.

        Shapes: matrix (n, effects) of the rows, weights and errors (n,).
        """
        from scipy import sparse
        from scipy.sparse.linalg import splu

        precision = 1 / (levels.as_array()[self.groups] * self.shares)
        normal = matrix.T @ sparse.diags(weights / levels.noise) @ matrix + sparse.diags(precision)
        factors = splu(normal.tocsc(), permc_spec="NATURAL", diag_pivot_thresh=0.0, options=_SYMMETRIC)
        return factors, factors.solve(matrix.T @ (weights * errors) / levels.noise)


class ErrorLevels:
    """Mixed model of prediction errors: error = sum of the effects of all labels of a row + noise.

    Every label has an effect on all outputs and one on each output; those of a group of labels, such as the CPU models,
    have one `variances` entry, those by output another. An effect has the less variance, the more submissions with its
    label the predictor was trained on: it has learned their levels. The noise has a t distribution. Variances are
    fitted to the errors of backtests, each with effects of its own, by iterations that have the restricted maximum
    likelihood as their fixed point.
    Units: errors are log measured - log predicted.
    Source: variance components and their prediction (Harville, 1977, J. Am. Stat. Assoc. 72; Robinson, 1991, Stat. Sci.
    6); the update of a variance by its effective number of effects (MacKay, 1992, Neural Comput. 4); noise of the t
    distribution by weights (Lange et al., 1989, J. Am. Stat. Assoc. 84).
    """

    variances: dict[str, float]
    noise: float

    def fit(
        self,
        errors: np.ndarray,
        rows: ErrorRows,
        backtests: np.ndarray,
        trained: Mapping[int, TrainedLabels] = MappingProxyType({}),
    ) -> Self:
        """Fit the variances to the errors of backtests, (n,) each; `trained` has the labels of each one's training."""
        errors = np.clip(errors, -_MAX_ERROR, _MAX_ERROR)
        groups = rows.keys() if len(set(rows.outputs)) > 1 else map(str, rows.labels)
        start = max(float(np.mean(errors**2)), _MIN_VARIANCE)
        self.variances = dict.fromkeys(groups, start / 8)
        self.noise = start / 4
        prior = _PRIOR_EFFECTS * start / 8
        random = np.random.default_rng(0)
        parts = []
        for number in np.unique(backtests):
            chosen = np.flatnonzero(backtests == number)
            if len(chosen) > _MAX_ROWS:
                chosen = np.sort(random.choice(chosen, _MAX_ROWS, replace=False))
            design = _Design(rows.take(chosen), self.variances, trained.get(int(number), {}))
            probes = random.choice([-1.0, 1.0], (len(design.order), _PROBES))[design.order]
            parts.append((design, errors[chosen], probes, np.ones(len(chosen))))
        for _ in range(_ITERATIONS):
            before = self.variances
            parts = self._iterate(parts, prior)
            moved = [abs(np.log(self.variances[name] / value)) for name, value in before.items() if value > 1e-6]
            if not moved or max(moved) < _TOLERANCE:
                break
        return self

    def as_array(self) -> np.ndarray:
        """Return the variances of the groups, (groups,)."""
        return np.array([*self.variances.values()])

    def _iterate(self, parts: list[tuple[_Design, np.ndarray, np.ndarray, np.ndarray]], prior: float) -> list[Any]:
        """Update the variances once. Returns: the parts with new weights of their rows."""
        variances = self.as_array()
        count = len(self.variances)
        squares = np.full(count, prior)
        freedom = np.full(count, _PRIOR_EFFECTS)
        noise = 0.0
        noise_freedom = 1.0
        updated = []
        for design, errors, probes, weights in parts:
            matrix = design.build(design.places)
            factors, effects = design.solve(self, matrix, weights, errors)
            # the diagonal of the effects' covariance, by random signs (Hutchinson, 1989)
            diagonal = (factors.solve(probes) * probes).mean(axis=1)
            sizes = np.bincount(design.groups, minlength=count)
            left_shares = np.bincount(design.groups, diagonal / design.shares, count) / variances
            count_known = np.clip(sizes - left_shares, 0.0, sizes)
            squares += np.bincount(design.groups, effects**2 / design.shares, count)
            freedom += count_known
            left = errors - matrix @ effects
            noise += float(weights @ left**2)
            noise_freedom += max(len(errors) - count_known.sum(), 0.0)
            updated.append((design, errors, probes, self._weigh(left)))
        self.variances = dict(zip(self.variances, np.maximum(squares / freedom, _MIN_VARIANCE).tolist(), strict=True))
        self.noise = max(noise / noise_freedom, _MIN_VARIANCE)
        return updated

    def _weigh(self, left: np.ndarray) -> np.ndarray:
        """Return the weights of rows by what the effects leave of their errors, (n,)."""
        return np.asarray((_FREEDOM + 1) / (_FREEDOM + left**2 / self.noise))

    def roll(
        self,
        errors: np.ndarray,
        rows: ErrorRows,
        months: np.ndarray,
        trained: TrainedLabels = MappingProxyType({}),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return `KnownErrors.predict` of every row, from the errors of rows of earlier months, (n,) each."""
        design = _Design(rows, self.variances, trained)
        expected = np.zeros(len(errors))
        factors = np.ones(len(errors))
        for month in np.unique(months):
            before = months < month
            now = months == month
            earlier, places = design.divide(before, now)
            known = KnownErrors(self, errors[before], rows.take(before), earlier)
            expected[now], factors[now] = known.predict_places(places, design.shares[design.places[now]])
        return expected, factors


class KnownErrors:
    """Known errors, (n,): they give the effects of their labels, and these the errors of other rows.

    `months` (n,) are those in which the scores were published, `trained` the labels of the rows that the predictor was
    trained on.
    """

    def __init__(
        self,
        levels: ErrorLevels,
        errors: np.ndarray,
        rows: ErrorRows,
        design: _Design | None = None,
        *,
        months: np.ndarray | None = None,
        trained: TrainedLabels = MappingProxyType({}),
    ) -> None:
        self.levels = levels
        self.rows = rows
        self.months = months
        self.trained = trained
        self.errors = np.clip(errors, -_MAX_ERROR, _MAX_ERROR)
        self._design = design or _Design(rows, levels.variances, trained)

    def for_user(self, errors: np.ndarray, rows: ErrorRows) -> KnownErrors:
        """Return errors that a user's own results have beyond these, (n,): no training row tells of a user's set-up."""
        return KnownErrors(self.levels, errors, rows)

    @cached_property
    def _solution(self) -> tuple[SuperLU, np.ndarray]:
        weights = np.ones(len(self.errors))
        matrix = self._design.build(self._design.places)
        for _ in range(_REWEIGHTINGS):
            factors, effects = self._design.solve(self.levels, matrix, weights, self.errors)
            weights = self.levels._weigh(self.errors - matrix @ effects)
        return factors, effects

    def predict(self, rows: ErrorRows) -> tuple[np.ndarray, np.ndarray]:
        """Return the expected errors of other rows, (n,), and the factor of the width of their intervals, (n,)."""
        keys = rows.keys()
        return self.predict_places(self._design.place(keys), self._prior_shares(keys))

    def _prior_shares(self, keys: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the shares of the variances that training rows leave to rows, (n, groups)."""
        return np.stack([_prior_shares(self.trained, name, keys[name]) for name in self.levels.variances], axis=1)

    def predict_places(self, places: np.ndarray, prior_shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return `predict` of rows whose effects have these places and shares of the variances, (n, groups) each."""
        if not len(self.errors) or not len(places):
            return np.zeros(len(places)), np.ones(len(places))
        factors, effects = self._solution
        variances = self.levels.as_array()
        patterns, numbers = np.unique(places, axis=0, return_inverse=True)
        known = np.zeros(len(patterns))
        for start in range(0, len(patterns), _BLOCK):
            block = self._design.build(patterns[start : start + _BLOCK]).toarray()
            known[start : start + _BLOCK] = (block.T * factors.solve(block.T)).sum(axis=0)
        unknown = np.where(places < 0, prior_shares, 0.0) @ variances
        left = known[numbers.ravel()] + unknown + self.levels.noise
        shares = np.sqrt(left / (prior_shares @ variances + self.levels.noise))
        return self._design.build(places) @ effects, np.minimum(shares, 1.0) ** WIDTH_POWER

    def covariance(self, rows: ErrorRows) -> np.ndarray:
        """Return the covariances of the errors of rows that known errors leave, (n, n)."""
        levels = self.levels
        keys = rows.keys()
        count = len(rows.outputs)
        places = self._design.place(keys)
        covariances = levels.noise * np.eye(count)
        prior_shares = self._prior_shares(keys)
        for number, (name, variance) in enumerate(levels.variances.items()):
            codes = np.where(places[:, number] < 0, pd.factorize(pd.Series(keys[name], dtype=object))[0], -1)
            shared = (codes[:, None] == codes) & (codes >= 0)
            np.fill_diagonal(shared, places[:, number] < 0)
            covariances += variance * prior_shares[:, number] * shared
        if len(self.errors):
            matrix = self._design.build(places).toarray()
            covariances += matrix @ self._solution[0].solve(matrix.T)
        return covariances

    def correlations(self, rows: ErrorRows) -> np.ndarray:
        """Return correlations of errors, (n, n), by which differences are narrowed as `predict` narrows errors."""
        unknown = KnownErrors(self.levels, np.zeros(0), rows.take(np.zeros(0, dtype=int)), trained=self.trained)
        before = unknown.covariance(rows)
        after = self.covariance(rows)
        shares = np.diag(before) * (np.diag(after) / np.diag(before)) ** WIDTH_POWER
        spreads = [np.add.outer(np.diag(each), np.diag(each)) - 2 * each for each in (before, after)]
        np.fill_diagonal(spreads[0], 1.0)
        narrowed = spreads[0] * np.maximum(spreads[1] / spreads[0], 0.0) ** WIDTH_POWER
        correlations = (np.add.outer(shares, shares) - narrowed) / (2 * np.sqrt(np.outer(shares, shares)))
        np.fill_diagonal(correlations, 1.0)
        return np.asarray(np.clip(correlations, -1.0, 1.0))

    def add_one(self, rows: ErrorRows, error: float) -> tuple[np.ndarray, np.ndarray]:
        """Return what one more error of each row does to all rows: shifts and factors of the widths, (n, n) each."""
        covariances = self.covariance(rows)
        noise = self.levels.noise
        variances = np.diag(covariances)
        weights = np.ones(len(covariances))
        for _ in range(_REWEIGHTINGS):
            totals = variances - noise + noise / weights
            weights = self.levels._weigh(error * noise / weights / totals)
        gains = covariances / totals[:, None]
        left = np.maximum(1 - gains * covariances / variances, 0.0)
        return gains * error, np.sqrt(left) ** WIDTH_POWER

    def save(self, folder: Path) -> None:
        """Write the variances as JSON and the known errors as Parquet."""
        write_json(folder / _STATE, {"variances": self.levels.variances, "noise": self.levels.noise})
        frame = self.rows.labels.assign(**{_OUTPUT: self.rows.outputs, _ERROR: self.errors, _MONTH: self.months})
        frame.to_parquet(folder / _ERRORS, index=False, write_page_checksum=True)
        parts = [
            pd.DataFrame({"group": name, "label": each.index, "count": each}) for name, each in self.trained.items()
        ]
        labels = pd.concat(parts or [pd.DataFrame(columns=["group", "label", "count"])], ignore_index=True)
        labels.to_parquet(folder / _TRAINED, index=False, write_page_checksum=True)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote."""
        levels = ErrorLevels()
        state = read_state(folder / _STATE)
        levels.variances = dict(state["variances"])
        levels.noise = float(state["noise"])
        frame = read_parquet(folder / _ERRORS)
        outputs, errors, months = (frame.pop(name).to_numpy() for name in (_OUTPUT, _ERROR, _MONTH))
        # champions of earlier versions have no labels of their training
        counts = read_parquet(folder / _TRAINED) if (folder / _TRAINED).is_file() else pd.DataFrame()
        groups = counts.groupby("group") if len(counts) else ()
        trained = {str(name): part.set_index("label")["count"] for name, part in groups}
        return cls(levels, errors.astype(float), ErrorRows(frame, outputs), months=months, trained=trained)

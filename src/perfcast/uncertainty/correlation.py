"""Correlation of prediction errors: the correction of other predictions by one measured score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag

_MAX_ROWS = 1200
"""Residuals of a backtest that are compared with each other: pairs grow with their square."""
_MAX_RESIDUAL = 0.5
"""Residual (natural logarithm) at which it is cut off, known ones too: a mistyped score tells nothing of others."""
_MIN_NOISE = 1e-6
_PAIR_ROWS = 30.0
"""Common labels that the mean correlation of all pairs of outputs counts as, beside those of one pair."""
_ALL = "everything"


def shared_labels(table: Table) -> pd.DataFrame:
    """Return labels that rows share with others, (n, levels) text: the wider the level, the further left.

    Levels: everything, the slices of the entity's group of columns (vendor, family), the entity, the entity with its
    set-up, its identity.
    """
    frame, entity = table.frame, table.column_of(Tag.ENTITY)
    names = (*entity_slices(table), entity)
    text = {name: frame[name].astype(object).where(frame[name].notna(), "?").astype(str) for name in names}
    labels = {_ALL: pd.Series(_ALL, index=frame.index), **text}
    for tag in (Tag.SETUP, Tag.IDENTITY):
        narrow = [name for name in table.select(tag=tag) if name != entity]
        if narrow:
            labels[tag.value] = text[entity].str.cat(frame[narrow].astype(str), sep="\x1f", na_rep="?")
    return pd.DataFrame(labels)


def entity_slices(table: Table) -> list[str]:
    """Return the slices of the entity's group of columns, the wider ones first: vendor, family."""
    group = next(column.group for column in table.columns if Tag.ENTITY in column.tags)
    return table.select(group=group, tag=Tag.SLICE)


@dataclass(frozen=True)
class ErrorRows:
    """Rows of errors. Shapes: labels (n, levels), outputs (n,) text, expected_errors (n,)."""

    labels: pd.DataFrame
    outputs: np.ndarray
    expected_errors: np.ndarray


class ErrorCorrelation:
    """Variance components of prediction errors: shared by rows with a common label, in all outputs or in one.

    The covariance of two errors is the sum of the components of all levels whose label they share, times both scales,
    and times the correlation `between` their outputs, which is never negative: a suite may tell little of another.
    Without that correlation, other outputs have the `shared` components alone. In forecasts of CPU models from 2019-07
    to 2022-12, one result moved the other suites from 4.95 to 4.82 % of error so, and to 5.04 % without;
    a scale is the expected error of a row over that of backtests, so that a certain prediction hardly moves. `noise` is
    the variance that a row shares with no other. The components are fitted,
    without a negative one, to the products of pairs of residuals of the same backtest.
    Shapes: residuals (n,) log predicted - log measured; labels (n, levels); outputs (n,) text; expected_errors (n,).
    Source: variance components by moments (Rao, 1970, J. Am. Stat. Assoc. 65); prediction from them is kriging, or BLUP
    (Robinson, 1991, Stat. Sci. 6).
    """

    shared: dict[str, float]
    per_output: dict[str, float]
    noise: float
    reference: float
    """The expected error of backtests, root mean square."""
    between: pd.DataFrame | None = None
    """Correlation of the errors of outputs of the same entity, (outputs, outputs); None where it is not known."""

    def fit(
        self,
        residuals: np.ndarray,
        labels: pd.DataFrame,
        outputs: np.ndarray,
        *,
        backtests: np.ndarray,
        expected_errors: np.ndarray,
    ) -> Self:
        """Fit to the residuals of backtests; every backtest has the same weight."""
        from scipy.optimize import nnls  # predictions, which import this module, need none of it

        numbers = sorted(set(backtests.tolist()))
        self.reference = float(
            np.sqrt(np.mean([np.mean(expected_errors[backtests == number] ** 2) for number in numbers]))
        )
        scales = expected_errors / self.reference
        cut = np.clip(residuals, -_MAX_RESIDUAL, _MAX_RESIDUAL)
        names = [str(name) for name in labels.columns]
        normal, moments, sizes = np.zeros((2 * len(names),) * 2), np.zeros(2 * len(names)), list[float]()
        for number in numbers:
            rows = np.flatnonzero(backtests == number)
            if len(rows) > _MAX_ROWS:
                rows = np.sort(np.random.default_rng(0).choice(rows, _MAX_ROWS, replace=False))
            sizes.append(np.mean(cut[rows] ** 2, dtype=float))
            shared, products = _pairs(cut[rows], scales[rows], labels.iloc[rows], outputs[rows])
            if len(products):
                normal += shared.T @ shared / len(products)
                moments += shared.T @ products / len(products)
        root = np.linalg.cholesky(normal + 1e-9 * np.eye(len(normal)))
        components, _ = nnls(root.T, np.linalg.solve(root, moments))
        self.shared = {name: float(value) for name, value in zip(names, components[: len(names)], strict=True)}
        self.per_output = {name: float(value) for name, value in zip(names, components[len(names) :], strict=True)}
        self.noise = max(float(np.mean(sizes)) - float(components.sum()), _MIN_NOISE)  # scales have mean square 1
        self.between = _correlate_outputs(cut / scales, labels.iloc[:, -1].to_numpy(), outputs, backtests)
        return self

    def variance(self, rows: ErrorRows) -> np.ndarray:
        """Return the variance of every error, (n,)."""
        common = sum(self.shared.values()) + sum(self.per_output.values())
        return np.asarray((rows.expected_errors / self.reference) ** 2 * common + self.noise, dtype=float)

    def covariance(self, rows: ErrorRows, others: ErrorRows) -> np.ndarray:
        """Return the covariance of some errors with others, (n, m), without noise."""
        same = rows.outputs[:, None] == others.outputs[None, :]
        between = None
        if self.between is not None and {*rows.outputs, *others.outputs} <= {*self.between.index}:
            between = self.between.loc[rows.outputs, others.outputs].to_numpy()
        covariances = np.zeros(same.shape)
        for name in self.shared:
            common = rows.labels[name].to_numpy()[:, None] == others.labels[name].to_numpy()[None, :]
            if between is None:
                covariances += common * self.shared[name] + (common & same) * self.per_output[name]
            else:
                covariances += common * between * (self.shared[name] + self.per_output[name])
        scaled: np.ndarray = covariances * np.outer(rows.expected_errors, others.expected_errors) / self.reference**2
        return scaled

    def predict(self, known: ErrorRows, residuals: np.ndarray, others: ErrorRows) -> tuple[np.ndarray, np.ndarray]:
        """Return the expected residuals of other rows, (n,), and the remaining share of their deviation, (n,)."""
        among = self.covariance(known, known) + self.noise * np.eye(len(residuals))
        across = self.covariance(known, others)
        weights = np.linalg.solve(among, across)
        residuals = np.clip(residuals, -_MAX_RESIDUAL, _MAX_RESIDUAL)
        remaining = 1 - (weights * across).sum(axis=0) / self.variance(others)
        return weights.T @ residuals, np.sqrt(np.maximum(remaining, 0.0))

    def correlations(self, rows: ErrorRows, known: ErrorRows | None = None) -> np.ndarray:
        """Return the correlations of the errors of rows, (n, n), those that remain where other errors are `known`."""
        covariances = self.covariance(rows, rows)
        np.fill_diagonal(covariances, self.variance(rows))
        if known is not None and len(known.outputs):
            among = self.covariance(known, known) + self.noise * np.eye(len(known.outputs))
            across = self.covariance(known, rows)
            covariances = covariances - across.T @ np.linalg.solve(among, across)
        scales = np.sqrt(np.maximum(np.diag(covariances), _MIN_NOISE))
        return np.asarray(np.clip(covariances / np.outer(scales, scales), -1.0, 1.0))

    def to_state(self) -> dict[str, Any]:
        """Return what was fitted as values that JSON can hold."""
        state = {"shared": self.shared, "own": self.per_output, "noise": self.noise, "reference": self.reference}
        return state if self.between is None else {**state, "between": self.between.to_dict()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild from `to_state()`."""
        model = cls()
        model.shared, model.per_output, model.noise = dict(state["shared"]), dict(state["own"]), float(state["noise"])
        model.reference = float(state["reference"])
        model.between = pd.DataFrame(state["between"]) if "between" in state else None
        return model


def _correlate_outputs(
    residuals: np.ndarray, labels: np.ndarray, outputs: np.ndarray, backtests: np.ndarray
) -> pd.DataFrame:
    """Return the correlation of the mean residuals of outputs by label and backtest, none negative.

    It is shrunk towards the mean of all pairs, and made positive semidefinite. Shapes: (n,) -> (outputs, outputs).
    """
    means = pd.Series(residuals).groupby([backtests, labels, outputs]).mean().unstack()
    known, values = means.notna().to_numpy(dtype=float), means.fillna(0.0).to_numpy()
    counts, squares = known.T @ known, (values**2).T @ known
    raw = values.T @ values / np.sqrt(np.maximum(squares * squares.T, 1e-300))
    pairs = ~np.eye(len(raw), dtype=bool)
    mean = np.average(raw[pairs], weights=counts[pairs]) if counts[pairs].any() else 0.0
    shrunk = np.where(pairs, np.clip((counts * raw + _PAIR_ROWS * mean) / (counts + _PAIR_ROWS), 0.0, 1.0), 1.0)
    values, vectors = np.linalg.eigh(shrunk)
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    roots = np.sqrt(np.diag(positive))
    return pd.DataFrame(np.maximum(positive / np.outer(roots, roots), 0.0), means.columns, means.columns)


def _pairs(
    residuals: np.ndarray, scales: np.ndarray, labels: pd.DataFrame, outputs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the product of the residuals of every pair of rows, and of the scales of those that share a label.

    Shapes: (pairs, 2 x levels), shared at all, and in one output; (pairs,).
    """
    first, second = np.triu_indices(len(residuals), 1)
    codes = [pd.factorize(labels[name])[0] for name in labels]
    output = pd.factorize(outputs)[0]
    same = output[first] == output[second]
    common = np.stack([code[first] == code[second] for code in codes], axis=1)
    shared = np.hstack([common, common & same[:, None]]) * (scales[first] * scales[second])[:, None]
    return shared, residuals[first] * residuals[second]

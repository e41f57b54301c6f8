"""How alike the errors of forecasts are: what one measured score says of the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.schema import Table, Tag

_MOST_ROWS = 1200
"""Residuals of a rehearsal that are compared with each other: pairs grow with their square."""
_LARGEST = 0.5
"""Residual (natural logarithm) at which it is cut off: a mistyped score says nothing of others."""
_LEAST_NOISE = 1e-6
_ALL = "everything"


def labels_of(table: Table) -> pd.DataFrame:
    """Return what every row has in common with others, (n, levels) text: the wider the level the further left.

    Levels: everything, the slices of the entity's group of columns (vendor, family), the entity, its identity.
    """
    frame, entity = table.frame, table.column_of(Tag.ENTITY)
    group = next(column.group for column in table.columns if column.name == entity)
    slices = [column.name for column in table.columns if Tag.SLICE in column.tags and column.group == group]
    text = {name: frame[name].astype(object).where(frame[name].notna(), "?").astype(str) for name in (*slices, entity)}
    labels = {_ALL: pd.Series(_ALL, index=frame.index), **text}
    narrow = [name for name in table.select(tag=Tag.IDENTITY) if name != entity]
    if narrow:
        same = text[entity]
        for name in narrow:
            same = same + "\x1f" + frame[name].astype(str)
        labels["identity"] = same
    return pd.DataFrame(labels)


@dataclass(frozen=True)
class Errors:
    """Rows whose errors are spoken of. Shapes: labels (n, levels), questions (n,) text, typical (n,)."""

    labels: pd.DataFrame
    questions: np.ndarray
    typical: np.ndarray


class Correlation:
    """Variance components of forecast errors: shared by rows that have a label in common, in all questions or in one.

    The covariance of two errors is the sum of the components of all levels whose label they share, times both scales;
    a scale is the typical error that the calibration expects of a row over that of rehearsals, so that what is known
    well is hardly moved. `noise` is what a row shares with no other, whatever is known. The components are fitted,
    without a negative one, to the products of pairs of residuals of the same rehearsal.
    Shapes: residuals (n,) log forecast - log measured; labels (n, levels); questions (n,) text; typical (n,).
    Source: variance components by moments (Rao, 1970, J. Am. Stat. Assoc. 65); prediction from them is kriging, or BLUP
    (Robinson, 1991, Stat. Sci. 6).
    """

    shared: dict[str, float]
    own: dict[str, float]
    noise: float
    reference: float
    """The typical error of rehearsals, root mean square."""

    def fit(
        self,
        residuals: np.ndarray,
        labels: pd.DataFrame,
        questions: np.ndarray,
        *,
        rehearsals: np.ndarray,
        typical: np.ndarray,
    ) -> Self:
        """Learn from residuals of rehearsed forecasts; every rehearsal counts the same."""
        from scipy.optimize import nnls  # forecasts, which import this module, need none of it

        numbers = sorted(set(rehearsals.tolist()))
        self.reference = float(np.sqrt(np.mean([np.mean(typical[rehearsals == one] ** 2) for one in numbers])))
        scales = typical / self.reference
        cut = np.clip(residuals, -_LARGEST, _LARGEST)
        names = [str(name) for name in labels.columns]
        normal, moments, sizes = np.zeros((2 * len(names),) * 2), np.zeros(2 * len(names)), list[float]()
        for one in numbers:
            rows = np.flatnonzero(rehearsals == one)
            if len(rows) > _MOST_ROWS:
                rows = np.sort(np.random.default_rng(0).choice(rows, _MOST_ROWS, replace=False))
            sizes.append(np.mean(cut[rows] ** 2, dtype=float))
            shared, products = _pairs(cut[rows], scales[rows], labels.iloc[rows], questions[rows])
            if len(products):
                normal += shared.T @ shared / len(products)
                moments += shared.T @ products / len(products)
        root = np.linalg.cholesky(normal + 1e-9 * np.eye(len(normal)))
        found, _ = nnls(root.T, np.linalg.solve(root, moments))
        self.shared = {name: float(value) for name, value in zip(names, found[: len(names)], strict=True)}
        self.own = {name: float(value) for name, value in zip(names, found[len(names) :], strict=True)}
        self.noise = max(float(np.mean(sizes)) - float(found.sum()), _LEAST_NOISE)  # scales have mean square 1
        return self

    def variance(self, rows: Errors) -> np.ndarray:
        """Return the variance of every error, (n,)."""
        common = sum(self.shared.values()) + sum(self.own.values())
        return np.asarray((rows.typical / self.reference) ** 2 * common + self.noise, dtype=float)

    def covariance(self, one: Errors, other: Errors) -> np.ndarray:
        """Return the covariance of some errors with others, (n, m), without noise."""
        same = one.questions[:, None] == other.questions[None, :]
        found = np.zeros(same.shape)
        for name in self.shared:
            common = one.labels[name].to_numpy()[:, None] == other.labels[name].to_numpy()[None, :]
            found += common * self.shared[name] + (common & same) * self.own[name]
        scaled: np.ndarray = found * np.outer(one.typical, other.typical) / self.reference**2
        return scaled

    def predict(self, known: Errors, residuals: np.ndarray, asked: Errors) -> tuple[np.ndarray, np.ndarray]:
        """Return what the known residuals say of others, (n,), and the share of their deviation that is left, (n,)."""
        among = self.covariance(known, known) + self.noise * np.eye(len(residuals))
        across = self.covariance(known, asked)
        weights = np.linalg.solve(among, across)
        left = 1 - (weights * across).sum(axis=0) / self.variance(asked)
        return weights.T @ residuals, np.sqrt(np.maximum(left, 0.0))

    def to_state(self) -> dict[str, Any]:
        """Return what was learned as values that JSON can hold."""
        return {"shared": self.shared, "own": self.own, "noise": self.noise, "reference": self.reference}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild from `to_state()`."""
        found = cls()
        found.shared, found.own, found.noise = dict(state["shared"]), dict(state["own"]), float(state["noise"])
        found.reference = float(state["reference"])
        return found


def _pairs(
    residuals: np.ndarray, scales: np.ndarray, labels: pd.DataFrame, questions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the product of the residuals of every pair of rows, and of the scales of those that share a label.

    Shapes: (pairs, 2 x levels), which are shared at all and in one question; (pairs,).
    """
    first, second = np.triu_indices(len(residuals), 1)
    codes = [pd.factorize(labels[name])[0] for name in labels]
    asked = pd.factorize(questions)[0]
    same = asked[first] == asked[second]
    common = np.stack([code[first] == code[second] for code in codes], axis=1)
    shared = np.hstack([common, common & same[:, None]]) * (scales[first] * scales[second])[:, None]
    return shared, residuals[first] * residuals[second]

"""Predictions of described machines, as typed values that serialize and compare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

ESTIMATE = "estimates, not official results"


@dataclass(frozen=True)
class Value:
    """One cell of a completed machine with its origin, one of `impute.ORIGINS`."""

    column: str
    group: str
    value: float | str
    unit: str
    origin: str


@dataclass(frozen=True)
class Neighbor:
    """A measured result. Units: `score` that of the target, `distance` natural logarithms, see `NeighborIndex`."""

    result: str
    machine: str
    score: float
    published: str
    distance: float


@dataclass(frozen=True)
class Driver:
    """Factor by which a group of characteristics changes the score of the typical machine: 1.2 is a fifth more."""

    group: str
    factor: float


@dataclass(frozen=True)
class Estimate:
    """Prediction of one machine, task and target.

    `low` to `high` is the interval of `level`; `support` is the in-domain score, 1 close to the training data, and
    `unlike` the least similar group. They are None without a calibration. `missing` counts features without a value,
    `assumed` imputed usual values. `typical` is the machine that the drivers start from; they lead to the median
    without `own`, the factor by which user measurements changed it (None without any). Units: `unit`.
    """

    task: str
    target: str
    median: float
    low: float | None
    high: float | None
    level: float
    unit: str
    in_domain_score: float | None
    least_similar_group: str | None
    missing: int
    assumed: int
    own: float | None = None
    neighbors: tuple[Neighbor, ...] = ()
    typical: Neighbor | None = None
    drivers: tuple[Driver, ...] = ()


@dataclass(frozen=True)
class Prediction:
    """Estimates of one machine, with the values that they rest on."""

    line: int
    machine: str
    estimates: tuple[Estimate, ...]
    values: tuple[Value, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Predictions:
    """Predictions of machines in the order of the request, with the champion that made them."""

    dataset: str
    champion: str
    preset: str
    machines: tuple[Prediction, ...]
    features: int
    kind: str = ESTIMATE

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self.machines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and lists, ready for JSON."""
        return asdict(self)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per machine, task and target."""
        rows = [
            {
                "line": machine.line,
                "machine": machine.machine,
                "task": estimate.task,
                "target": estimate.target,
                "estimate": estimate.median,
                "low": estimate.low,
                "high": estimate.high,
                "unit": estimate.unit,
                "in_domain_score": estimate.in_domain_score,
                "least_similar_group": estimate.least_similar_group,
                "assumed": estimate.assumed,
                "champion": self.champion,
                "features_missing": estimate.missing,
                "features": self.features,
            }
            for machine in self.machines
            for estimate in machine.estimates
        ]
        return pd.DataFrame(rows)

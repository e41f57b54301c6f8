"""What a forecast says, as typed values that print, serialise and compare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

ESTIMATE = "estimates, not official results"


@dataclass(frozen=True)
class Value:
    """One cell of a machine, and where it comes from (`completing.ORIGINS`)."""

    column: str
    group: str
    value: float | str
    unit: str
    origin: str


@dataclass(frozen=True)
class Neighbour:
    """A measured machine. Units: `score` that of the target, `distance` natural logarithms, see `Neighbourhood`."""

    result: str
    machine: str
    score: float
    published: str
    distance: float


@dataclass(frozen=True)
class Driver:
    """What a group of characteristics makes of the typical machine's score: 1.2 is a fifth more."""

    group: str
    factor: float


@dataclass(frozen=True)
class Estimate:
    """The forecast of one machine, task and target.

    `low` to `high` is the interval of `level`; `support` is 1 where the like was measured and nearly 0 where nothing
    like it was; `unlike` names what is least like anything measured. They are None without a calibration. `missing`
    counts features that nobody knows, `assumed` characteristics that were taken for granted. `typical` is the machine
    that the drivers start from; they lead to the median without `own`, the factor by which one's own measurements
    changed it (None without any). Units: `unit`.
    """

    task: str
    target: str
    median: float
    low: float | None
    high: float | None
    level: float
    unit: str
    support: float | None
    unlike: str | None
    missing: int
    assumed: int
    own: float | None = None
    neighbours: tuple[Neighbour, ...] = ()
    typical: Neighbour | None = None
    drivers: tuple[Driver, ...] = ()


@dataclass(frozen=True)
class MachineAnswer:
    """All that is said of one machine."""

    line: int
    machine: str
    estimates: tuple[Estimate, ...]
    values: tuple[Value, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """The machines in the order they were asked, and who says so."""

    dataset: str
    champion: str
    schedule: str
    machines: tuple[MachineAnswer, ...]
    features: int
    kind: str = ESTIMATE

    def __iter__(self) -> Iterator[MachineAnswer]:
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
                "support": estimate.support,
                "unlike": estimate.unlike,
                "assumed": estimate.assumed,
                "champion": self.champion,
                "features_missing": estimate.missing,
                "features": self.features,
            }
            for machine in self.machines
            for estimate in machine.estimates
        ]
        return pd.DataFrame(rows)

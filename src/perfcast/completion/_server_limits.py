"""What no server can be. Each rule was counted on the published results and refuses at most 0.14 % of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.errors import UserError

_RATES = {2: (400, 1066), 3: (800, 2133), 4: (1600, 3600), 5: (3200, 12800)}
"""MT/s that modules of a DDR generation are sold for."""
_DIMMS_PER_CHANNEL = 2
_NODE_SOCKETS = 8
"""Sockets from which node controllers join a part to more of them than it links itself."""
_CAPACITY_TOLERANCE = 0.02


@dataclass(frozen=True)
class _Limit:
    """One rule: rows where `broken` holds are refused; a missing cell breaks nothing."""

    requirement: str
    columns: tuple[str, ...]
    broken: Callable[[pd.DataFrame], pd.Series]


def _rate_of_another_generation(frame: pd.DataFrame) -> pd.Series:
    low, high = (frame["ddr_gen"].map({key: pair[end] for key, pair in _RATES.items()}) for end in (0, 1))
    return (frame["mem_rated_mts"] < low) | (frame["mem_rated_mts"] > high)


_LIMITS = (
    _Limit(
        "cores_enabled_total must be at most chips x cores_per_chip_part",
        ("cores_enabled_total", "chips", "cores_per_chip_part"),
        lambda f: f["cores_enabled_total"] > f["chips"] * f["cores_per_chip_part"],
    ),
    _Limit(
        "cores_enabled_total must be the same in every one of the chips",
        ("cores_enabled_total", "chips"),
        lambda f: f["cores_enabled_total"] % f["chips"] > 0,
    ),
    _Limit(
        "chips must be at most max_sockets, the sockets that the part scales to",
        ("chips", "max_sockets"),
        lambda f: (f["chips"] > f["max_sockets"]) & (f["max_sockets"] < _NODE_SOCKETS),
    ),
    _Limit(
        "base_mhz must be at most max_turbo_mhz",
        ("base_mhz", "max_turbo_mhz"),
        lambda f: f["base_mhz"] > f["max_turbo_mhz"],
    ),
    _Limit(
        "dimm_count must be a multiple of chips: every processor has memory of its own",
        ("dimm_count", "chips"),
        lambda f: (f["dimm_count"] > 0) & (f["dimm_count"] % f["chips"] > 0),
    ),
    _Limit(
        f"dimm_count must be at most {_DIMMS_PER_CHANNEL} in each of chips x mem_channels_per_chip",
        ("dimm_count", "chips", "mem_channels_per_chip"),
        lambda f: f["dimm_count"] > _DIMMS_PER_CHANNEL * f["chips"] * f["mem_channels_per_chip"],
    ),
    _Limit(
        "mem_total_gb must be dimm_count x dimm_gb",
        ("mem_total_gb", "dimm_count", "dimm_gb"),
        lambda f: (
            (
                (f["mem_total_gb"] - f["dimm_count"] * f["dimm_gb"] - f["hbm_gb"].fillna(0)).abs()
                > _CAPACITY_TOLERANCE * f["mem_total_gb"]
            )
            & (f["dimm_groups"].fillna(1) == 1)
        ),
    ),
    _Limit(
        "mem_rated_mts must be a rate of DDR generation ddr_gen",
        ("mem_rated_mts", "ddr_gen"),
        _rate_of_another_generation,
    ),
    _Limit(
        "mem_running_mts must be at most mem_rated_mts",
        ("mem_running_mts", "mem_rated_mts"),
        lambda f: f["mem_running_mts"] > f["mem_rated_mts"],
    ),
)


def refusals(frame: pd.DataFrame) -> Iterator[tuple[int, str, str]]:
    """Give what every row breaks, rule by rule: its line (index), what must be, and the values it has."""
    lines = frame.index.to_numpy()
    for limit in _LIMITS:
        broken = limit.broken(frame).fillna(False).to_numpy(dtype=bool)
        for place in np.flatnonzero(broken):
            row = frame[list(limit.columns)].iloc[place]
            yield int(lines[place]), limit.requirement, ", ".join(f"{name} {value:g}" for name, value in row.items())


def refuse(frame: pd.DataFrame) -> None:
    """Refuse machines that cannot be. Raises: UserError for the first rule that a row breaks, naming row and values."""
    for line, requirement, found in refusals(frame):
        raise UserError(requirement, f"machine {line} has {found}", "correct what was given")

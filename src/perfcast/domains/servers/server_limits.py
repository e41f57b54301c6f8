"""Limits of real servers. A description that breaks one is refused; each was counted on the published results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from perfcast.domains.servers.datasets.spec_cpu.spec_dump import THREADS_PER_CORE
from perfcast.domains.servers.processors.facts import family_table
from perfcast.inference.cells import Cells
from perfcast.inference.rules import Violation

_DDR_RATES = {2: (400, 1066), 3: (800, 2133), 4: (1600, 3600), 5: (3200, 12800)}
"""Lowest and highest rate that modules of a DDR generation are sold for. Units: MT/s."""
_DIMMS_PER_CHANNEL = 2
_NODE_SOCKETS = 8
"""Sockets from which node controllers join a CPU model to more of them than it links itself."""
_CAPACITY_TOLERANCE = 0.02


def find_threads(families: np.ndarray) -> np.ndarray:
    """Return how many threads a core of each family runs, NaN where no table tells. Shapes: (n,) texts -> (n,)."""
    known = {family: float(row["smt"]) for family, row in family_table().items() if row["smt"]}
    return np.array([known.get(family, np.nan) for family in families.tolist()])


@dataclass(frozen=True)
class _Limit:
    """One limit. A missing cell breaks nothing.

    `named`: columns of the wrong value, the usual one first. `fact`: text of a row that breaks the limit.
    """

    named: tuple[str, ...]
    is_broken: Callable[[Cells], np.ndarray]
    fact: Callable[[Any], str]
    remedy: str


def _has_rate_of_other_generation(cells: Cells) -> np.ndarray:
    unlimited = (-np.inf, np.inf)
    low, high = np.array([_DDR_RATES.get(key, unlimited) for key in cells["ddr_gen"].tolist()]).reshape(-1, 2).T
    return np.asarray((cells["mem_rated_mts"] < low) | (cells["mem_rated_mts"] > high))


def _has_other_capacity(cells: Cells) -> np.ndarray:
    modules = cells["dimm_count"] * cells["dimm_gb"] + np.nan_to_num(cells["hbm_gb"])
    differs = np.abs(cells["mem_total_gb"] - modules) > _CAPACITY_TOLERANCE * cells["mem_total_gb"]
    return np.asarray(differs & (np.nan_to_num(cells["dimm_groups"], nan=1) == 1))


_INSTALLED = ("dimm_count", "mem_total_gb")
_LIMITS = (
    _Limit(
        ("cores_per_chip_stated", "cores_enabled_total", "cores_per_chip_of_cpu_model", "chips"),
        lambda f: f["cores_enabled_total"] > f["chips"] * f["cores_per_chip_of_cpu_model"],
        lambda r: (
            f"{r.cores_enabled_total / r.chips:g} per chip is more than "
            f"the {r.cores_per_chip_of_cpu_model:g} of {{entity}}"
        ),
        "correct it, or name another processor",
    ),
    _Limit(
        ("cores_enabled_total", "cores_per_chip_stated", "chips"),
        # one vCPU of an instance may be half a core
        lambda f: (f["cores_enabled_total"] % f["chips"] > 0) & (f["chips"] > 1),
        lambda r: f"{r.cores_enabled_total:g} in total cannot be shared equally by {r.chips:g} chips",
        "correct it, or the number of chips",
    ),
    _Limit(
        ("chips",),
        lambda f: (f["chips"] > f["max_sockets"]) & (f["max_sockets"] < _NODE_SOCKETS),
        lambda r: f"{r.chips:g} is more than the {r.max_sockets:g} sockets that {{entity}} supports",
        "correct it, or name another processor",
    ),
    _Limit(
        ("threads_per_core",),
        lambda f: ~np.isnan(f["threads_per_core"]) & ~np.isin(f["threads_per_core"], THREADS_PER_CORE),
        lambda r: f"{r.threads_per_core:g} threads per core exist in no processor",
        f"write one of {', '.join(map(str, THREADS_PER_CORE))}",
    ),
    _Limit(
        ("threads_per_core",),
        lambda f: f["threads_per_core"] > find_threads(f["family"]),
        lambda r: f"{r.threads_per_core:g} threads per core are more than those of {r.family}",
        "correct it, or leave it out",
    ),
    _Limit(
        ("base_mhz", "max_turbo_mhz"),
        lambda f: f["base_mhz"] > f["max_turbo_mhz"],
        lambda r: f"the nominal {r.base_mhz:g} MHz is above the turbo clock of {r.max_turbo_mhz:g} MHz",
        "correct it, or the other clock",
    ),
    _Limit(
        (*_INSTALLED, "mem_channels_per_chip", "chips"),
        lambda f: f["dimm_count"] > _DIMMS_PER_CHANNEL * f["chips"] * f["mem_channels_per_chip"],
        lambda r: (
            f"{r.dimm_count:g} modules are more than {_DIMMS_PER_CHANNEL} in each of the "
            f"{r.chips * r.mem_channels_per_chip:g} memory channels"
        ),
        "correct it, or set a different memory.channels",
    ),
    _Limit(
        ("mem_total_gb", "dimm_count", "dimm_gb"),
        _has_other_capacity,
        lambda r: f"{r.mem_total_gb:g} GiB in total is not {r.dimm_count:g} modules of {r.dimm_gb:g} GiB",
        "correct one of them, or leave out the total",
    ),
    _Limit(
        ("mem_rated_mts", "ddr_gen"),
        _has_rate_of_other_generation,
        lambda r: (
            f"{r.mem_rated_mts:g} MT/s is no rate of DDR{r.ddr_gen:g}, which has "
            f"{_DDR_RATES[int(r.ddr_gen)][0]} to {_DDR_RATES[int(r.ddr_gen)][1]} MT/s"
        ),
        "correct it, or the DDR generation",
    ),
    _Limit(
        ("mem_running_mts", "mem_rated_mts"),
        lambda f: f["mem_running_mts"] > f["mem_rated_mts"],
        lambda r: f"the running {r.mem_running_mts:g} MT/s is above the rated {r.mem_rated_mts:g} MT/s",
        "correct it, or the other rate",
    ),
)


def find_server_violations(cells: Cells) -> Iterator[Violation]:
    """Yield every limit that a row breaks, limit by limit."""
    for limit in _LIMITS:
        with np.errstate(divide="ignore", invalid="ignore"):
            broken = limit.is_broken(cells)
        for position in np.flatnonzero(broken):
            row = SimpleNamespace(**{name: values[position] for name, values in cells.items()})
            yield Violation(int(cells.index[position]), limit.named, limit.fact(row), limit.remedy)

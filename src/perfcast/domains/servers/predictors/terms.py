"""Terms of the analytical model: physical quantities in logarithms, core generations, compiler steps, names.

A term whose columns a dataset does not have is left out. Tables of other machines therefore work too: there the
columns tagged SCALING are the quantities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.domains.servers.predictors.server_quantities import (
    COLUMNS_READ,
    Quantities,
    ServerQuantities,
    column_values,
    log_column,
)
from perfcast.domains.servers.processors.announcements import (
    ancestry,
    announced_index,
    announced_power_index,
    core_table,
    find_core,
)
from perfcast.features.encoding.columns import codes, labels, map_labels, number_values
from perfcast.schema.table import Column, Kind, Role, Tag

_MARGIN = 1.0
"""A term is clipped to the training range, widened on both sides by this many times its width."""

_DATA_SHEET = ("base_mhz", "max_turbo_mhz", "tdp_w", "cores_per_chip_of_cpu_model", "l3_mb_per_chip")
"""Columns that tell CPU models of a family apart."""

_CORE_STEPS = (4, 16, 64)
_BYTES_STEPS = (2, 5, 12)
_NAME_PENALTIES = {
    "cpu_vendor": 1.0,
    "series": 3.0,
    "tier": 3.0,
    "family": 10.0,
}
_OTHER_NAME_PENALTY = 100.0
_COMPILER_COLUMNS = ("compiler_vendor", "compiler_major_minor")
_CORE_PENALTY = 3.0
_COMPILER_PENALTY = 0.05
_NOTICE_DATE = pd.Timestamp(2024, 2, 1)
"""Date of SPEC's notice on results of some compiler releases, which had been regular results before."""

_POWER_SHARE = 0.5
"""Share of the announced gain of a process at equal power that a score of all cores gains.

The share comes from backtests on results published before 2023 (Rome from 2019, Genoa of 2022): shares of 0.4 to 0.6
were best and equal."""

Terms = dict[str, tuple[np.ndarray, float]]
"""Values, (n,) with NaN where unknown, and the penalty of the term's weight relative to the others'."""


@dataclass
class AnalyticalTerms:
    """Encoder of rows as terms; levels, steps, means and ranges come from the rows of `fit_transform`.

    `penalties_` are relative. Quantities that every server has (cores, bandwidth) have small penalties, and so have
    compiler steps, which may be large. Names of system vendors and operating systems have large penalties, so that they
    explain only what nothing else does.
    Shapes: `transform` gives (n, len(names_)) float64.
    """

    min_rows: int = 30
    columns: tuple[Column, ...] = ()
    quantities: ServerQuantities = field(default_factory=ServerQuantities)
    clock_gains: dict[str, float] = field(default_factory=dict)
    """Announced performance per clock by core, in logarithms."""
    power_gains: dict[str, float] = field(default_factory=dict)
    """Announced performance of its process at equal power by core, in logarithms."""
    has_notice: bool = False
    levels: dict[str, list[str]] = field(default_factory=dict)
    steps: dict[str, list[float]] = field(default_factory=dict)
    """Compiler versions by vendor, oldest first."""
    cores: list[str] = field(default_factory=list)
    headroom: dict[str, float] = field(default_factory=dict)
    """Mean logarithm of the stated all-core clock over the base clock by family."""
    statistics: dict[str, dict[str, float]] = field(default_factory=dict)
    """Penalty, mean, low and high by term; a term that is constant in training is left out."""

    @property
    def names_(self) -> list[str]:
        """The name of every term."""
        return list(self.statistics)

    @property
    def penalties_(self) -> np.ndarray:
        """The relative penalty of every term's weight, (terms,)."""
        return np.array([entry["penalty"] for entry in self.statistics.values()])

    def fit_transform(
        self, X: pd.DataFrame, columns: Iterable[Column], as_of: pd.Timestamp | None, *, announced_gains: bool = True
    ) -> np.ndarray:
        """Fit to training rows and return their terms; gains announced after `as_of` do not count."""
        self.columns = tuple(column for column in columns if column.role is Role.FEATURE)
        as_of = as_of if as_of is not None else pd.Timestamp.max
        self.clock_gains = announced_index(as_of) if announced_gains else {}
        self.power_gains = announced_power_index(as_of) if announced_gains else {}
        self.has_notice = bool(as_of >= _NOTICE_DATE)
        self.quantities = ServerQuantities().fit(X)
        self.cores = sorted(
            {elder for core in set(cores_of_rows(X)) if core in core_table() for elder in ancestry(core)}
        )
        self.levels = {column.name: self._levels(X, column) for column in self._name_columns()}
        self.steps = _compiler_steps(X)
        self.headroom = _mean_headroom(X)
        self.statistics = {}
        terms = self._terms(X, self.quantities.compute(X))
        for name, (values, penalty) in terms.items():
            known = values[np.isfinite(values)]
            if len(known) and known.min() < known.max():
                low = float(known.min())
                high = float(known.max())
                self.statistics[name] = {
                    "penalty": penalty,
                    "mean": float(known.mean()),
                    "low": low,
                    "high": high,
                }
        return self._matrix(terms, len(X))

    def transform(self, X: pd.DataFrame, quantities: Quantities | None = None) -> np.ndarray:
        """Return the terms of rows; an unknown one is its training mean.

        `quantities` are those of the rows, computed without them.
        """
        return self._matrix(self._terms(X, self.quantities.compute(X) if quantities is None else quantities), len(X))

    def _matrix(self, terms: Terms, rows: int) -> np.ndarray:
        matrix = np.empty((rows, len(self.statistics)))
        for position, name in enumerate(self.statistics):
            matrix[:, position] = terms[name][0] if name in terms else np.nan
        means, lows, highs = (
            np.array([entry[name] for entry in self.statistics.values()]) for name in ("mean", "low", "high")
        )
        margins = _MARGIN * (highs - lows)
        np.clip(matrix, lows - margins, highs + margins, out=matrix)
        np.copyto(matrix, means, where=~np.isfinite(matrix))
        return matrix

    def core_gains(self, X: pd.DataFrame, per_clock_share: float = 1.0) -> np.ndarray:
        """Return the announced gain of every row's core in logarithms, 0 where unknown, (n,).

        The gain has two parts. The first is a share of the performance per clock. The second is half of the process's
        gain at equal power, in every score but those of SPECspeed: there all cores work and power limits their clock.
        """
        positions, cores = pd.factorize(cores_of_rows(X))
        per_clock = np.array([self.clock_gains.get(core, 0.0) for core in cores], dtype=float)[positions]
        power = np.array([self.power_gains.get(core, 0.0) for core in cores], dtype=float)[positions]
        limited = np.ones(len(X)) if "metric" not in X else X["metric"].astype(object).to_numpy() != "speed"
        return per_clock_share * per_clock + _POWER_SHARE * power * limited

    def to_state(self) -> dict[str, Any]:
        """Return the fitted values as JSON can hold them."""
        state = asdict(replace(self, columns=()))
        del state["columns"]
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any], columns: Iterable[Column]) -> Self:
        """Rebuild the terms from `to_state()`."""
        features = tuple(column for column in columns if column.role is Role.FEATURE)
        quantities = ServerQuantities(**state["quantities"])
        return cls(**(state | {"quantities": quantities, "columns": features}))

    def _terms(self, X: pd.DataFrame, quantities: Quantities) -> Terms:
        return {
            **_physical_terms(quantities, X),
            **self._clock_terms(X),
            **self._scaling_terms(X),
            **self._generation_terms(X),
            **self._name_terms(X),
        }

    def _clock_terms(self, X: pd.DataFrame) -> Terms:
        """Return how far all cores run above the base clock, against the mean of the family in training.

        A stated all-core clock is a limit without full load, and vendors differ in the load, so that only CPU models of
        one family compare. The term is 0 where no clock is stated and for a family without one in training.
        """
        families, headroom = _all_core_headroom(X)
        means = pd.Series(families).map(self.headroom).to_numpy(dtype=float)
        return {"all-core clock": (np.nan_to_num(headroom - means), 0.3)}

    def _scaling_terms(self, X: pd.DataFrame) -> Terms:
        """Return the logarithms of SCALING columns that no quantity reads: quantities of other kinds of machine."""
        tagged = [c for c in self.columns if Tag.SCALING in c.tags and c.kind is Kind.NUMERICAL]
        return {f"log {c.name}": (log_column(X, c.name), 0.1) for c in tagged if c.name not in COLUMNS_READ}

    def _generation_terms(self, X: pd.DataFrame) -> Terms:
        """Return one cumulative step per core that a row's core descends from, and per compiler version it has."""
        positions, cores = pd.factorize(cores_of_rows(X))
        lines = [set(ancestry(core)) if core in core_table() else set() for core in cores]
        terms: Terms = {
            f"core {core}": (np.array([core in line for line in lines], dtype=float)[positions], _CORE_PENALTY)
            for core in self.cores
        }
        vendor, version = _compilers(X)
        for name, versions in self.steps.items():
            is_vendor = vendor == name
            terms[f"compiler {name}"] = (is_vendor.astype(float), 0.3)
            for step in versions[1:]:
                later = is_vendor & (version >= step)
                terms[f"compiler {name} >= {step:g}"] = (later.astype(float), _COMPILER_PENALTY)
        if self.has_notice:
            # These releases have a special optimization of one integer benchmark.
            special = (vendor == "Intel") & (version >= 22) & (version <= 23)
            terms["compiler with notice"] = (special.astype(float), 0.3)
        return terms

    def _name_columns(self) -> list[Column]:
        columns = [c for c in self.columns if c.kind is Kind.CATEGORICAL and Tag.TASK not in c.tags]
        return [column for column in columns if column.name not in _COMPILER_COLUMNS]

    def _levels(self, X: pd.DataFrame, column: Column) -> list[str]:
        counts = pd.Series(labels(X, column)).value_counts()
        return sorted(str(level) for level in counts.index[counts >= min(self.min_rows, max(1, len(X) // 10))])

    def _name_terms(self, X: pd.DataFrame) -> Terms:
        terms: Terms = {}
        for column in self._name_columns():
            levels = self.levels.get(column.name, [])
            level_codes = codes(X, column, number_values(levels))
            penalty = _NAME_PENALTIES.get(column.name, _OTHER_NAME_PENALTY)
            for position, level in enumerate(levels):
                terms[f"{column.name} {level}"] = ((level_codes == position).astype(float), penalty)
        return terms


def _physical_terms(q: Quantities, X: pd.DataFrame) -> Terms:
    """Return the terms in physical quantities, mostly logarithms."""
    cores = q["cores"]
    bytes_per_core = q["bandwidth"] - q["cores"]
    threads = column_values(X, "threads_per_core")
    terms: Terms = {
        "cores": (cores, 0.01),
        "cores squared": ((cores - 4) ** 2, 0.3),
        "sockets": (q["chips"], 0.1),
        "power clock": (q["power_clock"], 0.1),
        "power clock squared": ((q["power_clock"] - 8) ** 2, 1.0),
        "turbo clock": (q["turbo"], 0.1),
        "base clock": (log_column(X, "base_mhz"), 0.3),
        "watts per core": (q["watts_per_core"], 0.5),
        "bandwidth": (q["bandwidth"], 0.05),
        "bandwidth unknown": (np.isnan(q["bandwidth"]).astype(float), 1.0),
        "bandwidth per core squared": ((bytes_per_core - 1) ** 2, 0.3),
        "last-level cache per core": (q["l3"] - cores, 0.1),
        "last-level cache per core squared": ((q["l3"] - cores - 1) ** 2, 0.5),
        "last-level slice": (log_column(X, "l3_slice_mb"), 0.3),
        "second-level cache": (log_column(X, "l2_kb_per_core"), 1.0),
        "threads": (np.log(np.where(threads > 0, threads, np.nan)), 0.3),
        "several threads": (np.where(np.isnan(threads), np.nan, threads > 1), 0.3),
        "vector bits": (log_column(X, "simd_bits"), 1.0),
        "vector units": (column_values(X, "fma_units"), 1.0),
        "matrix unit": (column_values(X, "has_amx"), 3.0),
        "channels filled": (column_values(X, "mem_channels_filled"), 0.3),
        "DIMMs per channel": (column_values(X, "dimms_per_channel"), 0.5),
        "ranks per channel": (log_column(X, "ranks_per_channel"), 0.5),
        "memory per core": (log_column(X, "mem_gb_per_core"), 1.0),
        "classic compiler": (column_values(X, "compiler_classic"), 1.0),
        "mixed Fortran": (column_values(X, "mixed_fortran"), 1.0),
    }
    for step in _CORE_STEPS:
        terms[f"cores saturating at {step}"] = (-np.log1p(np.exp(cores) / step), 0.1)
    for step in _BYTES_STEPS:
        terms[f"bandwidth per core saturating at {step}"] = (np.log1p(np.exp(bytes_per_core) / step), 0.1)
    return terms


def _map_texts(X: pd.DataFrame, name: str, function: Callable[[str], str]) -> np.ndarray:
    """Return a function of every row's text, "" where it is missing, (n,) object; compute each distinct text once."""
    if name not in X:
        return np.full(len(X), function(""), dtype=object)
    return map_labels(X, Column(name, Kind.CATEGORICAL, Role.FEATURE, ""), function, function(""))


def cores_of_rows(X: pd.DataFrame) -> np.ndarray:
    """Return the core design of every row's processor family, "" where it is unknown, (n,) object."""
    return _map_texts(X, "family", lambda family: find_core(family) or "")


def _all_core_headroom(X: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return every row's family and the logarithm of its stated all-core clock over the base clock, (n,) each."""
    return _map_texts(X, "family", str), log_column(X, "all_core_turbo_mhz") - log_column(X, "base_mhz")


def _mean_headroom(X: pd.DataFrame) -> dict[str, float]:
    """Return the mean by family over CPU models; those with one data sheet count once."""
    clocks = pd.DataFrame({name: column_values(X, name) for name in _DATA_SHEET})
    clocks["family"], clocks["headroom"] = _all_core_headroom(X)
    means = clocks[clocks["headroom"].notna()].drop_duplicates().groupby("family")["headroom"].mean()
    return {str(family): float(mean) for family, mean in means.items()}


def _compilers(X: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the first word of the compiler's vendor and its version, (n,) each."""
    vendors = _map_texts(X, "compiler_vendor", lambda vendor: (vendor.split() or [""])[0])
    return vendors, column_values(X, "compiler_version")


def _compiler_steps(X: pd.DataFrame) -> dict[str, list[float]]:
    vendors, versions = _compilers(X)
    steps = {}
    for vendor in sorted(set(vendors) - {""}):
        known = versions[(vendors == vendor) & np.isfinite(versions)]
        steps[str(vendor)] = [float(version) for version in np.unique(known)]
    return steps

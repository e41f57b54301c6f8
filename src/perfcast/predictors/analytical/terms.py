"""The terms of the law: physical quantities of a server in logarithms, compiler steps, core generations, names.

A term whose columns a dataset does not have is left out, so the law also fits tables of other machines, where columns
tagged SCALING are its quantities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.data.processors.announcements import ancestry, announced_index, announced_power_index, find_core, core_table
from perfcast.features.encoding.dense import codes, distinct_labels, labels
from perfcast.predictors.analytical.server_quantities import COLUMNS_READ, Quantities, column_values
from perfcast.schema.table import Column, Kind, Role, Tag

MARGIN = 1.0
"""A term is held within the training range widened on both sides by this many times its width."""

_CORE_STEPS = (4, 16, 64)
_BYTES_STEPS = (2, 5, 12)
_NAME_PENALTIES = {"cpu_vendor": 1.0, "series": 3.0, "tier": 3.0, "family": 10.0}
_OTHER_NAMES = 100.0
_COMPILER = ("compiler_vendor", "compiler_major_minor")
_WALK, _STEP = 3.0, 0.05
_NOTICE = pd.Timestamp(2024, 2, 1)
"""SPEC's notice on results of some compiler releases: nobody could tell them apart before."""

_POWER_SHARE = 0.5
"""How much of a process's announced gain at the same power shows in a score of all cores. Settled in backtests on
results published before 2023 (Rome from 2019, Genoa of 2022): 0.4 to 0.6 were best and alike."""

Terms = dict[str, tuple[np.ndarray, float]]
"""Values, (n,) with NaN where unknown, and the penalty of the term's weight relative to the others'."""


class AnalyticalTerms:
    """Turns rows into the law's terms; levels, steps, means and ranges come from the rows given to `fit`.

    `penalties_` are relative: what every server has (cores, bandwidth) is hardly held back, a step of a compiler is
    free to be large, and names of system makers or operating systems may explain only what nothing else does.
    Shapes: `transform` gives (n, len(names_)) float64.
    """

    def __init__(self, *, min_rows: int = 30) -> None:
        self.min_rows = min_rows
        self.columns: tuple[Column, ...] = ()
        self.quantities = Quantities()
        self.index: dict[str, float] = {}
        self.power_index: dict[str, float] = {}
        self.noticed = False
        self.levels: dict[str, list[str]] = {}
        self.steps: dict[str, list[float]] = {}
        self.cores: list[str] = []
        self.kept: dict[str, dict[str, float]] = {}

    @property
    def names_(self) -> list[str]:
        """The name of every term."""
        return list(self.kept)

    @property
    def penalties_(self) -> np.ndarray:
        """The relative penalty of every term's weight, (terms,)."""
        return np.array([state["penalty"] for state in self.kept.values()])

    def fit_transform(
        self, X: pd.DataFrame, columns: Iterable[Column], as_of: pd.Timestamp | None, *, announced: bool = True
    ) -> np.ndarray:
        """Learn from training rows and return their terms; announcements count up to `as_of`, all without it."""
        self.columns = tuple(column for column in columns if column.role is Role.FEATURE)
        as_of = as_of if as_of is not None else pd.Timestamp.max
        self.index = announced_index(as_of) if announced else {}
        self.power_index = announced_power_index(as_of) if announced else {}
        self.noticed = bool(as_of >= _NOTICE)
        self.quantities = Quantities().fit(X)
        self.cores = sorted(
            {elder for core in set(cores_of_rows(X)) if core in core_table() for elder in ancestry(core)}
        )
        self.levels = {column.name: self._levels(X, column) for column in self._named()}
        self.steps = _versions(X)
        self.kept = {}
        terms = self._terms(X)
        for name, (values, penalty) in terms.items():
            known = values[np.isfinite(values)]
            if len(known) and known.min() < known.max():
                low, high = float(known.min()), float(known.max())
                self.kept[name] = {"penalty": penalty, "mean": float(known.mean()), "low": low, "high": high}
        return self._matrix(terms, len(X))

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        """Return the terms of rows; an unknown one is its training mean."""
        return self._matrix(self._terms(X), len(X))

    def _matrix(self, terms: Terms, rows: int) -> np.ndarray:
        matrix = np.empty((rows, len(self.kept)))
        for position, (name, state) in enumerate(self.kept.items()):
            values = terms[name][0] if name in terms else np.full(rows, np.nan)
            margin = MARGIN * (state["high"] - state["low"])
            held = np.clip(values, state["low"] - margin, state["high"] + margin)
            matrix[:, position] = np.where(np.isfinite(held), held, state["mean"])
        return matrix

    def announced(self, X: pd.DataFrame, per_clock_share: float = 1.0) -> np.ndarray:
        """Return what was announced of every row's core in logarithms, 0 where unknown, (n,).

        A share of the performance per clock, and half of what its process gives at the same power where all cores work
        and power limits their clock: in every score but those of SPECspeed.
        """
        positions, own = pd.factorize(cores_of_rows(X))
        per_clock = np.array([self.index.get(core, 0.0) for core in own], dtype=float)[positions]
        power = np.array([self.power_index.get(core, 0.0) for core in own], dtype=float)[positions]
        limited = np.ones(len(X)) if "metric" not in X else X["metric"].astype(object).to_numpy() != "speed"
        return per_clock_share * per_clock + _POWER_SHARE * power * limited

    def to_state(self) -> dict[str, Any]:
        """Return what was learned as values that JSON can hold."""
        return {
            "min_rows": self.min_rows,
            "quantities": self.quantities.to_state(),
            "index": self.index,
            "power_index": self.power_index,
            "noticed": self.noticed,
            "levels": self.levels,
            "steps": self.steps,
            "cores": self.cores,
            "kept": self.kept,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], columns: Iterable[Column]) -> Self:
        """Rebuild the terms from `to_state()`."""
        terms = cls(min_rows=state["min_rows"])
        terms.columns = tuple(column for column in columns if column.role is Role.FEATURE)
        terms.quantities = Quantities.from_state(state["quantities"])
        terms.index, terms.power_index, terms.noticed = state["index"], state["power_index"], state["noticed"]
        terms.levels, terms.steps = state["levels"], state["steps"]
        terms.cores, terms.kept = state["cores"], state["kept"]
        return terms

    def _terms(self, X: pd.DataFrame) -> Terms:
        return {**_physical(self.quantities.of(X), X), **self._scaling(X), **self._generations(X), **self._names(X)}

    def _scaling(self, X: pd.DataFrame) -> Terms:
        """Return the logarithms of SCALING columns that no quantity reads: what other kinds of machine scale with."""
        tagged = [c for c in self.columns if Tag.SCALING in c.tags and c.kind is Kind.NUMERICAL]
        return {f"log {c.name}": (_log(X, c.name), 0.1) for c in tagged if c.name not in COLUMNS_READ}

    def _generations(self, X: pd.DataFrame) -> Terms:
        """Return one cumulative step per core that a row's core descends from, and per compiler version it has."""
        positions, own = pd.factorize(cores_of_rows(X))
        lines = [set(ancestry(core)) if core in core_table() else set() for core in own]
        terms: Terms = {
            f"core {core}": (np.array([core in line for line in lines], dtype=float)[positions], _WALK)
            for core in self.cores
        }
        vendor, version = _compiler(X)
        for name, versions in self.steps.items():
            is_vendor = vendor == name
            terms[f"compiler {name}"] = (is_vendor.astype(float), 0.3)
            for step in versions[1:]:
                terms[f"compiler {name} >= {step:g}"] = ((is_vendor & (version >= step)).astype(float), _STEP)
        if self.noticed:
            # these releases optimized one integer benchmark specially
            noticed = (vendor == "Intel") & (version >= 22) & (version <= 23)
            terms["compiler with notice"] = (noticed.astype(float), 0.3)
        return terms

    def _named(self) -> list[Column]:
        named = [c for c in self.columns if c.kind is Kind.CATEGORICAL and Tag.TASK not in c.tags]
        return [column for column in named if column.name not in _COMPILER]

    def _levels(self, X: pd.DataFrame, column: Column) -> list[str]:
        counts = pd.Series(labels(X, column)).value_counts()
        return sorted(str(level) for level in counts.index[counts >= min(self.min_rows, max(1, len(X) // 10))])

    def _names(self, X: pd.DataFrame) -> Terms:
        terms: Terms = {}
        for column in self._named():
            levels = self.levels.get(column.name, [])
            found = codes(X, column, levels)
            penalty = _NAME_PENALTIES.get(column.name, _OTHER_NAMES)
            for position, level in enumerate(levels):
                terms[f"{column.name} {level}"] = ((found == position).astype(float), penalty)
        return terms


def _physical(q: dict[str, np.ndarray], X: pd.DataFrame) -> Terms:
    """Return the terms in physical quantities; logarithms unless a word says otherwise."""
    cores, bytes_per_core = q["cores"], q["bandwidth"] - q["cores"]
    threads = column_values(X, "threads_per_core")
    terms: Terms = {
        "cores": (cores, 0.01),
        "cores squared": ((cores - 4) ** 2, 0.3),
        "sockets": (q["chips"], 0.1),
        "power clock": (q["power_clock"], 0.1),
        "power clock squared": ((q["power_clock"] - 8) ** 2, 1.0),
        "turbo clock": (q["turbo"], 0.1),
        "base clock": (_log(X, "base_mhz"), 0.3),
        "watts per core": (q["watts_per_core"], 0.5),
        "bandwidth": (q["bandwidth"], 0.05),
        "bandwidth unknown": (np.isnan(q["bandwidth"]).astype(float), 1.0),
        "bandwidth per core squared": ((bytes_per_core - 1) ** 2, 0.3),
        "last-level cache per core": (q["l3"] - cores, 0.1),
        "last-level cache per core squared": ((q["l3"] - cores - 1) ** 2, 0.5),
        "last-level slice": (_log(X, "l3_slice_mb"), 0.3),
        "second-level cache": (_log(X, "l2_kb_per_core"), 1.0),
        "threads": (np.log(np.where(threads > 0, threads, np.nan)), 0.3),
        "several threads": (np.where(np.isnan(threads), np.nan, threads > 1), 0.3),
        "vector bits": (_log(X, "simd_bits"), 1.0),
        "vector units": (column_values(X, "fma_units"), 1.0),
        "matrix unit": (column_values(X, "has_amx"), 3.0),
        "channels filled": (column_values(X, "mem_channels_filled"), 0.3),
        "DIMMs per channel": (column_values(X, "dimms_per_channel"), 0.5),
        "ranks per channel": (_log(X, "ranks_per_channel"), 0.5),
        "memory per core": (_log(X, "mem_gb_per_core"), 1.0),
        "classic compiler": (column_values(X, "compiler_classic"), 1.0),
        "mixed Fortran": (column_values(X, "mixed_fortran"), 1.0),
    }
    for step in _CORE_STEPS:
        terms[f"cores saturating at {step}"] = (-np.log1p(np.exp(cores) / step), 0.1)
    for step in _BYTES_STEPS:
        terms[f"bandwidth per core saturating at {step}"] = (np.log1p(np.exp(bytes_per_core) / step), 0.1)
    return terms


def _log(X: pd.DataFrame, name: str) -> np.ndarray:
    values = column_values(X, name)
    logs: np.ndarray = np.log(np.where(values > 0, values, np.nan))
    return logs


def _mapped(X: pd.DataFrame, name: str, function: Callable[[str], str]) -> np.ndarray:
    """Return a function of every row's text, "" where it is missing, (n,) object; each distinct text is asked once."""
    if name not in X:
        return np.full(len(X), function(""), dtype=object)
    positions, distinct = distinct_labels(X, Column(name, Kind.CATEGORICAL, Role.FEATURE, ""))
    found: np.ndarray = np.array([*map(function, distinct), function("")], dtype=object)[positions]
    return found


def cores_of_rows(X: pd.DataFrame) -> np.ndarray:
    """Return the core design of every row's processor family, "" where it is unknown, (n,) object."""
    return _mapped(X, "family", lambda family: find_core(family) or "")


def _compiler(X: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the compiler's brand, the first word of its vendor, and its version, (n,) each."""
    return _mapped(X, "compiler_vendor", lambda vendor: (vendor.split() or [""])[0]), column_values(
        X, "compiler_version"
    )


def _versions(X: pd.DataFrame) -> dict[str, list[float]]:
    brands, versions = _compiler(X)
    found = {}
    for brand in sorted(set(brands) - {""}):
        seen = versions[(brands == brand) & np.isfinite(versions)]
        found[str(brand)] = [float(version) for version in np.unique(seen)]
    return found

"""Errors of degradations in percentage points, from results/leaderboard/kinds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from markdown_text import table, whole_kinds

from perfcast.splits import split_label

DATASET, KNOWN = "host_interference", "host_interference_known"
SHOWN = {
    "resource_shares_trees": "trees on shares",
    "cloudformer": "CloudFormer",
    "lightgbm": "LightGBM",
    "random_forest": "forest",
    "ridge": "ridge",
    "sequence_lstm": "LSTM",
    "schedstat": "schedstat",
    "idle_time": "idle time",
    "entity_median": "median of the victim",
}
"""Predictors of the tables: those that the goals name, and lookups."""
SHOWN_KNOWN = {
    "work_of_alone_trees": "trees on work / work alone",
    "work_of_alone": "work / work alone",
    "use_of_alone": "use / use alone",
    "resource_shares_trees": "trees on shares",
    "lightgbm": "LightGBM",
    "ridge": "ridge",
    "entity_median": "median of the victim",
}
DETAILED = ("unseen_victim", "work_of_alone_trees")
"""Split and predictor of the errors by scenario and placement, for tenants seen alone."""
_NO_RESULTS = "No results yet: `make experiment NAME=interference` makes them."


def interference_table(conf: Path) -> str:
    """Return the mean error of every predictor by split and quantity, with interval and R2 of the first one."""
    return _errors(_read(conf, DATASET), SHOWN)


def known_table(conf: Path) -> str:
    """Return the same errors for tenants that the host has seen alone."""
    return _errors(_read(conf, KNOWN), SHOWN_KNOWN)


def _errors(kinds: pd.DataFrame | None, shown: Mapping[str, str]) -> str:
    if kinds is None:
        return _NO_RESULTS
    first = next(iter(shown))
    lines = []
    for (split, kind), part in whole_kinds(kinds).groupby(["split", "kind"], sort=False):
        by_name = part.set_index("predictor")
        known = [name for name in shown if name in by_name.index]
        cells = {name: f"{by_name.at[name, 'mean']:.1f}" for name in known}
        least = min(known, key=lambda name: by_name.at[name, "mean"])
        cells[least] = f"**{cells[least]}**"
        ours = by_name.loc[first] if first in by_name.index else None
        more = ["-", "-", "-"]
        if ours is not None:
            more = [f"{ours['low']:.1f} to {ours['high']:.1f}", f"{ours['r2']:.2f}", f"{ours['coverage']:.0f}"]
        lines.append([split_label(str(split)), str(kind), *(cells.get(name, "-") for name in shown), *more])
    ends = [f"{shown[first]}: interval", "R2", "coverage in %"]
    return table(["split", "quantity", *shown.values(), *ends], lines)


def scenario_table(conf: Path) -> str:
    """Return the errors of one predictor on unseen victims by scenario and by what tenants share."""
    kinds = _read(conf, KNOWN)
    if kinds is None:
        return _NO_RESULTS
    split, predictor = DETAILED
    rows = kinds[(kinds["split"] == split) & (kinds["predictor"] == predictor) & kinds["slice"].notna()]
    lines = [
        [
            f"{row.slice}: {row.value}".replace("_", " "),
            str(row.kind),
            f"{row.mean_:.1f}" + (f" ({row.low:.1f} to {row.high:.1f})" if pd.notna(row.low) else ""),
            *(f"{value:.1f}" for value in (row.median_, row.signed)),
            f"{row.rows:,}",
            row.runs,
        ]
        for row in rows.rename(columns={"mean": "mean_", "median": "median_"}).itertuples()
    ]
    return table(["rows of", "quantity", "mean error in points", "median", "signed", "rows", "runs"], lines)


def _read(conf: Path, dataset: str) -> pd.DataFrame | None:
    path = conf.parent / "results" / "leaderboard" / "kinds" / f"{dataset}.csv"
    return pd.read_csv(path) if path.is_file() else None

"""Errors of the watts that `perfcast size` estimates, against published results of SPECpower.

    python benchmarks/power_errors.py results/power --out results/leaderboard/studies/power_errors.csv

For every split, on the same test rows, those since 2012 whose TDP is known: watts at full load, and at half load, which
the dump has and no predictor sees; they are interpolated between idle and full load. `power_trees` is the predictor of
the experiment power; `TDP x ratio` learns mean and standard deviation of the logarithms of watts over TDP x processors,
and of idle over full load, from the training rows of the fold since 2012, with equal weights of CPU models x number of
processors. The errors are mean absolute relative ones with a 95 % interval of a bootstrap over CPU models; the coverage
is that of 90 % intervals.

The last lines printed are the ratios of all results, which `ServerRules.power_ratios` has.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

SPLITS = ("unseen_cpu", "unseen_family", "forward_2021")
PREDICTOR, SEED, SINCE, Z = "power_trees", 0, "2012-01", 1.645
NAMED = 2
"""Level of description: name and number of processors."""
FULL, IDLE, HALF = "watts_100", "watts_idle", "watts_50"


def read_rows(results: Path) -> pd.DataFrame:
    """Return the standard rows with a TDP by result, with the watts of a node at half load."""
    frame = pd.read_parquet(results / "standard" / "spec_power.parquet").set_index("result_id")
    dump = results / "raw" / "spec_power" / "power_ssj2008-results.csv"
    raw = pd.read_csv(dump, encoding="latin-1", low_memory=False)
    raw = raw[[name for name in raw if name.startswith("Average") and "50%" in name]].squeeze()
    frame[HALF] = raw.iloc[frame["line"].astype(int) - 2].astype(float).to_numpy() / frame["nodes"]
    frame["design"] = frame["tdp_w"] * frame["chips"]
    return frame[frame["design"].notna()]


def fit_ratios(frame: pd.DataFrame) -> np.ndarray:
    """Return mean and standard deviation of both logarithms, (2, 2), see `DescriptionRules.power_ratios`."""
    recent = frame[frame["published_month"] >= SINCE]
    logs = np.log(pd.DataFrame({"full": recent[FULL] / recent["design"], "idle": recent[IDLE] / recent[FULL]}))
    weights = 1 / logs.groupby([recent["cpu_model"].astype(str), recent["chips"]])["full"].transform("size")
    means = logs.mul(weights, axis=0).sum() / weights.sum()
    spreads = np.sqrt(((logs - means) ** 2).mul(weights, axis=0).sum() / weights.sum())
    return np.array([means, spreads]).T


def compare(results: Path, split: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row per test row and method with the errors in logarithms and whether intervals hold the truth."""
    points = pd.read_parquet(results / "evaluation" / "spec_power" / "points.parquet")
    points = points[(points["split"] == split) & (points["predictor"] == PREDICTOR)]
    folds = pd.read_parquet(results / "splits" / "spec_power" / f"{split}.parquet")
    parts = [*_measure_design(frame, folds), _measure_predictor(PREDICTOR, frame, points)]
    described = pd.read_parquet(results / "described" / "spec_power.parquet")
    described = described[(described["split"] == split) & (described["level"] == NAMED)]
    if len(described):
        parts.append(_measure_predictor(f"{PREDICTOR}, from name and number of processors", frame, described))
    lines = pd.concat(parts).assign(split=split)
    return lines[frame.loc[lines.index, "published_month"] >= SINCE]


def _measure_design(frame: pd.DataFrame, folds: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the rows of TDP alone, and those of TDP x ratio."""
    folds = folds.set_index("result_id").loc[frame.index]
    for fold in folds:
        test, train = frame[folds[fold] == "test"], frame[folds[fold].isin(["train", "validation"])]
        (middle, spread), (share, of_share) = fit_ratios(train)
        full, half = test["design"] * np.exp(middle), (1 + np.exp(share)) / 2
        widths = np.random.default_rng(SEED).standard_normal((2, 4096))
        halves = spread * widths[0] + np.log((1 + np.exp(share + of_share * widths[1])) / 2) - np.log(half)
        yield _measure("TDP alone", test, (test["design"], test["design"]), (np.nan, np.nan))
        yield _measure("TDP x ratio", test, (full, full * half), (Z * spread, np.quantile(np.abs(halves), 0.9)))


def _measure_predictor(method: str, frame: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    wide = points[points["row"].isin(frame.index)].pivot(
        index="row", columns="target", values=["predicted", "half_width"]
    )
    predicted, width = wide["predicted"], wide["half_width"]
    half = (predicted[IDLE] + predicted[FULL]) / 2
    upper = (predicted[IDLE] * np.exp(width[IDLE]) + predicted[FULL] * np.exp(width[FULL])) / 2
    return _measure(method, frame.loc[wide.index], (predicted[FULL], half), (width[FULL], np.log(upper / half)))


def _measure(method: str, test: pd.DataFrame, watts: Sequence[Any], widths: Sequence[Any]) -> pd.DataFrame:
    """Return the errors at full and at half load, and whether half the width of the interval is larger."""
    columns: dict[str, Any] = {"cpu_model": test["cpu_model"].astype(str), "method": method}
    for name, column, estimate, width in zip(("full", "half"), (FULL, HALF), watts, widths, strict=True):
        error = np.log(estimate / test[column])
        columns[name] = np.abs(np.expm1(error))
        columns[f"{name} inside"] = (error.abs() <= width).astype(float).where(np.isfinite(width + 0 * error))
    return pd.DataFrame(columns)


def tabulate(lines: pd.DataFrame) -> pd.DataFrame:
    """Return a row per split and method."""
    rows = []
    for (split, method), part in lines.groupby(["split", "method"], sort=False):
        groups = dict(iter(part.groupby("cpu_model")))
        names, generator = [*groups], np.random.default_rng(SEED)
        drawn = [
            pd.concat([groups[name] for name in generator.choice(names, len(names))])[["full", "half"]].mean()
            for _ in range(300)
        ]
        ends = pd.DataFrame(drawn).quantile([0.025, 0.975])
        row = {"split": split, "watts from": method, "results": len(part), "CPU models": len(names)}
        for name, load in (("full", "full"), ("half", "half")):
            low, high = 100 * ends[name]
            row[f"error at {load} load (%)"] = f"{100 * part[name].mean():.1f} ({low:.1f} to {high:.1f})"
            inside = part[f"{name} inside"].astype(float).mean()
            row[f"in the 90 % interval, {load} load (%)"] = "" if np.isnan(inside) else f"{100 * inside:.0f}"
        rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Write the table, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="those of the experiment power")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    frame = read_rows(options.results)
    table = tabulate(pd.concat([compare(options.results, split, frame) for split in SPLITS]))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.out, index=False, lineterminator="\n")
    print(table.to_string(index=False))
    for name, (middle, spread) in zip(("full load / TDP", "idle / full load"), fit_ratios(frame), strict=True):
        print(f"{name}: exp({middle:.3f} +- {spread:.3f})")


if __name__ == "__main__":
    main()

"""Errors and intervals of accelerators, in results/leaderboard/studies, and their picture, in docs/images.

    python benchmarks/accelerator_tables.py results/systems/accelerators results/systems/accelerators_headline

Reads the predictions of finished experiments; a later folder replaces the runs of an earlier one. MAPE / MedAPE in %
over all rows, by what training knows: the pair of task and accelerator, or not. `less the best baseline` is the
difference of the mean errors to the baseline with the smallest one on these very rows, with its 95 % interval from
1,000 draws of (accelerator, round), or of the served model. Energy per token is the product of two predictions. The
picture has the accelerators that were new in each round.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd

from perfcast.domains.accelerators.catalog import read_accelerators
from perfcast.domains.accelerators.predictors.distance import PAIR
from perfcast.evaluation.error_metrics import draw_weights, percentile_interval
from perfcast.evaluation.run_predictions import (
    HALF_WIDTH,
    SHIFT,
    interval_widths,
    is_covered,
    read_backtests,
    read_predictions,
    with_intervals,
)
from perfcast.report.plots.drawing import MUTED, PALETTE, STYLE, panels

BASELINES = ("nearest", "ridge", "random_forest", "roofline", "last_round")
OURS = {"mlperf_inference": "accelerators_mean", "ml_energy": "energy_mean"}
QUANTITIES = {"energy": "energy per token", "watts": "watts", "median_itl": "median time between tokens"}
QUANTITIES |= {"p99_itl": "99 % quantile of it"}
FOLDER, IMAGE = Path("results/leaderboard/studies"), Path("docs/images/accelerators.png")
Runs = dict[str, pd.DataFrame]


def read(folders: list[Path], dataset: str) -> dict[str, Runs]:
    """Return the predictions with intervals by split and predictor, of the splits that are finished."""
    splits: dict[str, Runs] = {}
    for folder in folders:
        for path in sorted((folder / "in_domain" / dataset).glob("*.parquet")):
            distances = pd.read_parquet(path)
            for run in sorted((folder / "runs" / dataset / path.stem).glob("*/record.json")):
                frame = read_predictions(path.stem, run.parent.name, run.parent).frame
                frame = with_intervals(frame, read_backtests(run.parent), distances, 0.9)
                named = splits.setdefault(path.stem, {})
                named[run.parent.name] = frame.astype({"row": str, "task": str, "entity": str})
    return splits


def energy(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the predictions of a run with those of energy per token: watts x time per token."""
    load = frame.assign(row=frame["row"].str.rpartition("/")[0])
    keys, values = ["row", "seed", "entity"], ["measured", "predicted"]
    watts, times = (load[load["task"] == name].set_index(keys)[values] for name in ("watts", "token_ms"))
    return pd.concat([frame, (watts * times).dropna().reset_index().assign(task="energy")])


def error(frame: pd.DataFrame) -> np.ndarray:
    """Return the absolute errors in %."""
    return np.asarray(100 * (frame["predicted"] / frame["measured"] - 1).abs())


def difference(ours: pd.DataFrame, other: pd.DataFrame, clusters: pd.Series) -> str:
    """Return the difference of two mean errors, averaged over seeds, and its interval."""
    rows = [pd.Series(error(each)).groupby(each["row"].to_numpy()).mean() for each in (ours, other)]
    codes, names = pd.factorize(clusters.reindex(rows[0].index))
    weights = draw_weights(len(names), 1000, 0)
    total = weights @ np.bincount(codes, rows[0] - rows[1], len(names))
    low, high = percentile_interval(total / (weights @ np.bincount(codes, minlength=len(names))), len(names))
    return f"{(rows[0] - rows[1]).mean():.1f} ({low:.1f} to {high:.1f})"


def tabulate(key: dict[str, object], runs: Runs, ours: str) -> tuple[dict[str, object], dict[str, object]]:
    """Return a line of errors of every predictor and one of the intervals of ours, of the same rows."""
    first = runs[ours]
    key = {**key, "rows": first["row"].nunique()}
    cells = {name: f"{error(part).mean():.1f} / {np.median(error(part)):.1f}" for name, part in runs.items()}
    best = min((name for name in BASELINES if name in runs), key=lambda name: error(runs[name]).mean())
    clusters = (first["entity"] + "\x1f" + first["row"].str.partition("/")[0]).set_axis(first["row"])
    if ours == OURS["ml_energy"]:
        clusters = first["entity"].set_axis(first["row"])
    sure = {"coverage": "-", "width": "-"}
    if first[HALF_WIDTH].notna().all():
        sure = {
            "coverage": f"{100 * is_covered(first).mean():.0f}",
            "width": f"{np.median(interval_widths(first)):.0f}",
        }
    paired = difference(first, runs[best], clusters[~clusters.index.duplicated()])
    return {**key, **cells}, {**key, **sure, "best baseline": best, "less the best baseline": paired}


def parts(split: str, runs: Runs) -> list[tuple[dict[str, object], Runs]]:
    """Return the rows of MLPerf inference that a split tests: all, and known and other pairs where both are there."""
    known = {name: (part[SHIFT] == PAIR).to_numpy() for name, part in runs.items()}
    of = {"all": runs, "known": {name: part[known[name]] for name, part in runs.items()}}
    of["others"] = {name: part[~known[name]] for name, part in runs.items()}
    mixed = 0 < known[OURS["mlperf_inference"]].mean() < 1
    return [({"split": split, "pairs": pairs}, each) for pairs, each in of.items() if mixed or pairs == "all"]


def served(split: str, runs: Runs) -> list[tuple[dict[str, object], Runs]]:
    """Return the rows of ML.ENERGY that a split tests, by quantity."""
    joined = {name: energy(part) for name, part in runs.items()}
    of = {task: {name: part[part["task"] == task] for name, part in joined.items()} for task in QUANTITIES}
    return [({"split": split, "quantity": QUANTITIES[task]}, each) for task, each in of.items()]


def draw(frame: pd.DataFrame) -> None:
    """Draw measured and predicted throughput of new accelerators by round: medians of a task and an accelerator."""
    round_of_row = frame["row"].str.partition("/")[0]
    vendor = frame["entity"].map(read_accelerators()["vendor"])
    keys = [round_of_row.rename("round"), vendor.rename("vendor"), frame["entity"], frame["task"]]
    points = frame.groupby(keys)[["measured", "predicted"]].median().reset_index()
    names = points["vendor"].value_counts().index
    with matplotlib.rc_context(STYLE):
        figure, axes = panels(points["round"].nunique(), columns=3, height=2.7, sharex=True, sharey=True)
        ends = np.array([points["measured"].min() / 2, points["measured"].max() * 2])
        for panel, (name, of_round) in zip(axes, points.groupby("round"), strict=True):
            panel.fill_between(ends, ends / 1.25, ends * 1.25, color=MUTED, alpha=0.25, linewidth=0)
            for number, vendor_name in enumerate(names):
                part = of_round[of_round["vendor"] == vendor_name]
                look = {"color": PALETTE[number], "marker": "osD^vP"[number], "label": vendor_name}
                panel.scatter(part["measured"], part["predicted"], s=12, alpha=0.8, linewidths=0, **look)
            new = sorted(set(of_round["entity"]))
            more = f" and {len(new) - 2} more" if len(new) > 2 else ""
            panel.set_title(f"{name}: {', '.join(new[:2])}{more}", fontsize=5.5)
            panel.set(xscale="log", yscale="log", xlim=ends, ylim=ends, box_aspect=1)
        axes[0].legend(fontsize=6.5, loc="upper left")
        figure.supxlabel("measured throughput per accelerator, per s (derived from MLPerf results)", fontsize=7.5)
        figure.supylabel("estimate by perfcast, not verified by MLCommons", fontsize=7.5)
        figure.savefig(IMAGE, dpi=110)


def main() -> None:
    folders = [Path(name) for name in sys.argv[1:]]
    for dataset, ours in OURS.items():
        lines = []
        for split, runs in sorted(read(folders, dataset).items()):
            if ours not in runs:
                continue
            if split == "new_accelerator":
                draw(runs[ours][runs[ours]["seed"] == 0])
            of = served(split, runs) if dataset == "ml_energy" else parts(split, runs)
            lines += [tabulate(key, each, ours) for key, each in of]
        stem = "accelerators" if dataset == "mlperf_inference" else "accelerators_energy"
        for name, part in zip((stem, f"{stem}_intervals"), zip(*lines, strict=True), strict=True):
            frame = pd.DataFrame(part).fillna("-")
            frame.to_csv(FOLDER / f"{name}.csv", index=False, lineterminator="\n")
            print(frame.to_string())


if __name__ == "__main__":
    main()

"""Choose networks within a latency bound on a device with ten known latencies, by the predictions of a model.

HELP's data has no accuracies, so a search for the most accurate network within a bound cannot be evaluated. Two
properties can: the share of predicted networks that keep the bound, and the multiply-adds of the chosen network
relative to the largest network within the bound.

    python benchmarks/latency_constrained.py results/systems help_nasbench201 device_attention help_maml ridge_transfer
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.predictors.predictor import Predictor, load_predictor
from perfcast.schema.table import Role, Table, Tag
from perfcast.schema.table_files import read_table

SHARES = (0.25, 0.5, 0.75)
"""Bounds: the latencies that these shares of a device's networks keep."""


def evaluate(predictor: Predictor, table: Table, rows: pd.DataFrame, work: str) -> list[dict[str, object]]:
    """Return the result of selection by predictions for one device, one row per bound."""
    measured = rows[table.select(role=Role.TARGET)[0]].to_numpy()
    predicted = predictor.predict(rows).iloc[:, 0].to_numpy()
    size, results = rows[work].to_numpy(), []
    for share in SHARES:
        bound = np.quantile(measured, share)
        chosen, feasible = predicted <= bound, measured <= bound
        pick = np.flatnonzero(chosen)[np.argmax(size[chosen])] if chosen.any() else -1
        results.append(
            {
                "device": rows[table.column_of(Tag.TASK)].iloc[0],
                "bound_ms": bound,
                "predicted within": 100 * chosen.mean(),
                "truly within, of these": 100 * feasible[chosen].mean() if chosen.any() else np.nan,
                "found, of those within": 100 * chosen[feasible].mean(),
                "largest found: its latency / bound": measured[pick] / bound if pick >= 0 else np.nan,
                "its work / the largest's within": size[pick] / size[feasible].max() if pick >= 0 else np.nan,
            }
        )
    return results


def main() -> None:
    """Judge the predictors of a results folder on all networks that no fold of `published` showed of a device."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("dataset")
    parser.add_argument("predictors", nargs="+")
    parser.add_argument("--work", default="mflop", help="column with the size of a network")
    options = parser.parse_args()
    table = read_table(options.results / "features" / f"{options.dataset}.parquet")
    folds = pd.read_parquet(options.results / "splits" / options.dataset / "published.parquet")
    row, task = table.column_of(Tag.ROW), table.column_of(Tag.TASK)
    part = folds.set_index(row)["fold_0"].loc[table.frame[row]].to_numpy()
    devices = sorted(set(table.frame[task][part == "test"]))
    unknown = table.frame[~np.isin(part, ["train", "validation"])]
    for name in options.predictors:
        predictor = load_predictor(options.results / "runs" / options.dataset / "published" / name / "model")
        evaluated = [
            result
            for device in devices
            for result in evaluate(predictor, table, unknown[unknown[task] == device], options.work)
        ]
        frame = pd.DataFrame(evaluated)
        print(f"\n{name}: {len(unknown[unknown[task] == devices[0]])} networks of each device, bounds at {SHARES}")
        print(frame.round(3).to_string(index=False))
        print(frame.drop(columns=["device", "bound_ms"]).mean().round(3).to_string())


if __name__ == "__main__":
    main()

"""Published metrics of GPPerf by its protocol, and the same forest on unseen shapes.

The paper (arXiv 2411.16954) reports a forest of 100 trees of depth 6 on m, n, k, a requested tile, intensity, bytes and
operations; it learns and evaluates scores as they are, cut off at their 1st and 99th percentile, on the records with a
power reading alone. perfcast's forests learn logarithms of all rows, so this script repeats the protocol with
scikit-learn itself. Also printed: the same metrics by whether others used the device, and the spread of repeated
measurements.

    python benchmarks/gpperf_published.py results/systems/gemm/features/gpperf.parquet results/systems/gemm/runs/gpperf
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold, cross_val_predict, train_test_split

from perfcast.schema.table_files import read_table

INPUTS = [
    "m",
    "n",
    "k",
    "requested_tile_m",
    "requested_tile_n",
    "requested_tile_k",
    "flop_per_byte",
    "mb_paper",
    "mflop",
]
CASE = ["shape", "transpose_a", "transpose_b", "alpha", "beta"]
KEPT = (0.01, 0.99)


def wide(features: Path) -> pd.DataFrame:
    """Return one row per record: its inputs, and its quantities as columns."""
    frame = read_table(features).frame
    frame["record"] = frame["result_id"].str.rpartition("|")[0]
    values = frame.pivot(index="record", columns="quantity", values="value")
    records = frame.drop_duplicates("record").set_index("record").join(values)
    sides = records["m"], records["n"], records["k"]
    records["mb_paper"] = 4e-6 * (sides[0] * sides[2] + sides[2] * sides[1] + sides[0] * sides[1])
    return records


def print_errors(name: str, measured: np.ndarray, predicted: np.ndarray) -> None:
    """Print the paper's metrics, and R2 of the log score."""
    error = 100 * np.abs(predicted / measured - 1)
    logs = r2_score(np.log(measured), np.log(predicted))
    print(
        f"{name:64s} R2 {r2_score(measured, predicted):6.3f}  R2 of the log {logs:6.3f}  mean {error.mean():6.2f} %  "
        f"median {np.median(error):6.2f} %  ({len(measured)} rows)"
    )


def protocol(records: pd.DataFrame, case: str, *, cut: bool) -> None:
    """Fit and evaluate the published forest on some records, with shuffled rows and with shapes apart."""
    for quantity in ("runtime", "power", "energy"):
        known = records[records[quantity].notna()]
        y = known[quantity].clip(*known[quantity].quantile(list(KEPT))) if cut else known[quantity]
        forest = RandomForestRegressor(n_estimators=100, max_depth=6, random_state=0)
        X_train, X_test, y_train, y_test = train_test_split(known[INPUTS], y, test_size=0.2, random_state=42)
        print_errors(
            f"{case}: {quantity}, shuffled rows", y_test.to_numpy(), forest.fit(X_train, y_train).predict(X_test)
        )
        folds = GroupKFold(5, shuffle=True, random_state=0)
        apart = cross_val_predict(forest, known[INPUTS], y, groups=known["shape"], cv=folds)
        print_errors(f"{case}: {quantity}, unseen shapes", y.to_numpy(), apart)


def runs(folder: Path, records: pd.DataFrame) -> None:
    """Print the metrics of every run of perfcast, on all rows and by whether others used the device."""
    state = records["device_state"]
    for path in sorted(folder.glob("*/*/predictions.parquet")):
        frame = pd.read_parquet(path)
        states = frame["row"].str.rpartition("|")[0].map(state)
        name = f"{path.parts[-3]} {path.parts[-2]}"
        for quantity, part in frame.groupby("task"):
            print_errors(f"{name}: {quantity}", part["measured"].to_numpy(), part["predicted"].to_numpy())
            for use in ("alone", "shared"):
                rows = part[states[part.index] == use]
                print_errors(
                    f"{name}: {quantity}, device {use}", rows["measured"].to_numpy(), rows["predicted"].to_numpy()
                )


def floor(records: pd.DataFrame) -> None:
    """Print how far repeated measurements of one case are from their own median: what no predictor can know."""
    for state in ("all", "alone"):
        rows = records if state == "all" else records[records["device_state"] == state]
        for quantity in ("runtime", "power", "energy"):
            known = rows[rows[quantity].notna()]
            median = known.groupby(CASE)[quantity].transform("median")
            print_errors(f"median of the same case, itself included: {quantity}, {state}", known[quantity], median)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path)
    parser.add_argument("runs", type=Path, nargs="?")
    options = parser.parse_args()
    records = wide(options.features)
    protocol(records[records["power"].notna()], "as published", cut=True)
    protocol(records, "every record, nothing cut off", cut=False)
    floor(records)
    if options.runs:
        runs(options.runs, records)


if __name__ == "__main__":
    main()

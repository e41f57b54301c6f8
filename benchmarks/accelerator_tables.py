"""Errors of predictors of accelerators: results/leaderboard/studies/accelerators.csv, or accelerators_energy.csv.

    python benchmarks/accelerator_tables.py results/systems/accelerators/features/mlperf_inference.parquet forward_v3_1
    python benchmarks/accelerator_tables.py results/systems/accelerators/features/ml_energy.parquet unseen_entity

Fits predictors with seed 0 and their full parameters, outside the experiment. MAPE / MedAPE in %; energy per token is
the product of two predictions. Lines of splits that are not named stay as they are.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from perfcast import splits
from perfcast.config.predictor_conf import read_predictor
from perfcast.domains.accelerators.predictors.distance import PAIR, PairShift
from perfcast.experiment.fitting import fit_rows, predict_rows, tested_rows, training_rows
from perfcast.predictors.factory import predictor_class
from perfcast.schema.table import Table
from perfcast.schema.table_files import read_table

PREDICTORS = ("pooled_trees", "last_round_gate", "accelerators_mean")
QUANTITIES = {"watts": "watts", "median_itl": "median time between tokens", "p99_itl": "99 % quantile"}
FOLDER = Path("results/leaderboard/studies")


def predict(table: Table, split: str, name: str) -> pd.DataFrame:
    """Return the predictions of all folds, and whether training has the pair of task and entity."""
    conf, folds, parts = read_predictor(Path("conf"), name), splits.make(split, table, 0), []
    params = conf.settings("full")["params"] | ({"random_state": 0} if conf.stochastic else {})
    for number, fold in enumerate(folds):
        subset = folds[fold].to_numpy()
        learned, tested = training_rows(table, subset, None), tested_rows(table, subset)
        model = predictor_class(conf.target)(**params)
        fit_rows(model, table, learned, subset[learned] == "validation")
        distance = PairShift.fit(table.frame[learned], table.columns).of(table.frame[tested])
        known = pd.Series(distance == PAIR, table.frame.loc[tested, "result_id"].astype(str).to_numpy())
        part = predict_rows(model, table, tested, number, 0)
        parts.append(part.assign(known=part["row"].astype(str).map(known)))
    return pd.concat(parts, ignore_index=True)


def errors(measured: pd.Series, predicted: pd.Series) -> str:
    """Return MAPE / MedAPE in %; nothing without rows."""
    error = 100 * (predicted / measured - 1).abs().dropna()
    return f"{error.mean():.1f} / {error.median():.1f}" if len(error) else ""


def throughput_lines(table: Table, split: str) -> list[dict[str, object]]:
    """Return the lines of a split of MLPerf inference: all rows, known pairs, other pairs."""
    of = {name: predict(table, split, name) for name in PREDICTORS}
    known = next(iter(of.values()))["known"].astype(bool)
    lines = []
    for label, rows in (("all", known | True), ("known", known), ("others", ~known)):
        cells = {name: errors(part["measured"][rows], part["predicted"][rows]) for name, part in of.items()}
        lines.append({"split": split, "pairs": label, "rows": int(rows.sum()), **cells})
    return lines if known.any() and not known.all() else lines[:1]


def energy_lines(table: Table, split: str) -> list[dict[str, object]]:
    """Return the line of a split of ML.ENERGY."""
    part = predict(table, split, "energy_mean")
    load = part["row"].astype(str).str.rpartition("/")[0]
    of = part.assign(load=load).pivot(index="load", columns="task", values=["measured", "predicted"]).astype(float)
    energy = of.xs("watts", axis=1, level="task") * of.xs("token_ms", axis=1, level="task")
    cells = {meaning: errors(of["measured"][name], of["predicted"][name]) for name, meaning in QUANTITIES.items()}
    energies = {"energy per token": errors(energy["measured"], energy["predicted"])}
    return [{"split": split, "configurations": len(of), **energies, **cells}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("splits", nargs="+")
    arguments = parser.parse_args()
    table = read_table(arguments.table)
    is_energy = table.dataset == "ml_energy"
    path = FOLDER / ("accelerators_energy.csv" if is_energy else "accelerators.csv")
    for split in arguments.splits:
        lines = pd.DataFrame((energy_lines if is_energy else throughput_lines)(table, split)).astype(str)
        old = pd.read_csv(path, dtype=str, keep_default_na=False) if path.is_file() else lines.iloc[:0]
        pd.concat([old[old["split"] != split], lines]).to_csv(path, index=False, lineterminator="\n")
        print(lines.to_string(), flush=True)


if __name__ == "__main__":
    main()

"""Error added by a short description of a new machine, against a full description.

Run: python benchmarks/short_descriptions.py RUN_FOLDER FOLDS STANDARD RAW [--rows 800] [--seed 0]
RUN_FOLDER is results/runs/<dataset>/<split>/<predictor> (the model of its first fold predicts), FOLDS
results/splits/<dataset>/<split>.parquet, STANDARD results/standard/<dataset>.parquet, RAW results/raw. Some columns
describe the test rows; the others are imputed from the rows that the fold trains on and the processor catalog.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.experiment.fitting import evaluated_rows
from perfcast.inference import Champion, ParsedMachines, PredictOptions, predict_machines
from perfcast.inference.champion import build_features
from perfcast.inference.reference_data import ReferenceData, describing_columns
from perfcast.inference.rules import find_rules
from perfcast.predictors.predictor import load_predictor
from perfcast.schema.table import Table, Tag
from perfcast.schema.table_files import read_table

FEATURES = ("processor", "memory", "system", "workload", "setup_labels")
CPU_MODEL = ["cpu_model", "suite", "chips"]
CHIP = ["cores_enabled_total", "cores_per_chip_of_cpu_model", "base_mhz", "max_turbo_mhz", "l3_mb_per_chip", "tdp_w"]
MEMORY = ["dimm_count", "dimm_gb", "dimm_groups", "ddr_gen", "mem_rated_mts"]
COMPILER = ["compiler_vendor", "compiler_major_minor"]
SYSTEM = ["os_name", "os_version", "kernel_series", "threads_per_core"]
DESCRIPTIONS = {
    "processor, chips": CPU_MODEL,
    "processor with its cores, clocks, cache and power, chips": [*CPU_MODEL, *CHIP],
    "... and memory": [*CPU_MODEL, *CHIP, *MEMORY],
    "... and compiler": [*CPU_MODEL, *CHIP, *MEMORY, *COMPILER],
    "... and operating system, threads per core": [*CPU_MODEL, *CHIP, *MEMORY, *COMPILER, *SYSTEM],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("run", "folds", "standard", "raw"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--rows", type=int, default=800)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    standard = read_table(options.standard)
    subset = pd.read_parquet(options.folds)["fold_0"].to_numpy()
    table = build_features(standard.dataset, standard.frame, standard.columns, FEATURES)
    tested = np.flatnonzero((subset == "test") & evaluated_rows(table))
    drawn = np.sort(np.random.default_rng(options.seed).choice(tested, min(options.rows, len(tested)), replace=False))
    predictor = load_predictor(options.run / "model")
    rows = standard.frame.iloc[drawn]
    target, task = predictor.targets_[0], rows[standard.column_of(Tag.TASK)].to_numpy()
    measured = rows[target].to_numpy()

    past = Table(standard.dataset, standard.frame[np.isin(subset, ["train", "validation"])], standard.columns)
    raw = {path.parent.name: path.parent for path in options.raw.glob("*/manifest.json")}
    reference_data = ReferenceData.gather(past, raw, FEATURES)
    entity_facts = find_rules(standard.dataset).read_entity_facts(raw, standard.frame["cpu_model"])
    reference_data = ReferenceData(reference_data.measured, entity_facts)
    champion = Champion(standard.dataset, "", "", FEATURES, predictor, reference_data)
    names = [column.name for column in describing_columns(standard, FEATURES)]

    print("| described by | assumed | MAPE / MedAPE |\n|---|---|---|")
    everything = predictor.predict(table.frame.iloc[drawn])[target].to_numpy()
    print(f"| everything published | | {_error(everything / measured, task)} |")
    for description, columns in DESCRIPTIONS.items():
        for assume in (False, True):
            described = rows[names].where(pd.Series([name in columns for name in names], names), axis=1)
            machines = described.astype(rows[names].dtypes).set_axis(range(len(described)), axis=0)
            answer = predict_machines(
                ParsedMachines.from_frame(machines), champion, PredictOptions(assume=assume, neighbors=0, explain=False)
            )
            medians = np.array([machine.estimates[0].median for machine in answer])
            print(f"| {description} | {'yes' if assume else 'no'} | {_error(medians / measured, task)} |")


def _error(ratio: np.ndarray, tasks: np.ndarray) -> str:
    """Return MAPE and MedAPE in percent, the mean over tasks."""
    percent = pd.Series(np.abs(ratio - 1) * 100).groupby(tasks)
    return f"{percent.mean().mean():.2f} / {percent.median().mean():.2f}"


if __name__ == "__main__":
    main()

"""Sensitivity of the errors to three choices of the protocol: blank announcements, excluded rows, revealed results.

    python benchmarks/sensitivity.py results spec_cpu2017 --predictors analytical hybrid_trees

Writes results/leaderboard/sensitivity/<dataset>.csv, which the documentation reads: MAPE and MedAPE in %, averaged over
tasks, one seed, preset quick. Rows of the same choice, split and predictor are replaced.

- announcements: a core or process without an announced gain has none from the start ("known"), from its launch on
  ("dated", as the project has it), or never ("unknown": the mean gain of its vendor stands for it).
- excluded rows: without and with the test rows whose score cannot be that of the machine.
- revealed results: results of new CPU models that are known are drawn at random (version 1) or the first ones.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from perfcast.config.compose import run_hydra
from perfcast.config.conf_files import validated
from perfcast.config.predictor_conf import PredictorConf
from perfcast.domains.servers.processors import announcements
from perfcast.evaluation import AVERAGE
from perfcast.evaluation.supplementary_tables import compare_all_rows
from perfcast.experiment.selection import fold_candidates
from perfcast.experiment.training import fit_folds, summarize_errors
from perfcast.schema.table import Table, Tag
from perfcast.schema.table_files import read_table
from perfcast.splits import function
from perfcast.splits.row_groups import by_tag
from perfcast.splits.subsets import as_frame, by_key
from perfcast.utils.io import atomic_path

COLUMNS = ["choice", "variant", "split", "predictor", "mape", "medape", "backtest_mape", "rows"]
BLANK_DAYS = {"known": "1990-01-01", "dated": None, "unknown": "2200-01-01"}
GAIN_SPLITS, SHOTS = ("forward_2023", "forward_2024"), 3
_KEY = ["choice", "variant", "split", "predictor"]


@contextmanager
def blanks_known_from(day: str | None) -> Iterator[None]:
    """Give the designs without an announced gain another day, for the time of the block."""
    cores = _redated(announcements.core_table(), day)
    processes = _redated(announcements.process_table(), day)
    with patch.multiple(announcements, core_table=lambda: cores, process_table=lambda: processes):
        yield


def _redated(table: Mapping[str, announcements.Announcement], day: str | None) -> dict[str, announcements.Announcement]:
    return {
        name: replace(design, announced=pd.Timestamp(day)) if day and design.gain is None else design
        for name, design in table.items()
    }


def few_shot_at_random(table: Table, shots: int) -> pd.DataFrame:
    """Return the folds of version 1 of the few-shot splits: revealed results are drawn at random."""
    folds = function("forward_2023")(table, 0)
    ordered = by_key(table)
    subset = folds["fold_0"].loc[ordered.frame.index].to_numpy(dtype=object)
    entities, blocks = by_tag(ordered, Tag.ENTITY), by_tag(ordered, Tag.BLOCK)
    new = (subset == "test") & ~np.isin(entities, entities[np.isin(subset, ["train", "validation"])])
    drawn = np.random.default_rng(0).permutation(np.flatnonzero(new))
    rank = pd.Series(entities[drawn]).groupby(entities[drawn]).cumcount().to_numpy()
    shown = drawn[rank < shots]
    subset[(subset == "test") & np.isin(blocks, blocks[shown])] = "unused"
    subset[shown] = "train"
    return as_frame(table, ordered, [subset])


class Measurement:
    """Errors of one predictor of a dataset on folds."""

    def __init__(self, table: Table, predictor: str, windows: int) -> None:
        names = {"dataset": table.dataset, "predictor": predictor, "split": "random", "preset": "quick"}
        configs = list[dict[str, Any]]()
        run_hydra(Path(), [*[f"{key}={value}" for key, value in names.items()], "seeds=[0]"], configs.append)
        self.config = configs[0]
        self.conf = validated(PredictorConf, predictor, self.config["predictor"])
        self.table, self.predictor, self.windows = table, predictor, windows

    def measure(self, split: str, folds: pd.DataFrame) -> tuple[dict[str, float], pd.DataFrame, pd.DataFrame]:
        """Return the errors, and the predictions of counted and of excluded test rows."""
        key = (self.table.dataset, split)
        candidates = fold_candidates(self.conf, "quick", self.config["trainer"], key, len(folds.columns))
        outlier = self.config["dataset"]["label_outlier"]
        fits = list(fit_folds(self.table, folds, candidates, [0], outlier, max_backtests=self.windows))
        test, backtest, excluded = (
            pd.concat([getattr(fit, name) for fit in fits], ignore_index=True)
            for name in ("test", "backtest", "excluded")
        )
        summary = summarize_errors(test)
        errors = {"mape": summary["mape"], "medape": summary["medape"], "rows": len(test)}
        if len(backtest):
            windows = [summarize_errors(part)["mape"] for _, part in backtest.groupby("backtest")]
            errors["backtest_mape"] = float(np.mean(windows))
        return errors, test, excluded


def measure_choices(table: Table, predictor: str, choices: list[str], windows: int) -> Iterator[dict[str, object]]:
    """Yield one row of the results file after another."""
    measurement = Measurement(table, predictor, windows)

    def line(choice: str, variant: str, split: str, errors: dict[str, float]) -> dict[str, object]:
        row = {"choice": choice, "variant": variant, "split": split, "predictor": predictor, **errors}
        print(row, file=sys.stderr, flush=True)
        return row

    if "announcements" in choices:
        for split in GAIN_SPLITS:
            folds = function(split)(table, 0)
            for variant, day in BLANK_DAYS.items():
                with blanks_known_from(day):
                    yield line("announcements", variant, split, measurement.measure(split, folds)[0])
    if "excluded rows" in choices:
        for split in ("random", "forward_2023"):
            _, test, excluded = measurement.measure(split, function(split)(table, 0))
            both = compare_all_rows(test, excluded)
            average = both[both["task"] == AVERAGE].iloc[0]
            for variant, name in (("left out", "mape"), ("counted", "mape_all_rows")):
                rows = int(average["rows"]) + (int(average["excluded"]) if variant == "counted" else 0)
                yield line("excluded rows", variant, split, {"mape": float(average[name]), "rows": rows})
    if "revealed results" in choices:
        split, tested = f"few_shot_{SHOTS}", {}
        for variant, folds in {
            "at random": few_shot_at_random(table, SHOTS),
            "the first": function(split)(table, 0),
        }.items():
            errors, tested[variant], _ = measurement.measure(split, folds)
            yield line("revealed results", variant, split, errors)
        shared = set.intersection(*[set(test["row"]) for test in tested.values()])
        for variant, test in tested.items():
            rows = test[test["row"].isin(shared)]
            summary = summarize_errors(rows)
            errors = {"mape": summary["mape"], "medape": summary["medape"], "rows": len(rows)}
            yield line("revealed results", f"{variant}, test rows of both", split, errors)


def update(path: Path, rows: list[dict[str, object]]) -> None:
    """Write rows to the results file, in place of those with the same key."""
    frame = pd.DataFrame(rows).reindex(columns=COLUMNS)
    if path.is_file():
        frame = pd.concat([pd.read_csv(path), frame]).drop_duplicates(_KEY, keep="last")
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as temporary:
        frame.sort_values(_KEY, kind="stable").to_csv(temporary, index=False, float_format="%.4g", lineterminator="\n")


def main() -> None:
    """Measure what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("dataset")
    parser.add_argument("--predictors", nargs="+", default=["analytical", "hybrid_trees"])
    choices = ["announcements", "excluded rows", "revealed results"]
    parser.add_argument("--choices", nargs="+", choices=choices, default=choices)
    parser.add_argument("--backtest-windows", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/leaderboard/sensitivity"))
    options = parser.parse_args()
    table = read_table(options.results / "features" / f"{options.dataset}.parquet")
    for predictor in options.predictors:
        for row in measure_choices(table, predictor, options.choices, options.backtest_windows):
            update(options.out / f"{options.dataset}.csv", [row])


if __name__ == "__main__":
    main()

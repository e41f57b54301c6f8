"""Generated results folder, in its state before the report is made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.evaluation import evaluate, write_evaluation
from perfcast.report.plots.drawing import draw_all
from perfcast.schema.table import Column, Kind, Role, Table, Tag, build_table
from perfcast.schema.table_files import write_table
from perfcast.utils.io import write_json

ERRORS = {"nearest": 0.12, "power_law": 0.08, "ridge": 0.06, "forest": 0.05, "network": 0.02}
"""Standard deviation of the log error of each generated predictor."""
SPLITS = ("random", "unseen_cpu", "forward_2023")
LESS_TRAINING = {
    "random_05_percent": ("random", 2.0),
    "random_20_percent": ("random", 1.4),
    "forward_2023_last_2_years": ("forward_2023", 1.6),
}
"""Learning-curve split -> its split, and the factor of its error."""
_TASKS = ("float", "integer")
_COLUMNS = (
    Column("id", Kind.CATEGORICAL, Role.KEY, "provenance", tags=(Tag.ROW,)),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK, Tag.CONFIG)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY, Tag.CONFIG)),
    Column("chips", Kind.NUMERICAL, Role.FEATURE, "system", tags=(Tag.CONFIG,)),
    Column("machine_vendor", Kind.CATEGORICAL, Role.FEATURE, "system", tags=(Tag.SLICE,)),
    Column("generation", Kind.CATEGORICAL, Role.FEATURE, "processor", tags=(Tag.SLICE,)),
    Column("published", Kind.DATE, Role.PROVENANCE, "provenance", tags=(Tag.TIME,)),
    Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
)


def fake_table(*, rows: int, seed: int, parts: int = 40) -> Table:
    """Build a table of two tasks whose scores depend on part and chips, with 1 % noise."""
    random = np.random.default_rng(seed)
    part = random.integers(0, parts, rows)
    chips = random.choice([1.0, 2.0, 4.0], rows)
    task = random.integers(0, len(_TASKS), rows)
    year = 2018 + part * 7 // parts
    logs = 3 + 0.05 * part + np.log(chips) + 0.3 * task + random.normal(0, 0.01, rows)
    frame = pd.DataFrame(
        {
            "id": [f"r{number:06d}" for number in range(rows)],
            "suite": np.array(_TASKS)[task],
            "part": [f"part {number:03d}" for number in part],
            "chips": chips,
            "machine_vendor": np.array(["Alder", "Birch", "Cedar & Sons"])[random.integers(0, 3, rows)],
            "generation": [f"generation {number % 5}" for number in part],
            "published": pd.to_datetime([f"{value}-06-01" for value in year]),
            "score": np.exp(logs),
        }
    )
    return build_table("fake", frame, _COLUMNS)


def _draw_tested(table: Table, seed: int, split: str) -> np.ndarray:
    number = SPLITS.index(LESS_TRAINING[split][0] if split in LESS_TRAINING else split)
    tested: np.ndarray = np.random.default_rng([seed, number]).random(len(table.frame)) < 0.5
    return tested


def _count_folds(split: str) -> int:
    return 5 if split == "unseen_cpu" else 1


def _draw_backtests(frame: pd.DataFrame, wide: float, split: str) -> pd.DataFrame:
    """Return the backtest of every fold: predictions of the rows that are not tested, with errors of usual size."""
    random = np.random.default_rng(len(frame))
    backtests = [
        _predictions(frame, fold, frame["score"] * np.exp(random.normal(0, 1.1 * wide, len(frame))), backtest=0)
        for fold in range(_count_folds(split))
    ]
    return pd.concat(backtests, ignore_index=True)


def _predictions(frame: pd.DataFrame, fold: Any, predicted: pd.Series, **more: int) -> pd.DataFrame:
    names = {"row": frame["id"], "task": frame["suite"], "entity": frame["part"], "fold": fold, "seed": 0}
    return pd.DataFrame({**names, "target": "score", "measured": frame["score"], "predicted": predicted, **more})


def write_folds(table: Table, folder: Path, *, seed: int) -> None:
    """Write the test rows of each fold of `write_runs`; the other rows are training rows."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in (*SPLITS, *LESS_TRAINING):
        tested = _draw_tested(table, seed, split)
        order = np.cumsum(tested) - 1
        folds = {
            f"fold_{fold}": np.where(
                tested & (order % _count_folds(split) == fold), "test", np.where(tested, "unused", "train")
            )
            for fold in range(_count_folds(split))
        }
        pd.DataFrame({"id": table.frame["id"], **folds}).to_parquet(folder / f"{split}.parquet", index=False)


def write_in_domain(table: Table, folder: Path, *, seed: int) -> dict[str, Path]:
    """Write random distances of the machines of `write_runs`, and return the files by split."""
    paths = {}
    for number, split in enumerate((*SPLITS, *LESS_TRAINING)):
        tested = _draw_tested(table, seed, split)
        distance = np.random.default_rng([seed, number, 7]).random((2, len(table.frame))).round(3)
        column = pd.DataFrame({"row": table.frame["id"], "processor": distance[0], "years ahead": distance[1]})
        parts = [
            column[rows].assign(fold=fold, backtest=backtest)
            for fold in range(_count_folds(split))
            for rows, backtest in ((tested, -1), (~tested, 0))
        ]
        paths[split] = folder / f"{split}.parquet"
        folder.mkdir(parents=True, exist_ok=True)
        pd.concat(parts, ignore_index=True).to_parquet(paths[split], index=False)
    return paths


def write_runs(
    table: Table, folder: Path, *, seed: int, seeds: int = 2, errors: Mapping[str, float] | None = None
) -> dict[tuple[str, str], Path]:
    """Write one run folder per split and predictor, as training does, and return the folders.

    Errors are twice as large on a forward split, and larger on learning-curve splits. The predictor called network has
    several seeds and a history.
    """
    runs = {}
    for number, split in enumerate((*SPLITS, *LESS_TRAINING)):
        tested = _draw_tested(table, seed, split)
        frame = table.frame[tested]
        for index, (predictor, error) in enumerate((errors or ERRORS).items()):
            count = seeds if predictor == "network" else 1
            parts = []
            for column in range(count):
                random = np.random.default_rng([seed, number, index, column])
                wide = error * (2 if split.startswith("forward") else 1) * LESS_TRAINING.get(split, ("", 1.0))[1]
                part_error = dict(zip(sorted(set(frame["part"])), random.normal(0, wide / 2, 10_000), strict=False))
                noise = frame["part"].map(part_error) + random.normal(0, wide, len(frame))
                folds = np.arange(len(frame)) % _count_folds(split)
                parts.append(_predictions(frame, folds, frame["score"] * np.exp(noise), seed=column))
            run = folder / split / predictor
            run.mkdir(parents=True, exist_ok=True)
            pd.concat(parts, ignore_index=True).to_parquet(run / "predictions.parquet", index=False)
            _draw_backtests(table.frame[~tested], wide, split).to_parquet(run / "backtest.parquet", index=False)
            (run / "explanation").mkdir(exist_ok=True)
            _make_importance(error).to_csv(run / "explanation" / "importance.csv", index=False)
            if predictor == "network":
                _make_history(count).to_csv(run / "history.csv", index=False)
            runs[split, predictor] = run
    return runs


def _make_importance(error: float) -> pd.DataFrame:
    increase = np.array([3.0, 40.0, 8.0]) * (1 - error)
    groups = ["memory", "processor", "system"]
    return pd.DataFrame({"group": groups, "mape": 100 * error + increase, "increase": increase})


def _make_history(seeds: int) -> pd.DataFrame:
    epochs = np.arange(12)
    train, validation = (0.5 * np.exp(-rate * epochs) + end for rate, end in ((0.4, 0.01), (0.3, 0.03)))
    losses = {"epoch": epochs, "train_loss": train}
    parts = [
        pd.DataFrame({"seed": seed, "fold": 0, **losses, "validation_loss": validation + 0.01 * seed})
        for seed in range(seeds)
    ]
    return pd.concat(parts, ignore_index=True)


FAKE_PARAMS: dict[str, Any] = {
    "datasets": ["fake"],
    "plots": ["learning_curves", "headline"],
    "preset": "quick",
    "seeds": [0],
}


def write_results(folder: Path, *, rows: int, seed: int) -> None:
    """Write tables, runs, evaluation, two plots, quality, and the manifests of a present and a missing source."""
    table = fake_table(rows=rows, seed=seed)
    for stage in ("standard", "features"):
        write_table(table, folder / stage / "fake.parquet")
    write_folds(table, folder / "splits" / "fake", seed=seed)
    runs = write_runs(table, folder / "runs" / "fake", seed=seed)
    in_domain = write_in_domain(table, folder / "in_domain" / "fake", seed=seed)
    evaluation = evaluate(runs, table, resamples=200, seed=seed, in_domain=in_domain)
    write_evaluation(evaluation, folder / "evaluation" / "fake")
    draw_all(evaluation, folder / "plots" / "fake", FAKE_PARAMS["plots"])
    write_json(folder / "champion" / "fake" / "about.json", {"predictor": "network"})
    write_json(folder / "standard" / "fake.quality.json", _make_quality(rows))
    write_json(folder / "raw" / "available.json", {"datasets": ["fake"], "left_out": {"other": ["absent"]}})
    for manifest in _make_manifests():
        write_json(folder / "raw" / manifest["source"] / "manifest.json", manifest)


def _make_quality(rows: int) -> dict[str, Any]:
    chips = {"missing": 0.25, "unique": 3, "unit": "", "group": "system", "min": 1.0, "max": 4.0}
    part = {"missing": 0.0, "unique": 40, "unit": "", "group": "processor"}
    coverage = {"share_of_rows": 0.9, "by_table": {"first": {"cpu_models": 3}}}
    return {
        "dataset": "fake",
        "rows_in": rows + 12,
        "rows_kept": rows,
        "merged": {"same_result": 2},
        "rejected": {"not_a_score": 7, "<script>alert(1)</script>": 3},
        "columns": {"chips": chips, "part": part},
        "details": {
            "parse_coverage": {"chips": 0.75, "part": 1.0},
            "join_coverage": coverage,
        },
    }


def _make_manifests() -> list[dict[str, Any]]:
    shared = {"terms": "Cite the source; estimates are no results.", "homepage": "https://www.spec.org/"}
    present: dict[str, Any] = {
        "source": "fake",
        "title": "Generated results",
        "status": "present",
        "files": [{"name": "fake.csv.gz", "sha256": "0" * 64, "bytes": 123456}],
        "license": "SPEC Fair Use",
        "citation": "Generated, not published",
        "reason": "",
        "remedy": "",
    }
    absent: dict[str, Any] = {
        "source": "absent",
        "title": "An absent source",
        "status": "missing",
        "files": [],
        "license": "none stated",
        "citation": "Nobody & Co.",
        "reason": "no mirror has it",
        "remedy": "run make retry with a network",
    }
    return [{**shared, **present}, {**shared, **absent}]

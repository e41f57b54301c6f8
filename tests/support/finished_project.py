"""Project with the results of every stage, made by calling the stages in this process: no Snakemake, some seconds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from small_project import small_project

from perfcast.cli.main import main

NAME = "host_gemm"
RUNS, FOLDS = f"results/runs/{NAME}", f"results/splits/{NAME}"
STANDARD, FEATURES = f"results/standard/{NAME}.parquet", f"results/features/{NAME}.parquet"
DISTANCES, EVALUATION = f"results/in_domain/{NAME}", f"results/evaluation/{NAME}"
CHAMPION = f"results/champion/{NAME}"
_CHOICE = ["--splits", "random", "--predictors", "nearest", "ridge"]


def _train(predictor: str) -> list[str]:
    names = [f"dataset={NAME}", "split=random", f"predictor={predictor}", "preset=quick"]
    return ["train", *names, f"out={RUNS}/random/{predictor}"]


STAGES: dict[str, list[str]] = {
    "ingest": ["ingest", NAME, "--out", f"results/raw/{NAME}", "--mirror", "mirror", "--offline"],
    "available": ["available", NAME, "--raw", "results/raw", "--out", "results/raw/available.json"],
    "standardize": [
        "standardize",
        NAME,
        "--raw",
        "results/raw",
        "--table",
        STANDARD,
        "--rejected",
        f"results/standard/{NAME}.rejected.csv",
        "--quality",
        f"results/standard/{NAME}.quality.json",
    ],
    "features": ["features", NAME, "--table", STANDARD, "--out", FEATURES],
    "split": ["split", "random", "--table", STANDARD, "--out", f"{FOLDS}/random.parquet"],
    "train nearest": _train("nearest"),
    "train": _train("ridge"),
    "in_domain": [
        "in-domain",
        NAME,
        "random",
        "--table",
        FEATURES,
        "--folds",
        f"{FOLDS}/random.parquet",
        "--out",
        f"{DISTANCES}/random.parquet",
    ],
    "leakage": [
        "leakage",
        NAME,
        "--table",
        FEATURES,
        "--standard",
        STANDARD,
        "--runs",
        RUNS,
        "--folds",
        FOLDS,
        *_CHOICE,
        "--out",
        f"results/leakage/{NAME}.json",
    ],
    "champion": [
        "champion",
        NAME,
        "--runs",
        RUNS,
        "--table",
        FEATURES,
        "--standard",
        STANDARD,
        "--raw",
        "results/raw",
        *_CHOICE,
        "--preset",
        "quick",
        "--out",
        CHAMPION,
    ],
    "evaluate": [
        "evaluate",
        NAME,
        "--table",
        FEATURES,
        "--runs",
        RUNS,
        *_CHOICE,
        "--resamples",
        "10",
        "--in-domain",
        DISTANCES,
        "--out",
        EVALUATION,
    ],
    "plots": ["plots", NAME, "--evaluation", EVALUATION, "--plots", "headline", "--out", f"results/plots/{NAME}"],
    "metrics": ["metrics", EVALUATION, "--out", "results/metrics.json"],
    "headline": ["headline", CHAMPION, "--metrics", "results/metrics.json", "--out", "results/headline"],
    "report": ["report", "--results", "results", "--out", "results/report.html", "--cards", "results/model_cards"],
}
"""Arguments of `perfcast pipeline` by stage, in the order of a run."""


@cache
def finished() -> Path:
    """Return the project's folder."""
    project = small_project(Path(mkdtemp(prefix="perfcast-finished-")) / "project")
    with inside(project):
        for arguments in STAGES.values():
            assert main(["pipeline", *arguments]) == 0, arguments
    return project


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)

"""Tables of the ledger of forecasts and of peers, made from the files of results."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from markdown_text import table

from perfcast.experiment.ledger import ENTRIES, FOLDER, MISSES, SCORES


def entry_table(conf: Path) -> str:
    """Return the entries with month, revision and SHA-256 of their file."""
    headings = ["file", "predictor", "results until", "made on", "code", "forecasts", "SHA-256"]
    rows = [
        [f"{line.entry}.csv", line.predictor, line.until, line.made, line.revision, line.forecasts, f"`{line.sha256}`"]
        for line in _read(conf, ENTRIES).itertuples()
    ]
    return table(headings, rows)


def score_table(conf: Path) -> str:
    """Return the scores of every entry over all suites, by month, known and new CPU models."""
    scores = _read(conf, SCORES)
    headings = ["entry", "month", "CPU models", "results", "of models", "MAPE %", "MedAPE %", "coverage %"]
    rows = []
    for line in scores[scores["task"] == ""].itertuples():
        numbers = [f"{float(value):.1f}" for value in (line.mape, line.medape)]
        about = [line.entry, line.month or "all", "known" if line.known == "True" else "new"]
        rows.append([*about, line.results, line.entities, *numbers, f"{float(line.coverage):.0f}"])
    return table(headings, rows)


def miss_table(conf: Path) -> str:
    """Return the largest misses of every entry, one for each machine."""
    headings = ["machine, chips", "suite", "month", "measured", "forecast", "error %", "why"]
    rows = [
        [
            line.machine.replace(" | ", ", ").removesuffix(".0"),
            line.task,
            line.month,
            line.measured,
            f"{float(line.estimate):.3g}",
            f"{float(line.error):+.0f}",
            line.why,
        ]
        for line in _read(conf, MISSES).itertuples()
    ]
    return table(headings, rows)


def peer_table(conf: Path) -> str:
    """Return the averages of peers and of the project, on the raw table and on the residual of the structure."""
    texts = []
    for name, title in (("peers", "On the raw table"), ("peers_residual", "On the residual of the analytical model")):
        path = conf.parent / "results" / "leaderboard" / "studies" / f"{name}.csv"
        if not path.is_file():
            continue
        board = pd.read_csv(path)
        board = board[board["task"] == "average"]
        values = board.pivot(index=["split", "predictor"], columns="metric", values="value")
        seconds = board.groupby(["split", "predictor"])["cpu_seconds"].first()
        paired = board[board["metric"] == "mape"].set_index(["split", "predictor"])
        rows = []
        for key in values.sort_values("mape").index:
            row = [*key, *(f"{values.loc[key, metric]:.2f}" for metric in ("mape", "medape", "interval_score"))]
            difference = paired.loc[key]
            interval = f"{difference['difference_low']:+.2f} to {difference['difference_high']:+.2f}"
            compared = "" if pd.isna(difference["difference"]) else f"{difference['difference']:+.2f} ({interval})"
            cost = "" if pd.isna(seconds[key]) else f"{seconds[key]:.0f}"
            rows.append([*row, f"{values.loc[key, 'coverage']:.1f}", compared, cost])
        headings = ["split", "predictor", "MAPE %", "MedAPE %", "interval score %", "coverage %"]
        texts.append(f"{title}:\n\n{table([*headings, 'MAPE against hybrid_trees', 'CPU s'], rows)}")
    return "\n\n".join(texts)


def _read(conf: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(conf.parent / "results" / FOLDER / name, dtype="str", keep_default_na=False)

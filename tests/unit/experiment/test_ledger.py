"""The ledger of forecasts: entries are made once, cannot be edited, and are scored when results come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perfcast.experiment.ledger import MISSES, SCORES, add_entry, list_ledger, read_entries
from perfcast.schema.table import Column, Kind, Role, Table, Tag, build_table
from perfcast.utils.errors import UserError

COLUMNS = (
    Column("id", Kind.TEXT, Role.KEY, "all", tags=(Tag.ROW,)),
    Column("cpu_model", Kind.CATEGORICAL, Role.KEY, "all", tags=(Tag.ENTITY, Tag.IDENTITY)),
    Column("chips", Kind.NUMERICAL, Role.FEATURE, "all", tags=(Tag.IDENTITY,)),
    Column("watts", Kind.NUMERICAL, Role.FEATURE, "all"),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "all", tags=(Tag.TASK,)),
    Column("month", Kind.DATE, Role.PROVENANCE, "all", tags=(Tag.TIME,)),
    Column("score", Kind.NUMERICAL, Role.TARGET, "all"),
)
ABOUT = {"dataset": "made", "predictor": "ridge", "until": "2024-12", "made": "2025-01-02", "revision": "a"}


def results(*lines: tuple[str, float, str, float]) -> Table:
    """Return a table of results: CPU model, chips, month and score."""
    frame = pd.DataFrame(lines, columns=["cpu_model", "chips", "month", "score"])
    frame = frame.assign(id=[f"r{number}" for number in range(len(lines))], suite="rate", watts=100.0)
    frame.loc[frame["cpu_model"] == "strange", "watts"] = np.nan
    return build_table("made", frame, COLUMNS)


def bets(**estimates: float) -> pd.DataFrame:
    """Return forecasts of machines with one chip."""
    lines = [{"cpu_model": name, "chips": 1, "suite": "rate", "estimate": value} for name, value in estimates.items()]
    return pd.DataFrame(lines).assign(
        low=lambda frame: 0.9 * frame["estimate"], high=lambda frame: 1.1 * frame["estimate"]
    )


OLD = [("old", 1.0, "2024-05", 90.0)] * 30


def test_results_after_the_entry_are_scored(tmp_path: Path):
    add_entry(tmp_path, "made-2024-12", bets(new=100, old=90, later=50), ABOUT)
    assert not list(list_ledger(tmp_path, results(*OLD)))
    table = results(*OLD, ("new", 1.0, "2025-02", 110.0), ("new", 2.0, "2025-02", 210.0), ("old", 1.0, "2025-03", 90.0))
    lines = list(list_ledger(tmp_path, table))
    assert lines[0] == "made-2024-12 of the ledger: 2 results"
    assert "new cpu models: 1 results of 1, MAPE 9.1 %" in lines[1]
    assert "known cpu models: 1 results of 1, MAPE 0.0 %" in lines[2]
    scores = pd.read_csv(tmp_path / SCORES, keep_default_na=False)
    assert set(scores["month"]) == {"", "2025-02", "2025-03"}
    list(list_ledger(tmp_path, table))
    assert scores.equals(pd.read_csv(tmp_path / SCORES, keep_default_na=False))


def test_largest_misses_have_a_reason(tmp_path: Path):
    add_entry(tmp_path, "made-2024-12", bets(strange=300, old=90), ABOUT)
    list(list_ledger(tmp_path, results(*OLD, ("strange", 1.0, "2025-02", 100.0), ("old", 1.0, "2025-02", 45.0))))
    misses = pd.read_csv(tmp_path / MISSES)
    assert misses["error"].tolist() == pytest.approx([200, 100])
    assert misses["why"].tolist() == [
        "cpu model without earlier results; no watts",
        "the result: -50 % from the median of 30 others of this machine",
    ]


def test_forecasts_are_made_once_and_an_edit_is_refused(tmp_path: Path):
    path = add_entry(tmp_path, "made-2024-12", bets(new=100), ABOUT)
    with pytest.raises(UserError, match="made once"):
        add_entry(tmp_path, "made-2024-12", bets(new=110), ABOUT)
    path.write_text(path.read_text().replace("100", "110"))
    with pytest.raises(UserError, match="must have the sha256"):
        list(list_ledger(tmp_path, results(*OLD)))


def test_tracked_ledger_is_unedited():
    from perfcast.experiment.ledger import read_forecasts

    folder = Path(__file__).parents[3] / "results" / "ledger"
    entries = read_entries(folder)
    assert len(entries) >= 3
    for line in entries.to_dict("records"):
        assert len(read_forecasts(folder, line["entry"], line["sha256"])) == int(line["forecasts"])

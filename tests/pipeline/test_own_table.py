"""A CSV file of a user's own: `perfcast new dataset` writes its conf, and the commands that it prints give answers."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pandas as pd
import pytest
from own_table import own_table
from small_project import call, run_snakemake, small_project

from perfcast.testing.miniature import make_project


@pytest.mark.slow
def test_one_csv_and_one_conf_give_splits_errors_a_report_and_predictions(tmp_path: Path) -> None:
    project = small_project(tmp_path / "project")
    table = own_table().astype(object)
    table.loc[5, "Score"], table.loc[7, "Cores"] = -1, "many"
    table.to_csv(project / "mine.csv", index=False)
    written = call(project, "perfcast", "new", "dataset", "mine.csv").splitlines()
    run, ask = (shlex.split(line) for line in written[written.index("next") + 1 :])
    assert run_snakemake(project, *run[1:])[0] == 0
    results = project / "results" / "mine"
    rejected = pd.read_csv(results / "standard" / "mine.rejected.csv")
    assert rejected[["line", "detail"]].to_numpy().tolist() == [[7, "score: -1"], [9, "cores: many"]]
    assert {path.stem for path in (results / "splits" / "mine").iterdir() if path.suffix == ".parquet"} == {
        "random",
        "unseen_entity",
        "forward_last",
    }
    assert "unseen entities" in (results / "report.html").read_text()
    answer = json.loads(call(project, *ask, "--json").partition("\n2 estimates")[0])
    truth = table.loc[(table["Suite"] == "web") & (table.index == 0), "Score"].item()
    (web,) = (each for each in answer["machines"][0]["estimates"] if each["task"] == "web")
    assert web["low"] < truth < web["high"]
    assert "Nothing to be done" in call(project, *run)
    table.assign(Score=2 * own_table()["Score"]).to_csv(project / "data/embedded/mine.csv", index=False)
    assert "rule ingest" in call(project, *run, "--dry-run")
    make_project(project, tmp_path / "miniature", rows=10, seed=0)

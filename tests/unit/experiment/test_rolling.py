"""Results after training: they correct the answers of a champion without training."""

import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from champion_project import KNOWN, SUITES, project

import perfcast
from perfcast.cli.main import main
from perfcast.schema.table import Tag
from perfcast.schema.table_files import write_table
from perfcast.utils.errors import UserError

ENTITY = "xeon gold 6148"


def later_results(factor):
    """Return the standard table with the results of one CPU model again, three years later and by a factor higher."""
    table = project().standard
    again = table.frame[table.frame["cpu_model"] == ENTITY].copy()
    again["base_score"] *= factor
    again["published_month"] = again["published_month"] + pd.DateOffset(years=9)
    again["result_id"] = again["result_id"].astype(str) + "-later"
    return replace(table, frame=pd.concat([table.frame, again], ignore_index=True)), len(again)


def learn(folder, tmp_path, table):
    write_table(table, tmp_path / "standard.parquet")
    assert main(["pipeline", "learn", str(folder), "--standard", str(tmp_path / "standard.parquet")]) == 0


def test_later_results_move_answers_and_say_so(tmp_path, capsys):
    folder = shutil.copytree(project().folder, tmp_path / "champion")
    before = perfcast.load_champion(folder).predict(KNOWN, when="2027-01").machines[0]
    table, count = later_results(1.2)
    learn(folder, tmp_path, table)
    assert f"{count} results after training" in capsys.readouterr().err
    champion = perfcast.load_champion(folder)
    after = champion.predict(KNOWN, when="2027-01").machines[0]
    for old, new in zip(before.estimates, after.estimates, strict=True):
        assert old.median * 1.02 < new.median < old.median * 1.25
        assert new.high / new.low < old.high / old.low
        assert new.user_factor is None
    assert before.basis.later_results == ""
    assert after.basis.later_results.startswith(f"{count} results of {ENTITY} since 20")
    assert "SPECrate2017_int_base by +" in after.basis.later_results
    other = champion.predict({**KNOWN, "processor": "Xeon Gold 6248"}, when="2027-01").machines[0]
    assert other.basis.later_results.startswith(f"{count} results of others since 20")
    measured = [{**KNOWN, "suite": SUITES[2], "score": after.estimates[2].median * 0.9}]
    corrected = champion.predict(KNOWN, when="2027-01", measured=measured).machines[0].estimates[2]
    assert corrected.user_factor < 1 and corrected.median == pytest.approx(
        after.estimates[2].median * corrected.user_factor
    )
    learn(folder, tmp_path, project().standard)
    again = perfcast.load_champion(folder).predict(KNOWN, when="2027-01").machines[0]
    assert [each.median for each in again.estimates] == [each.median for each in before.estimates], "learned anew"


def test_a_champion_without_backtests_and_another_dataset_are_refused(tmp_path):
    from perfcast.experiment.rolling import learn_later_results

    folder = shutil.copytree(project().folder, tmp_path / "champion")
    standard = project().standard
    with pytest.raises(UserError, match="must be one of 'other'"):
        learn_later_results(folder, replace(standard, dataset="other"))
    for path in [*folder.rglob("levels.json"), folder / "digests.sha256"]:
        path.unlink()
    with pytest.raises(UserError, match="known errors"):
        learn_later_results(folder, standard)
    assert np.unique(standard.frame[standard.column_of(Tag.ENTITY)]).size > 1

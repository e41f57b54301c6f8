"""Tables of factors: every CPU model over a baseline, and the columns that tools of carbon accounting read."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest
from champion_project import project

import perfcast
from perfcast.cli import factors as cli
from perfcast.cli.main import main
from perfcast.decisions.factors import FORMATS, LICENSE, arrange_factors, list_factors
from perfcast.inference.options import PredictOptions
from perfcast.inference.suites import Suites
from perfcast.utils.errors import UserError

BASELINE = "xeon gold 6148"
TASK = "SPECrate2017_int_base"


@pytest.fixture(scope="module")
def champion() -> perfcast.api.Champion:
    return perfcast.load_champion(project().folder)


@pytest.fixture(scope="module")
def table(champion) -> pd.DataFrame:
    return list_factors("Xeon Gold 6148", Suites(champion), PredictOptions(neighbors=0, explain=False))


def test_every_model_with_facts_has_a_row_and_the_baseline_is_one(champion, table):
    assert set(table["cpu model"]) == set(champion.reference_data.entity_facts.index)
    baseline = table.set_index("cpu model").loc[BASELINE]
    for name in (f"{TASK} per chip", f"{TASK} per thread"):
        assert [baseline[f"{name}{end}"] for end in (" low", "", " high")] == [1, 1, 1]


def test_ratio_is_that_of_a_sizing_of_one_machine(champion, table):
    row = table.set_index("cpu model").loc["epyc 7742"]
    old, new = ({"processor": name, "chips": 1} for name in (BASELINE, "epyc 7742"))
    sized = champion.size({**old, "count": 1}, new, mix="int_rate").targets[0]
    assert row[f"{TASK} per chip"] == pytest.approx(sized.ratio, rel=0.03)
    threads = row["vCPUs"] / 40
    assert row[f"{TASK} per thread"] == pytest.approx(row[f"{TASK} per chip"] / threads)


def test_intervals_hold_their_middle_and_rows_say_what_they_rest_on(table):
    for name in (f"{TASK} per chip", f"{TASK} per thread", "watts full", "watts idle"):
        known = table[table[name].notna()]
        assert (known[f"{name} low"] <= known[name]).all()
        assert (known[name] <= known[f"{name} high"]).all()
    assert set(table[f"{TASK} basis"]) <= {"measured", "estimated"}
    assert set(table["watts basis"].dropna()) == {"design power"}
    assert table["source"].str.startswith(LICENSE).all()
    assert table["revision"].str.contains("perfcast").all()
    assert table["month"].str.fullmatch(r"\d{4}-\d{2}").all()


def test_columns_are_those_that_the_readers_of_tools_take(table):
    """The readers are those of codecarbon 3.3.2, boaviztapi 2.5.0 and the coefficients of CCF."""
    assert tuple(FORMATS) == cli.FORMATS
    read = {form: pd.read_csv(io.StringIO(arrange_factors(table, form).to_csv(index=False))) for form in FORMATS}
    names, watts = read["codecarbon"]["Name"], read["codecarbon"]["TDP"]
    assert names.is_unique
    assert watts.dtype == float
    assert "Intel Xeon Gold 6148" in set(names)
    boavizta = read["boavizta"]
    assert [*boavizta][:3] == ["name", "code_name", "generation"]
    assert {"manufacturer", "model_range", "total_die_size", "total_die_size_source"} < {*boavizta}
    listed = boavizta[boavizta["name"] == "Intel Xeon Gold 6148"].iloc[0]
    assert [listed[name] for name in ("manufacturer", "model_range", "tdp", "cores", "threads")] == [
        "Intel",
        "Xeon Gold",
        150,
        20,
        40,
    ]
    ccf = read["ccf"]
    assert [*ccf][:3] == ["Architecture", "Min Watts", "Max Watts"]
    assert ccf["Architecture"].is_unique
    assert (ccf["Min Watts"] < ccf["Max Watts"]).all()
    assert read["table"].shape == table.shape
    for form in FORMATS:
        assert read[form]["source"].str.startswith(LICENSE).all(), form


def test_unknown_baseline_is_one_line(champion):
    with pytest.raises(UserError, match="the baseline must be a known CPU model"):
        list_factors("Zeus 1", Suites(champion), PredictOptions())


def test_command_writes_the_table(tmp_path: Path, capsys):
    out = tmp_path / "cpu_power.csv"
    words = ["factors", "--baseline", "Xeon Gold 6148", "--format", "codecarbon", "--out", str(out)]
    assert main([*words, "--results", str(project().results)]) == 0
    assert [*pd.read_csv(out)] == ["Name", "TDP", "source"]
    assert LICENSE in capsys.readouterr().out

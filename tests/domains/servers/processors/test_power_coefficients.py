"""Watts of a thread by family as the table that Cloud Carbon Footprint reads."""

import csv

import pytest
from champion_project import project
from power_project import power_folder

from perfcast.cli.main import main
from perfcast.inference.champion import load_champion


def test_coefficients_are_read_by_their_names_and_tell_measured_from_estimated(tmp_path, capsys):
    out = tmp_path / "coefficients.csv"
    assert main(["facts", "power", "--power", str(power_folder()), "--out", str(out)]) == 0
    assert "estimates are not official results" in capsys.readouterr().err
    with out.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header[:5] == ["", "Architecture", "Min Watts", "Max Watts", "GB/Chip"]
    by_name = {row["Architecture"]: row for row in (dict(zip(header, row, strict=True)) for row in rows)}
    assert [row[0] for row in rows] == [str(number) for number in range(len(rows))]
    for row in by_name.values():
        low, watts, high = (float(row[f"Max Watts{end}"]) for end in (" Low", "", " High"))
        assert 0 < low <= watts <= high
        assert 0 < float(row["Min Watts"]) <= watts
        assert float(row["GB/Chip"]) > 0
        assert row["Basis"] == ("measured" if int(row["Results"]) else "estimated")
        assert row["Until"]
    assert by_name["Turin"]["Basis"] == "estimated"

    frame = load_champion(power_folder()).reference_data.measured.frame
    rows = frame[frame["family"] == "Skylake-SP"].dropna(subset=["threads_per_core"])
    threads = rows["cores_enabled_total"] * rows["threads_per_core"]
    skylake = by_name["Skylake"]
    assert float(skylake["Max Watts"]) == pytest.approx((rows["watts_100"] / threads).median(), rel=1e-4)
    assert float(skylake["Min Watts/Core"]) == pytest.approx(
        (rows["watts_idle"] / rows["cores_enabled_total"]).median(), rel=1e-4
    )
    assert int(skylake["Results"]) == len(rows)


def test_bad_input_is_one_line(tmp_path, capsys):
    for arguments in (
        ["--power", str(tmp_path), "--out", str(tmp_path / "a.csv")],
        ["--power", str(project().folder), "--out", str(tmp_path / "a.csv")],
        ["--power", str(power_folder()), "--out", str(tmp_path / "a.txt")],
    ):
        assert main(["facts", "power", *arguments]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())

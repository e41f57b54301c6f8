"""Forecasts of described machines: what is completed, what is refused, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perfcast import experiment, plugins
from perfcast.calibrating import calibrate
from perfcast.cli.main import main
from perfcast.completion.spec_cpu2017 import complete_machine, complete_part
from perfcast.datasets.spec_cpu2017 import build
from perfcast.errors import UserError
from perfcast.fake import cpu_catalog, spec_cpu2017
from perfcast.fake._runs import fake_table
from perfcast.forecast import Asked, Champion, forecast, forecast_file, machine_columns, read_champion
from perfcast.io import write_json
from perfcast.machines import read_machines
from perfcast.predictors.ridge import RidgePredictor
from perfcast.schema import Column, Kind, Role, Table, build_table, write_table

FEATURES = ["processor", "memory", "system", "workload"]
SUITES = ["CFP2017rate", "CFP2017speed", "CINT2017rate", "CINT2017speed"]
COLUMNS = (
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor"),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor", "", low=1, high=512),
    Column("clock", Kind.NUMERICAL, Role.FEATURE, "processor", "MHz", low=800),
    Column("available", Kind.DATE, Role.PROVENANCE, "audit"),
)


@dataclass(frozen=True)
class Project:
    """A folder of results with a standard table and a champion, and what is in them."""

    results: Path
    standard: Table
    champion: Champion
    raw: dict[str, Path]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    results = tmp_path_factory.mktemp("results")
    raw = {name: results / "raw" / name for name in ("spec_cpu2017", "cpu_catalog")}
    for (name, folder), fake in zip(raw.items(), (spec_cpu2017, cpu_catalog), strict=True):
        folder.mkdir(parents=True)
        fake.write(folder, rows=400, seed=5)
        (results / "raw" / name / "manifest.json").unlink(missing_ok=True)
    standard = build(raw, {"published_until": None}).table
    for folder in raw.values():
        write_json(folder / "manifest.json", {"status": "present"})
    write_table(standard, results / "standard" / "spec_cpu2017.parquet")
    table = standard
    for name in FEATURES:
        table = plugins.load("features", name).derive(table)
    folder = results / "champion" / "spec_cpu2017"
    predictor, _ = experiment.fit_all(table, {"params": lambda seed: RidgePredictor()}, 0, None)
    predictor.save(folder / "model")
    calibrate(table, lambda seed: RidgePredictor(), 0, None, 2).save(folder / "intervals")
    about = {"dataset": "spec_cpu2017", "predictor": "ridge", "schedule": "quick", "features": FEATURES}
    write_json(folder / "about.json", about)
    return Project(results, standard, read_champion(folder, "spec_cpu2017"), raw)


def empty_machines(project: Project, **cells: object) -> pd.DataFrame:
    """Return one machine of every standard column, missing but for the given cells."""
    frame = pd.DataFrame({name: [value] for name, value in cells.items()})
    full = frame.reindex(columns=[column.name for column in project.standard.columns])
    return build_table("spec_cpu2017", full, project.standard.columns).frame


def machines_file(folder: Path, text: str | bytes) -> Path:
    path = folder / "machines.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_reads_any_subset_of_columns_in_any_order(tmp_path: Path) -> None:
    path = machines_file(tmp_path, "\ufeffavailable, cores ,name\n2026-03,96,x\n\n,, \n ,8,\n")
    frame = read_machines(path, COLUMNS, {"name": "part"})
    assert list(frame.columns) == ["part", "cores", "clock", "available"]
    assert list(frame.index) == [2, 5]
    assert frame["cores"].tolist() == [96.0, 8.0]
    assert frame.loc[2, "part"] == "x"
    assert frame.loc[2, "available"] == pd.Timestamp(2026, 3, 1)
    assert frame.loc[5, ["part", "available", "clock"]].isna().all()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ["empty"]),
        (" \n", ["empty"]),
        ("cores\n", ["header only"]),
        ("coers\n8\n", ["'coers'", "nearest are cores"]),
        ("cores,\n8,1\n", ["column 2 has no name"]),
        ("part,name\na,b\n", ["'part' once"]),
        ("cores,clock\n8\n", ["line 2 has 1"]),
        ("part,cores\na,8\n\nb,many\n", ["cores must be a number", "line 4 has 'many'"]),
        ("clock\n1e999\n", ["clock must be a number in MHz", "line 2"]),
        ("cores\nnan\n", ["line 2 has 'nan'"]),
        ("cores\n0\n", ["between 1 and 512", "line 2 has 0"]),
        ("clock\n3.2\n", ["between 800 and inf in MHz"]),
        ("available\n2026-13\n", ["month such as 2026-03", "'2026-13'"]),
        ('part\n"a\n', ["must be CSV"]),
        (b"part\nok\n\xff\xfe\n", ["UTF-8", "line 3"]),
        ("part\n" + "x" * 200_000 + "\n", ["must be CSV", "field larger"]),
        (",".join(f"c{n}" for n in range(200_000)) + "\n", ["'c0'"]),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path: Path, text: str | bytes, said: list[str]) -> None:
    with pytest.raises(UserError) as error:
        read_machines(machines_file(tmp_path, text), COLUMNS, {"name": "part"})
    assert all(words in str(error.value) for words in said), str(error.value)
    assert "\n" not in str(error.value)


def test_absent_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no file"):
        read_machines(tmp_path / "machines.csv", COLUMNS, {})


def test_machines_are_described_by_features_keys_and_dates_that_features_read(project: Project) -> None:
    names = {column.name for column in machine_columns(project.standard.columns, FEATURES)}
    assert {"part_key", "suite", "cores_enabled_total", "hw_avail", "sw_avail", "test_month", "launch_quarter"} <= names
    assert not {"base_score", "peak_score", "published_month", "updated", "q_date"} & names


def test_known_part_is_completed_and_given_values_win(project: Project) -> None:
    machine = empty_machines(project, part_key="Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", simd_bits=256.0)
    known = complete_part(machine, {}).iloc[0]
    assert known["part_key"] == "xeon gold 6148"
    assert known["part_id"] == "xeon-gold-6148"
    assert known["family"] == "Skylake-SP"
    assert known["mem_channels_per_chip"] == 6
    assert known["simd_bits"] == 256
    assert np.isnan(known["tdp_w"])


def test_catalogue_completes_what_the_family_does_not_know(project: Project) -> None:
    listed = project.standard.frame.dropna(subset=["tdp_w"]).iloc[0]
    known = complete_part(empty_machines(project, part_key=listed["part_key"]), project.raw).iloc[0]
    assert known["tdp_w"] == listed["tdp_w"]


def test_unknown_part_stays_unknown(project: Project) -> None:
    known = complete_part(empty_machines(project, part_key="Foo 99"), project.raw).iloc[0]
    assert known["part_key"] == "foo 99"
    assert known[["family", "tdp_w", "simd_bits", "cores_per_chip_part"]].isna().all()


def test_cells_follow_from_other_cells(project: Project) -> None:
    machine = empty_machines(
        project,
        chips=2.0,
        cores_enabled_total=192.0,
        dimm_count=24.0,
        dimm_gb=64.0,
        mem_rated_mts=6400.0,
        mem_max_mts_1dpc=6000.0,
        isa="x86",
    )
    implied = complete_machine(machine).iloc[0]
    assert implied["cores_per_chip_part"] == 96
    assert implied["mem_total_gb"] == 1536
    assert implied["mem_eff_mts"] == 6000
    assert implied["arch"] == "x86_64"


def test_no_memory_rate_is_invented_from_the_processors_limit(project: Project) -> None:
    assert np.isnan(complete_machine(empty_machines(project, mem_max_mts_1dpc=6000.0)).iloc[0]["mem_eff_mts"])


def test_machine_without_suite_is_forecast_for_all(project: Project, tmp_path: Path) -> None:
    path = machines_file(tmp_path, "result_id,processor,suite,chips\nfirst,Xeon Gold 6148,,2\nsecond,,CINT2017rate,1\n")
    answer = forecast_file(path, project.standard, project.champion, project.raw)
    assert answer["machine"].tolist() == ["first"] * 4 + ["second"]
    assert answer["line"].tolist() == [2, 2, 2, 2, 3]
    assert answer["suite"].tolist() == [*SUITES, "CINT2017rate"]
    assert (answer["estimate"] > 0).all()
    assert set(answer["champion"]) == {"ridge"}
    assert set(answer["unit"]) == {"ratio to reference"}
    assert answer["features_missing"].iloc[0] < answer["features_missing"].iloc[-1] < answer["features"].iloc[0]


def test_every_estimate_has_an_interval_that_widens_with_its_level_and_with_time(
    project: Project, tmp_path: Path
) -> None:
    path = machines_file(tmp_path, "processor,chips\nXeon Gold 6148,2\n")

    def told(**asked: object) -> pd.DataFrame:
        return forecast_file(path, project.standard, project.champion, project.raw, Asked(**asked))

    usual, surer = told(), told(level=0.5)
    for answer in (usual, surer):
        assert (answer["low"] < answer["estimate"]).all() and (answer["estimate"] < answer["high"]).all()
        assert answer["support"].between(0, 1).all()
        assert set(answer["unlike"]) <= {"processor", "memory", "system", "workload", "few results", "years ahead", ""}
    assert (surer["high"] < usual["high"]).all()
    later = told(when=pd.Timestamp("2040-01-01"))
    assert (later["support"] <= usual["support"]).all()
    assert later["estimate"].equals(usual["estimate"])


def test_a_champion_without_calibration_gives_no_interval(project: Project, tmp_path: Path) -> None:
    path = machines_file(tmp_path, "processor,chips\nXeon Gold 6148,2\n")
    bare = replace(project.champion, calibrated=None)
    answer = forecast_file(path, project.standard, bare, project.raw)
    assert answer[["low", "high", "support", "unlike"]].isna().all(axis=None)


@pytest.mark.parametrize(("given", "said"), [(["--level", "90"], "0.9 means 90 %"), (["--when", "soon"], "2026-03")])
def test_a_wrong_level_or_month_is_told(
    project: Project, tmp_path: Path, given: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = machines_file(tmp_path, "chips\n2\n")
    assert main(["predict", str(path), "--results", str(project.results), *given]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_given_cells_reach_the_predictor_unchanged(project: Project) -> None:
    """Described by all it has, a measured row is answered as the predictor answers the row itself."""
    columns = [column.name for column in machine_columns(project.standard.columns, FEATURES)]
    # Without a missing cell nothing is left to complete.
    rows = project.standard.frame.bfill().ffill().head(20)
    table = build_table("spec_cpu2017", rows, project.standard.columns)
    for name in FEATURES:
        table = plugins.load("features", name).derive(table)
    expected = project.champion.predictor.predict(table.frame)["base_score"]
    answer = forecast(rows[columns], project.standard, project.champion, project.raw)
    assert rows[columns].notna().all(axis=None)
    assert answer["estimate"].to_numpy() == pytest.approx(expected.to_numpy(), rel=1e-9)


def test_more_cores_give_more_throughput(project: Project, tmp_path: Path) -> None:
    path = machines_file(
        tmp_path, "processor,suite,chips\nXeon Gold 6148,CINT2017rate,1\nXeon Gold 6148,CINT2017rate,2\n"
    )
    one, two = forecast_file(path, project.standard, project.champion, project.raw)["estimate"]
    assert two > one


def test_features_on_which_the_parts_rows_agree_are_filled(project: Project, tmp_path: Path) -> None:
    frame = project.standard.frame
    part = frame.loc[frame["l3_mb_per_chip"].notna(), "part_key"].iloc[0]
    measured = machines_file(tmp_path, f"part_key,suite\n{part},CINT2017rate\n")
    with_rows = forecast_file(measured, project.standard, project.champion, {})
    others = Table("spec_cpu2017", frame[frame["part_key"] != part], project.standard.columns)
    without_rows = forecast_file(measured, others, project.champion, {})
    assert with_rows["features_missing"].iloc[0] < without_rows["features_missing"].iloc[0]


def test_unknown_suite_is_refused(project: Project, tmp_path: Path) -> None:
    path = machines_file(tmp_path, "suite\nCINT2006rate\n")
    with pytest.raises(UserError, match=r"suite must be one of CFP2017rate.*line 2 has 'CINT2006rate'"):
        forecast_file(path, project.standard, project.champion, project.raw)


def test_score_is_no_column_of_a_machine(project: Project, tmp_path: Path) -> None:
    path = machines_file(tmp_path, "base_score\n100\n")
    with pytest.raises(UserError, match="'base_score'"):
        forecast_file(path, project.standard, project.champion, project.raw)


def test_missing_champion_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="must have a champion"):
        read_champion(tmp_path, "spec_cpu2017")


def test_champion_of_another_data_set_is_refused(project: Project) -> None:
    with pytest.raises(UserError, match="'spec_cpu2017'"):
        read_champion(project.results / "champion" / "spec_cpu2017", "perfcastdb")


def test_command_writes_the_same_bytes_twice(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = machines_file(tmp_path, "processor,chips\nXeon Gold 6148,2\n")
    given = ["predict", str(path), "--results", str(project.results)]
    written = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for out in written:
        assert main([*given, "--out", str(out)]) == 0
    assert written[0].read_bytes() == written[1].read_bytes()
    assert pd.read_csv(written[0])["suite"].tolist() == SUITES
    assert main(given) == 0
    said = capsys.readouterr()
    assert "CINT2017speed" in said.out
    assert "estimates are not official results" in said.err


def test_command_tells_a_mistake_in_one_line(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = machines_file(tmp_path, "chip\n2\n")
    assert main(["predict", str(path), "--results", str(project.results)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "chips" in said


def test_a_machine_is_forecast_for_the_targets_that_its_task_has() -> None:
    table = fake_table(rows=60, seed=0)
    score, is_float = table.frame["score"], table.frame["suite"] == "float"
    frame = table.frame.assign(score=score.where(~is_float), second=score.where(is_float))
    second = Column("second", Kind.NUMERICAL, Role.TARGET, "workload", "points")
    standard = build_table("fake", frame, (*table.columns, second))
    predictor, _ = experiment.fit_all(standard, {"params": lambda seed: RidgePredictor()}, 0, None)
    machines = pd.DataFrame({"part": ["part 001"], "chips": [2.0]})
    found = forecast(machines, standard, Champion("fake", "ridge", "quick", (), predictor), {})
    assert found[["suite", "target", "unit"]].to_numpy().tolist() == [
        ["float", "second", "points"],
        ["integer", "score", ""],
    ]
    assert (found["estimate"] > 0).all()

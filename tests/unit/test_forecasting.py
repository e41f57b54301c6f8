"""Forecasts of described machines: what is completed, what is refused, and what is answered."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from forecasting_project import FEATURES, SUITES, project

import perfcast
from perfcast import experiment
from perfcast.cli.main import main
from perfcast.completion.spec_cpu2017 import BLOCKS, assume, complete_machine, complete_part, parts, refuse
from perfcast.describing.files import read_entries
from perfcast.errors import UserError
from perfcast.fake._runs import fake_table
from perfcast.forecasting import Asked, Champion, Described, describe, forecast, load_champion
from perfcast.forecasting.batch import AT_ONCE, forecast_in_batches
from perfcast.forecasting.completing import ORIGINS, complete
from perfcast.forecasting.donors import Donors
from perfcast.forecasting.drivers import shapley
from perfcast.forecasting.featuring import featured
from perfcast.forecasting.knowledge import Knowledge, describing_columns
from perfcast.forecasting.library import entries_from
from perfcast.intervals import gower
from perfcast.predictors.ridge import RidgePredictor
from perfcast.schema import Column, Kind, Role, Tag, build_table

KNOWN = {"processor": "Xeon Gold 6148", "chips": 2}
PLAIN = Asked(assume=False, neighbours=0, explain=False)


def asked(machines, champion=None, asked=PLAIN):
    known = champion or project().champion
    return forecast(describe(entries_from(machines), known), known, asked)


def empty(**cells):
    """Return one machine of every standard column, missing but for the given cells."""
    frame = pd.DataFrame({name: [value] for name, value in cells.items()})
    full = frame.reindex(columns=[column.name for column in project().standard.columns])
    return build_table("spec_cpu2017", full, project().standard.columns).frame


def test_machines_are_described_by_features_keys_fields_and_dates_that_features_read():
    names = {column.name for column in describing_columns(project().standard, FEATURES)}
    assert {"part_key", "suite", "cores_enabled_total", "hw_avail", "sw_avail", "test_month", "launch_quarter"} <= names
    assert "cores_per_chip_stated" in names
    assert not {"base_score", "peak_score", "published_month", "updated", "q_date"} & names


def test_a_known_part_is_completed_and_given_values_win():
    known = complete_part(empty(part_key="xeon gold 6148", simd_bits=256.0), parts({}, ["xeon gold 6148"])).iloc[0]
    assert known["part_id"] == "xeon-gold-6148"
    assert known["family"] == "Skylake-SP"
    assert known["mem_channels_per_chip"] == 6
    assert known["simd_bits"] == 256
    assert np.isnan(known["tdp_w"])


def test_the_catalogue_completes_what_the_family_does_not_know():
    listed = project().standard.frame.dropna(subset=["tdp_w"]).iloc[0]
    known = complete_part(empty(part_key=listed["part_key"]), project().champion.knowledge.parts).iloc[0]
    assert known["tdp_w"] == listed["tdp_w"]


def test_a_name_that_no_table_holds_has_the_facts_of_its_family_alone():
    facts = complete_part(empty(part_key="xeon gold 6149"), parts({}, ["xeon gold 6148"])).iloc[0]
    assert facts["family"] == "Skylake-SP"
    unknown = complete_part(empty(part_key="foo 99"), project().champion.knowledge.parts).iloc[0]
    assert unknown[["family", "tdp_w", "simd_bits", "cores_per_chip_part"]].isna().all()


def test_cells_follow_from_other_cells():
    memory = {"dimm_count": 24.0, "dimm_gb": 64.0, "mem_rated_mts": 6400.0, "mem_max_mts_1dpc": 6000.0}
    implied = complete_machine(empty(chips=2.0, cores_per_chip_stated=96.0, isa="x86", **memory)).iloc[0]
    assert implied["cores_per_chip_part"] == 96
    assert implied["cores_enabled_total"] == 192
    assert implied["mem_total_gb"] == 1536
    assert implied["mem_eff_mts"] == 6000
    assert implied["arch"] == "x86_64"


def test_no_memory_rate_follows_from_the_processors_limit_alone_but_it_is_assumed():
    machine = empty(mem_max_mts_1dpc=6000.0, mem_channels_per_chip=12.0, chips=2.0)
    assert np.isnan(complete_machine(machine).iloc[0]["mem_eff_mts"])
    usual = assume(machine, pd.Timestamp("2024-12-01")).iloc[0]
    assert usual["mem_rated_mts"] == 6000
    assert usual["dimm_count"] == 24
    assert usual["test_month"] == pd.Timestamp("2024-12-01")


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"chips": 3.0, "max_sockets": 2.0}, "chips 3, max_sockets 2"),
        ({"chips": 2.0, "cores_enabled_total": 193.0}, "the same in every one"),
        ({"chips": 2.0, "cores_enabled_total": 194.0, "cores_per_chip_part": 96.0}, "at most chips x"),
        ({"base_mhz": 4000.0, "max_turbo_mhz": 3000.0}, "base_mhz 4000"),
        ({"dimm_count": 3.0, "chips": 2.0}, "multiple of chips"),
        ({"dimm_count": 26.0, "chips": 1.0, "mem_channels_per_chip": 12.0}, "at most 2 in each"),
        ({"mem_total_gb": 100.0, "dimm_count": 2.0, "dimm_gb": 64.0}, "dimm_count x dimm_gb"),
        ({"mem_rated_mts": 6400.0, "ddr_gen": 4.0}, "rate of DDR generation"),
        ({"mem_running_mts": 3200.0, "mem_rated_mts": 2933.0}, "at most mem_rated_mts"),
    ],
)
def test_what_cannot_be_is_refused_with_its_values(cells, said):
    with pytest.raises(UserError, match="must be") as error:
        refuse(empty(**cells))
    assert said in str(error.value)


def test_most_measured_machines_can_be():
    """The generated results have the published ones' mistakes, so not all of them."""
    frame = project().standard.frame.head(100)
    assert sum(_can_be(frame.loc[[row]]) for row in frame.index) > 80


def test_what_is_usual_is_taken_from_one_result_like_the_machine():
    donors = Donors(project().champion.knowledge.measured)
    block = next(one for one in BLOCKS if one.name == "compiler")
    machine = empty(suite="CINT2017rate", cpu_vendor="Intel")
    lent = donors.fill(machine, block).iloc[0]
    alike = donors.frame[(donors.frame["suite"] == "CINT2017rate") & (donors.frame["cpu_vendor"] == "Intel")]
    assert (
        (alike[["compiler_vendor", "compiler_major_minor"]] == lent[["compiler_vendor", "compiler_major_minor"]])
        .all(axis=1)
        .any()
    )
    assert lent[list(block.columns)].notna().all()
    kept = donors.fill(empty(suite="CINT2017rate", cpu_vendor="Intel", compiler_vendor="GCC"), block).iloc[0]
    assert kept["compiler_vendor"] == "GCC"


def test_only_results_until_the_month_asked_lend():
    measured = project().champion.knowledge.measured
    early = measured.frame["published_month"].sort_values().iloc[50]
    assert Donors(measured, early).last == early
    assert Donors(measured, early).frame["published_month"].max() == early


def test_every_value_says_where_it_comes_from():
    champion = project().champion
    described = describe(entries_from(KNOWN), champion)
    completed = complete(described.frame, champion.knowledge, champion.donors)
    assert set(np.unique(completed.origins.to_numpy().astype(str))) <= set(ORIGINS)
    missing = completed.frame.isna().to_numpy()
    assert (completed.origins.to_numpy() == "missing").tolist() == missing.tolist()
    row = completed.origins.iloc[0]
    assert row[["part_key", "family", "compiler_vendor"]].tolist() == ["given", "looked up", "assumed"]
    without = complete(described.frame, champion.knowledge, None).origins
    assert not (without == "assumed").any(axis=None)


def test_a_machine_without_a_task_is_forecast_for_all():
    answer = asked([KNOWN, {"suite": "CINT2017rate", "chips": 1, "cores": 4, "clock": "2 GHz", "family": "Skylake-SP"}])
    frame = answer.to_frame()
    assert frame["line"].tolist() == [1, 1, 1, 1, 2]
    assert frame["task"].tolist() == [*SUITES, "CINT2017rate"]
    assert (frame["estimate"] > 0).all()
    assert set(frame["champion"]) == {"ridge"}
    assert set(frame["unit"]) == {"ratio to reference"}
    assert frame["features_missing"].iloc[0] < frame["features_missing"].iloc[-1] < frame["features"].iloc[0]


def test_assuming_leaves_fewer_features_missing():
    bare, usual = (asked(KNOWN, asked=replace(PLAIN, assume=one)).to_frame() for one in (False, True))
    assert (usual["features_missing"] < bare["features_missing"]).all()


def test_every_estimate_has_an_interval_that_widens_with_its_level_and_with_time():
    usual, surer = (asked(KNOWN, asked=replace(PLAIN, level=level)).to_frame() for level in (0.9, 0.5))
    for frame in (usual, surer):
        assert (frame["low"] < frame["estimate"]).all() and (frame["estimate"] < frame["high"]).all()
        assert frame["support"].between(0, 1).all()
    assert (surer["high"] < usual["high"]).all()
    later = asked(KNOWN, asked=replace(PLAIN, when=pd.Timestamp("2040-01-01"))).to_frame()
    assert (later["support"] <= usual["support"]).all()
    assert later["estimate"].equals(usual["estimate"])


def test_a_champion_without_calibration_gives_no_interval_and_no_neighbour():
    bare = replace(project().champion, calibrated=None, neighbourhood=None)
    answer = asked(KNOWN, bare, Asked())
    frame = answer.to_frame()
    assert frame[["low", "high", "support", "unlike"]].isna().all(axis=None)
    assert not answer.machines[0].estimates[0].neighbours


def test_given_cells_reach_the_predictor_unchanged():
    """Described by all it has, a measured row is answered as the predictor answers the row itself."""
    champion = project().champion
    columns = [column.name for column in describing_columns(project().standard, FEATURES)]
    # Without a missing cell nothing is left to complete.
    rows = champion.knowledge.measured.frame.bfill().ffill().head(20)
    rows = rows.assign(
        **complete_machine(rows.drop(columns=["mem_eff_mts"]).assign(mem_eff_mts=np.nan))[["mem_eff_mts"]]
    )
    table = featured("spec_cpu2017", rows, champion.knowledge.measured.columns, FEATURES)
    expected = champion.predictor.predict(table.frame)["base_score"]
    assert rows[columns].notna().all(axis=None)
    try:
        answer = forecast(Described(rows[columns], {}), champion, PLAIN)
    except UserError:  # filling crosswise may make machines that cannot be
        possible = [n for n in rows.index if _can_be(rows.loc[[n]])]
        answer = forecast(Described(rows.loc[possible, columns], {}), champion, PLAIN)
        expected = expected[possible]
    assert len(answer.machines) > 5
    assert answer.to_frame()["estimate"].to_numpy() == pytest.approx(expected.to_numpy(), rel=1e-9)


def _can_be(row):
    try:
        refuse(row)
    except UserError:
        return False
    return True


def test_more_cores_give_more_throughput():
    one, two = asked([{**KNOWN, "chips": chips, "suite": "CINT2017rate"} for chips in (1, 2)]).to_frame()["estimate"]
    assert two > one


def test_features_on_which_the_parts_rows_agree_are_filled():
    champion = project().champion
    frame = champion.knowledge.measured.frame
    part = frame.loc[frame["l3_mb_per_chip"].notna(), "part_key"].iloc[0]
    others = replace(champion.knowledge.measured, frame=frame[frame["part_key"] != part])
    without = replace(champion, knowledge=Knowledge(others, champion.knowledge.parts))
    machine = {"processor": part, "suite": "CINT2017rate"}
    missing = [asked(machine, one).to_frame()["features_missing"].iloc[0] for one in (champion, without)]
    assert missing[0] < missing[1]


def test_a_mistyped_processor_is_found_and_told():
    answer = asked({"processor": "XeonGold6148", "chips": 2})
    assert answer.machines[0].machine == "2 x xeon gold 6148"
    assert "was read as 'xeon gold 6148'" in answer.machines[0].notes[0]


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ({"processor": "Xeon Gold 61480", "chips": 2}, "the processor must be a known one"),
        ({**KNOWN, "suite": "CINT2006rate"}, "suite must be one of CFP2017rate"),
        ({"chips": 2}, "names none; or describe a new one: add cores, clock, family"),
        ({"processor": "Zeus", "cores": 4, "clock": "2 GHz"}, "describe a new one: add family"),
        ({**KNOWN, "family": "Skylake-SQ"}, "the known one that comes nearest: Skylake-SP"),
        ({"base_score": 100}, "'base_score'"),
        ({"chip": 2}, "chips"),
        ({}, "says nothing"),
        ({"chips": "two"}, "chips must be a number"),
    ],
)
def test_what_cannot_be_used_is_refused(machine, said):
    with pytest.raises(UserError) as error:
        asked(machine)
    assert said in str(error.value)


def test_a_new_part_is_forecast_by_what_is_said_of_it():
    machine = {"processor": "Zeus 1", "cores": 96, "clock": "2.5 GHz", "chips": 2, "family": "Skylake-SP"}
    answer = asked(machine, asked=Asked(neighbours=1))
    assert "no data names the processor 'Zeus 1'" in answer.machines[0].notes[0]
    values = {value.column: (value.value, value.origin) for value in answer.machines[0].values}
    assert values["cores_enabled_total"] == (192.0, "implied")
    assert values["isa"] == ("x86", "assumed")


def test_the_nearest_measured_machine_of_a_measured_one_is_itself():
    champion = project().champion
    row = champion.knowledge.measured.frame.iloc[7]
    table = featured("spec_cpu2017", row.to_frame().T, champion.knowledge.measured.columns, FEATURES)
    near = champion.neighbourhood.nearest(table.frame, table.frame["suite"], 3)[0]
    assert near[0][1] == pytest.approx(0, abs=1e-6)
    assert champion.knowledge.measured.frame["suite"].iloc[[place for place, _ in near]].eq(row["suite"]).all()
    distances = [far for _, far in near]
    assert distances == sorted(distances)


def test_drivers_multiply_to_the_forecast():
    answer = asked(KNOWN, asked=Asked(neighbours=0))
    champion = project().champion
    for one in answer.machines[0].estimates:
        typical = champion.knowledge.measured.frame.iloc[[champion.typical[one.task]]]
        table = featured("spec_cpu2017", typical, champion.knowledge.measured.columns, FEATURES)
        start = champion.predictor.predict(table.frame)["base_score"].iloc[0]
        product = np.prod([driver.factor for driver in one.drivers])
        assert start * product == pytest.approx(one.median, rel=5e-3)
        assert one.typical.score == typical["base_score"].iloc[0]


def test_shapley_values_share_an_interaction_equally():
    own, typical = (
        pd.DataFrame({"a": [2.0], "b": [3.0], "c": [9.0]}),
        pd.DataFrame({"a": [0.0], "b": [0.0], "c": [9.0]}),
    )
    groups = {"first": ["a"], "second": ["b"], "third": ["c"]}
    found = shapley(own, typical, groups, lambda frame: (frame["a"] + frame["a"] * frame["b"]).to_numpy()[:, None])
    assert found[0, :, 0].tolist() == pytest.approx([5.0, 3.0, 0.0])


def test_batches_say_what_a_single_forecast_says():
    machines = [{**KNOWN, "chips": 1 + number % 2, "suite": "CINT2017rate"} for number in range(AT_ONCE + 3)]
    champion = project().champion
    described = describe(entries_from(machines), champion)
    together = forecast_in_batches(described, champion, PLAIN)
    assert [one.line for one in together] == list(range(1, AT_ONCE + 4))
    assert together.machines[-1] == replace(asked(machines[-1]).machines[0], line=AT_ONCE + 3)


def test_missing_and_foreign_champions_are_told(tmp_path):
    with pytest.raises(UserError, match="there must be a champion of 'spec_cpu2017'"):
        load_champion(tmp_path, "spec_cpu2017")
    with pytest.raises(UserError, match="'spec_cpu2017'"):
        load_champion(project().folder, "perfcastdb")


def test_the_library_answers_dictionaries_frames_and_files(tmp_path):
    path = tmp_path / "m.json"
    path.write_text(json.dumps(KNOWN))
    champion = perfcast.load_champion(project().folder)
    answers = [
        perfcast.predict(machines, champion, explain=False)
        for machines in (KNOWN, [KNOWN], pd.DataFrame([KNOWN]), path, str(path))
    ]
    assert len({json.dumps(answer.to_dict()) for answer in answers}) == 1
    assert answers[0].kind == "estimates, not official results"


def test_the_command_prints_what_a_person_wants_to_know(capsys):
    given = ["predict", "--results", str(project().results), "--processor", "Xeon Gold 6148", "--chips", "2"]
    assert main(given) == 0
    said = capsys.readouterr()
    for words in ("90 % interval", "nearest measured machines", "what drove it", "given (", "looked up (", "assumed ("):
        assert words in said.out
    assert "estimates are not official results" in said.err
    assert main([*given, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [one["task"] for one in answer["machines"][0]["estimates"]] == SUITES


def test_the_command_writes_the_same_bytes_twice(tmp_path):
    path = tmp_path / "machines.csv"
    path.write_text("processor,chips\nXeon Gold 6148,2\n")
    written = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for out in written:
        assert main(["predict", str(path), "--results", str(project().results), "--out", str(out)]) == 0
    assert written[0].read_bytes() == written[1].read_bytes()
    assert pd.read_csv(written[0])["task"].tolist() == SUITES


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--processor", "Xeon Gold 6148", "--level", "90"], "0.9 means 90 %"),
        (["--processor", "Xeon Gold 6148", "--when", "soon"], "2026-03"),
        (["--set", "chip=2"], "chips"),
        (["--set", "tdp"], "NAME=VALUE"),
        ([], "--processor 'EPYC 9654'"),
        (["--processor", "Xeon Gold 9"], "must be a known one"),
        (["nowhere.csv"], "no file nowhere.csv"),
        (["machines.txt"], "must end in"),
    ],
)
def test_the_command_tells_a_mistake_in_one_line(capsys, given, said):
    assert main(["predict", "--results", str(project().results), *given]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_machine_is_forecast_for_the_targets_that_its_task_has():
    table = fake_table(rows=60, seed=0)
    score, is_float = table.frame["score"], table.frame["suite"] == "float"
    frame = table.frame.assign(score=score.where(~is_float), second=score.where(is_float))
    second = Column("second", Kind.NUMERICAL, Role.TARGET, "workload", "points")
    standard = build_table("fake", frame, (*table.columns, second))
    predictor, _ = experiment.fit_all(standard, {"params": lambda seed: RidgePredictor()}, 0, None)
    champion = Champion("fake", "ridge", "quick", (), predictor, Knowledge(standard, pd.DataFrame()))
    found = asked([{"part": "part 001", "chips": 2}], champion, Asked()).to_frame()
    assert found[["task", "target", "unit"]].to_numpy().tolist() == [
        ["float", "second", "points"],
        ["integer", "score", ""],
    ]
    assert (found["estimate"] > 0).all()


def test_entries_of_a_file_know_their_lines(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("chips\n2\n\n1\n")
    assert [line for line, _, _ in read_entries(path)] == [2, 4]


def test_the_nearest_are_those_of_sorting_all_by_distance_and_then_the_newest_first():
    champion = project().champion
    found = champion.neighbourhood
    table = featured("spec_cpu2017", project().standard.frame.iloc[::40], project().standard.columns, FEATURES)
    tasks = table.frame["suite"]
    parts = list(found.calibrated.support.parts())
    weights = found.calibrated.calibration.weights
    for count in (1, 5, 10_000):
        nearest = found.nearest(table.frame, tasks, count)
        for row, task, own in zip(found.calibrated.support.encode(table.frame), tasks, nearest, strict=True):
            rows = np.flatnonzero(found.tasks == task)
            others = found.encoded[rows]
            far = sum(
                weights.get(group, 0.0) * gower(row[part], others[:, part], numeric) for group, part, numeric in parts
            )
            expected = sorted(zip(far, -rows, strict=True))[:count]
            assert own == [(-row, pytest.approx(distance)) for distance, row in expected]


def test_what_all_measured_rows_of_a_part_agree_on_is_its_own():
    knowledge = project().champion.knowledge
    frame = knowledge.measured.frame
    group = next(column.group for column in knowledge.measured.columns if column.name == "part_key")
    names = [name for name in knowledge.measured.select(role=Role.FEATURE, group=group) if name != "part_key"]
    rows = frame.groupby("part_key")[names]
    expected = rows.first().where(rows.nunique() == 1)
    for part in expected.index:
        assert knowledge.agreed(Tag.ENTITY, part) == expected.loc[part].dropna().to_dict()
    assert knowledge.agreed(Tag.ENTITY, "no such part") == {}


def test_of_many_results_the_newest_of_every_part_and_task_are_known(monkeypatch):
    standard = project().standard
    whole = Knowledge.gather(standard, project().raw, FEATURES)
    assert len(whole.measured.frame) == len(standard.frame)
    frame = whole.measured.frame
    questions = [frame["part_key"].astype("str"), frame["suite"].astype("str")]
    count = frame.groupby(questions).ngroups
    monkeypatch.setattr("perfcast.forecasting.knowledge.MOST_RESULTS", count)
    few = Knowledge.gather(standard, project().raw, FEATURES)
    kept = few.measured.frame
    assert len(kept) == count
    assert kept.index.equals(pd.RangeIndex(count))
    newest = frame.groupby(questions)["published_month"].max()
    found = kept.set_index([kept["part_key"].astype("str"), kept["suite"].astype("str")])["published_month"]
    pd.testing.assert_series_equal(found.sort_index(), newest.sort_index(), check_names=False)
    # order and cells are those of the whole table
    again = frame[frame["result_id"].isin(kept["result_id"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, again)


def test_where_not_every_part_can_be_known_every_task_is(monkeypatch):
    monkeypatch.setattr("perfcast.forecasting.knowledge.MOST_RESULTS", 8)
    kept = Knowledge.gather(project().standard, project().raw, FEATURES).measured.frame
    assert kept["suite"].astype("str").value_counts().to_dict() == dict.fromkeys(SUITES, 2)

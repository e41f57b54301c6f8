"""The campaign with generated runs: resume, limits, failures, groups; labels against references, table and quality."""

import errno
import json
import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interference_records import DESIGN, find_run, make_record

from perfcast.cli.main import main
from perfcast.domains.interference.measuring import campaign, groups
from perfcast.domains.interference.measuring.execution import FailedRunError
from perfcast.domains.interference.measuring.labels import label_record, read_reference
from perfcast.domains.interference.measuring.metrics import require_linux
from perfcast.domains.interference.measuring.scenarios import PLACEMENTS, plan_for
from perfcast.domains.interference.measuring.workloads import parse_workloads, workload_names
from perfcast.utils.errors import UserError

RUNS = plan_for(DESIGN, 300)


class Machine:
    """Runs that take their seconds of a clock; those in `failing` fail."""

    def __init__(self, failing=()):
        self.now, self.done, self.failing = 0.0, [], failing

    def execute(self, run):
        self.now += run.seconds + 4
        self.done.append(run.number)
        if run.number in self.failing:
            raise FailedRunError("a tenant ended early")
        return make_record(run)


def measure(folder, machine, end=1e9, progress=lambda *_: None):
    return campaign.measure_plan(folder, RUNS, machine.execute, progress, end=end, clock=lambda: machine.now)


def test_a_campaign_resumes_with_its_own_settings_alone_where_it_stopped(tmp_path):
    (tmp_path / ".run-00000.json.1a2b3c4d.gz").write_bytes(b"half")  # of a kill while writing
    assert campaign.finished_runs(tmp_path) == {}
    first, second = Machine(), Machine()
    assert measure(tmp_path, first, end=130) == []
    assert 1 <= len(first.done) < len(RUNS) and first.now <= 130 + 4
    measure(tmp_path, second)
    assert first.done + second.done == list(campaign.finished_runs(tmp_path)) == [run.number for run in RUNS]
    frame = campaign.collect_rows(tmp_path)
    assert (frame["rejected"] == "").all() and frame["run"].nunique() == len(RUNS)
    campaign.check_plan(tmp_path, DESIGN, 5)
    campaign.check_plan(tmp_path, DESIGN, 10)
    with pytest.raises(UserError, match="seed differs"):
        campaign.check_plan(tmp_path, type(DESIGN)(**{**DESIGN.__dict__, "seed": 9}), 5)
    (tmp_path / "run-00000.json.gz").write_bytes(b"no gzip")
    with pytest.raises(UserError, match="run-00000"):
        campaign.read_record(tmp_path / "run-00000.json.gz")


def test_a_failed_run_is_reported_and_only_a_full_disk_ends_the_campaign(tmp_path):
    seen = []
    failures = measure(tmp_path, Machine(failing={RUNS[1].number}), progress=lambda *given: seen.append(given))
    assert len(failures) == 1 and "a tenant ended early" in failures[0]
    assert len(campaign.finished_runs(tmp_path)) == len(RUNS) - 1
    assert "5 min left" in seen[0][0]

    def fail(number):
        def execute(run):
            raise OSError(number, os.strerror(number))

        return campaign.measure_plan(tmp_path, RUNS[:2], execute, lambda *_: None, end=1e9, clock=lambda: 0)

    assert len(fail(errno.EBUSY)) == 1, "that of the failed run"
    with pytest.raises(OSError, match="No space"):
        fail(errno.ENOSPC)


# control groups


def test_the_tree_is_found_and_the_base_group_is_below_the_callers_own(tmp_path):
    assert groups.find_tree("cgroup /c/cpu cgroup rw 0 0\ncgroup2 /c/two cgroup2 rw 0 0\nbroken\n") == Path("/c/two")
    assert groups.find_tree("tmpfs /x tmpfs rw 0 0\n") is None
    (tmp_path / "deep/er").mkdir(parents=True)
    # generated folders have none of the files of a group
    assert groups.open_base(tmp_path, "1:cpu:/x\n0::/deep/er\n", "perfcast-interference-1").folder is None
    assert not list(tmp_path.rglob("perfcast*"))
    assert groups.open_base(None, "0::/\n", "x").folder is None


def test_limits_are_written_where_the_group_has_them(tmp_path):
    group = groups.ControlGroup(tmp_path)
    assert group.limits == set()
    (tmp_path / "cpu.max").write_text("max 100000")
    (tmp_path / "memory.stat").write_text("anon 77\nfile 5\n")
    group.limit_cpu(1.4)
    assert (tmp_path / "cpu.max").read_text() == "140000 100000"
    assert (group.limits, group.anonymous_bytes()) == ({"cpu"}, 77)


def test_placements_that_are_possible_and_workloads_by_name():
    for cpus, possible in {(0, 1): ["same_core", "shared_cores", "other_core"], (0,): ["same_core"]}.items():
        reasons = campaign.possible_placements(groups.ControlGroup(None), list(cpus))
        assert set(reasons) == set(PLACEMENTS)
        assert [name for name, reason in reasons.items() if not reason] == possible
    names = workload_names()
    assert len(names) >= 12 and {"sort", "key_value", "synchronous_write"} <= set(names)
    assert (parse_workloads("sort, triad ,sort"), parse_workloads(None)) == (["sort", "triad"], names)


# errors of users


def test_mistakes_have_one_line(capsys, tmp_path):
    for typed, message in (
        ("--workloads sort,trid", "did you mean 'triad'?"),
        ("--workloads sort", "--workloads must name at least two workloads"),
        ("--seconds-per-run 1", "--seconds-per-run must be a whole number from 4"),
    ):
        assert main(["measure", "interference", "--out", str(tmp_path), *typed.split()]) == 2
        printed = capsys.readouterr().err
        assert message in printed and printed.count("\n") == 1
    with pytest.raises(UserError, match="/proc of Linux"):
        require_linux(tmp_path)


PAIR, TRIPLE = find_run("pair"), find_run("triple")


def together(run, second):
    return run.together[0] <= second < run.together[1]


def label(run, rate=lambda tenant, second: 100.0, **changes):
    return label_record(make_record(run, rate, **changes).to_json())


def test_half_of_the_throughput_is_a_degradation_of_one_half_and_a_drift_is_divided_out():
    frame = label(PAIR, lambda tenant, second: 50.0 if together(PAIR, second) else 100.0)
    rows = frame[frame["phase"] == "together"]
    assert len(rows) == 2 * (PAIR.together[1] - PAIR.together[0])
    assert rows[["degradation", "degradation_p99"]].to_numpy() == pytest.approx(np.full((len(rows), 2), 0.5))
    assert frame.loc[frame["phase"] == "alone", "degradation"].abs().max() < 1e-9
    assert (frame["rejected"] == "").all()
    frame = label(TRIPLE, lambda tenant, second: (0.7 if together(TRIPLE, second) else 1.0) * (1000 + 0.5 * second))
    rows = frame[frame["phase"] == "together"]
    assert rows["degradation"].to_numpy() == pytest.approx(np.full(len(rows), 0.3), abs=1e-3)


def test_unsteady_references_late_samples_and_steal_are_rejected():
    last = PAIR.together[1]
    frame = label(PAIR, lambda tenant, second: 110.0 if tenant == 0 and second >= last else 100.0)
    assert frame.groupby("tenant")["rejected"].unique().map(list).to_dict() == {0: ["reference"], 1: [""]}
    assert frame.loc[frame["tenant"] == 0, "reference_spread"].iloc[0] == pytest.approx(10 / 105)
    record = make_record(PAIR).to_json()
    record["reports"][1] = [entry for entry in record["reports"][1] if entry["second"] < last]
    frame = label_record(record)
    assert set(frame.loc[frame["tenant"] == 1, "rejected"]) == {"reference"}, "without a report"
    assert set(label(PAIR, late=0.5)["rejected"]) == {"late"}
    assert set(label(PAIR, late=0.5, steal=0.2)["rejected"]) == {"late+steal"}
    frame = label(PAIR, lambda tenant, second: 5.0)
    assert frame["latency_p99"].isna().all() and frame["degradation"].notna().all()


def test_rows_name_their_neighbors_and_metrics_are_rounded():
    frame = label(TRIPLE)
    rows = frame[(frame["phase"] == "together") & (frame["tenant"] == 0)]
    assert set(rows["aggressors"]) == {"+".join(sorted(TRIPLE.workloads[1:]))}
    alone = frame[frame["phase"] == "alone"]
    assert (set(rows["aggressor_count"]), set(alone["aggressors"])) == ({2}, {""})
    assert alone["aggressor_intensity"].isna().all()
    compact, dropped = campaign.compact_metrics(label(TRIPLE))
    assert sorted({"stat.ctxt", "copy", "same", "rare"} & set(compact)) == ["copy", "rare", "stat.ctxt"]
    assert dropped == {"metrics": 3, "constant_metrics": 3}
    assert compact.loc[compact["tenant"] == 0, "rare"].isna().all(), "absence is never zero"
    assert compact["rare"].dtype == np.float32


@given(st.dictionaries(st.integers(0, 20), st.floats(0, 1e6) | st.just(math.nan), max_size=20))
def test_a_reference_lies_within_its_values(values):
    reference = read_reference(values, [(0, 5), (15, 20)])
    finite = [value for value in values.values() if math.isfinite(value)]
    for second in (0, 10, 20):
        if reference.values:
            assert min(finite) <= reference.at(second) <= max(finite)
        else:
            assert math.isnan(reference.at(second))


@given(st.lists(st.floats(-1e12, 1e12) | st.just(math.nan), min_size=1, max_size=20))
def test_rounding_keeps_three_digits(values):
    rounded = campaign.round_digits(pd.Series(values)).to_numpy(float)
    for value, short in zip(values, rounded, strict=True):
        assert math.isnan(short) if math.isnan(value) else short == pytest.approx(value, rel=6e-3, abs=1e-30)


def test_quality_is_json_and_tells_rejections():
    noisy = label(PAIR, lambda tenant, second: 100.0 + 2 * (second % 2))
    other = label(PAIR, lambda tenant, second: 120.0, late=0.5, steal=0.2).assign(run=99)
    quality = campaign.summarize_quality(pd.concat([noisy, other], ignore_index=True))
    json.dumps(quality, allow_nan=False)
    assert (quality["rows"], quality["accepted_rows"]) == (2 * len(noisy), len(noisy))
    assert quality["rejected"] == {"late": len(noisy), "steal": len(noisy)}


def test_table_and_description_are_written_and_the_same_twice(tmp_path):
    compact, dropped = campaign.compact_metrics(label(TRIPLE))
    for folder in ("a", "b"):
        campaign.write_table(tmp_path / folder, compact, {"design": {"workloads": ["sort"]}, **dropped})
    first, second = (tmp_path / folder / "host_interference.parquet" for folder in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    pd.testing.assert_frame_equal(pd.read_parquet(first), compact)
    written = json.loads(first.with_suffix(".json").read_text())
    assert written["workloads"]["sort"].startswith("sort of") and "cpu_model" in written

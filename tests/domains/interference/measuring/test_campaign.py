"""The campaign with generated runs: resume, repeats, the time limit, failures; groups in generated folders; errors."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from interference_records import DESIGN, make_record

from perfcast.cli.main import main
from perfcast.domains.interference.measuring import campaign, groups
from perfcast.domains.interference.measuring.execution import FailedRunError
from perfcast.domains.interference.measuring.metrics import require_linux
from perfcast.domains.interference.measuring.scenarios import PLACEMENTS, plan_for
from perfcast.domains.interference.measuring.workloads import parse_workloads, workload_names
from perfcast.utils.errors import UserError

RUNS = plan_for(DESIGN, 300)


class Machine:
    """Runs that take their seconds of a clock; those in `failing` fail."""

    def __init__(self, failing=()):
        self.now, self.done, self.failing = 0.0, [], set(failing)

    def clock(self):
        return self.now

    def execute(self, run):
        self.now += run.seconds + 4
        self.done.append(run.number)
        if run.number in self.failing:
            raise FailedRunError("a tenant ended early")
        return make_record(run)


def measure(folder, machine, end=1e9, progress=lambda *_: None):
    return campaign.measure_plan(folder, RUNS, machine.execute, progress, end=end, clock=machine.clock)


def test_an_interrupted_campaign_resumes_where_it_stopped(tmp_path):
    first, second = Machine(), Machine()
    assert measure(tmp_path, first, end=130) == []
    assert 1 <= len(first.done) < len(RUNS)
    assert first.now <= 130 + 4
    measure(tmp_path, second)
    assert first.done + second.done == [run.number for run in RUNS]
    assert list(campaign.finished_runs(tmp_path)) == first.done + second.done
    frame = campaign.collect_rows(tmp_path)
    assert (frame["rejected"] == "").all()
    assert frame["run"].nunique() == len(RUNS)


def test_a_kill_while_writing_leaves_no_finished_run(tmp_path):
    (tmp_path / ".run-00000.json.1a2b3c4d.gz").write_bytes(b"half")
    assert campaign.finished_runs(tmp_path) == {}


def test_a_failed_run_is_reported_and_the_others_go_on(tmp_path):
    machine = Machine(failing={RUNS[1].number})
    (failure,) = measure(tmp_path, machine)
    assert "a tenant ended early" in failure
    assert len(campaign.finished_runs(tmp_path)) == len(RUNS) - 1


def test_a_full_disk_ends_the_campaign_and_other_errors_of_the_system_only_their_run(tmp_path):
    def fail(number):
        def execute(run):
            raise OSError(number, os.strerror(number))

        return campaign.measure_plan(tmp_path, RUNS[:2], execute, lambda *_: None, end=1e9, clock=lambda: 0)

    assert len(fail(errno.EBUSY)) == 2
    with pytest.raises(OSError, match="No space"):
        fail(errno.ENOSPC)


def test_progress_tells_the_time_left(tmp_path):
    seen = []
    measure(tmp_path, Machine(), progress=lambda *arguments: seen.append(arguments))
    assert "5 min left" in seen[0][0]
    assert [done for _, done, _ in seen] == list(range(len(RUNS) + 1))


def test_other_settings_do_not_resume(tmp_path):
    campaign.check_plan(tmp_path, DESIGN, 5)
    campaign.check_plan(tmp_path, DESIGN, 10)
    with pytest.raises(UserError, match="seed differs"):
        campaign.check_plan(tmp_path, type(DESIGN)(**{**DESIGN.__dict__, "seed": 9}), 5)


def test_a_damaged_run_is_named(tmp_path):
    path = tmp_path / "run-00000.json.gz"
    path.write_bytes(b"no gzip")
    with pytest.raises(UserError, match="run-00000"):
        campaign.read_record(path)


# control groups


def test_the_tree_is_found_and_the_base_group_is_below_the_callers_own(tmp_path):
    assert groups.find_tree("cgroup /c/cpu cgroup rw 0 0\ncgroup2 /c/two cgroup2 rw 0 0\nbroken\n") == Path("/c/two")
    assert groups.find_tree("tmpfs /x tmpfs rw 0 0\n") is None
    for path in (tmp_path, tmp_path / "deep", tmp_path / "deep/er"):
        path.mkdir(exist_ok=True)
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
    assert group.limits == {"cpu"}
    assert group.anonymous_bytes() == 77


def test_without_groups_limits_are_impossible_and_one_core_allows_one_placement():
    def possible(cpus):
        reasons = campaign.possible_placements(groups.ControlGroup(None), cpus)
        assert set(reasons) == set(PLACEMENTS)
        return [name for name, reason in reasons.items() if not reason]

    assert possible([0, 1]) == ["same_core", "shared_cores", "other_core"]
    assert possible([0]) == ["same_core"]


# errors of users


def test_workloads_are_named_by_their_class_and_parsed():
    names = workload_names()
    assert len(names) >= 12
    assert {"sort", "key_value", "synchronous_write"} <= set(names)
    assert parse_workloads("sort, triad ,sort") == ["sort", "triad"]
    assert parse_workloads(None) == names


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("--workloads sort,trid", "did you mean 'triad'?"),
        ("--workloads sort", "--workloads must name at least two workloads"),
        ("--seconds-per-run 1", "--seconds-per-run must be a whole number from 4"),
    ],
)
def test_mistakes_have_one_line(typed, message, capsys, tmp_path):
    assert main(["measure", "interference", "--out", str(tmp_path), *typed.split()]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


def test_no_proc_is_a_mistake(tmp_path):
    with pytest.raises(UserError, match="/proc of Linux"):
        require_linux(tmp_path)

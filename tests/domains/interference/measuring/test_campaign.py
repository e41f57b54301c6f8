"""The campaign with generated runs: resume, repeats, the time limit, failures; groups in generated folders; errors."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from interference_records import DESIGN, make_record

from perfcast.cli.main import main
from perfcast.domains.interference.measuring import campaign, groups, table
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
    frame, shares = table.collect_rows(tmp_path)
    assert (frame["rejected"] == "").all()
    assert len(shares) == frame["run"].nunique() == len(RUNS)


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

MOUNTS = """
cgroup {0}/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0
cgroup {0}/memory cgroup rw,memory 0 0
cgroup {0}/systemd cgroup rw,name=systemd 0 0
cgroup2 {0}/unified cgroup2 rw 0 0
tmpfs /x tmpfs rw 0 0
"""
MEMBERSHIPS = "5:memory:/job\n4:cpu,cpuacct:/\n1:name=systemd:/\n0::/deep/er\n"


def test_trees_of_both_versions_are_found():
    trees = groups.find_hierarchies(MOUNTS.format("/c"), MEMBERSHIPS)
    assert [(tree.version, str(tree.current)) for tree in trees] == [
        (1, "/c/cpu,cpuacct"),
        (1, "/c/memory/job"),
        (2, "/c/unified/deep/er"),
    ]
    assert groups.find_hierarchies("nonsense\n\x00", "x\n::\n") == []


def test_the_base_group_is_below_the_callers_own(tmp_path):
    for name in ("cpu,cpuacct", "memory/job", "unified/deep/er"):
        (tmp_path / name).mkdir(parents=True)
    trees = groups.find_hierarchies(MOUNTS.format(tmp_path), MEMBERSHIPS)
    # generated folders have none of the files of a group
    assert groups.open_base(trees, "perfcast-interference-1").folders == []
    assert not list(tmp_path.rglob("perfcast*"))


def test_limits_are_written_in_the_words_of_each_version(tmp_path):
    (tmp_path / "two").mkdir()
    group = groups.GroupFolders([(2, tmp_path / "two")])
    assert group.limits == set()
    (tmp_path / "two/cpu.max").write_text("max 100000")
    group.limit_cpu(1.4)
    assert (tmp_path / "two/cpu.max").read_text() == "140000 100000"
    (tmp_path / "two/cpu.max").unlink()
    for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us", "memory.limit_in_bytes"):
        (tmp_path / "two" / name).write_text("")
    group.limit_cpu(0.7)
    group.limit_memory(12345)
    assert (tmp_path / "two/cpu.cfs_quota_us").read_text() == "70000"
    assert (tmp_path / "two/memory.limit_in_bytes").read_text() == "12345"
    assert group.limits == {"cpu", "memory"}


def test_without_groups_limits_are_impossible_and_one_core_allows_one_placement():
    def possible(cpus):
        reasons = campaign.possible_placements(groups.GroupFolders([]), cpus)
        assert set(reasons) == set(PLACEMENTS)
        return [name for name, reason in reasons.items() if not reason]

    assert possible([0, 1]) == ["same_core", "shared_cores", "other_core"]
    assert possible([0]) == ["same_core"]


# errors of users


def test_workloads_are_named_by_their_class_and_parsed():
    names = workload_names()
    assert len(names) >= 18
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


def test_no_proc_and_no_room_are_mistakes(tmp_path, monkeypatch):
    with pytest.raises(UserError, match="/proc of Linux"):
        require_linux(tmp_path)
    monkeypatch.setattr(campaign.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 2**20}))
    with pytest.raises(UserError, match="MiB of room, but it has 1 MiB"):
        campaign.require_room(Path(tmp_path), workload_names())

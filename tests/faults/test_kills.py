"""A run killed at any moment continues to the bytes of an undisturbed one."""

import shutil
from dataclasses import replace

import pytest
from killing import assert_whole, finish, half_written, kill_at, tiny_project

KILLS = 10


def start_over(project):
    for folder in ("results", ".snakemake"):
        shutil.rmtree(project / folder)


def kill_one_after_the_other(project, moments, timeline, expected):
    """Kill at every moment, each time going on from what the kill before it left, then let the run end."""
    left, missed = list(moments), 0
    while left:
        killed = kill_at(project, left[0], list(timeline.jobs))
        if killed is None:  # faster than the undisturbed run: once more, from the start and earlier
            missed += 1
            assert missed <= len(moments), "the run ends before it can be killed"
            assert_whole(project, expected)
            start_over(project)
            left[0] = replace(left[0], seconds=left[0].seconds / 2)
            continue
        print(f"killed in {[*killed.jobs][-2:] or 'the start'}")
        assert not half_written(project, expected), "before anything is repaired"
        left.pop(0)
    finish(project, expected)


@pytest.mark.faults
def test_run_continues_after_ten_kills(reference, tmp_path):
    _, timeline, expected = reference
    moments = timeline.moments(KILLS, seed=1)
    kill_one_after_the_other(tiny_project(tmp_path / "project"), moments, timeline, expected)

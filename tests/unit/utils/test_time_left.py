"""Time left of a run: on the recorded order and durations of the default run, with the pinned seconds of another."""

import csv
from pathlib import Path

import pytest

from perfcast.utils.time_left import TimeLeft, read_pinned

REPOSITORY = Path(__file__).parents[3]
PINNED = read_pinned(REPOSITORY / "results/performance/jobs/cpu_seconds.csv")
with Path(__file__).with_name("recorded_run.csv").open(newline="") as _file:
    RUN = list(csv.DictReader(_file))


def replay(pinned, slowness=1.0):
    """Return the true and the estimated time left at the start of each job of the recorded run."""
    events = []
    for row in RUN:
        start, end = float(row["start"]) * slowness, float(row["end"]) * slowness
        events += [(start, 1, row["job"]), (max(end, start + 0.1), 0, row["job"])]
    events.sort()
    end = events[-1][0]
    estimate = TimeLeft(pinned)
    estimate.plan(row["job"] for row in RUN)
    estimates = []
    for now, is_start, job in events:
        if not is_start:
            estimate.finish(job, now)
            continue
        estimate.start(job, now)
        if (seconds := estimate.seconds(now, 0.0, len(RUN))) is not None:
            estimates.append((end - now, seconds))
    return end, estimates


@pytest.mark.parametrize("slowness", [1.0, 3.0])
def test_the_recorded_run_is_told_within_a_quarter(slowness):
    end, estimates = replay(PINNED, slowness)
    for left, seconds in estimates:
        if left < 0.97 * end:  # the first seconds tell nothing on the speed
            assert abs(seconds - left) < max(0.25 * left, 0.05 * end), (left, seconds)


def test_equal_jobs_would_be_told_far_off():
    """The pinned seconds are for this: long jobs are neither evenly spread nor last."""
    end, estimates = replay({})
    assert max(abs(seconds / left - 1) for left, seconds in estimates if 0.1 * end < left < 0.9 * end) > 0.5


def test_a_job_without_a_record_takes_what_its_likes_took():
    estimate = TimeLeft({"train a random mlp": 30.0, "train a random ridge": 2.0, "train b random mlp": 50.0})
    assert estimate.expected("train c random mlp") == 40
    assert estimate.expected("train c random new") == pytest.approx(82 / 3)
    assert estimate.expected("metrics") == 1


def test_jobs_that_a_checkpoint_adds_count_as_the_others():
    estimate = TimeLeft({})
    estimate.plan(["ingest a", "ingest b"])
    estimate.start("ingest a", 0.0)
    estimate.finish("ingest a", 20.0)
    assert estimate.seconds(20.0, 0.0, 4) == pytest.approx(3 * estimate.seconds(20.0, 0.0, 2))


def test_the_pinned_jobs_are_those_of_the_default_run():
    assert {row["job"] for row in RUN} - {"all", "available", "metrics", "headline"} <= PINNED.keys()

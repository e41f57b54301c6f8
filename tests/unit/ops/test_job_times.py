"""Times of jobs, read from files as Snakemake writes them."""

from __future__ import annotations

import os

import pytest

from perfcast.cli.main import main
from perfcast.ops.run_summary import as_text, read_jobs

HEAD = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"


@pytest.fixture
def results(tmp_path):
    """Return a folder with two trainings, one of them repeated, and a report that was too short to be sampled."""
    rows = {
        "train/d/random/a": [("9.00", "100.0", "8.00", 90), ("4.00", "300.0", "3.50", 100)],
        "train/d/random/b": [("6.00", "200.5", "5.00", 106)],
        "report": [("0.25", "NA", "-", 107)],
    }
    for name, runs in rows.items():
        path = tmp_path / "benchmarks" / f"{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{s}\t0:00:09\t{peak}\t1\t1\t1\t0\t0\t90\t{cpu}\n" for s, peak, cpu, _ in runs]
        path.write_text(HEAD + "".join(lines))
        os.utime(path, (runs[-1][3], runs[-1][3]))
    (tmp_path / "benchmarks" / "empty.tsv").write_text(HEAD)
    return tmp_path


def test_read_jobs_takes_the_last_run(results):
    jobs = read_jobs(results)
    trained = jobs[jobs["rule"] == "train"]
    columns = ["name", "seconds", "cpu_seconds", "peak", "start"]
    assert list(trained[columns].itertuples(index=False, name=None)) == [
        ("d/random/a", 4.0, 3.5, 300.0, 96.0),
        ("d/random/b", 6.0, 5.0, 200.5, 100.0),
    ]


def test_read_jobs_omits_older_jobs(results):
    assert list(read_jobs(results, since=101)["name"]) == ["", "d/random/b"]


def test_as_text_sums_jobs_and_ignores_missing_samples(results):
    lines = as_text(read_jobs(results)).splitlines()
    assert lines[1].split() == ["train", "2", "10.0", "8.5", "300"]
    assert lines[2].split() == ["report", "1", "0.2", "0.0", "0"]
    assert lines[3].split() == ["all", "3", "10.2", "8.5", "300"]
    assert lines[4].startswith("longest: train d/random/b 6 s, train d/random/a 4 s")
    assert lines[5].endswith(": 11 s")


def test_times_command_without_jobs(results, tmp_path, capsys):
    assert main(["pipeline", "times", "--results", str(results)]) == 0
    assert capsys.readouterr().out.count("\n") == 6
    assert main(["pipeline", "times", "--results", str(results), "--since", "1e12"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["pipeline", "times", "--results", str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err.count("\n") == 1

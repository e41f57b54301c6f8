"""One flipped bit in every kind of result: the next reader refuses it, whatever the time stamp says."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from finished_project import (
    CHAMPION,
    EVALUATION,
    FOLDS,
    NAME,
    RUNS,
    STAGES,
    STANDARD,
    inside,
)
from finished_project import finished as make_finished
from hostile_input import call, one_line
from small_project import call as run_tool

from perfcast.utils.result_digests import FOLDER_RECORD, record_digests, verify_digest

RUN = f"{RUNS}/random/ridge"
PREDICT = ["predict", "--dataset", NAME, "--champion", CHAMPION, "--set", "m=128", "--set", "n=64", "--set", "k=64"]
READERS = {
    "raw file": (f"results/raw/{NAME}/*.csv.gz", ["pipeline", *STAGES["standardize"]]),
    "manifest": (f"results/raw/{NAME}/manifest.json", ["pipeline", *STAGES["standardize"]]),
    "record of a folder": (f"{EVALUATION}/{FOLDER_RECORD}", ["pipeline", *STAGES["plots"]]),
    "standard table": (STANDARD, ["pipeline", *STAGES["features"]]),
    "record of a file": (f"{STANDARD}.sha256", ["pipeline", *STAGES["features"]]),
    "split": (f"{FOLDS}/random.parquet", ["pipeline", *STAGES["train"]]),
    "predictions": (f"{RUN}/predictions.parquet", ["pipeline", *STAGES["evaluate"]]),
    "inner validation": (f"{RUN}/validation.json", ["pipeline", *STAGES["champion"]]),
    "model": (f"{RUN}/model/predictor.json", ["pipeline", *STAGES["leakage"]]),
    "summary": (f"{EVALUATION}/summary.json", ["pipeline", *STAGES["metrics"]]),
    "metrics of an evaluation": (f"{EVALUATION}/metrics.csv", ["pipeline", *STAGES["plots"]]),
    "champion": (f"{CHAMPION}/about.json", PREDICT),
    "reference data": (f"{CHAMPION}/reference_data/measured.parquet", PREDICT),
}


@pytest.fixture(scope="module")
def project():
    with inside(make_finished()):
        yield Path()


def flip(path: Path) -> tuple[bytes, os.stat_result]:
    content, state = path.read_bytes(), path.stat()
    place = len(content) // 2
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    return content, state


def restore(path: Path, before: tuple[bytes, os.stat_result]) -> None:
    path.write_bytes(before[0])
    os.utime(path, ns=(before[1].st_atime_ns, before[1].st_mtime_ns))


@pytest.mark.parametrize("kind", READERS)
def test_flipped_bit_is_refused_by_the_next_reader(project, capsys, kind):
    pattern, reader = READERS[kind]
    (path,) = project.glob(pattern)
    before = flip(path)
    try:
        status, output = call(reader, capsys)
    finally:
        restore(path, before)
    assert status == 2, output
    line = one_line(output)
    # a record that differs shows as the first file that it does not fit
    assert str(path.parent) in line if path.name == FOLDER_RECORD else path.name.removesuffix(".sha256") in line
    assert "delete" in line or "make it again" in line or "run snakemake" in line


def test_copied_run_and_results_without_a_record_are_read(project, tmp_path):
    shutil.copytree(RUN, tmp_path / "run")
    verify_digest(tmp_path / "run" / "predictions.parquet")
    (tmp_path / "run" / FOLDER_RECORD).unlink()
    (tmp_path / "run" / "predictions.parquet").write_bytes(b"another")
    verify_digest(tmp_path / "run" / "predictions.parquet")


def test_file_that_no_stage_wrote_is_refused(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a.json").write_text("{}")
    record_digests(tmp_path / "run")
    (tmp_path / "run" / "b.json").write_text("{}")
    verify_digest(tmp_path / "run" / "a.json")
    with pytest.raises(ValueError, match=r"does not list it; delete .*run and run snakemake"):
        verify_digest(tmp_path / "run" / "b.json")


def test_digests_are_those_of_sha256sum(project):
    import subprocess

    checks = {"results/standard": f"{NAME}.parquet.sha256", RUN: FOLDER_RECORD, "results": "headline.sha256"}
    for folder, record in checks.items():
        subprocess.run(["sha256sum", "--check", "--quiet", record], cwd=folder, check=True)


@pytest.mark.slow
def test_snakemake_refuses_a_flipped_manifest_before_planning(project):
    path = project / "results" / "raw" / NAME / "manifest.json"
    before = flip(path)
    try:
        output = run_tool(Path.cwd(), "snakemake", "--dry-run", check=False)
    finally:
        restore(path, before)
    lines = [line for line in output.splitlines() if line.startswith("perfcast:")]
    assert len(lines) == 1, output
    assert "manifest.json must be as its stage wrote it, but it has changed since" in lines[0]
    assert "Traceback" not in output

"""Benchmarks in small: growth with every stage, its table, its plot. No time is evaluated here."""

from __future__ import annotations

import csv
import importlib.util
import math
import subprocess
import sys
from pathlib import Path

import pytest

from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import build

SCALE = Path(__file__).parents[3] / "benchmarks" / "scale"
MAX_GIB = 1.5


@pytest.fixture(scope="module")
def scale():
    spec = importlib.util.spec_from_file_location("benchmark_scale", SCALE / "__main__.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def run(folder, *arguments, code=0):
    command = [sys.executable, str(SCALE), *arguments, "--folder", str(folder), "--out", str(folder / "out")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=900)
    assert done.returncode == code, done.stdout + done.stderr
    with (folder / "out" / "scale.csv").open(newline="") as file:
        return done.stdout, list(csv.DictReader(file))


def test_scale_runs_every_stage_and_compares_sizes(tmp_path):
    stages = ["generate", "ingest", "standardize", "features", "split random", "split forward_2023", "train ncpp"]
    stages += ["fit hybrid_trees", "predict hybrid_trees", "champion", "predict_machine"]
    output, rows = run(tmp_path, "--sizes", "0.01", "--stages", *stages)
    assert [row["stage"] for row in rows if not row["part"]] == stages
    assert all(stage in output for stage in stages)
    assert {row["part"] for row in rows if row["stage"] == "predict_machine"} >= {"load", "first prediction"}
    assert all(0 < float(row["gib"]) < MAX_GIB for row in rows if not row["part"])
    output, rows = run(tmp_path, "--sizes", "0.01", "0.02", "--stages", "generate")
    assert [row["size"] for row in rows] == ["0.01", "0.02"]
    assert (tmp_path / "out" / "scale.png").read_bytes().startswith(b"\x89PNG")
    assert "faster than linear" in output


def test_a_failing_stage_is_told_in_one_line(tmp_path):
    output, _ = run(tmp_path, "--sizes", "0.01", "--stages", "standardize", code=1)
    assert "the stages after standardize are left out at 0.01x" in output


def test_scale_stops_a_stage_above_its_memory(scale):
    *_, gib, why = scale.measure([sys.executable, "-c", "x = b'1' * (1 << 28); import time; time.sleep(60)"], 0.1)
    assert why == "stopped above 0.1 GiB"
    assert gib > 0.1


def test_exponents_are_slopes_of_logarithms(scale):
    def measured(size, rows, cpu, failed=""):
        return scale.Measured(size, rows, "split random", "", cpu, cpu, 1.0, failed)

    results = [measured(10, 1000, 8.0), measured(1, 100, 2.0), measured(100, 10_000, 800.0)]
    (slopes,) = scale.exponents(results).values()
    assert [(small, large) for small, large, _ in slopes] == [(1, 10), (10, 100)]
    assert [slope for *_, slope in slopes] == pytest.approx([math.log10(4), 2.0])
    assert scale.growth(results).endswith("split random (10x to 100x: 2.00)")
    assert scale.growth(results[:2]).endswith("nothing")
    assert "peak 1.00 GiB, at most 8: yes" in scale.within_budget(results)
    assert "NO: split random failed" in scale.within_budget([measured(100, 10_000, 1.0, "stopped")])


def test_write_tiled_has_distinct_results_per_block(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(SCALE)
    write_tiled = importlib.import_module("tiled_dump").write_tiled
    write_tiled(tmp_path / "tiled", rows=1000, seed=3, block_rows=400)
    result = build({"spec_cpu2017": tmp_path / "tiled"}, {})
    expected = ["no_score", "impossible_counts", "score_not_numeric", "virtual_machine"]
    assert result.rejected["reason"].isin(expected).all()
    frame = result.table.frame
    assert len(frame) > 990 and frame["result_id"].is_unique
    blocks = frame["system_stem"].astype("str").str.extract(r" G(\d)", expand=False).fillna("0")
    assert set(blocks) == {"0", "1", "2"}
    assert frame["submission_id"].astype("str").groupby(blocks).nunique().min() > 30

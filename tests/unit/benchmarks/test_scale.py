"""The benchmark of growth runs in small: every stage, its table, its plot. No time is evaluated here."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import math
import subprocess
import sys
from pathlib import Path

import pytest

from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import build
from perfcast.domains.servers.testing import spec_cpu2017

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("scale")


def run(folder, *sizes, stages):
    command = [sys.executable, str(SCALE), "--sizes", *sizes, "--folder", str(folder), "--out", str(folder / "out")]
    done = subprocess.run([*command, "--stages", *stages], check=False, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    with (folder / "out" / "scale.csv").open(newline="") as file:
        return done.stdout, list(csv.DictReader(file))


def test_scale_runs_every_stage_and_two_sizes(folder):
    output, rows = run(folder, "0.01", "0.02", stages=["generate", "ingest"])
    assert [(row["size"], row["stage"]) for row in rows] == [
        (size, stage) for size in ("0.01", "0.02") for stage in ("generate", "ingest")
    ]
    assert (folder / "out" / "scale.png").read_bytes().startswith(b"\x89PNG")
    assert "ingest" in output
    assert "faster than linear" in output
    stages = ["standardize", "features", "split random", "split forward_2023"]
    stages += ["train ncpp", "fit hybrid_trees", "predict hybrid_trees", "champion", "predict_machine"]
    output, rows = run(folder, "0.02", stages=stages)
    assert [row["stage"] for row in rows if not row["part"]] == stages
    assert {row["part"] for row in rows if row["stage"] == "predict_machine"} >= {"load", "first prediction"}
    assert all(0 < float(row["gib"]) < MAX_GIB for row in rows if not row["part"])


def test_scale_reports_a_failing_stage(tmp_path):
    command = [sys.executable, str(SCALE), "--sizes", "0.01", "--folder", str(tmp_path), "--out", str(tmp_path / "out")]
    done = subprocess.run([*command, "--stages", "standardize"], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "the stages after standardize are left out at 0.01x" in done.stdout


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
    result = build({"spec_cpu2017": tmp_path / "tiled"}, {"published_until": "2024-12"})
    assert result.rejected["reason"].isin(["no_score", "impossible_counts", "score_not_numeric"]).all()
    frame = result.table.frame
    assert len(frame) > 990
    assert frame["result_id"].is_unique
    blocks = frame["system_stem"].astype("str").str.extract(r" G(\d)", expand=False).fillna("0")
    assert set(blocks) == {"0", "1", "2"}
    assert frame["submission_id"].astype("str").groupby(blocks).nunique().min() > 30
    # the first block is what the generator of small dumps makes, its order and identifiers apart
    spec_cpu2017.write(tmp_path / "small", rows=400, seed=3)
    tiled, small = (systems(tmp_path / name) for name in ("tiled", "small"))
    assert {name for name in small if " G" not in name} <= set(tiled)


def systems(folder):
    with gzip.open(folder / "cpu2017-results.csv.gz", "rt", errors="replace", newline="") as file:
        return [row["System"] for row in csv.DictReader(file) if None not in row.values() and row["System"] != "System"]

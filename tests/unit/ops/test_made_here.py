"""Results of the last run stay; those that came from elsewhere are removed, and nothing beside them."""

import json

import pytest

from perfcast.cli.main import main


@pytest.fixture
def results(tmp_path):
    for name in ("runs/a/model", "logs/x.log", "mlflow/mlflow.db", "full/report.html", "report.html", "metrics.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def names(folder):
    return {path.name for path in folder.iterdir()}


def forget(results, *options):
    assert main(["pipeline", "forget", "--results", str(results), *options]) == 0


def test_results_of_the_last_run_stay(results):
    before = names(results)
    forget(results, "--keep")
    forget(results)
    assert names(results) == before


def test_results_from_elsewhere_are_removed_and_other_experiments_stay(results, capsys):
    forget(results, "--keep")
    (results / "report.html").write_text("of another revision")
    forget(results)
    assert names(results) == {"logs", "mlflow", "full"}
    assert "removed to be made again: runs, metrics.json, report.html" in capsys.readouterr().err


def test_a_run_that_was_cut_before_its_report_keeps_what_it_finished(results):
    (results / "report.html").unlink()
    forget(results)
    assert "runs" in names(results)


def test_missing_sources_are_looked_for_again(results, capsys):
    for name, status in (("here", "present"), ("gone", "missing")):
        (results / "raw" / name).mkdir(parents=True)
        (results / "raw" / name / "manifest.json").write_text(json.dumps({"status": status}))
    forget(results, "--missing-sources")
    assert [path.parent.name for path in results.glob("raw/*/manifest.json")] == ["here"]
    assert "gone" in capsys.readouterr().err


@pytest.mark.reliability("results that came by DVC are removed with the last copy of their raw files")
def test_raw_files_from_elsewhere_stay_for_the_next_ingestion(results):
    (results / "raw" / "here").mkdir(parents=True)
    for name in ("here/manifest.json", "here/a.csv", "available.json", "available.json.sha256"):
        (results / "raw" / name).write_text(name)
    (results / "metrics.json.sha256").write_text("stale")
    forget(results, "--keep")
    (results / "report.html").write_text("of another revision")
    forget(results)
    assert names(results) == {"logs", "mlflow", "full", "raw"}
    assert [path.name for path in (results / "raw").rglob("*") if path.is_file()] == ["a.csv"]

"""Results of the last run stay; those that came from elsewhere are removed, and nothing beside them."""

import json

import pytest

from perfcast.cli.main import main
from perfcast.ops.made_here import RemadeFolders


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


@pytest.mark.reliability("a file of a folder of results is deleted")
def test_deleted_file_changes_the_number_of_its_folder_until_it_is_made_again(results):
    forget(results, "--keep")
    assert RemadeFolders(results).count("runs/a") == 0
    (results / "runs/a/model").unlink()
    remade = RemadeFolders(results)
    assert (remade.count("runs/a"), remade.count("runs")) == (1, 1)
    assert (remade.count("runs/b"), remade.count("champion/a")) == (0, 0)
    remade.record()
    assert RemadeFolders(results).count("runs/a") == 2, "a run that was cut before it made the file again"
    (results / "runs/a/model").write_text("made again")
    assert RemadeFolders(results).count("runs/a") == 1, "as recorded for the job"


@pytest.mark.reliability("the record of deleted files is damaged")
@pytest.mark.parametrize("content", ["", "{", "[]", "\xff"])
def test_damaged_record_of_deleted_files_stops_nothing(results, content):
    forget(results, "--keep")
    (results / "logs" / "remade.json").write_bytes(content.encode("latin-1"))
    remade = RemadeFolders(results)
    assert remade.count("runs/a") == 0
    remade.record()

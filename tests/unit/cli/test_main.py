"""Command line: one line and exit code 2 for mistakes of a user, lazy imports."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from perfcast.cli.main import main
from perfcast.testing.miniature import make_project

PROJECT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pipeline", "ingest", "spec_cpu2071", "--out", "x"], "did you mean 'spec_cpu2017'"),
        (
            ["pipeline", "standardize", "nothing", "--raw", "x", "--table", "x", "--rejected", "x", "--quality", "x"],
            "host_gemm",
        ),
        (["pipeline", "split", "random", "--table", "missing.parquet", "--out", "x"], "missing.parquet must exist"),
        (["summary", "--results", "nowhere"], "make run"),
        (["config", "predictor=ridgee"], "lightgbm"),
        (["config", "--path", "experiment/lm"], "did you mean 'llm'"),
        (["pipeline", "report", "--results", "nowhere", "--out", "x"], "run snakemake"),
    ],
)
def test_main_reports_mistakes_in_one_line_with_exit_code_2(arguments, words, capsys, monkeypatch):
    monkeypatch.chdir(PROJECT)
    assert main(arguments) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert words in message
    assert str(PROJECT) not in message


def test_older_metadata_of_perfcast_are_told_in_one_line(tmp_path):
    (tmp_path / "perfcast.egg-info").mkdir()
    (tmp_path / "perfcast.egg-info" / "PKG-INFO").write_text("Name: perfcast\nVersion: 0\n")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-m", "perfcast", "predict"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "its metadata lack perfcast.domains.gemm" in done.stderr


def test_main_reports_an_interruption_in_one_line(capsys, monkeypatch):
    from perfcast.cli import sources

    def interrupted(options):
        raise KeyboardInterrupt

    monkeypatch.setattr(sources, "run", interrupted)
    assert main(["sources"]) == 130
    assert capsys.readouterr().err == "perfcast sources: interrupted, nothing half-written is left\n"


@pytest.mark.parametrize(
    "command",
    [
        ["sources"],
        ["pipeline", "split", "--help"],
        ["pipeline", "standardize", "--help"],
        ["pipeline", "features", "--help"],
    ],
)
def test_data_commands_import_no_learning_library(command):
    heavy = ["torch", "sklearn", "mlflow", "pytorch_lightning", "lightgbm"]
    code = (
        "import sys; from perfcast.cli.main import main\n"
        f"try:\n    main({command!r})\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["pipeline", "--help"], ["predict", "--help"], ["predct"]]
)
def test_help_version_and_hints_import_no_numeric_library(words):
    code = (
        "import sys; from perfcast.cli.main import main\n"
        f"try:\n    main({words!r})\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('numpy', 'pandas', 'torch', 'pydantic', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_sources_lists_locations(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(PROJECT)
    monkeypatch.setenv("PERFCAST_MIRROR", str(tmp_path))
    assert main(["sources"]) == 0
    shown = capsys.readouterr().out
    for name in ("spec_cpu2017", "perfcastdb", "host_gemm"):
        assert name in shown


def test_available_omits_datasets_without_sources(tmp_path, capsys):
    for source, status in {"host_gemm": "present", "spec_cpu2017": "missing", "cpu_catalog": "missing"}.items():
        (tmp_path / source).mkdir()
        (tmp_path / source / "manifest.json").write_text(json.dumps({"status": status}))
    options = ["--raw", str(tmp_path), "--out", str(tmp_path / "a.json"), "--project", str(PROJECT)]
    assert main(["pipeline", "available", "host_gemm", "spec_cpu2017", *options]) == 0
    assert json.loads((tmp_path / "a.json").read_text()) == {
        "datasets": ["host_gemm"],
        "left_out": {"spec_cpu2017": ["spec_cpu2017"]},
    }
    assert "left out" in capsys.readouterr().err


def test_fake_refuses_a_folder_in_use(tmp_path, capsys):
    (tmp_path / "old").write_text("")
    assert main(["pipeline", "fake", str(tmp_path), "--project", str(PROJECT)]) == 2
    assert "not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_fake_of_a_folder_that_is_no_project_gets_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["pipeline", "fake", "demo", "--project", "."]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "--project must be a clone of perfcast, but . has no params.yaml; work in the clone, or name it" in message
    assert not (tmp_path / "demo").exists()


def test_fake_writes_sources_that_ingest_accepts(tmp_path):
    make_project(PROJECT, tmp_path / "mini", rows=60, seed=0)
    for source in ("spec_cpu2017", "spec_cpu2017_detail", "perfcastdb", "cpu_catalog"):
        out = tmp_path / "mini" / "results" / "raw" / source
        arguments = ["pipeline", "ingest", source, "--out", str(out), "--offline", "--strict"]
        mirror = tmp_path / "mini" / "mirror"
        assert main([*arguments, "--mirror", str(mirror), "--project", str(tmp_path / "mini")]) == 0
        assert json.loads((out / "manifest.json").read_text())["status"] == "present"

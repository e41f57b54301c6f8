"""Command line: one line and exit code 2 for mistakes of a user, lazy imports."""

from __future__ import annotations

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
        (["pipeline", "split", "random", "--table", "missing.parquet", "--out", "x"], "missing.parquet must exist"),
        (["summary", "--results", "nowhere"], "make run"),
        (["config", "--path", "experiment/lm"], "did you mean 'llm'"),
        (["pipeline", "report", "--results", "nowhere", "--out", "x"], "run snakemake"),
        (["pipeline", "fake", "demo", "--project", "docs"], "but docs has no params.yaml; work in the clone, or name"),
    ],
)
def test_main_reports_mistakes_in_one_line_with_exit_code_2(arguments, words, capsys, monkeypatch):
    """Others are in `tests/hostile/test_commands.py`."""
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
    assert "its metadata lack perfcast.domains.accelerators" in done.stderr


def test_a_reader_that_stops_early_is_no_error():
    command = f"env -u PYTHONUNBUFFERED {sys.executable} -m perfcast config --path predictor/ridge | true"
    done = subprocess.run(["sh", "-c", command], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_main_reports_an_interruption_in_one_line(capsys, monkeypatch):
    from perfcast.cli import sources

    def interrupted(options):
        raise KeyboardInterrupt

    monkeypatch.setattr(sources, "run", interrupted)
    assert main(["sources"]) == 130
    assert capsys.readouterr().err == "perfcast sources: interrupted, nothing half-written is left\n"


def test_help_version_and_hints_import_no_numeric_library():
    code = """
import sys
from perfcast.cli.main import main
for words in ("--help", "--version", "pipeline --help", "predict --help", "predct"):
    try:
        main(words.split())
    except SystemExit:
        pass
print([name for name in ("numpy", "pandas", "torch", "pydantic", "rich") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_available_omits_datasets_without_sources(tmp_path, capsys):
    for source, status in {"host_gemm": "present", "spec_cpu2017": "missing"}.items():
        (tmp_path / source).mkdir()
        (tmp_path / source / "manifest.json").write_text(json.dumps({"status": status}))
    options = ["--raw", str(tmp_path), "--out", str(tmp_path / "a.json"), "--project", str(PROJECT)]
    assert main(["pipeline", "available", "host_gemm", "spec_cpu2017", *options]) == 0
    assert json.loads((tmp_path / "a.json").read_text()) == {
        "datasets": ["host_gemm"],
        "left_out": {"spec_cpu2017": ["spec_cpu2017"]},
    }
    assert "left out" in capsys.readouterr().err


def test_fake_writes_sources_that_ingest_accepts(tmp_path):
    make_project(PROJECT, tmp_path / "mini", rows=60, seed=0)
    for source in ("spec_cpu2017", "spec_cpu2026", "perfcastdb"):
        out = tmp_path / "mini" / "results" / "raw" / source
        arguments = ["pipeline", "ingest", source, "--out", str(out), "--offline", "--strict"]
        mirror = tmp_path / "mini" / "mirror"
        assert main([*arguments, "--mirror", str(mirror), "--project", str(tmp_path / "mini")]) == 0
        assert json.loads((out / "manifest.json").read_text())["status"] == "present"


HEAVY = (
    "torch",
    "pytorch_lightning",
    "sklearn",
    "scipy",
    "mlflow",
    "lightgbm",
    "matplotlib",
    "fastapi",
)

_COMMANDS = f"""
import json, os, sys
import pandas, pyarrow.parquet
from perfcast.cli.command_parser import COMMANDS, MEMBERS, TypedCommand, build_parser

commands = [("cli", name) for name in COMMANDS]
commands += [(f"cli.{{family}}", name) for family, names in MEMBERS.items() for name in names]
for package, name in commands:
    if os.fork() == 0:
        build_parser(TypedCommand(package, name))
        heavy = [each for each in {HEAVY!r} if each in sys.modules]
        print(package, name, heavy, flush=True) if heavy else None
        os._exit(0)
    os.wait()
"""


def test_options_are_read_without_heavy_libraries() -> None:
    done = subprocess.run([sys.executable, "-c", _COMMANDS], capture_output=True, text=True, cwd=PROJECT, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

"""Comparison of results with those that a revision pinned, in a small repository with DVC."""

import json
import shutil

import pytest
from small_project import call

from perfcast.cli.main import main

PIPELINE = """\
stages:
  pipeline:
    cmd: "true"
    deps: [src/model.py]
    params:
      - params.yaml:
    outs: [results/standard, results/splits, results/runs, results/evaluation]
    metrics:
      - results/metrics.json:
          cache: false
"""
VALUES = {"mape": 4.0, "coverage": 90.0, "r2": 0.01}
FIGURES = {"cpu": {"random": {"mlp": {"average": VALUES}, "ridge": {"average": VALUES}}}}


@pytest.fixture(scope="module")
def pinned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reproduction") / "project"
    model = "runs/cpu/random/mlp/model/network.npz"
    for name in ("standard/cpu.parquet", "splits/cpu/random.parquet", model, "evaluation/summary.json"):
        path = folder / "results" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (folder / "src").mkdir()
    (folder / "src" / "model.py").write_text("ALPHA = 1\n")
    (folder / "params.yaml").write_text("seeds: [0]\n")
    (folder / "dvc.yaml").write_text(PIPELINE)
    (folder / "results" / ".gitignore").write_text("/standard\n/splits\n/runs\n/evaluation\n")
    write(folder, FIGURES)
    call(folder, "git", "init", "--quiet")
    call(folder, "dvc", "init", "--quiet")
    call(folder, "dvc", "commit", "--force")
    call(folder, "git", "add", "--all")
    call(folder, "git", "commit", "--quiet", "--message", "pinned")
    return folder


@pytest.fixture
def project(pinned, tmp_path):
    return shutil.copytree(pinned, tmp_path / "again", symlinks=True)


def write(folder, metrics):
    (folder / "results" / "metrics.json").write_text(json.dumps(metrics))


def change_metric(predictor="mlp", **changed):
    return {"cpu": {"random": {**FIGURES["cpu"]["random"], predictor: {"average": {**VALUES, **changed}}}}}


@pytest.mark.parametrize(
    ("changed", "within"),
    [
        *(({"mape": 4.1}, True), ({"mape": 4.3}, False), ({"coverage": 91.9}, True), ({"coverage": 92.1}, False)),
        *(({"r2": 0.046}, True), ({"r2": 0.12}, False)),
        *(({"predictor": "ridge", "mape": 4.1}, False), ({"predictor": "ridge", "mape": 4.00001}, True)),
    ],
)
def test_metrics_have_a_tolerance_and_tables_none(project, capsys, changed, within):
    write(project, change_metric(**changed))
    assert main(["reproduced", "--project", str(project)]) == (0 if within else 1)
    output = capsys.readouterr().out
    assert f"cpu/random/{changed.get('predictor', 'mlp')}/average/{list(changed)[-1]}" in output
    assert "byte for byte" not in output


def test_untouched_copy_is_reproduced_and_changed_code_and_parameters_are_listed(project, capsys):
    assert main(["reproduced", "--project", str(project)]) == 0
    output = capsys.readouterr().out
    assert "reproduced, byte for byte: tables equal, metrics within tolerance" in output
    assert "changed since" not in output
    (project / "src" / "model.py").write_text("ALPHA = 2\n")
    (project / "params.yaml").write_text("seeds: [1]\n")
    main(["reproduced", "--project", str(project)])
    assert "changed since, which may change metrics: src/model.py, seeds" in capsys.readouterr().out


@pytest.mark.parametrize(("path", "code"), [("standard/cpu.parquet", 1), ("runs/cpu/random/mlp/model/network.npz", 0)])
def test_changed_bytes_count_in_tables_only(project, capsys, path, code):
    (project / "results" / path).write_text("other bytes")
    assert main(["reproduced", "--project", str(project)]) == code
    assert f"other bytes: {path.split('/')[0]}" in capsys.readouterr().out


def test_missing_metric_is_not_reproduced(project, capsys):
    write(project, {"cpu": {"random": {**FIGURES["cpu"]["random"], "ridge": {"average": {"mape": 4.0}}}}})
    assert main(["reproduced", "--project", str(project)]) == 1
    output = capsys.readouterr().out
    assert "2 of 6 metrics are missing, such as cpu/random/ridge/average/coverage" in output
    assert "not reproduced: tables equal, metrics beyond tolerance" in output


@pytest.mark.parametrize("revision", ["HEAD", "nothing"])
def test_reproduced_command_reports_mistakes_in_one_line(project, capsys, revision):
    shutil.rmtree(project / "results" / "evaluation")  # as in a fresh clone, which has metrics.json from git
    assert main(["reproduced", revision, "--project", str(project)]) == 2
    output = capsys.readouterr().err
    assert output.startswith("perfcast reproduced: ")
    assert output.count("\n") == 1

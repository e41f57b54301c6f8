"""Results of git revisions, through a small repository whose results DVC keeps."""

import shutil

import pandas as pd
import pytest
from small_project import call

from perfcast.cli.main import main
from perfcast.evaluation.results_diff import find_changes, open_side
from perfcast.evaluation.results_diff.sides import lock_beside
from perfcast.testing.generated_results import write_results
from perfcast.utils.errors import UserError

PIPELINE = """\
stages:
  pipeline:
    cmd: "true"
    deps:
      - src/model.py
    params:
      - params.yaml:
    outs: [results/raw, results/standard, results/in_domain, results/runs, results/evaluation]
    metrics:
      - results/metrics.json:
          cache: false
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Two tagged revisions: code, a parameter, a table and the predictions of one predictor differ."""
    folder = tmp_path_factory.mktemp("revisions") / "project"
    write_results(folder / "results", rows=300, seed=0)
    shutil.rmtree(folder / "results" / "plots")
    shutil.rmtree(folder / "results" / "champion")
    (folder / "results" / "metrics.json").write_text("{}\n")
    (folder / "src").mkdir()
    (folder / "src" / "model.py").write_text("ALPHA = 1\n")
    (folder / "params.yaml").write_text("preset: quick\nseeds: [0]\n")
    (folder / "dvc.yaml").write_text(PIPELINE)
    ignored = ("raw", "standard", "in_domain", "runs", "evaluation")
    (folder / "results" / ".gitignore").write_text("".join(f"/{name}\n" for name in ignored))
    call(folder, "git", "init", "--quiet")
    call(folder, "dvc", "init", "--quiet")
    keep(folder, "without")
    call(folder, "dvc", "commit", "--force")
    keep(folder, "first")
    (folder / "src" / "model.py").write_text("ALPHA = 2\nBETA = 3\n")
    (folder / "params.yaml").write_text("preset: full\nseeds: [0]\n")
    (folder / "results" / "metrics.json").write_text("[]\n")
    for path in (folder / "results" / "runs" / "fake" / "random" / "ridge").glob("predictions.parquet"):
        frame = pd.read_parquet(path)
        frame.assign(predicted=frame["measured"] * (frame["predicted"] / frame["measured"]) ** 0.5).to_parquet(path)
    call(folder, "dvc", "commit", "--force")
    keep(folder, "second")
    return folder


def keep(folder, tag):
    call(folder, "git", "add", "--all")
    call(folder, "git", "commit", "--quiet", "--message", tag)
    call(folder, "git", "tag", tag)


def compared(project, before, after):
    with open_side(before, project) as a, open_side(after, project) as b:
        return find_changes(a, b, project, resamples=100)


def test_revisions_are_compared_without_touching_the_working_tree(project):
    state = (
        call(project, "git", "status", "--porcelain"),
        sorted(path for path in project.rglob("*") if ".git" not in path.parts),
    )
    diff = compared(project, "first", "second")
    frame = diff.metrics.frame
    assert set(frame.loc[frame["difference"] != 0, "predictor"]) == {"ridge"}
    rows = frame[(frame["predictor"] == "ridge") & (frame["metric"] == "mape") & (frame["task"] == "average")]
    assert list(rows.loc[rows["verdict"] == "better", "split"]) == ["random"]
    assert set(rows.loc[rows["split"] != "random", "verdict"]) == {"no real change"}
    assert [(file.path, file.added, file.removed) for file in diff.code] == [("src/model.py", 2, 1)]
    assert [(parameter.key, parameter.before, parameter.after) for parameter in diff.parameters] == [
        ("preset", "quick", "full")
    ]
    assert not diff.tables
    assert state == (
        call(project, "git", "status", "--porcelain"),
        sorted(path for path in project.rglob("*") if ".git" not in path.parts),
    )


def test_revision_and_folder_are_compared_by_recorded_digests(project, tmp_path, monkeypatch):
    monkeypatch.chdir(project)
    diff = compared(project, "first", "results")
    assert [file.path for file in diff.code] == ["src/model.py"]
    assert "dvc.lock" in diff.code_from
    assert [parameter.key for parameter in diff.parameters] == ["preset"]
    other = tmp_path / "results"
    shutil.copytree(project / "results", other)
    assert "not recorded" in compared(project, "first", str(other)).code_from


def test_lock_of_another_run_is_ignored(project, tmp_path):
    shutil.copytree(project / "results", tmp_path / "results")
    shutil.copy(project / "dvc.lock", tmp_path / "dvc.lock")
    assert lock_beside(tmp_path / "results").params["preset"] == "full"
    (tmp_path / "results" / "metrics.json").write_text("{}\n")
    assert lock_beside(tmp_path / "results") is None


def test_two_names_of_one_commit_have_no_change(project):
    diff = compared(project, "second", "HEAD")
    assert not (diff.code or diff.parameters or diff.tables or diff.real)
    assert diff.code_from.startswith("both are commit")


@pytest.mark.parametrize(
    ("name", "words"),
    [("nowhere", "neither a folder nor a tag"), ("without", "'without' has no dvc.lock")],
)
def test_revision_without_results_gets_one_line(project, name, words, capsys):
    assert main(["results", "compare", name, "second", "--project", str(project)]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert words in message


def test_empty_cache_error_names_the_fetch_command(project, tmp_path):
    call(tmp_path, "git", "clone", "--quiet", str(project), "clone")
    clone = tmp_path / "clone"
    with pytest.raises(UserError, match=r"must be in the DVC cache or in a remote.*dvc fetch --all-commits"):
        compared(clone, "first", "second")
    # a missing cache entry is fetched from the remote
    call(clone, "dvc", "remote", "add", "--local", "--default", "cache", str(project / ".dvc" / "cache"))
    assert compared(clone, "first", "second").real

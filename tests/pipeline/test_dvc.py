"""DVC on a miniature project: runs or skips, compares, and carries the results to another clone."""

import json
import shutil

import pytest
from small_project import PINNED, REPOSITORY, call, change, digests, rules_run, small_project

pytestmark = pytest.mark.slow
COMMENT = "# as many as the test needs"


def versioned_project(folder, **params):
    """A miniature project under git and DVC, with the repository's own configuration and code."""
    small_project(folder, **params)
    for name in ("dvc.yaml", ".dvcignore", ".gitignore", ".dvc/config", ".dvc/.gitignore", "results/.gitignore"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / name, folder / name)
    shutil.copytree(REPOSITORY / ".dvc" / "plots", folder / ".dvc" / "plots")
    shutil.copytree(
        REPOSITORY / "src" / "perfcast", folder / "src" / "perfcast", ignore=shutil.ignore_patterns("__pycache__")
    )
    path = folder / "params.yaml"
    path.write_text(path.read_text().replace("resamples: 50", f"resamples: 50  {COMMENT}"))
    call(folder, "git", "init", "--quiet")
    commit(folder, "experiment")
    return folder


def commit(project, message):
    call(project, "git", "add", "--all")
    call(project, "git", "commit", "--quiet", "--message", message)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A first experiment, run and committed."""
    folder = versioned_project(tmp_path_factory.mktemp("dvc") / "project")
    call(folder, "dvc", "repro")
    commit(folder, "results")
    return folder


def test_dvc_versions_results_except_metrics(project):
    tracked = call(project, "git", "ls-files", "results").split()
    assert tracked == ["results/.gitignore", "results/metrics.json"]
    assert "dvc.lock" in call(project, "git", "ls-files", "dvc.lock")
    assert not call(project, "git", "status", "--porcelain")


def test_second_repro_skips(project):
    assert "didn't change, skipping" in call(project, "dvc", "repro")


@pytest.fixture(scope="module")
def second(project):
    """The digests of a second experiment with another split, which is left in the workspace."""
    call(project, "dvc", "exp", "run", "--set-param", "split_seed=1")
    return digests(project, *PINNED)


def test_dvc_experiment_changes_only_its_parameter(project, second):
    lines = call(project, "git", "diff", "--unified=0", "params.yaml").splitlines()
    assert [line for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---")] == [
        "-split_seed: 0",
        "+split_seed: 1",
    ]
    assert COMMENT in (project / "params.yaml").read_text()


def test_dvc_metrics_diff_compares_two_revisions(project, second):
    changed = json.loads(call(project, "dvc", "metrics", "diff", "--json"))["results/metrics.json"]
    error = changed["host_gemm.random.ridge.average.mape"]
    assert error["old"] != error["new"]
    assert error["diff"] == pytest.approx(error["new"] - error["old"])


def test_dvc_plots_diff_draws_two_revisions(project, second, tmp_path):
    call(project, "dvc", "plots", "diff", "HEAD", "--out", str(tmp_path))
    page = (tmp_path / "index.html").read_text()
    for revision in ("HEAD", "workspace"):
        assert f'"rev": "{revision}"' in page
    assert "MAPE" in page
    images = sorted(path.name for path in tmp_path.rglob("*.svg"))
    assert len(images) == 2, "the headline of both revisions, needing no network"


def test_checked_out_results_are_not_mistaken_for_the_last_run(project, second):
    call(project, "git", "checkout", "--quiet", ".")
    call(project, "dvc", "checkout")
    assert digests(project, "runs") != {name: second[name] for name in second if name.startswith("runs/")}
    # Snakemake's records are of the second experiment still: without more they would hide the change of the split.
    call(project, "dvc", "exp", "run", "--set-param", "split_seed=1", "--set-param", "resamples=60")
    parts = ("raw", "standard", "features", "splits", "runs", "champion")
    assert digests(project, *parts) == {name: second[name] for name in second if name.startswith(parts)}
    call(project, "git", "checkout", "--quiet", ".")
    call(project, "dvc", "checkout")


def test_fresh_clone_pulls_equal_bytes_and_continues(project, second, tmp_path):
    remote, clone = tmp_path / "remote", tmp_path / "clone"
    call(project, "dvc", "remote", "add", "--local", "--default", "--force", "folder", str(remote))
    call(project, "dvc", "push")
    call(tmp_path, "git", "clone", "--quiet", str(project), str(clone))
    call(clone, "dvc", "remote", "add", "--local", "--default", "folder", str(remote))
    call(clone, "dvc", "pull")
    pulled = digests(clone, *PINNED)
    assert len(pulled) > 20
    assert pulled == digests(project, *PINNED)
    assert (clone / "results" / "report.html").read_bytes() == (project / "results" / "report.html").read_bytes()
    assert "up to date" in call(clone, "dvc", "status")
    assert "didn't change, skipping" in call(clone, "dvc", "repro")
    # the rest of `make pull`
    call(clone, "snakemake", "--touch", "--forceall")
    call(clone, "sh", "-c", "mkdir -p results/logs && sha256sum results/report.html > results/logs/report.sha256")
    assert "Nothing to be done" in call(clone, "snakemake", "--dry-run")
    assert "Nothing to be done" in call(clone, "snakemake")
    assert digests(clone, *PINNED) == pulled
    assert "up to date" in call(clone, "dvc", "status")
    assert not call(clone, "git", "status", "--porcelain")
    assert "didn't change, skipping" in call(clone, "dvc", "repro")
    change(clone, resamples=70)
    planned = rules_run(call(clone, "snakemake", "--dry-run"))
    assert {"evaluate", "report"} <= planned
    assert not {"ingest", "standardize", "split", "train"} & planned
    assert "resamples" in call(clone, "dvc", "status")
    assert rules_run(call(clone, "dvc", "repro")) == planned

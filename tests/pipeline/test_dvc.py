"""DVC on a miniature project: runs or skips, compares, and carries the results to another clone."""

import json
import re
import shutil

import pytest
from small_project import PINNED, REPOSITORY, call, change, digests, rules_run, small_project

pytestmark = pytest.mark.slow
PHASES = {"ingest", "standardize", "features", "train", "evaluate", "report"}
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


def skipped(output):
    """Return the stages that `dvc repro` did not run."""
    return set(re.findall(r"Stage '(\w+)' didn't change, skipping", output))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A first experiment, run and committed."""
    folder = versioned_project(tmp_path_factory.mktemp("dvc") / "project")
    call(folder, "dvc", "repro")
    commit(folder, "results")
    return folder


def test_dvc_versions_results_except_metrics(project):
    tracked = call(project, "git", "ls-files", "results").split()
    assert tracked == [
        "results/.gitignore",
        "results/headline.sha256",
        "results/headline/host_gemm/random.json",
        "results/metrics.json",
        "results/metrics.json.sha256",
    ]
    assert "dvc.lock" in call(project, "git", "ls-files", "dvc.lock")
    assert not call(project, "git", "status", "--porcelain")


def test_metrics_are_one_short_line_per_split(project):
    heading, line = call(project, "dvc", "metrics", "show").splitlines()
    assert heading.split() == ["Path", "baseline", "baseline_mape", "champion", "coverage", "mape", "medape"]
    assert line.startswith("results/headline/host_gemm/random.json")


def test_a_phase_runs_alone_and_those_before_it_are_skipped(project):
    output = call(project, "dvc", "repro", "--dry", "--force", "--single-item", "evaluate")
    assert "snakemake --until" in output
    assert skipped(call(project, "dvc", "repro", "evaluate")) == PHASES - {"report"}


def test_the_champion_is_an_artifact(project, tmp_path):
    call(project, "dvc", "push")
    call(project, "git", "tag", "--message", "v1", "host-gemm@v1.0.0")  # a version of the model registry
    call(tmp_path, "dvc", "artifacts", "get", str(project), "host-gemm", "--out", "champion")
    assert json.loads((tmp_path / "champion" / "about.json").read_text())["dataset"] == "host_gemm"


def trained(project):
    """Return the splits and predictors whose training ran in this folder: `--touch` leaves empty logs."""
    logs = project / "results" / "logs" / "train"
    return {path.relative_to(logs).with_suffix("").as_posix() for path in logs.rglob("*.log") if path.stat().st_size}


def test_a_team_trains_once(tmp_path):
    """Three clones and a remote: nobody trains what another one trained with the same code, inputs and parameters."""
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    remote = ["dvc", "remote", "add", "--local", "--default", "--force", "shared", str(tmp_path / "remote")]
    make = ["make", "--old-file=setup"]
    versioned_project(first)
    shutil.copy(REPOSITORY / "Makefile", first)
    call(first, *make, "run")
    assert trained(first) == {"host_gemm/random/nearest", "host_gemm/random/ridge"}
    commit(first, "results")
    call(first, *remote)
    call(first, "dvc", "push")
    for clone in (second, third):
        call(tmp_path, "git", "clone", "--quiet", str(first), str(clone))
        call(clone, *remote)
    call(second, *make, "pull")
    assert "Nothing to be done" in call(second, *make, "run")
    assert trained(second) == set()
    assert digests(second, *PINNED) == digests(first, *PINNED)
    assert not call(second, "git", "status", "--porcelain")
    # one that has other parameters of a predictor already
    conf = third / "conf" / "predictor" / "ridge.yaml"
    conf.write_text(conf.read_text().replace("default_alpha: 0.001", "default_alpha: 0.01"))
    assert call(third, "git", "status", "--porcelain").split() == ["M", "conf/predictor/ridge.yaml"]
    call(third, *make, "pull")
    output = call(third, *make, "run")
    assert trained(third) == {"host_gemm/random/ridge"}
    assert {"champion", "evaluate", "report"} <= rules_run(output)
    assert not {"standardize", "features", "split", "in_domain"} & rules_run(output)


KEPT = ("raw", "standard", "features", "splits", "in_domain", "runs", "champion")


def test_an_experiment_after_make_run_keeps_its_results(tmp_path):
    """Straight after the run, without `dvc repro`: DVC removes results that it does not know."""
    folder = versioned_project(tmp_path / "project")
    shutil.copy(REPOSITORY / "Makefile", folder)
    call(folder, "make", "--old-file=setup", "run")
    commit(folder, "results")
    before = digests(folder, *KEPT)
    assert len(before) > 10
    output = call(folder, "dvc", "exp", "run", "--set-param", "level=0.8")
    assert skipped(output) == PHASES - {"evaluate", "report"}
    assert not {"ingest", "standardize", "split", "train", "champion"} & rules_run(output)
    assert digests(folder, *KEPT) == before
    assert (folder / "results" / "report.html").exists()
    call(folder, "git", "checkout", "--quiet", ".")
    call(folder, "make", "--old-file=setup", "run")
    assert not call(folder, "git", "status", "--porcelain"), "the same results again"


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
    (changed,) = json.loads(call(project, "dvc", "metrics", "diff", "--json")).values()
    error = changed["mape"]
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


def test_checked_out_results_that_are_recorded_are_not_mistaken_for_the_last_run(project, second):
    call(project, "git", "checkout", "--quiet", ".")
    call(project, "dvc", "checkout")
    call(project, "snakemake", "--touch", "--forceall")  # as `make pull` does
    assert digests(project, "runs") != {name: second[name] for name in second if name.startswith("runs/")}
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
    assert skipped(call(clone, "dvc", "repro")) == PHASES
    # the rest of `make pull`
    (clone / "results" / "logs").mkdir(exist_ok=True)
    (clone / "results" / "logs" / "record.txt").touch()
    call(clone, "snakemake", "--touch", "--forceall")
    assert rules_run(call(clone, "snakemake", "--dry-run")) == set()
    assert "Nothing to be done" in call(clone, "snakemake")
    assert digests(clone, *PINNED) == pulled
    assert not call(clone, "git", "status", "--porcelain")
    assert skipped(call(clone, "dvc", "repro")) == PHASES
    change(clone, resamples=70)
    planned = rules_run(call(clone, "snakemake", "--dry-run"))
    assert {"evaluate", "report"} <= planned
    assert not {"ingest", "standardize", "split", "train"} & planned
    assert "resamples" in call(clone, "dvc", "status")
    output = call(clone, "dvc", "repro")
    assert skipped(output) == {"ingest", "standardize", "features", "train"}
    assert rules_run(output) == planned

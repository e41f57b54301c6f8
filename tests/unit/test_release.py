"""Release: what refuses a version, and the champions of a package."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest
from bridged_project import DATASET, LATER, bridged_results
from champion_project import TITLES, project

import perfcast
from perfcast.cli.main import main
from perfcast.inference import champion_archive
from perfcast.utils import packaged_project
from perfcast.utils.io import file_digests

ROOT = Path(__file__).parents[2]
PREDICT = ["predict", "--processor", "Xeon Gold 6148", "--chips", "2"]
_SPEC = importlib.util.spec_from_file_location("release", ROOT / ".github" / "release.py")
release = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(release)


@pytest.fixture(scope="module")
def packaged(tmp_path_factory):
    """Return the champions of both suites as they lie in a package."""
    folder = tmp_path_factory.mktemp("package") / "champions"
    release.unpack_champions(ROOT, bridged_results() / "champion", folder)
    return folder


@pytest.fixture
def package(packaged, tmp_path, monkeypatch):
    """Make the package one with champions, and the working folder an empty one."""
    for module in (packaged_project, champion_archive):
        monkeypatch.setattr(module, "CHAMPIONS", packaged)
    monkeypatch.chdir(tmp_path)
    return packaged


def test_the_package_has_each_file_of_both_champions_once(packaged):
    names = [path.name for path in packaged.iterdir()]
    assert sorted(names) == ["spec_cpu2017", DATASET]
    for dataset in names:
        assert not (packaged / dataset / "base").exists()
        assert (packaged / dataset / "terms.json").is_file()


def test_without_a_run_the_package_answers_in_both_suites(package, capsys):
    assert main([*PREDICT, "--csv", "--results", str(bridged_results())]) == 0
    expected = capsys.readouterr().out
    assert main([*PREDICT, "--csv"]) == 0
    shown = capsys.readouterr()
    assert shown.out == expected
    assert all(title in shown.out for title in (*TITLES, *LATER))
    assert "of the package" in shown.err
    before = file_digests(package)
    mine = perfcast.predict({"processor": "Xeon Gold 6148", "chips": 2}).machines[0]
    whole = perfcast.predict({"processor": "Xeon Gold 6148", "chips": 2}, project().folder).machines[0]
    assert [each.median for each in mine.estimates] == [each.median for each in whole.estimates]
    assert file_digests(package) == before


def test_a_run_and_named_results_come_before_the_package(package, capsys, tmp_path):
    assert main([*PREDICT, "--results", "elsewhere"]) == 2
    assert "there must be a champion" in capsys.readouterr().err
    assert main(["update"]) == 2, "the package learns nothing"
    assert "there must be a champion" in capsys.readouterr().err
    shutil.copytree(project().folder, tmp_path / "results" / "champion" / "spec_cpu2017")
    assert main([*PREDICT, "--csv"]) == 0
    shown = capsys.readouterr()
    assert "of the package" not in shown.err and LATER[2] not in shown.out


def test_a_packaged_champion_is_exported_whole(package, capsys, tmp_path):
    assert main(["champion", "export", "--dataset", DATASET, "--out", "both.zip"]) == 0
    folder = bridged_results() / "champion" / DATASET
    export = ["champion", "export", "--champion", str(folder), "--dataset", DATASET]
    assert main([*export, "--out", "expected.zip"]) == 0
    assert (tmp_path / "both.zip").read_bytes() == (tmp_path / "expected.zip").read_bytes()


def test_a_clone_without_a_run_names_the_commands_that_make_one(capsys, tmp_path, monkeypatch):
    assert not packaged_project.CHAMPIONS.exists()
    monkeypatch.chdir(tmp_path)
    assert main(PREDICT) == 2
    message = capsys.readouterr().err
    assert "`make run`" in message and "`make demo` and add --results results/demo" in message
    assert message.count("\n") == 1 and len(message) <= 161


def test_a_wheel_that_is_too_large_is_refused(packaged, tmp_path, monkeypatch):
    monkeypatch.setattr(release, "MOST_BYTES", 10)
    monkeypatch.setattr(release, "unpack_champions", lambda *_: None)
    root = tmp_path / "root"
    (root / "src" / "perfcast").mkdir(parents=True)
    shutil.copy(ROOT / "src" / "perfcast" / "__init__.py", root / "src" / "perfcast")
    wheel = tmp_path / f"perfcast-{release.read_version(root)}-py3-none-any.whl"
    monkeypatch.setattr(release.subprocess, "run", lambda *_, **__: wheel.write_bytes(bytes(11)))
    with pytest.raises(SystemExit, match="must have at most 10 bytes, but has 11"):
        release.build_wheel(root, packaged, tmp_path)


@pytest.fixture
def clone(tmp_path):
    """Return a repository of the files that a version stands in."""
    root = tmp_path / "clone"
    (root / "src" / "perfcast").mkdir(parents=True)
    for name in ("src/perfcast/__init__.py", "CITATION.cff"):
        shutil.copy(ROOT / name, root / name)
    version = release.read_version(root)
    (root / "CHANGELOG.md").write_text(
        f"# Changelog\n\n## [Unreleased]\n\n## [{version}] - 2026-01-01\n\n- A change.\n"
    )
    citation = (root / "CITATION.cff").read_text()
    (root / "CITATION.cff").write_text(f"{citation}\nversion: {version}\n")
    identity = ["-c", "user.name=A", "-c", "user.email=a@localhost"]
    for words in (["init", "--quiet"], ["add", "."], [*identity, "commit", "--quiet", "--message", "All"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    return root, version


def test_a_version_that_is_tagged_or_not_in_the_changelog_is_refused(clone):
    root, version = clone
    assert release.list_obstacles(root, "") == []
    changelog = (root / "CHANGELOG.md").read_text()
    (root / "CHANGELOG.md").write_text(changelog.replace(f"## [{version}]", "## [0.1.0]"))
    assert release.list_obstacles(root, "") == [f"CHANGELOG.md has no section [{version}]"]
    (root / "CHANGELOG.md").write_text(changelog.replace("[Unreleased]\n", "[Unreleased]\n\n- Later.\n"))
    assert "changes under [Unreleased]" in release.list_obstacles(root, "")[0]
    (root / "CHANGELOG.md").write_text(changelog)
    subprocess.run(["git", "tag", f"v{version}"], cwd=root, check=True)
    assert f"{version} is tagged already" in release.list_obstacles(root, "")[0]
    assert release.list_obstacles(root, f"refs/tags/v{version}") == [], "the tag that started the workflow"
    assert "is not that of version" in release.list_obstacles(root, "refs/tags/v0.9")[-1]

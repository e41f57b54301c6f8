"""Files that a well-kept project has: citation, changelog, templates, continuous integration, hooks of commits."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

PROJECT = Path(__file__).parents[2]
WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((PROJECT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
ROOT_PAGES = sorted(PROJECT.glob("*.md"))
TARGETS = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_pinned_bounded_and_read_only(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w/-]+@v\d+", action) for action in used), used
    made = [words.split()[1] for step in steps(workflow) if (words := step.get("run", "")).startswith("make ")]
    assert set(made) <= TARGETS


def test_continuous_integration_runs_what_developers_run() -> None:
    commands = {step.get("run", "") for path in WORKFLOWS for step in steps(read(path))}
    assert {"make lint", "make test", "make docs"} <= commands
    tested = read(PROJECT / ".github" / "workflows" / "ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python"]
    oldest = re.search(r'requires-python = ">=([\d.]+)', (PROJECT / "pyproject.toml").read_text())
    assert oldest is not None
    assert tested[0] == oldest[1]
    assert len(tested) == 2


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_issue_templates_have_labeled_fields(path: Path) -> None:
    template = read(path)
    if path.name == "config.yml":
        return
    assert {"name", "description", "body"} <= set(template)
    identifiers = [field["id"] for field in template["body"]]
    assert len(set(identifiers)) == len(identifiers)
    assert all(field["attributes"]["label"] for field in template["body"])


def test_commit_hooks_are_those_of_the_linters() -> None:
    hooks = {
        hook["id"] for repository in read(PROJECT / ".pre-commit-config.yaml")["repos"] for hook in repository["hooks"]
    }
    assert hooks == {"ruff", "ruff-format", "snakefmt", "mypy", "codespell", "banned-words"}


def test_citation_and_changelog_agree() -> None:
    citation = read(PROJECT / "CITATION.cff")
    heading = f"## [{citation['version']}] - {citation['date-released']}"
    assert heading in (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    license_text = re.search(r'^license = "(.+)"', (PROJECT / "pyproject.toml").read_text(), re.MULTILINE)
    assert license_text is not None
    assert citation["license"] == license_text[1]


def test_files_of_documented_commands_are_ignored() -> None:
    texts = [page.read_text(encoding="utf-8") for page in (PROJECT / "docs").glob("*.md")]
    made = re.findall(r"(?:^cat > |--out )(\w+\.\w+)|^perfcast pipeline fake (\w+)", "\n".join(texts), re.MULTILINE)
    ignored = (PROJECT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {f"/{file}" if file else f"/{folder}/" for file, folder in made} <= {*ignored}


@pytest.mark.parametrize("path", ROOT_PAGES, ids=lambda path: path.name)
def test_links_to_files_of_the_repository_exist(path: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (PROJECT / link).exists()]
    # the reference of predictors and other written pages exist; generated pages are checked by the site's build
    assert missing == []


def test_temporary_folders_of_tests_are_below_those_of_pytest(tmp_path: Path) -> None:
    assert Path(tempfile.gettempdir()).parent in tmp_path.parents

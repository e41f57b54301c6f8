"""Dependencies point downward only, and each library has one place: the contracts of pyproject.toml."""

from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

PROJECT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _in_the_project(monkeypatch):
    monkeypatch.chdir(PROJECT)


def test_the_contracts_hold(capsys):
    status = lint_imports(config_filename="pyproject.toml", no_cache=True, no_logo=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_the_page_names_every_package_and_domain():
    page = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
    tree = page.partition("src/perfcast/\n  ")[2].partition("```")[0]
    package = PROJECT / "src" / "perfcast"
    packages = [path.parent.name for path in package.glob("*/__init__.py")]
    modules = [path.name for path in package.glob("*.py") if not path.name.startswith("__")]
    domains = [path.parent.name for path in package.glob("domains/*/__init__.py")]
    assert [name for name in packages if f"  {name}/ " not in f"  {tree}" and f" {name}/ has" not in tree] == []
    assert [name for name in [*modules, *domains] if name not in tree] == []

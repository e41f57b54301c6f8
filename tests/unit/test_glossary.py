"""Words that the glossary replaces stay out of the code, the configuration and the documentation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfcast.utils.safe_yaml import read_yaml_text

ROOT = Path(__file__).parents[2]
LIST = ROOT / "docs" / "banned_words.yaml"
BANNED = read_yaml_text(LIST.read_text(encoding="utf-8"), str(LIST))
PYTHON = sorted(path for folder in ("src", "tests", "benchmarks", "fuzz") for path in (ROOT / folder).rglob("*.py"))
TEXTS = sorted(
    path
    for folder in ("src", "tests", "benchmarks", "fuzz", "conf", "workflow", "docs")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".yaml", ".smk", ".md", ".html", ".js", ".css", ".rst"}
    and path not in (LIST, Path(__file__))
)


def defined_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Give the line and the name of everything that a module defines or assigns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def is_banned(name: str) -> bool:
    """Return whether the list bans a name, leading and trailing underscores aside."""
    bare = name.strip("_")
    if bare in BANNED["allowed_names"]:
        return False
    return bare in BANNED["names"] or bare.startswith(tuple(BANNED["name_prefixes"]))


def banned_docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Give the line and the first word of docstrings that begin with a banned word."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = (ast.get_docstring(node) or "").split(maxsplit=1)
            if text and text[0].strip("`.,:") in BANNED["docstring_starts"]:
                yield getattr(node, "lineno", 1), text[0]


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_and_docstrings_use_the_glossary(path: Path) -> None:
    tree = ast.parse(path.read_bytes())
    wrong = [f"line {line}: {name}" for line, name in defined_names(tree) if is_banned(name)]
    wrong += [f"line {line}: a docstring begins with {word!r}" for line, word in banned_docstrings(tree)]
    assert not wrong, f"{path.relative_to(ROOT)} has words that docs/glossary.md replaces: {'; '.join(wrong)}"


def test_texts_use_the_glossary() -> None:
    pattern = re.compile("|".join(re.escape(phrase) for phrase in BANNED["phrases"]), re.IGNORECASE)
    assert len(TEXTS) > 100
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {match.group()}"
        for path in TEXTS
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (match := pattern.search(line))
    ]
    assert not wrong, "\n".join(["texts have words that docs/glossary.md replaces:", *wrong])


@pytest.mark.parametrize("source", ["told = 1", "def rehearse(): ...", "self.batch_rows = 1", "def f(most_rows): ..."])
def test_a_banned_name_is_detected(source: str) -> None:
    assert any(is_banned(name) for _, name in defined_names(ast.parse(source)))


def test_a_banned_docstring_is_detected() -> None:
    assert list(banned_docstrings(ast.parse('"""What a module has."""')))

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
    if path.suffix in {".py", ".csv", ".yaml", ".smk", ".md", ".html", ".js", ".css", ".rst"}
    and path not in (LIST, Path(__file__))
)
TOP_TEXTS = tuple(ROOT / name for name in ("README.md", "Makefile", "dvc.yaml", "params.yaml"))
ISE_WORD = re.compile(r"(?<![a-z])([a-z]{3,}is)(?:e[ds]?|ers?|ing|ations?)(?![a-z])", re.IGNORECASE)
"""Words such as `organise` and `summarisation`; a stem of three letters or more leaves out `raise` and `noise`."""
PROPER_NAMES = re.compile("CancelledError")


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


def test_names_and_docstrings_use_the_glossary() -> None:
    wrong = []
    for path in PYTHON:
        tree, place = ast.parse(path.read_bytes()), path.relative_to(ROOT)
        wrong += [f"{place}:{line}: {name}" for line, name in defined_names(tree) if is_banned(name)]
        wrong += [f"{place}:{line}: a docstring begins with {word!r}" for line, word in banned_docstrings(tree)]
    assert not wrong, "\n".join(["code has words that docs/glossary.md replaces:", *wrong])


def test_texts_use_the_glossary() -> None:
    pattern = re.compile("|".join(re.escape(phrase) for phrase in BANNED["phrases"]), re.IGNORECASE)
    assert len(TEXTS) > 100
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {match.group()}"
        for path in (*TEXTS, *TOP_TEXTS)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (match := pattern.search(line))
    ]
    assert not wrong, "\n".join(["texts have words that docs/glossary.md replaces:", *wrong])


def find_british_spellings(text: str) -> list[str]:
    """Return the British spellings of a line: those of the list, and verbs in -ise other than the exceptions."""
    text = PROPER_NAMES.sub("", text)
    listed = re.compile("|".join(BANNED["british_spellings"]), re.IGNORECASE).findall(text)
    verbs = [match for match in ISE_WORD.finditer(text) if match[1].lower() not in BANNED["ise_stems"]]
    return listed + [match[0] for match in verbs if not match[0].lower().endswith(tuple(BANNED["ise_endings"]))]


def test_texts_have_american_spelling() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {word}"
        for path in (*TEXTS, *TOP_TEXTS)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for word in find_british_spellings(line)
    ]
    assert not wrong, "\n".join(["texts have British spellings:", *wrong])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("the neighbours of a catalogue", ["neighbour", "catalogue"]),
        ("_COLOURS = summarise_rows(Centre)", ["COLOUR", "Centre", "summarise"]),
        ("optimised, standardisation and Organising", ["optimised", "standardisation", "Organising"]),
        ("raise noise otherwise, pointwise: precise Enterprise promises of supervised colors", []),
        ("asyncio.CancelledError at the center of a neighbor", []),
    ],
)
def test_a_british_spelling_is_detected(line: str, words: list[str]) -> None:
    assert find_british_spellings(line) == words


@pytest.mark.parametrize("source", ["told = 1", "def rehearse(): ...", "self.batch_rows = 1", "def f(most_rows): ..."])
def test_a_banned_name_is_detected(source: str) -> None:
    assert any(is_banned(name) for _, name in defined_names(ast.parse(source)))


def test_a_banned_docstring_is_detected() -> None:
    assert list(banned_docstrings(ast.parse('"""What a module has."""')))

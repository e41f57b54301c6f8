"""Words that the glossary replaces stay out of the code, the configuration and the documentation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from perfcast.config.conf_files import conf_files
from perfcast.config.predictor_conf import read_predictor_labels
from perfcast.schema import display_names
from perfcast.schema.display_names import column_label, metric_label, predictor_label
from perfcast.schema.metric_names import METRICS, POINTS
from perfcast.splits import names, split_label
from perfcast.utils.safe_yaml import read_yaml_text

ROOT = Path(__file__).parents[2]
LIST = ROOT / "docs" / "banned_words.yaml"
BANNED = read_yaml_text(LIST.read_text(encoding="utf-8"), str(LIST))
PYTHON = sorted(path for folder in ("src", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py"))
TEXTS = sorted(
    path
    for folder in ("src", "tests", "benchmarks", "conf", "workflow", "docs")
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


def test_banned_words_are_detected() -> None:
    line = "summarise_rows(Centre), the neighbours of a catalogue; raise noise otherwise: precise Enterprise promises"
    assert sorted(find_british_spellings(line)) == ["Centre", "catalogue", "neighbour", "summarise"]
    tree = ast.parse("told = self.batch_rows = 1\ndef rehearse(most_rows): ...")
    assert len([name for _, name in defined_names(tree) if is_banned(name)]) == 4
    assert list(banned_docstrings(ast.parse('"""What a module has."""')))


CONF = Path(__file__).parents[2] / "conf"


def test_every_metric_has_a_label_of_its_own():
    for labels in (display_names.METRIC_LABELS, display_names.SHORT_METRIC_LABELS):
        assert sorted(labels) == sorted((*METRICS, *POINTS))
        assert len(set(labels.values())) == len(labels)
    for name in METRICS:
        assert len(metric_label(name, short=True)) <= len(metric_label(name))
    assert metric_label("of_another_version") == "of another version"
    columns = {
        "cpu_model_id": "CPU model",
        "cpu_vendor": "CPU vendor",
        "submission_key": "submission",
        "chips": "chips",
    }
    assert {name: column_label(name) for name in columns} == columns


def test_predictors_and_splits_have_distinct_labels():
    labels = read_predictor_labels(CONF)
    assert predictor_label("lightgbm", labels) == "LightGBM"
    assert predictor_label("hybrid_trees", {}) == "hybrid trees"
    shown = [predictor_label(name, labels) for name in conf_files(CONF, "predictor")]
    assert len(set(shown)) == len(shown)
    assert not any("_" in label for label in [*shown, *map(split_label, names())])

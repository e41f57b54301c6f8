"""Contract of size: every part of the package stays within the budget that docs/architecture.md gives it."""

from __future__ import annotations

import ast
import re
import tokenize
from collections import Counter
from io import StringIO
from pathlib import Path

from small_project import REPOSITORY

PACKAGE = REPOSITORY / "src" / "perfcast"
CORE = "core"
NEW_DOMAIN = 1_100
"""Budget of a domain that the table does not name."""
_ROW = re.compile(r"^\| (?P<part>core|domains/\w+) \| (?P<budget>[\d,]+) \|", re.MULTILINE)
_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def budgets() -> dict[str, int]:
    """Return part -> code lines from the table in docs/architecture.md."""
    text = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    return {row["part"]: int(row["budget"].replace(",", "")) for row in _ROW.finditer(text)}


def count_code_lines(source: str) -> int:
    """Return the lines of a module without blank lines, comments and docstrings."""
    tokens = tokenize.generate_tokens(StringIO(source).readline)
    lines = {line for each in tokens if each.type not in _LAYOUT for line in range(each.start[0], each.end[0] + 1)}
    texts = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    return len(lines - {line for text in texts for line in range(text.lineno, (text.end_lineno or text.lineno) + 1)})


def part_of(path: Path) -> str:
    """Return the part of the table that a module belongs to."""
    parts = path.relative_to(PACKAGE).parts
    return "/".join(parts[:2]) if parts[0] == "domains" and len(parts) > 2 else CORE


def test_code_lines_are_code_alone() -> None:
    source = '"""Docstring\n\nof a module."""\n\nimport os  # why\n\n# why\nx = (\n    """text\n    of two"""\n)\n'
    assert count_code_lines(source) == 5


def test_every_part_is_within_its_budget() -> None:
    counts = Counter[str]()
    for path in PACKAGE.rglob("*.py"):
        counts[part_of(path)] += count_code_lines(path.read_text(encoding="utf-8"))
    allowed = budgets()
    assert CORE in allowed
    over = [
        f"{part} must have at most {budget:,} code lines (docs/architecture.md), but has {lines:,}"
        for part, lines in counts.items()
        if lines > (budget := allowed.get(part, NEW_DOMAIN))
    ]
    assert not over, "; ".join(over)

"""Small pieces of Markdown that generated pages share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table; vertical bars and line breaks in cells are escaped."""
    lines = ["| " + " | ".join(headings) + " |", "|" + " --- |" * len(headings)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def page(title: str, *blocks: str, section: str = "") -> str:
    """Return a page with a title, in a section of the navigation."""
    front = [f"title: {title}", *([f"section: {section}"] if section else [])]
    return "\n".join(["---", *front, "---", "", f"# {title}", "", "\n\n".join(block for block in blocks if block), ""])


def fenced(text: str, language: str = "") -> str:
    """Return a block of code."""
    return f"```{language or 'text'}\n{text.rstrip()}\n```"


def whole_kinds(kinds: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of results/leaderboard/kinds, a table of version 2, on all rows of a kind, without slices."""
    return kinds[kinds["slice"].isna() | (kinds["slice"] == "")]

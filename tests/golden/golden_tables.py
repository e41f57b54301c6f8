"""Golden tables: a CSV of input texts and the fields a parser gives for each."""

import csv
import difflib
import io
from collections.abc import Callable
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from perfcast.utils.io import atomic_path


def render(parse: Callable, texts: list[str]) -> str:
    """Return the table of a parser's results as CSV: one line per text, nested fields left out."""

    def read(text: str) -> dict[str, Any]:
        result = parse(text)
        return vars(result) if is_dataclass(result) else {"value": result}

    names = [name for name, value in read("").items() if not isinstance(value, tuple)]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["text", *names])
    for text in texts:
        values = [read(text)[name] for name in names]
        writer.writerow([text, *["" if value is None else value for value in values]])
    return buffer.getvalue()


def texts_of(path: Path) -> list[str]:
    """Return the input texts of a golden table."""
    with path.open(newline="", encoding="utf-8") as file:
        return [row["text"] for row in csv.DictReader(file)]


def check(path: Path, parse: Callable, fix: bool) -> None:
    """Compare a golden table with what the parser gives now; rewrite the table instead when `fix` is set."""
    now = render(parse, texts_of(path))
    if fix:
        with atomic_path(path) as temporary:
            temporary.write_text(now, encoding="utf-8")
    expected = path.read_text(encoding="utf-8")
    difference = "\n".join(difflib.unified_diff(expected.splitlines(), now.splitlines(), path.name, "now", lineterm=""))
    assert not difference, difference

"""Tables of the command line: fitted to the width of a terminal, unwrapped plain text in a pipe or a file."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence
from io import StringIO
from typing import Literal

_MIN_WIDTH = 40
_GAP = 2
_SHORT_CELL = 14
"""Least width of a terminal, spaces before a column, and letters up to which a cell, such as an interval, is whole."""
_PIPE_TEXT_WIDTH = 118
"""Width of running text where the output is no terminal."""
NO_BREAK = "\N{NO-BREAK SPACE}"
"""Space at which `wrap_text` begins no line; it is printed as a plain one."""


def terminal_width() -> int | None:
    """Return the columns of the terminal that standard output is, None where it is none."""
    return max(_MIN_WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None


def render_table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Return aligned columns, indented, those of numbers to the right.

    Long cells are wrapped between words to fit `width`; words and short cells are kept whole, even beyond it.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    columns = [[title, *[row[position] for row in rows]] for position, title in enumerate(header)]
    widths = _column_widths(columns, width)
    table = Table(box=None, padding=(0, 0, 0, _GAP), header_style="")
    for (title, *cells), column_width in zip(columns, widths, strict=True):
        justify: Literal["left", "right"] = "right" if all(map(is_number, cells)) else "left"
        table.add_column(Text(title), justify=justify, width=column_width)
    for row in rows:
        table.add_row(*map(Text, row))
    file = StringIO()
    Console(file=file, width=sum(widths) + _GAP * len(widths), color_system=None, legacy_windows=False).print(table)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def _column_widths(columns: Sequence[Sequence[str]], width: int | None) -> list[int]:
    """Return the widths of columns: those of the longest lines, the widest reduced until all columns fit."""
    widths = [max(len(line) for cell in column for line in cell.split("\n")) for column in columns]
    least = [max(map(_unbroken_width, column)) for column in columns]
    while width is not None and sum(widths) + _GAP * len(widths) > width:
        reducible = [position for position in range(len(widths)) if widths[position] > least[position]]
        if not reducible:
            break
        widths[max(reducible, key=widths.__getitem__)] -= 1
    return widths


def _unbroken_width(cell: str) -> int:
    """Return the length of a short cell, or of the longest word of another."""
    return len(cell) if len(cell) <= _SHORT_CELL else max(map(len, cell.split()), default=0)


def drop_empty_columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """Return a table without the columns that are empty in every row."""
    positions = [position for position in range(len(header)) if any(row[position] for row in rows)]
    return [header[position] for position in positions], [[row[position] for position in positions] for row in rows]


def wrap_text(text: str, width: int | None = None) -> str:
    """Return running text wrapped between words, further lines indented."""
    columns = width or _PIPE_TEXT_WIDTH
    filled = textwrap.fill(text, columns, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return filled.replace(NO_BREAK, " ")


def is_number(text: str) -> bool:
    """Return whether a cell is a plain number or empty."""
    return not text or text.replace(".", "", 1).replace("-", "", 1).isdigit()


def format_number(value: float) -> str:
    """Return a score with three significant digits or more."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"


def format_plain(value: float) -> str:
    """Return a number with six significant digits or more, and never with an exponent from a million on."""
    return f"{value:g}" if abs(value) < 999999.5 else f"{value:.0f}"


def format_interval(low: float | None, high: float | None) -> str:
    """Return the ends of an interval; an empty text without one."""
    return "" if low is None or high is None else f"{format_number(low)} to {format_number(high)}"

"""Tables of the command line: fitted to the width of a terminal, unwrapped plain text in a pipe or a file."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence
from io import StringIO

_MIN_WIDTH, _UNLIMITED = 40, 10_000
_PIPE_TEXT_WIDTH = 118
"""Width of running text where the output is no terminal."""
NO_BREAK = "\N{NO-BREAK SPACE}"
"""Space at which `wrap_text` begins no line; it is printed as a plain one."""


def terminal_width() -> int | None:
    """Return the columns of the terminal that standard output is, None where it is none."""
    return max(_MIN_WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None


def render_table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Return aligned columns, indented, those of numbers to the right; cells are wrapped where `width` is too small."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for position, title in enumerate(header):
        numeric = all(is_number(row[position]) for row in rows)
        table.add_column(Text(title), justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
        table.columns[-1].header_style = ""
    for row in rows:
        table.add_row(*map(Text, row))
    file = StringIO()
    console = Console(
        file=file, width=(width or _UNLIMITED) - 2, color_system=None, highlight=False, legacy_windows=False
    )
    console.print(table)
    return "\n".join(f"  {line}".rstrip() for line in file.getvalue().splitlines())


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
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def format_interval(low: float | None, high: float | None) -> str:
    """Return the ends of an interval; an empty text without one."""
    return "" if low is None or high is None else f"{format_number(low)} to {format_number(high)}"

"""Tables for the terminal: aligned columns, with a bold heading where the output is a terminal and plain when piped."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import StringIO

from rich.console import Console
from rich.table import Table

_MAX_WIDTH = 10_000
"""Characters of a line: long lines are not wrapped, so that a piped table keeps one row per line."""


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Return the lines of a table; `right` are the positions of the columns that are aligned to the right."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for position, title in enumerate(head):
        table.add_column(title, justify="right" if position in right else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    buffer = StringIO()
    console = Console(
        file=buffer, force_terminal=sys.stdout.isatty(), width=_MAX_WIDTH, markup=False, highlight=False, emoji=False
    )
    console.print(table)
    return [line.rstrip() for line in buffer.getvalue().splitlines()]

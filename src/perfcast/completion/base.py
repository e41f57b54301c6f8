"""What a completion module may have beside the functions of its docstring: blocks of columns taken from one result."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Block:
    """Columns that belong together, so that what is missing is assumed from measured results, all from the same.

    `columns`: those that say most first. `ladder`: sets of columns in which the results asked must be like the
    machine, the strictest first. `recent`: whether only the last year of results is asked (what people use changes)
    or all of them (a memory module stays what it is).
    """

    name: str
    columns: tuple[str, ...]
    ladder: tuple[tuple[str, ...], ...]
    recent: bool

"""Declarations of the plots: title and caption.

A plot is a function `<name>(evaluation) -> Figure | None` declared by `declare_plot`. To add one, add a function to a
module of this package, or a module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from perfcast import plugins
from perfcast.utils.errors import unknown_name

Draw = TypeVar("Draw", bound=Callable[..., object])


@dataclass(frozen=True)
class PlotEntry:
    """One plot and the function that draws it."""

    name: str
    title: str
    caption: str
    draw: Callable[..., Any]


def declare_plot(title: str, caption: str) -> Callable[[Draw], Draw]:
    """Declare a function to be the plot of its name."""

    def attach(draw: Draw) -> Draw:
        vars(draw)["declaration"] = PlotEntry(draw.__name__, title, caption, draw)
        return draw

    return attach


@cache
def read_catalog() -> dict[str, PlotEntry]:
    """Return the plots by name."""
    return {name: draw.declaration for name, draw in plugins.declared("report.plots").items()}


def plot_entry(name: str) -> PlotEntry:
    """Return the entry of one plot. Raises: UserError when there is no plot of this name."""
    catalog = read_catalog()
    if name not in catalog:
        raise unknown_name("a name in plots", name, list(catalog))
    return catalog[name]


def plot_modules(names: Iterable[str]) -> list[str]:
    """Return the modules of the named plots, each once."""
    return list(dict.fromkeys(plot_entry(name).draw.__module__ for name in names))


def rst_captions(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return {plot: {"title": plain text, "caption": reStructuredText}} for the report of Snakemake."""
    return {name: {"title": plot_entry(name).title, "caption": _escape_rst(plot_entry(name).caption)} for name in names}


def _escape_rst(text: str) -> str:
    """Return plain text with the markup characters of reStructuredText escaped."""
    return re.sub(r"([\\*`|_<>])", r"\\\1", text)

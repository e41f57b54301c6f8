"""Declarations of the plots: title and caption, read without importing the plots or matplotlib.

A plot is a function `<name>(evaluation) -> Figure | None` declared by `declare_plot`. To add one, add a function to a
module of this package, or a module.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from perfcast.utils import plugins
from perfcast.utils.errors import unknown_name

Draw = TypeVar("Draw", bound=Callable[..., object])


@dataclass(frozen=True)
class PlotEntry:
    """One plot; `module` of `perfcast.report.plots` has the function `name` that draws it."""

    name: str
    title: str
    caption: str
    module: str


def declare_plot(title: str, caption: str) -> Callable[[Draw], Draw]:
    """Declare a function to be the plot of its name; `read_catalog` reads the texts, so both must be literals."""
    del title, caption
    return lambda draw: draw


@cache
def read_catalog() -> dict[str, PlotEntry]:
    """Return the plots by name."""
    entries = {}
    for name, (module, call) in plugins.declarations("report.plots").items():
        title, caption = map(ast.literal_eval, call.args)
        entries[name] = PlotEntry(name, title, caption, module)
    return entries


def plot_entry(name: str) -> PlotEntry:
    """Return the entry of one plot. Raises: UserError when there is no plot of this name."""
    catalog = read_catalog()
    if name not in catalog:
        raise unknown_name("a name in plots", name, list(catalog))
    return catalog[name]


def plot_modules(names: Iterable[str]) -> list[str]:
    """Return the modules of the named plots as paths below `perfcast`, each once."""
    return list(dict.fromkeys(f"report.plots.{plot_entry(name).module}" for name in names))


def rst_captions(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return {plot: {"title": plain text, "caption": reStructuredText}} for the report of Snakemake."""
    return {name: {"title": plot_entry(name).title, "caption": _escape_rst(plot_entry(name).caption)} for name in names}


def _escape_rst(text: str) -> str:
    """Return plain text with the markup characters of reStructuredText escaped."""
    return re.sub(r"([\\*`|_<>])", r"\\\1", text)

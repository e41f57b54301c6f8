"""Names, titles and captions of the plots, read without importing any of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import yaml

from perfcast.utils.errors import unknown_name


@dataclass(frozen=True)
class PlotEntry:
    """One plot of catalog.yaml.

    `module` and `function` draw it: both are names below `perfcast.report.plots`.
    """

    name: str
    title: str
    caption: str
    module: str
    function: str


@cache
def read_catalog() -> dict[str, PlotEntry]:
    """Return the entries of catalog.yaml by the name of the plot."""
    text = (files("perfcast.report.plots") / "catalog.yaml").read_text(encoding="utf-8")
    entries = {}
    for name, entry in yaml.safe_load(text).items():
        module, _, function = str(entry.get("draw", f"{name}.draw")).partition(".")
        entries[name] = PlotEntry(name, entry["title"], entry["caption"], module, function)
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

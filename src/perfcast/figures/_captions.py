"""Titles and captions of figures for Snakemake's report, read off their modules' text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

_FOLDER = Path(__file__).parent


def captions(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return {figure: {"title": plain text, "caption": reStructuredText}} of the named figures.

    Nothing is imported, since every start of Snakemake asks and matplotlib takes a second.
    Raises: ValueError when a figure sets TITLE or CAPTION to something else than literal text.
    """
    return {name: _read(name) for name in names}


def _read(name: str) -> dict[str, str]:
    tree = ast.parse((_FOLDER / f"{name}.py").read_bytes())
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            key = node.targets[0].id
            if key in ("TITLE", "CAPTION"):
                found[key] = str(ast.literal_eval(node.value))
    missing = {"TITLE", "CAPTION"} - set(found)
    if missing:
        raise ValueError(f"figure {name} must set {sorted(missing)} to literal text")
    return {"title": found["TITLE"], "caption": _as_rst(found["CAPTION"])}


def _as_rst(text: str) -> str:
    """Return plain text with the characters that reStructuredText would take for markup escaped."""
    return re.sub(r"([\\*`|_<>])", r"\\\1", text)

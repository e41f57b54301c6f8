"""Packed tables: the published figures of a source in the repository, as one csv.xz of what the pipeline reads."""

from __future__ import annotations

import lzma
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from perfcast.sources.bounded_files import XZ, unpacked
from perfcast.utils import size_limits
from perfcast.utils.io import atomic_path, sha256, write_text

if TYPE_CHECKING:
    from perfcast.sources.source_spec import SourceSpec

README = "README.md"
_INTRODUCTION = """\
# Published figures

One packed table per source: figures and names, row for row as the pipeline reads them, each with the identity of its
result. `perfcast sources pack SOURCE` makes a table from the official files, and this page. What the official files
have beside them is left out: prose, links, and columns that nothing reads. What this project measured itself is
described in [measured.md](measured.md).
"""


@dataclass(frozen=True)
class Packed:
    """Records of a source as the pipeline reads them, and what its official files have beside them."""

    records: pd.DataFrame
    left_out: str


def packed_name(source: str) -> str:
    """Return the name of the packed table of a source."""
    return f"{source}.csv.xz"


def read_packed(folder: Path, source: str) -> pd.DataFrame | None:
    """Return the packed records of a source as texts; None where the folder has its official files."""
    path = folder / packed_name(source)
    if not path.is_file():
        return None
    with unpacked(path, XZ, most=size_limits.TABLE) as file:
        return pd.read_csv(file, dtype="str", keep_default_na=False, encoding="utf-8")


def read_records(folder: Path, source: str, pack: Callable[[Path], Packed]) -> pd.DataFrame:
    """Return the records of a source as texts, from its packed table or from its official files.

    Args: `pack` makes the table from the official files.
    """
    records = read_packed(folder, source)
    return pack(folder).records if records is None else records


def write_packed(records: pd.DataFrame, path: Path) -> None:
    """Write records as a packed table: the same bytes for the same records."""
    text = records.to_csv(index=False, lineterminator="\n")
    content = lzma.compress(text.encode("utf-8"), preset=9 | lzma.PRESET_EXTREME)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as written:
        written.write_bytes(content)


def write_readme(embedded: Path, specs: Mapping[str, SourceSpec]) -> None:
    """Write the page of all packed tables: source, license, terms, citation, retrieval, rows, sha256."""
    write_text(embedded / README, render_readme(embedded, specs))


def render_readme(embedded: Path, specs: Mapping[str, SourceSpec]) -> str:
    """Return the page of the packed tables that the folder has."""
    lines = [_INTRODUCTION, "| source | rows | bytes | sha256 |", "|---|---:|---:|---|"]
    tables = {name: embedded / name / packed_name(name) for name, spec in sorted(specs.items()) if spec.packed}
    tables = {name: path for name, path in tables.items() if path.is_file()}
    for name, path in tables.items():
        rows = len(read_records(path.parent, name, _refuse))
        lines.append(f"| [{name}](#{name}) | {rows:,} | {path.stat().st_size:,} | `{sha256(path)}` |")
    for name in tables:
        spec = specs[name]
        lines += ["", f"## {name}", "", f"{spec.title}.", ""]
        lines += [f"- License: {spec.license}.", f"- Terms: {spec.terms}.", f"- Source: {spec.citation}."]
        lines += [f"- Retrieved: {spec.retrieved}."] if spec.retrieved else []
    return "\n".join(lines) + "\n"


def _refuse(folder: Path) -> Packed:
    raise FileNotFoundError(folder)

"""Tables as files: Parquet with the declarations in its metadata, written and read by groups of rows; and CSV.

Equal tables give equal bytes. What is damaged, or was written by another version, is told in one line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from perfcast import bounds
from perfcast.errors import UserError
from perfcast.io import atomic_path
from perfcast.schema import Column, Kind, Table, Tag, as_declared

SCHEMA_VERSION = 1
_METADATA_KEY = b"perfcast"
_AGAIN = "delete it and run snakemake"

ROWS_OF_GROUP = 1 << 20
"""Rows that are written together, and the most that a step which goes through a table by parts holds at a time."""


def write_table(table: Table, path: Path) -> None:
    """Write a table as Parquet with its declarations in the metadata; equal tables give equal bytes."""
    write_tables([table], path)


def write_tables(parts: Iterable[Table], path: Path) -> None:
    """Write tables of the same columns one after another as one, by groups of rows, as `write_table` does.

    Memory is that of the largest part; all parts but the last must have a multiple of `ROWS_OF_GROUP` rows.
    """
    with atomic_path(path) as temporary, ExitStack() as stack:
        writer: pq.ParquetWriter | None = None
        for table in parts:
            for arrow in _arrow_groups(table):
                if writer is None:
                    writer = stack.enter_context(pq.ParquetWriter(temporary, arrow.schema, compression="zstd"))
                writer.write_table(arrow)


def _arrow_groups(table: Table) -> Iterator[pa.Table]:
    about = {
        "schema_version": SCHEMA_VERSION,
        "dataset": table.dataset,
        "columns": [asdict(column) for column in table.columns],
        "facts": table.facts,
    }
    metadata = {_METADATA_KEY: json.dumps(about, sort_keys=True).encode()}
    for start in range(0, max(1, len(table.frame)), ROWS_OF_GROUP):
        arrow = pa.Table.from_pandas(table.frame.iloc[start : start + ROWS_OF_GROUP], preserve_index=False)
        types = [
            field.with_type(pa.large_string()) if pa.types.is_dictionary(field.type) else field
            for field in arrow.schema
        ]
        yield arrow.cast(pa.schema(types)).replace_schema_metadata(metadata)


def read_table(
    path: Path, *, wanted: Callable[[Column], bool] | None = None, coded: bool = False, group: int | None = None
) -> Table:
    """Read a table written by `write_table`: all its columns, or those that are `wanted`.

    With `coded`, texts are coded, the key of the rows apart (see `Kind`); with `group`, only that group of rows is
    read, see `groups_of_rows`.

    Raises: UserError when the file is absent, is not such a table, or was written by another schema version.
    """
    about = read_declarations(path)
    try:
        declared = [Column(**{**entry, "tags": tuple(entry["tags"])}) for entry in about["columns"]]
        dataset, facts = str(about["dataset"]), dict(about["facts"])
    except (KeyError, TypeError, ValueError) as error:
        raise UserError("a table must carry perfcast's declarations", f"those of {path} are broken ({error})", _AGAIN)
    columns = tuple(column for column in declared if wanted is None or wanted(column))
    texts = [c.name for c in columns if c.kind in (Kind.CATEGORICAL, Kind.TEXT) and Tag.ROW not in c.tags]
    with _as_saved(path):
        groups, stored = pq.read_metadata(path), pq.read_schema(path).names
    rows = groups.num_rows if group is None else groups.row_group(group).num_rows
    _require_few_cells(path, rows, len(columns))
    names = [column.name for column in columns]
    absent = [name for name in names if name not in stored]
    if absent:
        raise UserError("a table must have the columns it declares", f"{path} lacks {absent[0]!r}", _AGAIN)
    found = _read_columns(path, names, texts if coded else None, group)
    typed = {}
    for column in columns:
        with _as_saved(path):
            values = next(found)
        try:
            typed[column.name] = as_declared(values, column)
        except (TypeError, ValueError) as error:
            raise UserError("a table must have the types it declares", f"{path}: {error}", _AGAIN)
    # joined in one block, which makes later steps faster, unless memory is what counts
    frame = pd.DataFrame(typed, index=pd.RangeIndex(rows), copy=not coded)
    return Table(dataset, frame, columns, facts)


def _read_columns(
    path: Path, names: Sequence[str], dictionaries: Sequence[str] | None, group: int | None
) -> Iterator[pd.Series]:
    """Give the columns of a file in order; of a large one each is read by itself, so that it is never held twice."""
    found = pq.ParquetFile(path, read_dictionary=dictionaries)
    whole = group is None or found.metadata.num_row_groups == 1
    at_once = whole and found.metadata.num_rows < ROWS_OF_GROUP
    table = pq.read_table(path, columns=names, read_dictionary=dictionaries) if at_once else None
    for name in names:
        if table is not None:
            arrow = table.column(name)
        elif whole:
            arrow = pq.read_table(path, columns=[name], read_dictionary=dictionaries).column(0)
        else:
            arrow = found.read_row_group(group, columns=[name]).column(0)
        yield (arrow.unify_dictionaries() if pa.types.is_dictionary(arrow.type) else arrow).to_pandas()


def groups_of_rows(path: Path) -> int:
    """Return in how many groups of at most `ROWS_OF_GROUP` rows a table was written."""
    with _as_saved(path):
        return int(pq.read_metadata(path).num_row_groups)


def read_parquet(path: Path, columns: Iterable[str] = ()) -> pd.DataFrame:
    """Read a Parquet file that perfcast wrote; it must have `columns`, among others.

    Raises: UserError when the file is absent, is no Parquet, lacks a column, or unpacks to more than is read.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError("a table must exist", f"there is no file {path}", "run snakemake to make it")
    with _as_saved(path):
        about = pq.read_metadata(path)
    _require_few_cells(path, about.num_rows, about.num_columns)
    with _as_saved(path):
        frame = pd.read_parquet(path)
    absent = [name for name in columns if name not in frame.columns]
    if absent:
        raise UserError(f"{path} must have the column {absent[0]!r}", "it has none of that name", _AGAIN)
    return frame


def read_csv(path: Path, **options: Any) -> pd.DataFrame:
    """Read a CSV file that perfcast wrote, with pandas's options. Raises: UserError when it is absent or no table."""
    try:
        found: pd.DataFrame = pd.read_csv(path, **options)
    except FileNotFoundError:
        raise UserError("a table must exist", f"there is no file {path}", "run snakemake to make it") from None
    except (ValueError, OverflowError) as error:  # pandas's own errors of parsing are ValueErrors
        raise UserError("a table must be CSV, as it was saved", f"{path} is not ({_brief(error)})", _AGAIN) from None
    return found


def _brief(error: Exception) -> str:
    return str(error)[:150] or type(error).__name__


@contextmanager
def _as_saved(path: Path) -> Iterator[None]:
    """Tell in one line of a file that is no Parquet, or of which a part is damaged."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        raise UserError("a table must be a Parquet file, as it was saved", f"{path} is not ({_brief(error)})", _AGAIN)


def _require_few_cells(path: Path, rows: int, columns: int) -> None:
    cells = rows * max(1, columns)
    if cells > bounds.CELLS:
        raise UserError(f"a table must have at most {bounds.CELLS} cells", f"{path} has {cells}", _AGAIN)


def read_declarations(path: Path) -> dict[str, Any]:
    """Read only the declarations of a table: data set, columns, facts, schema version."""
    path = Path(path)
    if not path.is_file():
        raise UserError("a table must exist", f"there is no file {path}", "run snakemake to make it")
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (pa.ArrowException, OSError) as error:
        raise UserError("a table must be a Parquet file", f"{path} is not ({_brief(error)})", _AGAIN)
    if _METADATA_KEY not in metadata:
        raise UserError("a table must carry perfcast's declarations", f"{path} has none", "run snakemake to make it")
    try:
        about: dict[str, Any] = json.loads(metadata[_METADATA_KEY])
        version = about["schema_version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        fact = f"those of {path} are broken ({_brief(error)})"
        raise UserError("a table must carry perfcast's declarations", fact, _AGAIN) from None
    if version != SCHEMA_VERSION:
        raise UserError(
            f"a table must have schema version {SCHEMA_VERSION}",
            f"{path} has {version}",
            "run snakemake to make it again",
        )
    return about

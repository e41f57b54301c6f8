"""Table files: Parquet with the declarations in its metadata, written and read in row groups; and CSV.

Equal tables give equal bytes. A damaged file, or one of another schema version, is a `UserError`: pages have checksums,
and a file that its stage recorded is verified (`perfcast.utils.result_digests`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from perfcast.schema.sequences import is_sequence, to_matrix
from perfcast.schema.table import Column, Kind, Table, Tag, as_declared, require_usable_numbers
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path
from perfcast.utils.result_digests import verify_digest

SCHEMA_VERSION = 3
"""Raised when names or meanings in tables, models, champions or evaluations change."""
SCHEMA_KEY = "schema_version"


def check_schema_version(about: Mapping[str, Any], path: Path) -> None:
    """Raise a UserError where the content of a file is of another schema version."""
    version = about.get(SCHEMA_KEY)
    if version != SCHEMA_VERSION:
        raise UserError(
            f"{path} must have schema version {SCHEMA_VERSION}",
            f"it has {'none' if version is None else version}, of another release of perfcast",
            "run snakemake to make it again",
        )


_METADATA_KEY = b"perfcast"
_AGAIN = "delete it and run snakemake"

ROWS_OF_GROUP = 1 << 20
"""Rows of one row group: the maximum that a chunked step holds in memory."""


def write_table(table: Table, path: Path) -> None:
    """Write a table as Parquet with its declarations in the metadata; equal tables give equal bytes."""
    write_tables([table], path)


def content_digest(table: Table) -> str:
    """Return the SHA-256 of the cells of a table: equal for equal rows, however the file encodes them."""
    digest = hashlib.sha256("\n".join(table.frame.columns).encode())
    for name in table.frame.columns:
        values = table.frame[name]
        if is_sequence(values.dtype):
            digest.update(to_matrix(values).tobytes())
            continue
        texts = values.astype(object).map(str, na_action="ignore") if values.dtype.kind not in "iufb" else values
        digest.update(pd.util.hash_pandas_object(texts, index=False, categorize=True).to_numpy().tobytes())
    return digest.hexdigest()


def write_tables(chunks: Iterable[Table], path: Path) -> None:
    """Write tables with equal columns as one file, in row groups.

    Memory is that of the largest chunk; all chunks but the last must have a multiple of `ROWS_OF_GROUP` rows.
    """
    with atomic_path(path) as temporary, ExitStack() as stack:
        writer: pq.ParquetWriter | None = None
        for table in chunks:
            require_usable_numbers(table.frame, table.columns, str(path))
            for arrow in _arrow_groups(table):
                if writer is None:
                    writer = stack.enter_context(
                        pq.ParquetWriter(temporary, arrow.schema, compression="zstd", write_page_checksum=True)
                    )
                writer.write_table(arrow)


def _arrow_groups(table: Table) -> Iterator[pa.Table]:
    about = {
        SCHEMA_KEY: SCHEMA_VERSION,
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
    """Return a table written by `write_table`.

    Args:
        wanted: Selects columns; None selects all.
        coded: Read texts as categories (see `Kind`), except the row key.
        group: Read only this row group, see `count_row_groups`.

    Raises:
        UserError: The file is absent, is not such a table, has another schema version, or has an infinite number.
    """
    about = read_declarations(path)
    try:
        declared = [Column(**{**entry, "tags": tuple(entry["tags"])}) for entry in about["columns"]]
        dataset = str(about["dataset"])
        facts = dict(about["facts"])
    except (KeyError, TypeError, ValueError) as error:
        fact = f"they cannot be read ({error})"
        raise UserError(f"{path} must hold the column declarations of perfcast", fact, _AGAIN)
    columns = tuple(column for column in declared if wanted is None or wanted(column))
    texts = [c.name for c in columns if c.kind in (Kind.CATEGORICAL, Kind.TEXT) and Tag.ROW not in c.tags]
    with _parquet_errors(path):
        groups = pq.read_metadata(path)
        stored = pq.read_schema(path).names
    rows = groups.num_rows if group is None else groups.row_group(group).num_rows
    _require_few_cells(path, rows, len(columns))
    names = [column.name for column in columns]
    absent = [name for name in names if name not in stored]
    if absent:
        raise UserError(f"{path} must have its declared columns", f"it lacks {absent[0]!r}", _AGAIN)
    series = _read_columns(path, names, texts if coded else None, group)
    typed = {}
    for column in columns:
        with _parquet_errors(path):
            values = next(series)
        try:
            typed[column.name] = as_declared(values, column)
        except (TypeError, ValueError) as error:
            raise UserError(f"{path} must have its declared types", f"a column has another ({error})", _AGAIN)
    # one block makes later steps faster; with `coded` memory matters more
    frame = pd.DataFrame(typed, index=pd.RangeIndex(rows), copy=not coded)
    require_usable_numbers(frame, columns, str(path))
    return Table(dataset, frame, columns, facts)


def _read_columns(
    path: Path, names: Sequence[str], dictionaries: Sequence[str] | None, group: int | None
) -> Iterator[pd.Series]:
    """Yield the columns of a file in order; those of a large file one by one, to hold each only once."""
    file = pq.ParquetFile(path, read_dictionary=dictionaries, page_checksum_verification=True)
    whole = group is None or file.metadata.num_row_groups == 1
    at_once = whole and file.metadata.num_rows < ROWS_OF_GROUP
    read = partial(pq.read_table, path, read_dictionary=dictionaries, page_checksum_verification=True)
    table = read(columns=names) if at_once else None
    for name in names:
        if table is not None:
            arrow = table.column(name)
        elif whole:
            arrow = read(columns=[name]).column(0)
        else:
            arrow = file.read_row_group(group, columns=[name]).column(0)
        if pa.types.is_fixed_size_list(arrow.type):
            yield pd.Series(pd.arrays.ArrowExtensionArray(arrow))
        else:
            yield (arrow.unify_dictionaries() if pa.types.is_dictionary(arrow.type) else arrow).to_pandas()


def count_row_groups(path: Path) -> int:
    """Return the number of row groups of a table file."""
    verify_digest(path)
    with _parquet_errors(path):
        return int(pq.read_metadata(path).num_row_groups)


def _existing(path: Path) -> Path:
    """Return the path of a file that is there and as its stage wrote it. Raises: UserError for any other."""
    if not Path(path).is_file():
        raise UserError(f"{path} must exist", "there is no such file", "run snakemake to make it")
    verify_digest(path)
    return Path(path)


def read_parquet(path: Path, columns: Iterable[str] = ()) -> pd.DataFrame:
    """Return a Parquet file that perfcast wrote; `columns` are required.

    Raises:
        UserError: The file is absent, is not Parquet, lacks a column, or is too large.
    """
    path = _existing(path)
    with _parquet_errors(path):
        about = pq.read_metadata(path)
    _require_few_cells(path, about.num_rows, about.num_columns)
    with _parquet_errors(path):
        frame = pd.read_parquet(path, page_checksum_verification=True)
    absent = [name for name in columns if name not in frame.columns]
    if absent:
        raise UserError(f"{path} must have the column {absent[0]!r}", "there is none of that name", _AGAIN)
    return frame


def read_csv(path: Path, **options: Any) -> pd.DataFrame:
    """Return a CSV file that perfcast wrote, read with the options of pandas.

    Raises:
        UserError: The file is absent or is not a table.
    """
    verify_digest(path)
    try:
        frame: pd.DataFrame = pd.read_csv(path, **options)
    except FileNotFoundError:
        raise UserError(f"{path} must exist", "there is no such file", "run snakemake to make it") from None
    except (ValueError, OverflowError) as error:  # pandas's own errors of parsing are ValueErrors
        raise UserError(f"{path} must be a CSV table", f"it cannot be read ({_brief(error)})", _AGAIN) from None
    return frame


def _brief(error: Exception) -> str:
    return str(error)[:150] or type(error).__name__


@contextmanager
def _parquet_errors(path: Path) -> Iterator[None]:
    """Turn errors of a file that is not Parquet, or is damaged, into a `UserError`."""
    try:
        yield
    except UserError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{path} must be a Parquet file", f"it cannot be read ({_brief(error)})", _AGAIN)


def _require_few_cells(path: Path, rows: int, columns: int) -> None:
    cells = rows * max(1, columns)
    if cells > size_limits.CELLS:
        raise UserError(f"{path} must have at most {size_limits.CELLS} cells", f"it has {cells}", _AGAIN)


def read_declarations(path: Path) -> dict[str, Any]:
    """Return the declarations of a table file: dataset, columns, facts, schema version."""
    path = _existing(path)
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path} must be a Parquet file", f"it cannot be read ({_brief(error)})", _AGAIN)
    if _METADATA_KEY not in metadata:
        raise UserError(f"{path} must hold the column declarations of perfcast", "it has none", _AGAIN)
    try:
        about: dict[str, Any] = json.loads(metadata[_METADATA_KEY])
        check_schema_version(about, path)
    except UserError:
        raise
    except (ValueError, AttributeError, RecursionError) as error:
        fact = f"they cannot be read ({_brief(error)})"
        raise UserError(f"{path} must hold the column declarations of perfcast", fact, _AGAIN) from None
    return about

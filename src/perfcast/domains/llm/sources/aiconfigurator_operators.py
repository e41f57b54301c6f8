"""Operator tables of aiconfigurator: one Parquet file per GPU and operator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from perfcast.domains import read_table
from perfcast.sources.bounded_files import FETCH_AGAIN
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError

SYSTEMS = (
    "a100_sxm",
    "b200_sxm",
    "b300_sxm",
    "b60",
    "gb200",
    "gb300",
    "h100_sxm",
    "h200_sxm",
    "l40s",
    "rtx_pro_6000_server",
)
"""GPUs, as in the names of folders."""
WINDOW = "window_size"
"""Column of attention that tables of a back end without windows lack."""


def _read_shapes() -> dict[str, dict[str, str]]:
    shapes: dict[str, dict[str, str]] = {}
    for row in read_table(__package__, "operator_columns.csv"):
        shapes.setdefault(row["table"], {})[row["column"]] = row["name"]
    return shapes


SHAPES = _read_shapes()
"""Operator -> column of its shape in the file -> name of the column here."""
DTYPES = {
    "gemm": "gemm_dtype",
    "context_attention": "kv_cache_dtype",
    "generation_attention": "kv_cache_dtype",
    "moe": "moe_dtype",
    "nccl": "nccl_dtype",
}
"""Operator -> column of its number format."""
WITHOUT_TABLE = (("b60", "nccl"),)
"""Tables that the authors do not have."""


def table_file(system: str, table: str) -> str:
    """Return the path of a table in the source's folder."""
    return f"{system}/{table}.parquet"


def list_tables() -> list[tuple[str, str]]:
    """Return the GPU and the operator of every table."""
    return [(system, table) for system in SYSTEMS for table in SHAPES if (system, table) not in WITHOUT_TABLE]


def read_operators(folder: Path, system: str, table: str) -> pd.DataFrame:
    """Return the table of an operator on a GPU, with the window of attention where the file has it.

    Raises: UserError when the file is absent, too large, damaged or lacks a column.
    """
    name = table_file(system, table)
    path = folder / name
    wanted = [column for column in SHAPES[table] if column != WINDOW]
    wanted += [DTYPES[table], "latency"]
    if table == "nccl":
        wanted.append("op_name")
    present = check_table(path, wanted, name)
    if WINDOW in present and WINDOW in SHAPES[table]:
        wanted.append(WINDOW)
    try:
        frame: pd.DataFrame = pq.read_table(path, columns=wanted).to_pandas()
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise _damaged(name, error) from None
    return frame


def check_table(path: Path, wanted: Sequence[str], name: str) -> list[str]:
    """Check that a Parquet file has the wanted columns, rows, and not too many of either; return its columns.

    Raises: UserError.
    """
    try:
        about = pq.read_metadata(path)
        present = list(pq.read_schema(path).names)
        size = sum(about.row_group(group).total_byte_size for group in range(about.num_row_groups))
    except FileNotFoundError:
        raise UserError(f"{name} must exist", "there is no such file", "ingest the source again") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(name, error) from None
    for column in wanted:
        if column not in present:
            raise UserError(
                f"{name} must have a column {column!r}",
                "there is none of that name",
                FETCH_AGAIN,
            )
    if len(set(present)) < len(present) or len(present) > size_limits.COLUMNS:
        raise UserError(
            f"{name} must have different columns, at most {size_limits.COLUMNS}",
            "it has not",
            FETCH_AGAIN,
        )
    if not 0 < about.num_rows <= size_limits.TABLE_ROWS:
        requirement = f"{name} must have rows, at most {size_limits.TABLE_ROWS}"
        raise UserError(requirement, f"it has {about.num_rows}", FETCH_AGAIN)
    if size > size_limits.UNPACKED:
        raise UserError(
            f"{name} must unpack to at most {size_limits.UNPACKED} bytes",
            f"it has {size}",
            FETCH_AGAIN,
        )
    return present


def _damaged(name: str, error: Exception) -> UserError:
    fact = f"it cannot be read ({str(error)[:150] or type(error).__name__})"
    return UserError(f"{name} must be a Parquet file", fact, FETCH_AGAIN)

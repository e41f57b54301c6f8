"""Operator tables of aiconfigurator: one Parquet file per GPU and operator."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from perfcast.domains import read_table
from perfcast.schema.table_files import read_parquet

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
    """Return the table of an operator on a GPU; attention of a file without windows has a window of 0.

    Raises: UserError when the file is absent, too large, damaged or lacks a column.
    """
    wanted = [*SHAPES[table], DTYPES[table], "latency"]
    if table == "nccl":
        wanted.append("op_name")
    required = [column for column in wanted if column != WINDOW]
    frame = read_parquet(folder / table_file(system, table), required)
    if WINDOW in wanted and WINDOW not in frame:
        frame = frame.assign(**{WINDOW: 0})
    return frame[wanted]

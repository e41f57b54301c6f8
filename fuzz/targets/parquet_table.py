"""Tables between the stages: any bytes as Parquet, and any declarations inside a whole file."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from _refusing import FOLDER, refusing, written

from perfcast.schema.table import Column, Kind, Role, build_table
from perfcast.schema.table_files import read_parquet, read_table, write_table

_COLUMNS = (
    Column("row", Kind.CATEGORICAL, Role.KEY, "all", tags=("row",)),
    Column("x", Kind.NUMERICAL, Role.FEATURE, "all"),
)
_table = build_table("demo", pd.DataFrame({"row": ["a", "b"], "x": [1.0, 2.0]}), _COLUMNS)
write_table(_table, FOLDER / "whole.parquet")
_ARROW = pa.Table.from_pandas(_table.frame, preserve_index=False)
_SAID = pq.read_schema(FOLDER / "whole.parquet").metadata[b"perfcast"]
SEEDS = [b"\x00" + (FOLDER / "whole.parquet").read_bytes(), b"\x01" + _SAID]


def check(data: bytes) -> None:
    """Read a table."""
    if not data:
        return
    if data[0] & 1:
        pq.write_table(_ARROW.replace_schema_metadata({b"perfcast": data[1:]}), FOLDER / "declared.parquet")
        with refusing():
            read_table(FOLDER / "declared.parquet")
        return
    path = written("any.parquet", data[1:])
    with refusing():
        read_parquet(path)

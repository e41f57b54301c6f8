"""The self-describing table: column declarations that travel with the data in Parquet metadata.

Every stage after standardisation reads and writes `Table`. Nothing downstream knows a column by name unless the
data set's own configuration gave it the name: columns are selected by role, semantic type, group and tag.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from perfcast import bounds
from perfcast.errors import UserError
from perfcast.io import atomic_path

SCHEMA_VERSION = 1
_METADATA_KEY = b"perfcast"
_AGAIN = "delete it and run snakemake"

ROWS_OF_GROUP = 1 << 20
"""Rows that are written together, and the most that a step which goes through a table by parts holds at a time."""


class Kind(StrEnum):
    """Semantic type of a column. pandas types: float64, str, str, datetime64[us]; missing is NaN or NaT.

    Texts may be coded instead: a pandas category of str, which takes a tenth of the memory where texts repeat. Files
    hold texts either way.
    """

    NUMERICAL = "numerical"
    CATEGORICAL = "categorical"
    TEXT = "text"
    DATE = "date"


class Role(StrEnum):
    """What a column may be used for. Predictors learn from FEATURE columns only."""

    FEATURE = "feature"
    TARGET = "target"
    KEY = "key"
    PROVENANCE = "provenance"


class Tag(StrEnum):
    """What generic code needs to know of a column beyond its role.

    ROW       the unique key of a row; exactly one column
    TASK      a separate test inside the data set (the suite); metrics are told per task
    IDENTITY  with TASK: what the `lookup` baseline calls the same machine (processor, chips)
    SCALING   a positive quantity that performance grows with as a power: the `physical` baseline's terms
    ENTITY    what an unseen-entity split holds out and a clustered bootstrap resamples (processor)
    BLOCK     rows that must stay together in any split (submission)
    TIME      when the result became known (publication); orders forward splits
    SLICE     a column by which errors are reported (vendor, family)
    UNJUDGED  1 where the measured score cannot be its machine's own: no forecast is judged by the row
    COST      an amount whose time adds to that of the row: the terms of the roofline law (operations, bytes)
    WORK      what a rate counts: work / score is the time; without such a column a score is itself a time or a cost
    PARALLEL  how many workers share a row's work: what a question about more of them holds out
    CONFIG    rows equal on every CONFIG column are repetitions of one configuration (noise floor)
    """

    ROW = "row"
    TASK = "task"
    IDENTITY = "identity"
    SCALING = "scaling"
    ENTITY = "entity"
    BLOCK = "block"
    TIME = "time"
    COST = "cost"
    WORK = "work"
    PARALLEL = "parallel"
    SLICE = "slice"
    CONFIG = "config"
    UNJUDGED = "unjudged"


@dataclass(frozen=True)
class Column:
    """Declaration of one column: everything a reader needs to use it without asking.

    Units: `unit` is the unit of the stored numbers ("MHz", "GiB", "MT/s", "" for counts and ratios).
    `low` and `high` bound plausible values, inclusive; a value outside is quarantined at standardisation.
    """

    name: str
    kind: Kind
    role: Role
    group: str
    unit: str = ""
    meaning: str = ""
    low: float | None = None
    high: float | None = None
    tags: tuple[Tag, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", Kind(self.kind))
        object.__setattr__(self, "role", Role(self.role))
        object.__setattr__(self, "tags", tuple(sorted(Tag(tag) for tag in self.tags)))


@dataclass(frozen=True)
class Table:
    """A tidy frame with its column declarations.

    Shapes: `frame` has one row per measured result and exactly the declared columns, in declared order.
    """

    dataset: str
    frame: pd.DataFrame
    columns: tuple[Column, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    def select(
        self, *, role: Role | None = None, kind: Kind | None = None, group: str | None = None, tag: Tag | None = None
    ) -> list[str]:
        """Return the names of the columns that match every given condition, in declared order."""
        return [column.name for column in select(self.columns, role=role, kind=kind, group=group, tag=tag)]

    def one(self, tag: Tag) -> str:
        """Return the name of the only column with `tag`. Raises ValueError when there is not exactly one."""
        names = self.select(tag=tag)
        if len(names) != 1:
            raise ValueError(f"data set {self.dataset!r} must declare exactly one column tagged {tag!r}: {names}")
        return names[0]

    def with_columns(self, added: Iterable[tuple[Column, pd.Series]]) -> Table:
        """Return a table with derived columns appended. Raises ValueError when a name exists already."""
        pairs = list(added)
        have = {column.name for column in self.columns}
        for column, _ in pairs:
            if column.name in have:
                raise ValueError(f"column {column.name!r} exists already in {self.dataset!r}")
            have.add(column.name)
        frame = pd.concat([self.frame, *[as_declared(values, column) for column, values in pairs]], axis=1)
        return replace(self, frame=frame, columns=(*self.columns, *[column for column, _ in pairs]))


def select(
    columns: Iterable[Column],
    *,
    role: Role | None = None,
    kind: Kind | None = None,
    group: str | None = None,
    tag: Tag | None = None,
) -> list[Column]:
    """Return the declarations that match every given condition, in the given order."""
    return [
        column
        for column in columns
        if (role is None or column.role is role)
        and (kind is None or column.kind is kind)
        and (group is None or column.group == group)
        and (tag is None or tag in column.tags)
    ]


_TYPES = {
    Kind.NUMERICAL: np.dtype("float64"),
    Kind.DATE: np.dtype("datetime64[us]"),
    Kind.CATEGORICAL: pd.Series([], dtype="str").dtype,
    Kind.TEXT: pd.Series([], dtype="str").dtype,
}


def as_declared(values: pd.Series, column: Column) -> pd.Series:
    """Return `values` with the pandas type of the column's semantic type and the column's name."""
    typed: pd.Series
    text = column.kind in (Kind.CATEGORICAL, Kind.TEXT)
    if values.dtype == _TYPES[column.kind] or (text and _is_coded(values)):
        typed = values  # most columns are declared again and again
    elif column.kind is Kind.NUMERICAL:
        typed = pd.to_numeric(values).astype("float64")
    elif column.kind is Kind.DATE:
        typed = pd.to_datetime(values).astype("datetime64[us]")
    else:
        typed = values.astype("str").where(values.notna())
    return typed.rename(column.name)


def _is_coded(values: pd.Series) -> bool:
    return isinstance(values.dtype, pd.CategoricalDtype) and values.cat.categories.dtype == _TYPES[Kind.TEXT]


def build_table(
    dataset: str,
    frame: pd.DataFrame,
    columns: Sequence[Column],
    facts: dict[str, Any] | None = None,
    *,
    copy: bool = True,
) -> Table:
    """Make a Table of a frame: declared columns only, declared order, declared types, fresh index.

    Without `copy` a large frame shares its columns with what it was built from; steps on a small one are slower then.
    """
    missing = [column.name for column in columns if column.name not in frame.columns]
    if missing:
        raise ValueError(f"declared columns are not in the frame of {dataset!r}: {missing}")
    typed = {column.name: as_declared(frame[column.name], column) for column in columns}
    built = pd.DataFrame(typed, copy=copy).reset_index(drop=True)
    return Table(dataset, built, tuple(columns), dict(facts or {}))


def plain(table: Table) -> Table:
    """Return a table with its coded texts as texts."""
    coded = [column.name for column in table.columns if _is_coded(table.frame[column.name])]
    texts = {name: table.frame[name].astype("str") for name in coded}
    return replace(table, frame=table.frame.assign(**texts))


def out_of_bounds(table: Table) -> pd.DataFrame:
    """Return a boolean frame: which numerical cells lie outside their column's declared bounds."""
    bad = {c.name: outside(table.frame[c.name], c) for c in select(table.columns, kind=Kind.NUMERICAL)}
    return pd.DataFrame(bad, index=table.frame.index)


def outside(values: pd.Series, column: Column) -> pd.Series:
    """Say which values lie outside their column's declared bounds, (n,) bool; a missing one lies inside."""
    low = values < column.low if column.low is not None else pd.Series(False, index=values.index)
    high = values > column.high if column.high is not None else pd.Series(False, index=values.index)
    return low | high


def infer_columns(frame: pd.DataFrame, targets: Sequence[str] = ()) -> tuple[Column, ...]:
    """Declare the columns of a plain frame by their pandas types, for use in a notebook."""
    declared = []
    for name in map(str, frame.columns):
        if pd.api.types.is_datetime64_any_dtype(frame[name]):
            kind = Kind.DATE
        elif pd.api.types.is_numeric_dtype(frame[name]):
            kind = Kind.NUMERICAL
        else:
            kind = Kind.CATEGORICAL
        declared.append(Column(name, kind, Role.TARGET if name in targets else Role.FEATURE, "all"))
    return tuple(declared)


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

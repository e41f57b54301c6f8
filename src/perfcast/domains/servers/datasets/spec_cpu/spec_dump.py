"""Description of a dump of published SPEC results, and the one way from the dump to its standard table.

The raw columns of every dump are described in `dump_columns.csv`: raw column -> reader -> standard columns. What that
table cannot say, such as which rows are no results, are the functions of a `SpecDump`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import build_rejected_frame, join_rejections, split_rejections
from perfcast.domains import read_columns, read_table
from perfcast.domains.servers.datasets.spec_cpu.dump_file import Quarantine, find_only_file, read_dump
from perfcast.domains.servers.datasets.spec_cpu.repairs import Repairs
from perfcast.domains.servers.parsing.cache import parse_l1, parse_l2, parse_l3, parse_other_cache
from perfcast.domains.servers.parsing.distinct_texts import (
    expand_codes,
    map_distinct,
    number_combinations,
    parse_column,
)
from perfcast.domains.servers.parsing.memory import parse_memory
from perfcast.domains.servers.parsing.names import extract_system_stems, normalize_company
from perfcast.domains.servers.parsing.scalars import (
    parse_disclosure,
    parse_flag,
    parse_month,
    parse_number,
    parse_orderable,
    parse_pointer_bits,
)
from perfcast.domains.servers.parsing.software import parse_compiler, parse_operating_system, parse_storage
from perfcast.domains.servers.parsing.text_normalization import compile_pattern, is_stated, normalize
from perfcast.domains.servers.processors.cpu_models import join_processors, read_cpu_models
from perfcast.domains.servers.processors.cpu_names import cpu_model_id, cpu_model_key
from perfcast.schema.table import Column, Kind, Table, as_declared, build_table, outside, select
from perfcast.sources.packed import Packed
from perfcast.splits.row_groups import by_values, connected
from perfcast.utils.errors import UserError

MAX_CORES_PER_CHIP = 512

Reader = Callable[[str], Any]
READERS: Mapping[str, Reader] = {
    "number": partial(parse_number, low=0),
    "month": parse_month,
    "flag": parse_flag,
    "pointer bits": parse_pointer_bits,
    "identity": parse_disclosure,
    "l1": parse_l1,
    "l2": parse_l2,
    "l3": parse_l3,
    "other cache": parse_other_cache,
    "memory": parse_memory,
    "storage": parse_storage,
    "operating system": parse_operating_system,
    "compiler": parse_compiler,
    "orderable": parse_orderable,
    "company": normalize_company,
    "cpu model": cpu_model_key,
    "file system": lambda text: text.strip().casefold() or None,
}
"""Name of a reader in `dump_columns.csv` -> function that reads a text, where a dump has no own one."""

_DATES = ("test_month", "hw_avail", "sw_avail", "updated", "published_month", "arrival_day")
_SUBMISSION = ("hw_vendor", "system_stem", "cpu_model", "chips", "published_month")
_DEFECT = ("reason", "detail")
"""Columns of a packed dump with lines that are no rows."""
_MANY_DEFECTS = 2
_VIRTUAL = compile_pattern(r"\b(?:VMs?|virtual machines?|VMware|KVM|Hyper-V)\b")
"""Words of a system that is no machine. "Cloud" is in names of machines, and a `.metal` instance is one."""


@dataclass(frozen=True)
class RawColumn:
    """Raw column of a dump, its reader, and the columns that it gives.

    `reason` is that to quarantine a row where this column alone is invalid.
    """

    raw: str
    read: Reader
    names: tuple[str, ...]
    reason: str


@dataclass(frozen=True, kw_only=True)
class SpecDump:
    """Description of a dump, by the name of its source.

    `suites` maps the dump's `Benchmark` to a suite; `readers` replace those of READERS. `derived` texts to parse are
    made by `screen`, the dump does not have them.

    `screen` quarantines rows that are no results, `derive` adds columns after parsing, `repair` corrects joined rows.
    `optional` raw columns are read for `screen` where the dump has them. Rows that are equal in the columns of
    `near_copies` are of one block. `facts` are those of the table.
    """

    source: str
    repair: Callable[[pd.DataFrame, Repairs], pd.DataFrame]
    screen: Callable[[pd.DataFrame, Quarantine], pd.DataFrame]
    derive: Callable[[pd.DataFrame], pd.DataFrame]
    suites: Mapping[str, str] = field(default_factory=dict)
    readers: Mapping[str, Reader] = field(default_factory=dict)
    derived: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    near_copies: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Standard columns in table order."""
        return read_columns(__package__, "columns.csv", self.source.removeprefix("spec_"))

    @cached_property
    def described(self) -> Mapping[str, list[RawColumn]]:
        """Raw columns by kind: required, identity, parsed, name, other.

        Without a required column a row is no result. A name is the result of its reader.
        """
        readers: dict[str, Reader] = {
            **READERS,
            "": str,
            "suite": lambda text: self.suites.get(normalize(text)),
            **self.readers,
        }
        kinds: dict[str, list[RawColumn]] = {
            kind: []
            for kind in (
                "required",
                "identity",
                "parsed",
                "name",
                "other",
            )
        }
        for row in read_table(__package__, "dump_columns.csv"):
            if self.source.removeprefix("spec_") in row["tables"].split():
                names = tuple(row["names"].split("|"))
                kinds[row["kind"]].append(
                    RawColumn(
                        row["raw"],
                        readers[row["reader"]],
                        names,
                        row["reason"],
                    )
                )
        return kinds

    @property
    def raw_columns(self) -> tuple[str, ...]:
        """Columns that are read."""
        columns = dict.fromkeys(column.raw for described in self.described.values() for column in described)
        return tuple(column for column in columns if column not in self.derived)

    def parse(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Add the standard columns of the text columns; every distinct text is parsed once."""
        columns: dict[str, pd.Series] = {}
        for column in self.described["parsed"]:
            parsed = parse_column(frame[column.raw], column.read, column.names)
            columns |= {name: parsed[name] for name in column.names}
        columns |= {name: pd.to_datetime(columns[name]) for name in _DATES if name in columns}
        columns |= {column.names[0]: map_distinct(frame[column.raw], column.read) for column in self.described["name"]}
        return self.derive(frame.assign(**columns, system_stem=extract_system_stems(frame)))

    def pack(self, folder: Path) -> Packed:
        """Return the columns that the pipeline reads, row for row, with a result's identifier in place of its links.

        A link without an identifier stays. A line that is no whole row has its reason and detail alone.
        Raises: UserError when the dump has blank lines: lines identify rows.
        """
        path = find_only_file(self.source, folder)
        rows = read_dump(self.source, path, self.raw_columns, self.raw_columns, self.optional)
        frame = join_rejections(rows.frame.assign(file=path.name), rows.rejections)
        frame = frame.iloc[frame["line"].astype("int64").argsort()].reset_index(drop=True)
        if int(frame["line"].iloc[-1]) != len(frame) + 1:
            raise UserError(f"{path.name} must have a row on every line", "it has blank lines", "check the file")
        defects = () if rows.rejections else _DEFECT
        frame = frame.drop(columns=["file", "line", *defects])
        if "Disclosure" in frame:
            frame["Disclosure"] = frame["Disclosure"].map(lambda text: parse_disclosure(text).result_id or text)
        left_out = [name for name in rows.header if name not in frame]
        return Packed(frame, f"columns {', '.join(left_out)}; of the links of a result all but its identifier")

    def build(self, raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
        """Standardize the dump, and join the facts of the CPU models.

        The only one of the `options` is `dataset`, the name of the table, by default that of the source.

        Raises:
            UserError: The file is not a whole table with the dump's columns, or holds no usable result.
        """
        frame, quarantine, rows_in, identical = read_results(self, raw[self.source])
        # The copy consolidates the blocks of a frame that grew by columns; later steps are slow without it.
        frame = join_processors(self.parse(frame)).copy()
        repairs = Repairs()
        frame = self.repair(frame, repairs)
        same = np.zeros(len(frame), dtype=np.int8)
        frame = frame.assign(
            source=expand_codes([self.source], same, frame.index),
            file=expand_codes([quarantine.file], same, frame.index),
            cpu_model_id=map_distinct(frame["cpu_model"], cpu_model_id),
            submission_id=join_near_copies(name_submissions(frame), frame, self.near_copies),
        )
        wrong, detail = describe_out_of_bounds(frame, self.columns)
        frame = quarantine.reject(frame, wrong, "out_of_bounds", detail)
        table = build_table(
            options.get("dataset", self.source),
            frame,
            self.columns,
            dict(self.facts),
            copy=False,
        )
        return Standardized(
            table,
            build_rejected_frame(quarantine.rejections),
            rows_in,
            {"identical_but_for_disclosure": identical},
            summarize_quality(frame, table, repairs.counts),
        )


def summarize_quality(frame: pd.DataFrame, table: Table, repairs: Mapping[str, int]) -> dict[str, Any]:
    """Return the quality facts of a standardized dump.

    Args:
        frame: Accepted rows with raw and intermediate columns.
        table: The same rows with standard columns.
        repairs: Number of repaired rows by rule.
    """

    def count(values: pd.Series) -> dict[str, int]:
        texts = values.dropna().astype("str")
        return {str(value): int(rows) for value, rows in texts.value_counts().sort_index().items()}

    listed = frame["cpu_model"].isin(read_cpu_models().index)
    return {
        "join_coverage": {
            "rows": len(frame),
            "listed": int(listed.sum()),
            "share_of_rows": round(float(listed.mean()), 6) if len(frame) else 0.0,
        },
        "families": count(table.frame["family"]),
        "unknown_processors": count(frame.loc[table.frame["family"].isna().to_numpy(), "cpu_model"]),
        "flags": {name: int(table.frame[name].sum()) for name in table.frame if str(name).startswith("q_")},
        "repairs": dict(sorted(repairs.items())),
    }


def read_results(dump: SpecDump, folder: Path) -> tuple[pd.DataFrame, Quarantine, int, int]:
    """Read the results of a dump, and quarantine rows that are not results.

    Rows that differ in their identifier alone are folded.

    Returns:
        Results, with the raw columns as text, the required columns (`SpecDump.described`), result_id, line, and with an
        identifier arrival_day, ordered by identifier; the quarantine; the number of rows, and of those folded into a
        row that differs in its identifier alone.

    Raises:
        UserError: The file is not a whole table with the dump's columns, or no row is a result.
    """
    path = find_only_file(dump.source, folder)
    optional = (*dump.optional, *_DEFECT)
    rows = read_dump(dump.source, path, dump.raw_columns, ("Disclosure",), optional)
    # the packed table and the official file have the same rows, so that they have one name
    file = f"{dump.source}.csv"
    frame = rows.frame
    rejections = [replace(each, file=file) for each in rows.rejections]
    if _DEFECT[0] in frame:
        frame, packed = split_rejections(dump.source, frame.assign(file=file))
        rejections += packed
    quarantine = Quarantine(dump.source, file, tuple(rejections))
    _refuse_none(path, frame, rows.rows_in, quarantine)
    frame = _type_columns(dump, frame.assign(line_in_file=frame["line"]))
    frame = _reject_untyped(frame, quarantine, dump)
    virtual = map_distinct(frame["System"], lambda text: _VIRTUAL.search(text) is not None)
    frame = dump.screen(quarantine.reject(frame, virtual, "virtual_machine", frame["System"]), quarantine)
    repeated = _mark_repeated(frame, dump.raw_columns)
    frame = quarantine.reject(frame, repeated, "duplicate_result_id", frame.loc[repeated, "result_id"].astype("str"))
    _refuse_none(path, frame, rows.rows_in, quarantine)
    frame = frame.sort_values("result_id", kind="stable")
    identical = frame.duplicated([column for column in dump.raw_columns if column != "Disclosure"])
    frame = frame.drop(columns="Disclosure", errors="ignore")[~identical]
    return frame, quarantine, rows.rows_in, int(identical.sum())


def _refuse_none(path: Path, frame: pd.DataFrame, rows: int, quarantine: Quarantine) -> None:
    if frame.empty:
        raise UserError(
            f"{path} must hold a usable result",
            f"of {rows} rows {len(quarantine.rejections)} are unusable",
            "check the file",
        )


def _type_columns(dump: SpecDump, raw: pd.DataFrame) -> pd.DataFrame:
    """Add the required columns and the identifier; a value is missing where its text is invalid."""
    typed: dict[str, pd.Series] = {}
    for column in dump.described["required"]:
        parsed = parse_column(raw[column.raw], column.read, column.names)
        for name in column.names:
            typed[name] = pd.to_datetime(parsed[name]) if name in _DATES else parsed[name]
    # nearly all identifiers differ
    identities = [parse_disclosure(text) for text in raw["Disclosure"]]
    return raw.assign(
        **typed,
        result_id=pd.Series([each.result_id for each in identities], raw.index, dtype="str"),
        arrival_day=pd.to_datetime(pd.Series([each.arrival_day for each in identities], raw.index, dtype="object")),
    )


def _reject_untyped(frame: pd.DataFrame, quarantine: Quarantine, dump: SpecDump) -> pd.DataFrame:
    """Quarantine rows that lack a required value; several missing values mean shifted columns.

    A peak score that is not stated is no defect.
    """
    required = [*dump.described["required"], *dump.described["identity"]]
    missing = pd.DataFrame({column.names[0]: frame[column.names[0]].isna() for column in required}, index=frame.index)
    for column in required:
        if column.names[0] == "peak_score":
            missing["peak_score"] &= map_distinct(frame[column.raw], is_stated)
    defects = missing.sum(axis=1)
    detail = pd.Series("", index=frame.index[defects > 0], dtype="object")
    for row in detail.index:
        wrong = [column.raw for column, bad in zip(required, missing.loc[row], strict=True) if bad]
        detail[row] = ", ".join(f"{column}={normalize(str(frame.at[row, column]))!r}" for column in wrong)
    shifted = defects >= _MANY_DEFECTS
    single = {column.reason: pd.Series(False, index=frame.index) for column in required}
    for column in required:
        single[column.reason] |= missing[column.names[0]] & ~shifted
    for reason, bad in {"shifted_columns": shifted, **single}.items():
        frame = quarantine.reject(frame, bad[frame.index], reason, detail)
    return frame


def _mark_repeated(frame: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """Mark rows that repeat an earlier identifier without being whole copies of that row."""
    # Copies share their identifier, so only rows with a repeated one are compared.
    shared = frame[frame["result_id"].duplicated(keep=False)]
    again = shared["result_id"].duplicated() & ~shared.duplicated(list(columns))
    return again.reindex(frame.index, fill_value=False)


def name_submissions(frame: pd.DataFrame) -> pd.Series:
    """Return the test campaign of each row as vendor, system, CPU model, chips and month of publication."""
    numbers, first = number_combinations(frame, _SUBMISSION)
    keys = (
        frame[list(_SUBMISSION)]
        .iloc[first]
        .astype(
            {
                "hw_vendor": "str",
                "system_stem": "str",
                "cpu_model": "str",
            }
        )
    )
    keys["chips"] = keys["chips"].map("{:.0f}".format, na_action="ignore").astype("str")
    keys["published_month"] = keys["published_month"].dt.strftime("%Y-%m")
    joined = join_texts(keys.fillna("?"), " | ")
    return expand_codes(joined.tolist(), numbers, frame.index)


def join_near_copies(submissions: pd.Series, frame: pd.DataFrame, names: Sequence[str]) -> pd.Series:
    """Return the submissions, those with rows that are equal in the named columns under the name of the first one."""
    if not names:
        return submissions
    groups = connected(pd.factorize(submissions)[0], by_values(frame, names))
    return submissions.astype("str").groupby(groups).transform("first")


def join_texts(frame: pd.DataFrame, separator: str) -> pd.Series:
    """Return the texts of each row in the order of the columns, joined."""
    joined: pd.Series = frame.iloc[:, 0].str.cat(frame.iloc[:, 1:], sep=separator)
    return joined


def describe_counts(frame: pd.DataFrame, names: Sequence[str]) -> pd.Series:
    """Return the counts of each row with their names as one text."""
    return join_texts(
        pd.DataFrame({name: frame[name].map(f"{{:g}} {name}".format).astype("str") for name in names}), ", "
    )


def describe_out_of_bounds(frame: pd.DataFrame, columns: Sequence[Column]) -> tuple[pd.Series, pd.Series]:
    """Mark rows with a value outside its column's bounds, and describe the first such value of each.

    Shapes: mask on the index of `frame`; details on the index of the marked rows.
    """
    first: dict[Any, str] = {}
    wrong = pd.Series(False, index=frame.index)
    for column in select(columns, kind=Kind.NUMERICAL):
        bad = outside(as_declared(frame[column.name], column), column)
        first |= {row: column.name for row in frame.index[bad] if row not in first}
        wrong |= bad
    return wrong, pd.Series({row: f"{name}={frame.at[row, name]!s}" for row, name in first.items()}, dtype="object")

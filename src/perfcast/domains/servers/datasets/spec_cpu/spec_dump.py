"""Description of a dump of published SPEC results, and the one way from the dump to its standard table.

Each dump has a `SpecDump`: raw column -> parser -> standard column. What a description cannot say, such as which rows
are no results, are its three functions `screen`, `derive` and `repair`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import build_rejected_frame
from perfcast.domains.servers.datasets.spec_cpu.dump_file import Quarantine, find_only_file, read_dump
from perfcast.domains.servers.datasets.spec_cpu.dump_quality import (
    Parser,
    describe_coverage,
    measure_coverages,
    summarize_quality,
)
from perfcast.domains.servers.datasets.spec_cpu.repairs import Repairs
from perfcast.domains.servers.parsing.distinct_texts import (
    Coverage,
    expand_codes,
    is_coded,
    map_distinct,
    number_combinations,
    parse_column,
)
from perfcast.domains.servers.parsing.names import extract_system_stems, normalize_company
from perfcast.domains.servers.parsing.scalars import Scalar, parse_month
from perfcast.domains.servers.parsing.text_normalization import is_stated, normalize
from perfcast.domains.servers.processors.cpu_names import cpu_model_id
from perfcast.domains.servers.processors.joined_facts import join_catalog
from perfcast.schema.table import Column, Kind, as_declared, build_table, outside, select
from perfcast.utils.errors import UserError

MAX_CORES_PER_CHIP = 512
THREADS_PER_CORE = (1, 2, 4, 8)

MEMORY_FIELDS = (
    *("mem_total_gb", "mem_sum_gb", "hbm_gb", "dimm_count", "dimm_gb", "dimm_groups", "dimm_ranks", "dimm_width"),
    *("dimm_type", "ecc", "ddr_gen", "mem_rated_mts", "mem_running_mts", "mem_eff_mts"),
)
L3_FIELDS = ("l3_mb_per_chip", "l3_slice_mb", "l3_cores_per_slice", "l3_asymmetric")
SYSTEM_FIELDS = ("os_name", "os_version", "kernel_series", "arch")
PUBLISHED = ("Published", parse_month, "date_impossible")
"""Entry of `SpecDump.required` for the month of publication, which every dump states."""

_DATES = ("test_month", "hw_avail", "sw_avail", "updated", "published_month", "arrival_day")
_SUBMISSION = ("hw_vendor", "system_stem", "cpu_model", "chips", "published_month")
_MANY_DEFECTS = 2


def _keep(frame: pd.DataFrame, quarantine: Quarantine) -> pd.DataFrame:
    del quarantine
    return frame


@dataclass(frozen=True, kw_only=True)
class SpecDump:
    """Description of a dump.

    `columns` are the standard columns. `required` maps a typed column to its raw column, parser, and the reason to
    quarantine a row where that column alone is invalid. `fields` maps a raw column to its parser and the parsed fields
    that become columns, `values` one to its parser and column; `names` maps a column to the raw column of a name and a
    function of its text. `others` are further raw columns to read, `derived` texts of `fields` that the dump does not
    have. `identity` parses the identifier in the raw column Disclosure, without it the line identifies a row.
    `uncovered` raw columns have no entry in the coverage of parsers. `plain` columns are not coded (see `read_dump`).

    `screen` quarantines rows that are no results, `derive` adds columns after parsing, `repair` corrects joined rows.
    """

    source: str
    columns: tuple[Column, ...]
    required: Mapping[str, tuple[str, Parser, str]]
    fields: Mapping[str, tuple[Parser, tuple[str, ...]]]
    values: Mapping[str, tuple[Parser, str]]
    names: Mapping[str, tuple[str, Callable[[str], str | None]]]
    repair: Callable[[pd.DataFrame, Repairs], pd.DataFrame]
    screen: Callable[[pd.DataFrame, Quarantine], pd.DataFrame] = _keep
    derive: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame
    identity: Parser | None = None
    others: tuple[str, ...] = ()
    derived: tuple[str, ...] = ()
    uncovered: frozenset[str] = frozenset()
    plain: tuple[str, ...] | None = None

    @property
    def raw_columns(self) -> tuple[str, ...]:
        """Columns that are read."""
        required = [column for column, _, _ in self.required.values()]
        names = [column for column, _ in self.names.values()]
        disclosure = ["Disclosure"] if self.identity else []
        columns = dict.fromkeys((*required, *self.fields, *self.values, *names, "System", *self.others, *disclosure))
        return tuple(column for column in columns if column not in self.derived)

    def parse(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Add the standard columns of the text columns; every distinct text is parsed once."""
        columns: dict[str, pd.Series] = {}
        for column, (parse, names) in self.fields.items():
            parsed = parse_column(frame[column], parse, names)
            columns |= {name: parsed[name] for name in names}
        for column, (parse, name) in self.values.items():
            columns[name] = parse_column(frame[column], parse, ["value"])["value"]
        columns |= {name: pd.to_datetime(columns[name]) for name in _DATES if name in columns}
        columns |= {name: map_texts(frame[column], function) for name, (column, function) in self.names.items()}
        return self.derive(frame.assign(**columns, system_stem=extract_system_stems(frame)))

    def measure_coverage(self, frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
        """Return the coverage of each parsed raw column, without `uncovered`."""
        parsers = {column: parse for column, (parse, _) in (*self.fields.items(), *self.values.items())}
        parsers |= {column: parse for column, parse, _ in self.required.values()}
        parsers = {column: parse for column, parse in parsers.items() if column not in self.uncovered}
        coverage = measure_coverages(frame, parsers)
        if self.identity and "Disclosure" not in self.uncovered:
            # Links differ on every row, so parsing them again would take longer than all other columns together.
            parsed = int(frame["disclosure_parsed"].sum())
            coverage["Disclosure"] = describe_coverage(Coverage(len(frame), len(frame), parsed, ()))
        return coverage


@dataclass(frozen=True)
class Results:
    """Results published until the last month, ordered by identifier.

    Shapes: `frame` has the raw columns as text, the columns of `SpecDump.required`, result_id, line_in_file and line,
    and with an identifier arrival_day and disclosure_parsed. `after` counts the rows published later, `rows_in` all
    others, `identical` those folded into a row that differs in its identifier alone.
    """

    frame: pd.DataFrame
    quarantine: Quarantine
    rows_in: int
    after: int
    identical: int


def build(dump: SpecDump, raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize a dump, and join the processor catalog where that source is available.

    Options: `published_until`, the last month of publication as YYYY-MM. Rows published later are dropped, so every
    snapshot of the dump gives the same table. None keeps all rows.

    Raises:
        UserError: The file is not a whole table with the dump's columns, holds no usable result, or the option is not a
            month.
    """
    results = read_results(dump, raw[dump.source], parse_last_month(options.get("published_until")))
    # The copy consolidates the blocks of a frame that grew by columns; later steps are slow without it.
    frame = join_catalog(dump.parse(results.frame), raw).copy()
    repairs = Repairs()
    frame = dump.repair(frame, repairs)
    same = np.zeros(len(frame), dtype=np.int8)
    frame = frame.assign(
        source=expand_codes([dump.source], same, frame.index),
        file=expand_codes([results.quarantine.file], same, frame.index),
        cpu_model_id=map_texts(frame["cpu_model"], cpu_model_id),
        submission_id=name_submissions(frame),
    )
    wrong, detail = describe_out_of_bounds(frame, dump.columns)
    frame = results.quarantine.reject(frame, wrong, "out_of_bounds", detail)
    facts = {name: options[name] for name in ("published_until",) if name in options}
    table = build_table(dump.source, frame, dump.columns, facts, copy=False)
    return Standardized(
        table,
        build_rejected_frame(results.quarantine.rejections),
        results.rows_in,
        {"identical_but_for_disclosure" if dump.identity else "identical": results.identical},
        {
            "after_published_until": results.after,
            **summarize_quality(frame, table, repairs.counts, dump.measure_coverage(frame)),
        },
    )


def read_results(dump: SpecDump, folder: Path, until: pd.Timestamp) -> Results:
    """Read the results of a dump that were published until a month, and quarantine rows that are not results.

    `line` counts the lines of the file without the rows published later, so every snapshot gives the same lines. Rows
    that differ in their identifier alone are folded.

    Raises:
        UserError: The file is not a whole table with the dump's columns, or no row is a result.
    """
    path = find_only_file(dump.source, folder)
    rows = read_dump(dump.source, path, dump.raw_columns, dump.plain)
    quarantine = Quarantine(dump.source, path.name, rows.rejections)
    _refuse_none(path, rows.frame, rows.rows_in, quarantine)
    frame = _type_columns(dump, rows.frame.rename(columns={"line": "line_in_file"}))
    after = frame["published_month"] > until
    frame = frame.assign(line=frame["line_in_file"] - after.cumsum())[~after]
    reasons = {name: (column, reason) for name, (column, _, reason) in dump.required.items()}
    reasons |= {"result_id": ("Disclosure", "no_result_id")} if dump.identity else {}
    frame = dump.screen(_reject_untyped(frame, quarantine, reasons), quarantine)
    repeated = _mark_repeated(frame, dump.raw_columns)
    frame = quarantine.reject(frame, repeated, "duplicate_result_id", frame.loc[repeated, "result_id"].astype("str"))
    _refuse_none(path, frame, rows.rows_in, quarantine, int(after.sum()))
    frame = frame.sort_values("result_id", kind="stable")
    identical = frame.duplicated([column for column in dump.raw_columns if column != "Disclosure"])
    rows_in = rows.rows_in - int(after.sum())
    frame = frame.drop(columns="Disclosure", errors="ignore")[~identical]
    return Results(frame, quarantine, rows_in, int(after.sum()), int(identical.sum()))


def _refuse_none(path: Path, frame: pd.DataFrame, rows: int, quarantine: Quarantine, after: int = 0) -> None:
    if frame.empty:
        raise UserError(
            f"{path} must hold a usable result",
            f"of {rows} rows {len(quarantine.rejections)} are unusable, {after} too late",
            "check the file" + (", or set published_until later" if after else ""),
        )


def _type_columns(dump: SpecDump, raw: pd.DataFrame) -> pd.DataFrame:
    """Add the required columns and the identifier; a value is missing where its text is invalid."""
    typed = {
        name: parse_column(raw[column], parse, ["value"])["value"] for name, (column, parse, _) in dump.required.items()
    }
    if dump.identity:
        disclosure = parse_column(raw["Disclosure"], dump.identity, ["result_id", "arrival_day", "complete"])
        typed |= {name: disclosure[name] for name in ("result_id", "arrival_day")}
        typed["disclosure_parsed"] = disclosure["complete"]
    else:
        # The lines identify rows, because the file's checksum is verified.
        prefix = dump.source.removeprefix("spec_")
        typed["result_id"] = f"{prefix}-" + raw["line_in_file"].map("{:05d}".format)
    return raw.assign(**{name: pd.to_datetime(typed[name]) if name in _DATES else typed[name] for name in typed})


def _reject_untyped(
    frame: pd.DataFrame, quarantine: Quarantine, reasons: Mapping[str, tuple[str, str]]
) -> pd.DataFrame:
    """Quarantine rows that lack a required value; several missing values mean shifted columns.

    A peak score that is not stated is no defect. `reasons` maps a typed column to its raw column, and to the reason
    where only that column is invalid.
    """
    missing = pd.DataFrame({name: frame[name].isna() for name in reasons}, index=frame.index)
    if "peak_score" in reasons:
        missing["peak_score"] &= map_distinct(frame[reasons["peak_score"][0]], is_stated)
    defects = missing.sum(axis=1)
    raw_columns = [column for column, _ in reasons.values()]
    detail = pd.Series("", index=frame.index[defects > 0], dtype="object")
    for row in detail.index:
        wrong = [column for column, bad in zip(raw_columns, missing.loc[row], strict=True) if bad]
        detail[row] = ", ".join(f"{column}={normalize(str(frame.at[row, column]))!r}" for column in wrong)
    shifted = defects >= _MANY_DEFECTS
    single = {reason: pd.Series(False, index=frame.index) for _, reason in reasons.values()}
    for name, (_, reason) in reasons.items():
        single[reason] |= missing[name] & ~shifted
    for reason, bad in {"shifted_columns": shifted, **single}.items():
        frame = quarantine.reject(frame, bad[frame.index], reason, detail)
    return frame


def _mark_repeated(frame: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """Mark rows that repeat an earlier identifier without being whole copies of that row."""
    # Copies share their identifier, so only rows with a repeated one are compared.
    shared = frame[frame["result_id"].duplicated(keep=False)]
    again = shared["result_id"].duplicated() & ~shared.duplicated(list(columns))
    return again.reindex(frame.index, fill_value=False)


def parse_suite(suites: Mapping[str, str]) -> Parser:
    """Return a parser of names of suites by their name in the dump."""
    return lambda text: Scalar(suites.get(normalize(text)))


def map_texts(texts: pd.Series, function: Callable[[str], str | None]) -> pd.Series:
    """Apply a function to each text, once per distinct text; the result of coded texts is coded."""
    if is_coded(texts):
        return map_distinct(texts, function)
    return texts.map({text: function(text) for text in texts.unique()})


def name_companies(vendor: str) -> dict[str, tuple[str, Callable[[str], str | None]]]:
    """Return the entries of `SpecDump.names` for companies; `vendor` is the raw column of the machine's vendor."""
    companies = {"hw_vendor": vendor, "tester": "Tested By", "sponsor": "Test Sponsor"}
    return {name: (column, normalize_company) for name, column in companies.items()}


def parse_last_month(text: object) -> pd.Timestamp:
    """Return the first day of a month written YYYY-MM, and the end of time for None. Raises: UserError."""
    try:
        return pd.Timestamp.max if text is None else pd.Timestamp(pd.Period(str(text), freq="M").start_time)
    except ValueError:
        raise UserError(
            "published_until must be a month such as 2024-12", f"found {text!r}", "correct it in params.yaml"
        ) from None


def name_submissions(frame: pd.DataFrame) -> pd.Series:
    """Return the test campaign of each row as vendor, system, CPU model, chips and month of publication."""
    numbers, first = number_combinations(frame, _SUBMISSION)
    keys = frame[list(_SUBMISSION)].iloc[first].astype({"hw_vendor": "str", "system_stem": "str", "cpu_model": "str"})
    keys["chips"] = keys["chips"].map("{:.0f}".format, na_action="ignore").astype("str")
    keys["published_month"] = keys["published_month"].dt.strftime("%Y-%m")
    joined = join_texts(keys.fillna("?"), " | ")
    coded = expand_codes(joined.tolist(), numbers, frame.index)
    return coded if is_coded(frame["cpu_model"]) else coded.astype("str")


def join_texts(frame: pd.DataFrame, separator: str) -> pd.Series:
    """Return the texts of each row in the order of the columns, joined."""
    joined: pd.Series = frame.iloc[:, 0].str.cat(frame.iloc[:, 1:], sep=separator)
    return joined


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

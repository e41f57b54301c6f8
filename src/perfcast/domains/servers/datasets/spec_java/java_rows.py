"""Screening of the Java benchmarks' dumps: typed results, and the reasons to quarantine a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.domains.servers.datasets.spec_cpu.cpu2017_columns import COLUMNS as CPU2017
from perfcast.domains.servers.datasets.spec_cpu.quarantine import MAX_CORES_PER_CHIP, Quarantine, reject_defects
from perfcast.domains.servers.datasets.spec_cpu.spec_dump import find_only_file, read_dump
from perfcast.domains.servers.parsing.distinct_texts import Parsed, parse_column
from perfcast.domains.servers.parsing.scalars import Scalar, parse_month
from perfcast.domains.servers.parsing.text_normalization import compile_pattern, normalize
from perfcast.schema.table import Column, Kind, Role, Tag
from perfcast.utils.errors import UserError

_BY_NAME = {column.name: column for column in CPU2017}

_TYPES = "R registered, L load-reduced, F fully buffered, E or U unbuffered, S small, M multiplexed"
_RELEASE = "Java release of the JVM: 7 for 1.7.0, 17 for 17.0.2"


def _feature(name: str, kind: Kind, group: str, meaning: str, bounds: tuple[float, float] | None = None) -> Column:
    low, high = bounds or (None, None)
    return Column(name, kind, Role.FEATURE, group, "", meaning, low, high, (Tag.CONFIG,))


def select_columns(names: Iterable[str]) -> tuple[Column, ...]:
    """Return the declarations of these columns of spec_cpu2017."""
    return tuple(_BY_NAME[name] for name in names)


KEYS = select_columns(("result_id", "submission_id", "cpu_model_id", "cpu_model"))
SUITE = replace(_BY_NAME["suite"], meaning="benchmark and its setup")
JVM = (
    _feature("jvm_vendor", Kind.CATEGORICAL, "workload", "vendor of the Java virtual machine"),
    _feature("jvm_name", Kind.CATEGORICAL, "workload", "name of the Java virtual machine"),
    _feature("jvm_release", Kind.NUMERICAL, "workload", _RELEASE, (1, 99)),
    _feature(
        "jvm_update", Kind.NUMERICAL, "workload", "update of the Java release; for J9, the service release", (0, 999)
    ),
)
PROCESSOR = tuple(
    column
    for column in CPU2017
    if column.group == "processor" and column.role is not Role.KEY and column.name != "l4_mb"
)
MEMORY = tuple(
    replace(column, meaning=_TYPES) if column.name == "dimm_type" else column
    for column in CPU2017
    if column.group == "memory"
)
SYSTEM = (
    *select_columns(("hw_vendor", "chips", "cores_enabled_total", "threads_per_core")),
    *select_columns(("os_name", "os_version", "kernel_series", "arch", "file_system", "storage_class")),
    _feature("form_factor", Kind.CATEGORICAL, "system", "height of the enclosure such as 2U, else blade or tower"),
    _feature("nodes", Kind.NUMERICAL, "system", "machines in the measured system", (1, 1024)),
)
AUDIT = select_columns(
    (
        *("published_month", "test_month", "hw_avail", "sw_avail", "arrival_day", "updated"),
        *("system_stem", "tester", "sponsor"),
        *("cores_per_chip_stated", "q_cores_mismatch", "q_mem_arith", "q_ddr_gen", "q_date"),
        *("source", "file", "line"),
    )
)


def target(name: str, unit: str, meaning: str, bounds: tuple[float, float]) -> Column:
    """Declare a target."""
    return Column(name, Kind.NUMERICAL, Role.TARGET, "workload", unit, meaning, *bounds)


_NUMBER = compile_pattern(r"^\d{1,12}(?:\.\d{1,12})?(?:e\+?\d{1,2})?$")
_THOUSANDS = compile_pattern(r"(?<=\d),(?=\d{3}(?:\D|$))")
_IDENTIFIER = compile_pattern(r"\b((?:power_ssj2008|jbb2015)-(\d{4})(\d{2})(\d{2})-\d{5})\b")
_MAX_CHIPS = 64


Typed = tuple[str, Callable[[str], Parsed], str]
"""Raw column that must give a value, its parser, and the reason where it does not."""


_SHARED = ("System", "Memory (GB)", "File System", "Operating System", "Tested By", "Test Sponsor")
"""Raw columns that both dumps have under one name."""


def list_raw_columns(texts: Mapping[str, str], typed: Mapping[str, Typed], *others: str) -> tuple[str, ...]:
    """Return the columns to read: those of texts and typed columns, those of every dump, and `others`."""
    columns = (*texts.values(), *(column for column, _, _ in typed.values()))
    return tuple(dict.fromkeys((*columns, *_SHARED, "Published", "Disclosure", *others)))


@dataclass(frozen=True)
class Identity:
    """Identifier of a published result, and the day of its submission from the identifier."""

    result_id: str | None = None
    arrival_day: date | None = None
    complete: bool = False


@dataclass(frozen=True)
class Results:
    """Results published until the last month, ordered by identifier.

    Shapes: `frame` has the raw columns as text, the typed columns, result_id, arrival_day, published_month, line and
    line_in_file. `after` counts the rows published later, `rows_in` all others.
    """

    frame: pd.DataFrame
    quarantine: Quarantine
    rows_in: int
    after: int
    identical: int

    def reject(self, frame: pd.DataFrame, bad: pd.Series, reason: str, detail: pd.Series) -> pd.DataFrame:
        """Quarantine the rows where `bad` holds, and return the others. Raises: UserError when none remains."""
        remaining = self.quarantine.reject(frame, bad, reason, detail)
        self.refuse_none(remaining)
        return remaining

    def refuse_none(self, frame: pd.DataFrame) -> None:
        """Reject an empty frame. Raises: UserError when the frame has no row."""
        if frame.empty:
            raise UserError(
                f"{self.quarantine.file} of {self.quarantine.source} must hold a usable result",
                f"of {self.rows_in + self.after} rows {len(self.quarantine.rejections)} are unusable, "
                f"{self.after} too late",
                "check the file, or set published_until later",
            )


def parse_measured(text: str) -> Scalar[float]:
    """Parse a number without sign, such as `1.34723e+06` or `1,024`."""
    value = _THOUSANDS.sub("", normalize(text))
    return Scalar(float(value)) if _NUMBER.match(value) else Scalar(reason=f"not a number: {value[:40]!r}")


def parse_identity(text: str) -> Identity:
    """Parse the first identifier in a text of links, such as `power_ssj2008-20301109-00042`."""
    match = _IDENTIFIER.search(normalize(text))
    if match is None:
        return Identity()
    try:
        day = date(int(match[2]), int(match[3]), int(match[4]))
    except ValueError:
        return Identity()
    return Identity(match[1].lower(), day, complete=True)


def read_results(
    source: str,
    folder: Path,
    columns: Sequence[str],
    typed: Mapping[str, Typed],
    until: pd.Timestamp,
) -> Results:
    """Read the results of a dump that were published until the month `until`.

    A row that differs from another in its identifier alone is folded into it. `typed` maps a typed column to its raw
    column, parser and reason.

    Raises:
        UserError: The file is not a whole table with these columns, or no row is a result.
    """
    path = find_only_file(source, folder)
    rows = read_dump(source, path, columns)
    quarantine = Quarantine(source, path.name, rows.rejections)
    required = {**typed, "published_month": ("Published", parse_month, "date_impossible")}
    values = {
        name: parse_column(rows.frame[column], parse)["value"].rename(name)
        for name, (column, parse, _) in required.items()
    }
    identity = parse_column(rows.frame["Disclosure"], parse_identity)
    frame = rows.frame.rename(columns={"line": "line_in_file"}).assign(
        **values, result_id=identity["result_id"], arrival_day=pd.to_datetime(identity["arrival_day"])
    )
    frame["published_month"] = pd.to_datetime(frame["published_month"])
    after = frame["published_month"] > until
    # Later rows are not counted, so every snapshot of the dump gives the same lines.
    frame = frame.assign(line=frame["line_in_file"] - after.cumsum())[~after]

    reasons = {name: (column, reason) for name, (column, _, reason) in required.items()}
    reasons["result_id"] = ("Disclosure", "no_result_id")
    missing = pd.DataFrame({name: frame[name].isna() for name in reasons}, index=frame.index)
    frame = reject_defects(frame, quarantine, missing, reasons)
    texts = [column for column in columns if column != "Disclosure"]
    repeated = frame["result_id"].duplicated()
    frame = quarantine.reject(frame, repeated, "duplicate_result_id", frame["result_id"].astype("str"))
    frame = frame.sort_values("result_id", kind="stable")
    identical = frame.duplicated(texts)
    rows_in = rows.rows_in - int(after.sum())
    results = Results(frame[~identical].copy(), quarantine, rows_in, int(after.sum()), int(identical.sum()))
    results.refuse_none(frame)
    return results


def reject_impossible_counts(frame: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Quarantine rows with impossible counts. Shapes: `frame` has the columns cores, chips and nodes."""
    per_chip = frame["cores"] / frame["chips"].replace(0, np.nan)
    whole = (per_chip % 1 == 0) & (frame["chips"] % 1 == 0) & (frame["nodes"] % 1 == 0) & (frame["nodes"] >= 1)
    possible = whole & per_chip.between(1, MAX_CORES_PER_CHIP) & frame["chips"].between(1, _MAX_CHIPS)
    text = (
        frame["cores"].map("{:g} cores, ".format)
        + frame["chips"].map("{:g} chips, ".format)
        + frame["nodes"].map("{:g} nodes".format)
    )
    return results.reject(frame, ~possible, "impossible_counts", text)

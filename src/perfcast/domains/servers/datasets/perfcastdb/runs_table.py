"""Public sample of PerfCastDB: one row per run of a suite on a machine, one target per test."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.measured_tables import describe_first_bad, quarantine
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import (
    Rejection,
    build_rejected_frame,
    join_rejections,
    read_rows,
    split_rejections,
)
from perfcast.domains import read_columns, read_table
from perfcast.domains.servers.datasets.perfcastdb.run_values import NUMERICAL, STATED, characterize_run, list_read
from perfcast.schema.table import Column, Kind, Role, Table, build_table
from perfcast.sources.bounded_files import check_zip
from perfcast.sources.packed import Packed, read_records
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError

SOURCE = "perfcastdb"
RUN = "kubernetes.pod_id"
SUITE = "RESULT.WorkloadName"
TEST = "RESULT.TestName"
ITERATION = "RESULT.IterationIndex"
VALUE = "RESULT.Value"
READ_COLUMNS = [RUN, SUITE, TEST, ITERATION, VALUE, *STATED]

_UNITS = {
    "MB/s": ("MB/s", 1.0),
    "GB/s": ("MB/s", 1000.0),
    "ns": ("ns", 1.0),
    "us": ("ns", 1000.0),
    "GFLOPS": ("GFLOP/s", 1.0),
    "TFLOPS": ("GFLOP/s", 1000.0),
}
LOWER_IS_BETTER = {"ns"}
PARTS = {"train_data.csv": "train", "test_data.csv": "test"}
"""File of long rows -> the published subset that it is."""
SKU_TABLE = "SPR_QDF_INFO.xlsx"
SKU_OF_RUN = list_read("text")["sku_code"]


def pack(folder: Path) -> Packed:
    """Return the long rows of both files, and below them the rows of the sheet of processor samples that ran.

    Raises: UserError when a file is missing, broken or lacks a column.
    """
    frames = []
    rejections = list[Rejection]()
    for file in PARTS:
        rows = read_rows(SOURCE, folder / file, READ_COLUMNS)
        frames.append(rows.frame.assign(file=file))
        rejections += rows.rejections
    long = pd.concat(frames)
    skus = read_skus(folder / SKU_TABLE)
    ran = skus[CODE].isin(long[SKU_OF_RUN].str.strip())
    records = pd.concat([long, skus[ran].assign(file=SKU_TABLE)]).fillna("")
    left_out = "columns of hosts, clusters and namespaces, and others that nothing reads; samples that did not run"
    return Packed(join_rejections(records, rejections), left_out)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the sample: convert long rows to runs, join the processor samples, and repair units.

    Raises:
        UserError: A file is missing, broken or lacks a column, or `options` is not empty.
    """
    if options:
        fact = f"found {', '.join(sorted(options))}"
        raise UserError("dataset 'perfcastdb' has no options", fact, "remove them from its conf")
    records, rejections = split_rejections(SOURCE, read_records(raw[SOURCE], SOURCE, pack))
    is_sku = records["file"] == SKU_TABLE
    skus = parse_skus(records[is_sku])
    long = _name_runs(records[~is_sku].reset_index(drop=True))
    good, rejected = _quarantine(long)
    distinct = good[~good.duplicated(READ_COLUMNS)]
    is_copy = distinct["run"].isin(_find_copied_runs(distinct))
    measured = distinct[~is_copy]
    runs = _pivot(measured)
    table, repairs = _build_table(runs, _describe_targets(measured), skus)
    tests = len(measured[["run", "target"]].drop_duplicates())
    return Standardized(
        table=table,
        rejected=build_rejected_frame([*rejections, *rejected]),
        rows_in=len(long) + len(rejections),
        merged={
            "repeated_row": len(good) - len(distinct),
            "copied_run": int(is_copy.sum()),
            "iterations_averaged": len(measured) - tests,
            "tests_of_one_run": tests - len(runs),
        },
        quality={
            "repairs": repairs,
            "join_coverage": _measure_join_coverage(table.frame["sku_code"], skus),
        },
    )


def _name_runs(long: pd.DataFrame) -> pd.DataFrame:
    """Add the run of each row, its target, and the name, the unit and the factor of its test."""
    suite = long[SUITE].map(make_slug)
    tests = long[TEST].map(split_unit)
    name = tests.map(itemgetter(0))
    return long.assign(
        run=long[RUN].str.strip() + ":" + suite,
        target=suite + "__" + name.map(make_slug),
        test=name,
        unit=tests.map(itemgetter(1)),
        factor=tests.map(itemgetter(2)).astype("float64"),
    )


def _quarantine(long: pd.DataFrame) -> tuple[pd.DataFrame, list[Rejection]]:
    """Quarantine invalid rows; return the others and the rejections.

    A suite mean is the geometric mean of the other rows of its run, so it adds no measurement.
    """
    texts = long[[VALUE, *NUMERICAL]].apply(lambda column: column.str.strip())
    numbers = texts.apply(pd.to_numeric, errors="coerce").astype("float64")
    is_finite = numbers.abs() < np.inf
    is_bad = ~is_finite & (texts != "")
    is_bad[VALUE] = ~(is_finite[VALUE] & (numbers[VALUE] > 0))
    is_mean = long[TEST].str.strip() == long[SUITE].str.strip()
    rules = {
        "suite_mean": long[TEST].where(is_mean),
        "not_a_number": describe_first_bad(is_bad, texts, ""),
    }
    frames = []
    rejections = list[Rejection]()
    for file in PARTS:
        part = long[long["file"] == file]
        of_part = {reason: detail[part.index] for reason, detail in rules.items()}
        good, rejected = quarantine(SOURCE, file, part, of_part)
        frames.append(good)
        rejections += rejected
    return pd.concat(frames), rejections


def _find_copied_runs(frame: pd.DataFrame) -> set[str]:
    """Return the runs that repeat every value and characteristic of a run with a shorter or earlier name."""
    content = [name for name in READ_COLUMNS if name != RUN]
    first: dict[tuple[tuple[str, ...], ...], str] = {}
    copies = set()
    for run in sorted(frame["run"].unique(), key=lambda name: (len(name), name)):
        rows = frame.loc[frame["run"] == run, content].to_numpy().tolist()
        fingerprint = tuple(sorted(map(tuple, rows)))
        if first.setdefault(fingerprint, run) != run:
            copies.add(run)
    return copies


def _pivot(measured: pd.DataFrame) -> pd.DataFrame:
    """Return one row per run: what its first row states, the mean over iterations of each test, and their spread.

    Shapes: indexed by run, with one column per target.
    Units: values in MB/s, ns and GFLOP/s; the spread is (max - min) / mean.
    """
    value = pd.to_numeric(measured[VALUE]).astype("float64") * measured["factor"]
    grouped = measured.assign(value=value).groupby(["run", "target"])["value"]
    tests = grouped.agg(["mean", "min", "max", "size"])
    tests["spread"] = ((tests["max"] - tests["min"]) / tests["mean"]).where(tests["size"] > 1)
    by_run = tests.groupby("run")
    first = measured.drop_duplicates("run").set_index("run")
    runs = first.join(tests["mean"].unstack("target"))
    return runs.assign(
        iterations=by_run["size"].max(),
        tests=by_run["size"].size(),
        spread_median=by_run["spread"].median(),
        spread_max=by_run["spread"].max(),
    ).sort_index()


def _describe_targets(measured: pd.DataFrame) -> list[Column]:
    """Declare the target of every test, in the order of their names."""
    last = measured.drop_duplicates("target", keep="last").sort_values("target")
    targets = []
    for name, suite, test, unit in last[["target", SUITE, "test", "unit"]].itertuples(index=False):
        better = "lower" if unit in LOWER_IS_BETTER else "higher"
        meaning = f"{suite}: {test}, mean over iterations; {better} is better"
        targets.append(Column(name, Kind.NUMERICAL, Role.TARGET, "workload", unit, meaning, low=0))
    return targets


def _build_table(runs: pd.DataFrame, targets: list[Column], skus: pd.DataFrame) -> tuple[Table, dict[str, int]]:
    """Return the standard table of runs, and the number of repaired runs by rule."""
    characterized = [characterize_run({name: str(row[name]) for name in READ_COLUMNS}) for _, row in runs.iterrows()]
    values = pd.DataFrame([values for values, _ in characterized], index=runs.index)
    repairs = Counter(sorted(rule for _, rules in characterized for rule in set(rules)))
    described = values.join(skus, on="sku_code") if len(values) else values
    measured = runs[["iterations", "tests", "spread_median", "spread_max", *(column.name for column in targets)]]
    frame = described.join(measured).assign(
        result_id=runs.index,
        run_id=runs[RUN].str.strip(),
        suite=runs[SUITE].map(make_slug),
        published_subset=runs["file"].map(PARTS),
        source_file=runs["file"],
        source_line=runs["line"],
    )
    columns = [*read_columns(__package__, "columns.csv"), *targets]
    frame = frame.reindex(columns=[column.name for column in columns])
    lower = [column.name for column in targets if column.unit in LOWER_IS_BETTER]
    table = build_table("perfcastdb", frame, columns, {"lower_is_better": lower})
    return table, dict(repairs)


def _measure_join_coverage(codes: pd.Series, skus: pd.DataFrame) -> dict[str, Any]:
    joined = codes.isin(skus.index)
    return {
        "runs": int(joined.sum()),
        "share_of_rows": round(float(joined.mean()), 6) if len(joined) else 1.0,
        "codes_missing": sorted(set(codes[~joined].dropna())),
    }


def make_slug(text: str) -> str:
    """Return the text in lower case, with single underscores for all but letters and digits."""
    return re.sub(r"[^a-z0-9]+", "_", text.casefold()).strip("_")


def split_unit(test: str) -> tuple[str, str, float]:
    """Return the name of a test without unit, its standard unit ("" for a ratio), and the factor to that unit."""
    name, _, ending = test.strip().rpartition("(")
    unit = ending.removesuffix(")")
    if unit == ending or unit not in _UNITS:
        return test.strip(), "", 1.0
    return name.strip(), *_UNITS[unit]


CODE = "QDF/SSPEC"
FIRST_ROWS = 5
"""Number of first rows searched for the header; a row of group titles precedes it."""

MAX_ROWS = 20_000
MAX_COLUMNS = 128
"""Limits of the rows and columns read; all used columns are among the first 100."""

_REMEDY = "ingest the source again"
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*(GHz|MHz|MB|W)?", re.ASCII)
_GHZ = {"GHz": 1000.0, "MHz": 1.0, None: 1000.0}
_COUNT: dict[str | None, float] = {None: 1.0, "MB": 1.0, "W": 1.0}

FIELDS: dict[str, tuple[str, dict[str | None, float]]] = {
    row["name"]: (row["stated"], _GHZ if row["reader"] == "sku_ghz" else _COUNT)
    for row in read_table(__package__, "columns.csv")
    if row["reader"].startswith("sku_")
}
"""Standard name -> beginning of the title in the sheet, and unit of the text -> factor."""


def read_skus(path: Path) -> pd.DataFrame:
    """Read the sheet as texts: columns CODE, FIELDS and line; skip blank rows and all but the first row of a code.

    Raises:
        UserError: The file is absent, is not such a workbook, or lacks a column.
    """
    rows = _read_sheet(Path(path))
    code, positions = _find_header(path, rows)
    skus: dict[str, dict[str, str]] = {}
    for row in rows:
        if (key := _read_cell(row, code)) and key not in skus:
            skus[key] = {name: _read_cell(row, position) for name, position in positions.items()}
    texts = pd.DataFrame.from_dict(skus, orient="index", columns=list(FIELDS), dtype="str").rename_axis(CODE)
    return texts.reset_index().assign(line=range(1, len(texts) + 1))


def parse_skus(texts: pd.DataFrame) -> pd.DataFrame:
    """Return the values of processor samples by code: columns FIELDS, float64.

    Units: clocks MHz, cache MB per processor, power W. A 0 marks an absent mode and becomes missing.
    """
    values = {name: [parse_quantity(text, factors) for text in texts[name]] for name, (_, factors) in FIELDS.items()}
    return pd.DataFrame(values, index=texts[CODE].tolist(), dtype="float64")


def parse_quantity(text: str, factors: dict[str | None, float]) -> float | None:
    """Return the number of a text such as `2.2 GHz` times the factor of its unit; None for 0 and for other texts."""
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2] not in factors:
        return None
    return float(match[1]) * factors[match[2]] or None


def _read_sheet(path: Path) -> Iterable[Sequence[Any]]:
    """Return an iterator over the rows of the first sheet, within the size limits."""
    import openpyxl

    if not path.is_file():
        raise UserError("source 'perfcastdb' must have the processor table", f"{path} is not there", _REMEDY)
    check_zip(path, "an Excel workbook", lambda name: name == "xl/workbook.xml", size_limits.WORKBOOK, remedy=_REMEDY)
    try:
        with warnings.catch_warnings(action="ignore"):
            workbook = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            sheet = workbook.worksheets[0]
            return iter(list(sheet.iter_rows(max_row=MAX_ROWS, max_col=MAX_COLUMNS, values_only=True)))
        finally:
            workbook.close()
    except Exception as error:  # openpyxl and its parsers raise many kinds of errors
        problem = str(error)[:200] or type(error).__name__
        raise UserError(f"{path} must be an Excel workbook", f"it cannot be read ({problem})", _REMEDY) from None


def _find_header(path: Path, rows: Iterable[Sequence[Any]]) -> tuple[int, dict[str, int]]:
    """Return the position of the code and of every field: its exact title, else the first that begins with it."""
    titles: list[str] = []
    for _, row in zip(range(FIRST_ROWS), rows, strict=False):
        titles = [str(value or "").strip() for value in row]
        if CODE in titles:
            break
    else:
        raise UserError(f"{path} must have the column {CODE!r}", f"it is not in the first {FIRST_ROWS} rows", _REMEDY)
    positions = {}
    for name, (title, _) in FIELDS.items():
        begins = [i for i, text in enumerate(titles) if text.startswith(title)]
        if not begins:
            raise UserError(f"{path} must have the column {title!r}", "no title begins with it", _REMEDY)
        positions[name] = titles.index(title) if title in titles else begins[0]
    return titles.index(CODE), positions


def _read_cell(row: Sequence[Any], position: int) -> str:
    return str(row[position]).strip() if position < len(row) and row[position] is not None else ""

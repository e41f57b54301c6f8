"""A dataset that is one CSV file of your own: its conf says what the columns are, and no Python is written.

`options` of conf/dataset/<name>.yaml has the keys of `CsvOptions`. The file is data/embedded/<csv>, and the source has
the name of the dataset.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from perfcast.config.conf_files import StrictModel, validated
from perfcast.data.measured_tables import describe_first_bad, parse_numbers, quarantine
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import build_rejected_frame, read_header, read_rows, require_rows
from perfcast.schema.declare import category, key
from perfcast.schema.table import LOWER_IS_BETTER, Column, Kind, Role, Tag, build_table
from perfcast.utils.errors import UserError, unknown_name

BUILD = f"{__name__}.build"
"""`_target_` of such a dataset."""
CATEGORY = "category"
"""Unit of a feature that is text."""
LINE = "csv_line"
ENTITY = "entity"
TASK = "task"
"""Columns that the table has beside those of the file: the line; entity and task where the conf names none."""
_LOWEST = sys.float_info.min  # predictors learn logarithms
DAY = r"\d{4}-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?"
_OTHERS = re.compile(r"[^a-z0-9]+")


class CsvOptions(StrictModel):
    """Meaning of the columns of the file, by the names in its header.

    `target` maps each measured quantity to its unit. `features` maps a group to its columns, each with its unit, or
    `category` for a text. Without an `entity`, rows with equal features are one; without a `task` there is one.
    """

    csv: str = Field(min_length=1)
    target: dict[str, str] = Field(min_length=1)
    features: dict[str, dict[str, str]] = Field(min_length=1)
    entity: str = ""
    task: str = ""
    date: str = ""
    lower_is_better: bool = False

    def named(self) -> Iterator[tuple[str, str]]:
        """Yield every column of the file that is read, and the key that names it."""
        yield from ((name, "target") for name in self.target)
        yield from ((getattr(self, each), each) for each in ("entity", "task", "date") if getattr(self, each))
        yield from ((name, f"features.{group}") for group, names in self.features.items() for name in names)


def column_name(heading: str) -> str:
    """Return the name in tables, and on the command line, of a column of the file: lower case with underscores."""
    return _OTHERS.sub("_", heading.lower()).strip("_")


def check_options(dataset: str, options: Mapping[str, Any]) -> CsvOptions:
    """Return the checked options of a dataset. Raises: UserError, one line that names the key."""
    where = f"options of conf/dataset/{dataset}.yaml"
    checked = validated(CsvOptions, where, options)
    keys = dict.fromkeys((LINE, "line"), "the number of the line")
    keys |= {name: f"the {name}, which is not named" for name in (ENTITY, TASK) if not getattr(checked, name)}
    for heading, place in checked.named():
        name = column_name(heading)
        what = f"{place}.{heading} in {where}"
        if not name or name in keys:
            fact = f"it has the name of {keys[name]}" if name else "it has no letter or digit"
            raise UserError(f"{what} must have a name of its own", fact, "rename the column in the file and here")
        keys[name] = f"{place}.{heading}"
    return checked


def declare_columns(options: CsvOptions, frame: pd.DataFrame) -> tuple[Column, ...]:
    """Return the columns of the table; performance may grow with a feature whose numbers are all above 0."""
    columns = [key(LINE, "line of the file", Tag.ROW, Tag.BLOCK)]
    columns.append(key(column_name(options.entity) or ENTITY, "what was measured", Tag.ENTITY, Tag.IDENTITY))
    columns.append(category(column_name(options.task) or TASK, Role.FEATURE, "problem", "what was run", Tag.TASK))
    if date := column_name(options.date):
        columns.append(Column(date, Kind.DATE, Role.PROVENANCE, "provenance", meaning="date", tags=(Tag.TIME,)))
    for group, units in options.features.items():
        for heading, unit in units.items():
            name = column_name(heading)
            if unit == CATEGORY:
                columns.append(category(name, Role.FEATURE, group, heading, Tag.IDENTITY))
                continue
            tags = (Tag.IDENTITY, Tag.SCALING) if frame[name].min() > 0 else (Tag.IDENTITY,)
            columns.append(Column(name, Kind.NUMERICAL, Role.FEATURE, group, unit, heading, tags=tags))
    for heading, unit in options.target.items():
        columns.append(Column(column_name(heading), Kind.NUMERICAL, Role.TARGET, "problem", unit, heading, low=_LOWEST))
    return tuple(columns)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the file; a row without entity, task or target, or with a bad number or date, is quarantined.

    Raises: UserError when the options do not fit the file.
    """
    ((source, folder),) = raw.items()
    given = check_options(source, options)
    path = folder / given.csv
    headings = dict(given.named())
    header = read_header(path)
    for heading, place in headings.items():
        if heading not in header:
            raise unknown_name(f"{place} in options of conf/dataset/{source}.yaml", heading, header)
    rows = read_rows(source, path, list(headings))
    texts = rows.frame.rename(columns=column_name)
    texts = texts.map(lambda cell: cell.strip() if isinstance(cell, str) else cell).replace("", None)
    units = {column_name(name): unit for names in given.features.values() for name, unit in names.items()}
    targets = [column_name(name) for name in given.target]
    entity, task, date = (column_name(name) for name in (given.entity, given.task, given.date))
    if not entity:
        texts[ENTITY] = texts[[*units, *filter(None, [task])]].fillna("-").agg(" ".join, axis=1)
    if not task:
        texts[TASK] = " ".join(given.target)
    numbers = [*targets, *(name for name, unit in units.items() if unit != CATEGORY)]
    frame = parse_numbers(texts.assign(**{LINE: texts["line"].astype("str")}), numbers)
    bad = (frame[numbers].isna() & texts[numbers].notna()) | (frame[targets] < _LOWEST).reindex(
        columns=numbers, fill_value=False
    )
    rules = {"bad_number": describe_first_bad(bad, frame)}
    if date:
        frame[date] = pd.to_datetime(texts[date].where(texts[date].str.fullmatch(DAY)), errors="coerce")
        rules["bad_date"] = texts[date].where(frame[date].isna())
    for reason, name in {"no_entity": entity or ENTITY, "no_task": task or TASK, "no_date": date}.items():
        if name:
            rules[reason] = frame[name].isna().map({True: name})
    rules["no_target"] = frame[targets].isna().all(axis=1).map({True: targets[0]})
    good, rejections = quarantine(source, given.csv, frame, rules)
    where = f"correct the file, or options of conf/dataset/{source}.yaml: a text is `{CATEGORY}`"
    require_rows(len(good), given.csv, rejections, where)
    facts = {LOWER_IS_BETTER: True} if given.lower_is_better else {}
    rejected = build_rejected_frame([*rows.rejections, *rejections])
    return Standardized(build_table(source, good, declare_columns(given, good), facts), rejected, rows.rows_in)

"""Data dictionary: one page per dataset, made from its column declarations.

A dataset declares its columns in its table. The tables here are built from generated inputs, so no source is needed.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from markdown_text import page, table

from perfcast import plugins
from perfcast.config.dataset_conf import DatasetConf, read_datasets
from perfcast.inference.champion import build_features
from perfcast.schema.table import Column, Role, Table

_ROWS, _SEED = 300, 7  # the declarations are those of a table of any length that has every period
_ROLES = {
    Role.TARGET: "Targets: the scores that are predicted",
    Role.FEATURE: "Features: the only columns that predictors learn from",
    Role.KEY: "Keys: they name rows, tasks and machines",
    Role.PROVENANCE: "Provenance: where and when a row was published",
}


def generate(conf: Path) -> dict[str, str]:
    """Return the pages by address: an index, and one page per dataset."""
    datasets = read_datasets(conf)
    with TemporaryDirectory() as folder:
        tables = {name: declared_table(dataset, Path(folder)) for name, dataset in datasets.items()}
    listed = table(
        ["dataset", "contents", "features", "targets"],
        [
            [f"[`{name}`]({name}.md)", datasets[name].title, _count(built, Role.FEATURE), _count(built, Role.TARGET)]
            for name, built in tables.items()
        ],
    )
    index = page(
        "Columns",
        "Every dataset is one table with one row per measured result. Each column has a declaration: its type, role, "
        "unit, meaning and bounds. The declarations travel in the metadata of the Parquet file.",
        listed,
        "A row with a value outside the bounds is rejected with a reason. "
        "`results/standard/<dataset>.rejected.csv` lists the rejected rows.",
    )
    pages = {f"data/{name}.md": _describe(name, datasets[name], built) for name, built in tables.items()}
    return {"data/index.md": index} | pages


def declared_table(dataset: DatasetConf, folder: Path) -> Table:
    """Return the table of a dataset, with its derived columns, built from inputs that are generated in a folder.

    Several datasets read the same source, which is generated once.
    """
    raw = {source: folder / source for source in (*dataset.sources.required, *dataset.sources.optional)}
    for source, path in raw.items():
        if not path.exists():
            path.mkdir()
            plugins.load("testing", source).write(path, rows=_ROWS, seed=_SEED)
    build = plugins.load_function(dataset.target, dataset.name)
    standard = build(raw, dataset.options).table
    return build_features(dataset.name, standard.frame, standard.columns, dataset.features)


def _count(built: Table, role: Role) -> int:
    return len(built.select(role=role))


def _describe(name: str, dataset: DatasetConf, built: Table) -> str:
    code = [f"`{source}`" for source in (*dataset.sources.required, *dataset.sources.optional)]
    facts = [
        f"{dataset.title}.",
        f"Sources: {', '.join(code)}. See [sources and terms](../data.md).",
        f"Groups of derived columns: {', '.join(f'`{group}`' for group in dataset.features)}.",
        "Tags name the use of a column for generic code; [tables](../reference/tables.md) explains them.",
    ]
    blocks = []
    for role, heading in _ROLES.items():
        columns = [column for column in built.columns if column.role is role]
        if not columns:
            continue
        blocks.append(f"## {heading}")
        ordered = sorted(columns, key=lambda column: column.group) if role is Role.FEATURE else columns
        for group, members in groupby(ordered, key=lambda column: column.group if role is Role.FEATURE else ""):
            blocks += [f"### Group {group}"] if group else []
            blocks.append(_columns(list(members)))
    return page(name, *facts, *blocks)


def _columns(columns: list[Column]) -> str:
    """Return a table of columns, without the facts that none of them has."""
    headings = ["column", "meaning", "type", "unit", "bounds", "tags"]
    rows = [
        [f"`{column.name}`", column.meaning, column.kind.value, column.unit, _bounds(column), ", ".join(column.tags)]
        for column in columns
    ]
    used = [index for index in range(len(headings)) if any(row[index] for row in rows)]
    return table([headings[index] for index in used], [[row[index] for index in used] for row in rows])


def _bounds(column: Column) -> str:
    low, high = ("" if bound is None else _number(bound) for bound in (column.low, column.high))
    if low and high:
        return f"{low} to {high}"
    return f"at least {low}" if low else f"at most {high}" if high else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"

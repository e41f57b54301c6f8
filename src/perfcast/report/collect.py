"""Gather what the report shows from the results folder."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from perfcast import __version__, plugins
from perfcast.errors import UserError
from perfcast.evaluation import Evaluation, read_evaluation
from perfcast.io import read_json, sha256
from perfcast.report.context import DatasetPart, FigurePart, ReportContext
from perfcast.report.rows import Rows
from perfcast.table_files import read_parquet, read_table

PACKAGES = (
    "numpy",
    "pandas",
    "pyarrow",
    "scipy",
    "scikit-learn",
    "lightgbm",
    "torch",
    "pytorch-lightning",
    "matplotlib",
)
"""The packages whose versions can change a number of the report."""


def collect(
    results: Path,
    params: Mapping[str, Any],
    *,
    titles: Mapping[str, str] | None = None,
    sources: Mapping[str, Sequence[str]] | None = None,
) -> ReportContext:
    """Read everything the report shows.

    `params` are the parameters of the experiment, shown as they are; the order of its `datasets` and `figures` is the
    report's order. `titles` gives data sets a readable name, `sources` the names of what each is made from. Data sets
    without an evaluation are left out.
    Raises: UserError when there is no evaluation at all.
    """
    results = Path(results)
    found = {path.parent.name for path in (results / "evaluation").glob("*/summary.json")}
    if not found:
        raise UserError(
            "a report must have evaluations", f"there are none in {results / 'evaluation'}", "run snakemake"
        )
    order = [name for name in params.get("datasets", ()) if name in found]
    order += sorted(found - set(order))
    available = results / "raw" / "available.json"
    return ReportContext(
        datasets=tuple(
            _dataset(results, name, (titles or {}).get(name, name), params, tuple((sources or {}).get(name, ())))
            for name in order
        ),
        sources=tuple(read_json(path) for path in sorted((results / "raw").glob("*/manifest.json"))),
        left_out=read_json(available).get("left_out", {}) if available.is_file() else {},
        params=params,
        environment=environment(),
        digests={
            f"{path.parent.name}/{path.name}": sha256(path)
            for folder in ("standard", "features")
            for path in sorted((results / folder).glob("*.parquet"))
        },
    )


def environment() -> dict[str, str]:
    """Return the versions of perfcast, Python and the packages that can change a number, and the kind of machine."""
    versions = {"perfcast": __version__, "Python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {**versions, "machine": f"{platform.system()} {platform.machine()}"}


def _dataset(results: Path, name: str, title: str, params: Mapping[str, Any], sources: tuple[str, ...]) -> DatasetPart:
    quality = results / "standard" / f"{name}.quality.json"
    champion = results / "champion" / name / "about.json"
    evaluation = read_evaluation(results / "evaluation" / name)
    audit = results / "audit" / f"{name}.json"
    return DatasetPart(
        name=name,
        title=title,
        evaluation=evaluation,
        figures=_figures(results / "figures" / name, list(params.get("figures", ()))),
        quality=read_json(quality) if quality.is_file() else None,
        champion=read_json(champion) if champion.is_file() else None,
        rows=_rows(results, name, evaluation),
        sources=sources,
        audit=read_json(audit) if audit.is_file() else None,
    )


def _rows(results: Path, name: str, evaluation: Evaluation) -> Rows | None:
    """Return the table with features and the splits, None where the table is not at hand."""
    table = results / "features" / f"{name}.parquet"
    if not table.is_file():
        return None
    paths = {split: results / "splits" / name / f"{split}.parquet" for split in evaluation.splits}
    folds = {split: read_parquet(path).filter(like="fold_") for split, path in paths.items() if path.is_file()}
    return Rows(read_table(table), folds)


def _figures(folder: Path, order: list[str]) -> tuple[FigurePart, ...]:
    """Return the drawn figures in the given order, others after them by name."""
    drawn = {path.stem: path for path in sorted(folder.glob("*.svg"))}
    names = [name for name in order if name in drawn] + [name for name in drawn if name not in order]
    parts = []
    for name in names:
        module = plugins.load("figures", name)
        parts.append(FigurePart(name, module.TITLE, module.CAPTION, drawn[name].read_text(encoding="utf-8")))
    return tuple(parts)

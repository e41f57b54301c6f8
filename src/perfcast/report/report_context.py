"""Everything that the report shows, as plain data read from the results folder."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from perfcast import __version__
from perfcast.evaluation import Evaluation, read_evaluation
from perfcast.report.plots.catalog import plot_entry
from perfcast.report.table_rows import Rows
from perfcast.schema.table_files import read_parquet, read_table
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_json, sha256


@dataclass(frozen=True)
class PlotPart:
    """One plot: its name, title, caption and SVG text."""

    name: str
    title: str
    caption: str
    svg: str


@dataclass(frozen=True)
class DatasetPart:
    """One dataset: its evaluation, plots, the content of quality.json, and about.json of its champion, if any.

    `rows` are its table and splits, None where the files are absent. `sources` names its sources. `leakage` is the
    report of the leakage checks, None where they were not run.
    """

    name: str
    title: str
    evaluation: Evaluation
    plots: tuple[PlotPart, ...]
    quality: Mapping[str, Any] | None
    champion: Mapping[str, Any] | None
    rows: Rows | None = None
    sources: tuple[str, ...] = ()
    leakage: Mapping[str, Any] | None = None
    predictor_titles: Mapping[str, str] = field(default_factory=dict)

    def predictor_label(self, predictor: str) -> str:
        """Return the name of a predictor as people write it."""
        return self.predictor_titles.get(predictor) or predictor.replace("_", " ")


@dataclass(frozen=True)
class ReportContext:
    """Content of one report.

    `sources` are the contents of the manifests; `left_out` maps a dataset that could not be built to its missing
    sources; `digests` maps a file below the results folder to its SHA-256; `environment` maps a name to its version.
    """

    datasets: tuple[DatasetPart, ...]
    sources: tuple[Mapping[str, Any], ...]
    left_out: Mapping[str, list[str]]
    params: Mapping[str, Any]
    environment: Mapping[str, str]
    digests: Mapping[str, str] = field(default_factory=dict)

    def predictor_label(self, predictor: str) -> str:
        """Return the name of a predictor as people write it."""
        return self.datasets[0].predictor_label(predictor)


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
"""Packages whose versions can change a value of the report."""


def collect(
    results: Path,
    params: Mapping[str, Any],
    *,
    titles: Mapping[str, str] | None = None,
    sources: Mapping[str, Sequence[str]] | None = None,
    predictor_titles: Mapping[str, str] | None = None,
) -> ReportContext:
    """Read everything the report shows.

    `params` are the parameters of the experiment; the order of its `datasets` and `plots` is that of the report.
    `titles` maps a dataset to its title, `sources` to the names of its sources; `predictor_titles` maps a predictor to
    its name in the report. A dataset without an evaluation is left
    out.
    Raises: UserError when there is no evaluation at all.
    """
    results = Path(results)
    evaluated = {path.parent.name for path in (results / "evaluation").glob("*/summary.json")}
    if not evaluated:
        raise UserError("a report must have evaluations", f"{results / 'evaluation'} has none", "run snakemake")
    order = [name for name in params.get("datasets", ()) if name in evaluated]
    order += sorted(evaluated - set(order))
    available = results / "raw" / "available.json"
    return ReportContext(
        datasets=tuple(
            replace(
                _dataset(results, name, (titles or {}).get(name, name), params, tuple((sources or {}).get(name, ()))),
                predictor_titles=predictor_titles or {},
            )
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
    """Return the versions of perfcast, Python and the packages that can change a value, and the kind of machine."""
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
    leakage = results / "leakage" / f"{name}.json"
    return DatasetPart(
        name=name,
        title=title,
        evaluation=evaluation,
        plots=_read_plots(results / "plots" / name, list(params.get("plots", ()))),
        quality=read_json(quality) if quality.is_file() else None,
        champion=read_json(champion) if champion.is_file() else None,
        rows=_rows(results, name, evaluation),
        sources=sources,
        leakage=read_json(leakage) if leakage.is_file() else None,
    )


def _rows(results: Path, name: str, evaluation: Evaluation) -> Rows | None:
    """Return the table with features and the splits, None without the table."""
    table = results / "features" / f"{name}.parquet"
    if not table.is_file():
        return None
    paths = {split: results / "splits" / name / f"{split}.parquet" for split in evaluation.splits}
    folds = {split: read_parquet(path).filter(like="fold_") for split, path in paths.items() if path.is_file()}
    return Rows(read_table(table), folds)


def _read_plots(folder: Path, order: list[str]) -> tuple[PlotPart, ...]:
    """Return the drawn plots in the given order, others after them by name."""
    drawn = {path.stem: path for path in sorted(folder.glob("*.svg"))}
    names = [name for name in order if name in drawn] + [name for name in drawn if name not in order]
    parts = []
    for name in names:
        entry = plot_entry(name)
        parts.append(PlotPart(name, entry.title, entry.caption, drawn[name].read_text(encoding="utf-8")))
    return tuple(parts)

"""Content of the report: the parts of every dataset, and the names of its machines."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from perfcast import __version__
from perfcast.evaluation import Evaluation, read_evaluation
from perfcast.report.plots.drawing import PlotEntry, plot_entry
from perfcast.schema.display_names import column_label
from perfcast.schema.table import Table, Tag
from perfcast.schema.table_files import read_table
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_json, sha256
from perfcast.utils.result_digests import verify_digest


def name_machines(table: Table) -> pd.Series:
    """Return every row's machine in words, by the ROW column: its entity, and what identifies it besides."""
    frame = table.frame
    entity = next(iter(table.select(tag=Tag.ENTITY)), None)
    words = frame[entity].astype(str) if entity else pd.Series("", index=frame.index)
    for name in table.select(tag=Tag.IDENTITY):
        # values that follow from the entity are not repeated
        if entity is None or frame.groupby(entity)[name].nunique(dropna=False).max() > 1:
            words = words + ", " + column_label(name) + " " + frame[name].map(_plain)
    return words.str.strip(", ").set_axis(frame[table.column_of(Tag.ROW)], axis=0)


def _plain(value: object) -> str:
    return f"{value:g}".replace("nan", "?") if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class DatasetPart:
    """One dataset: its evaluation, plots as SVG, the content of quality.json, and about.json of its champion, if any.

    `table` is that with features, None where the file is absent. `sources` names its sources. `leakage` is the
    report of the leakage checks, None where they were not run.
    """

    name: str
    title: str
    evaluation: Evaluation
    plots: tuple[tuple[PlotEntry, str], ...]
    quality: Mapping[str, Any] | None
    champion: Mapping[str, Any] | None
    table: Table | None = None
    sources: tuple[str, ...] = ()
    leakage: Mapping[str, Any] | None = None

    @property
    def leader(self) -> str:
        """The champion, which was chosen without test rows, or else the first of the ranking on test rows."""
        ranking = self.evaluation.ranking()
        name = (self.champion or {}).get("predictor")
        return str(name) if name in ranking else ranking[0]

    @property
    def is_champion(self) -> bool:
        """True where the leader was chosen without test rows."""
        return (self.champion or {}).get("predictor") == self.leader


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


_PACKAGES = (
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
    titles: Mapping[str, str] = MappingProxyType({}),
    sources: Mapping[str, Sequence[str]] = MappingProxyType({}),
    predictor_labels: Mapping[str, str] = MappingProxyType({}),
) -> ReportContext:
    """Read everything the report shows.

    `params` are the parameters of the experiment; the order of its `datasets` and `plots` is that of the report.
    `titles` maps a dataset to its title, `sources` to the names of its sources; `predictor_labels` maps a predictor to
    its name in the report. A dataset without an evaluation is left out.
    Raises: UserError when there is no evaluation at all.
    """
    results = Path(results)
    evaluated = [path.parent.name for path in (results / "evaluation").glob("*/summary.json")]
    if not evaluated:
        raise UserError("a report must have evaluations", f"{results / 'evaluation'} has none", "run snakemake")
    parts = []
    for name in _in_order(evaluated, params.get("datasets", ())):
        evaluation = replace(read_evaluation(results / "evaluation" / name), labels=predictor_labels)
        champion = _read(results / "champion" / name / "about.json")
        features = results / "features" / f"{name}.parquet"
        drawn = {path.stem: path for path in (results / "plots" / name).glob("*.svg")}
        plots = _in_order(drawn, params.get("plots", ()))
        part = DatasetPart(
            name=name,
            title=titles.get(name, name),
            evaluation=hardest_split_first(evaluation, str((champion or {}).get("predictor"))),
            plots=tuple((plot_entry(plot), drawn[plot].read_text(encoding="utf-8")) for plot in plots),
            quality=_read(results / "standard" / f"{name}.quality.json"),
            champion=champion,
            table=read_table(features) if features.is_file() else None,
            sources=tuple(sources.get(name, ())),
            leakage=_read(results / "leakage" / f"{name}.json"),
        )
        parts.append(part)
    tables = [path for folder in ("standard", "features") for path in sorted((results / folder).glob("*.parquet"))]
    for path in tables:
        verify_digest(path)
    return ReportContext(
        datasets=tuple(parts),
        sources=tuple(read_json(path) for path in sorted((results / "raw").glob("*/manifest.json"))),
        left_out=(_read(results / "raw" / "available.json") or {}).get("left_out", {}),
        params=params,
        environment=environment(),
        digests={f"{path.parent.name}/{path.name}": sha256(path) for path in tables},
    )


def _in_order(names: Iterable[str], order: Sequence[str]) -> list[str]:
    """Return names in the given order, others after them by name."""
    return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))


def _read(path: Path) -> Any:
    return read_json(path) if path.is_file() else None


def environment() -> dict[str, str]:
    """Return the versions of perfcast, Python and the packages that can change a value, and the kind of machine."""
    versions = {"perfcast": __version__, "Python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {**versions, "machine": f"{platform.system()} {platform.machine()}"}


def hardest_split_first(evaluation: Evaluation, predictor: str = "") -> Evaluation:
    """Return an evaluation with its splits by falling MAPE of a predictor, or of the best one where it was not run."""
    if predictor not in evaluation.predictors:
        predictor = evaluation.ranking()[0]
    rows = {split: evaluation.value(split, predictor) for split in dict.fromkeys(evaluation.metrics["split"])}
    errors = {split: -np.inf if row is None else row["value"] for split, row in rows.items()}
    ordered = evaluation.metrics.sort_values("split", key=lambda split: -split.map(errors), kind="stable")
    return evaluation.with_tables(metrics=ordered.reset_index(drop=True))

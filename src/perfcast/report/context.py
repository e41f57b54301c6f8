"""What the report shows, as plain data: `collect` fills it, `render` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from perfcast.evaluation import Evaluation
from perfcast.report.rows import Rows


@dataclass(frozen=True)
class FigurePart:
    """One figure: its name, title, caption and SVG text."""

    name: str
    title: str
    caption: str
    svg: str


@dataclass(frozen=True)
class DatasetPart:
    """One data set: its evaluation, figures, the content of quality.json, and about.json of its champion, if any.

    `rows` are its table and splits, None where they are not at hand; `sources` names the sources it is made from.
    `audit` is what `perfcast pipeline audit` looked at and found, None where it was not run.
    """

    name: str
    title: str
    evaluation: Evaluation
    figures: tuple[FigurePart, ...]
    quality: Mapping[str, Any] | None
    champion: Mapping[str, Any] | None
    rows: Rows | None = None
    sources: tuple[str, ...] = ()
    audit: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class ReportContext:
    """Everything one report shows.

    `sources` are the contents of the manifests; `left_out` maps a data set that could not be built to the sources it
    lacks; `digests` maps a file below the results folder to its SHA-256; `environment` maps a name to its version.
    """

    datasets: tuple[DatasetPart, ...]
    sources: tuple[Mapping[str, Any], ...]
    left_out: Mapping[str, list[str]]
    params: Mapping[str, Any]
    environment: Mapping[str, str]
    digests: Mapping[str, str] = field(default_factory=dict)

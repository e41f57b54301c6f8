"""Names of metrics and columns as people write them, for reports, pages, commands and MLflow.

A split declares its label beside its function (`perfcast.splits.split_label`), a predictor has the `label` of its conf
file, and a domain the `labels` of its columns: a new one needs no line here.
"""

from __future__ import annotations

from collections.abc import Mapping

from perfcast.domain import domains

METRIC_LABELS = {
    "mape": "MAPE",
    "medape": "MedAPE",
    "mae": "MAE (points)",
    "medae": "MedAE (points)",
    "p90": "90th percentile of the error",
    "r2": "R² of the log score",
    "r2_raw": "R² of the score",
    "spearman": "Spearman",
    "pairs": "pairs ordered",
    "coverage": "coverage",
    "width": "median width of the interval",
    "interval_score": "interval score",
}
SHORT_METRIC_LABELS = {
    **METRIC_LABELS,
    "mae": "MAE",
    "medae": "MedAE",
    "p90": "90th pct.",
    "r2": "R² (log)",
    "r2_raw": "R²",
    "width": "width",
}
"""Labels for heads of narrow columns."""

_KEY_ENDINGS = ("_key", "_id")


def metric_label(name: str, *, short: bool = False) -> str:
    """Return the label of a metric, for narrow columns where `short` is set; an unknown name with spaces."""
    return (SHORT_METRIC_LABELS if short else METRIC_LABELS).get(name) or replace_underscores(name)


def column_label(name: str) -> str:
    """Return the label of a column: that of a domain, else its name with spaces and without the ending of a key."""
    for ending in _KEY_ENDINGS:
        name = name.removesuffix(ending)
    labels = (domain.labels[name] for domain in domains() if name in domain.labels)
    return next(labels, replace_underscores(name))


def predictor_label(name: str, labels: Mapping[str, str]) -> str:
    """Return the label of a predictor by the labels of the conf files; its name with spaces where it has none."""
    return labels.get(name) or replace_underscores(name)


def replace_underscores(name: str) -> str:
    """Return a name of the code with spaces between its words."""
    return name.replace("_", " ")

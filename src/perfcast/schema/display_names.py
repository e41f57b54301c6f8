"""Names of metrics, columns and shifts as people write them, for reports, pages, commands and MLflow.

A split declares its label beside its function (`perfcast.splits.split_label`), and a predictor has the `label` of its
conf file: a new one needs no line here.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    **{"mae": "MAE", "medae": "MedAE"},
    **{"p90": "90th pct.", "r2": "R² (log)", "r2_raw": "R²", "width": "width"},
}
"""Labels for heads of narrow columns."""

SHIFT_LABELS = {
    "seen CPU": "CPU model with results in the training data",
    "unseen CPU": "new CPU model of a known microarchitecture",
    "unseen microarchitecture": "new microarchitecture",
}
"""Levels of the shift of a machine, from the nearest to the training data to the farthest."""

COLUMN_LABELS = {
    "cores_per_chip_of_cpu_model": "cores per chip of the CPU model",
    "cpu_model": "CPU model",
    "cpu_series": "CPU series",
    "cpu_vendor": "CPU vendor",
    "hw_vendor": "system vendor",
    "sku_code": "SKU",
}
"""Labels of columns whose name with spaces is no name in plain words."""
SCENARIO_LABELS = {
    "forward_2023": "the next generation",
    "forward_2024": "the next year",
    "unseen_cpu": "a CPU model without published results",
    "unseen_shape": "a problem shape without results",
    "random": "a machine much like measured ones",
}
"""Scenario of a split: the machine that someone asks about."""
_KEY_ENDINGS = ("_key", "_id")


def metric_label(name: str, *, short: bool = False) -> str:
    """Return the label of a metric, for narrow columns where `short` is set; an unknown name with spaces."""
    return (SHORT_METRIC_LABELS if short else METRIC_LABELS).get(name) or replace_underscores(name)


def column_label(name: str) -> str:
    """Return the label of a column: that of the table, else its name with spaces and without the ending of a key."""
    for ending in _KEY_ENDINGS:
        name = name.removesuffix(ending)
    return COLUMN_LABELS.get(name) or replace_underscores(name)


def scenario_label(split: str) -> str:
    """Return the scenario of a split in plain words; "" for a split without one."""
    return SCENARIO_LABELS.get(split, "")


def predictor_label(name: str, labels: Mapping[str, str]) -> str:
    """Return the label of a predictor by the labels of the conf files; its name with spaces where it has none."""
    return labels.get(name) or replace_underscores(name)


def replace_underscores(name: str) -> str:
    """Return a name of the code with spaces between its words."""
    return name.replace("_", " ")

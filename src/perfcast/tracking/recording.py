"""Records that belong to no single training: the champion, the report, and one run per predictor over all splits."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfcast.tracking.lifecycle import parent_run, register_champion, start_run
from perfcast.tracking.store import Store

if TYPE_CHECKING:
    import pandas as pd

_LEADING = ("mape", "medape")
_PARAMETERS = ("predictor", "preset", "seed", "rows", "table_sha256")


def record_champion(
    store: Store, folder: Path, about: Mapping[str, Any], fields: Mapping[str, str], example: pd.DataFrame
) -> None:
    """Log a champion's folder as a model, and give it the alias `champion` in the registry.

    `fields` maps the fields that describe a machine to MLflow's type of their values; `example` is such a machine.
    """
    dataset, predictor = about["dataset"], about["predictor"]
    tags = {"perfcast.kind": "champion", "dataset": dataset, "predictor": predictor}
    with start_run(store, f"perfcast/{dataset}", f"champion: {predictor}", tags) as record:
        record.log_params({key: about[key] for key in _PARAMETERS})
        record.log_artifacts(folder / "about.json")
        uri = record.log_champion(folder, fields, example)
        register_champion(store, dataset, record.run_id, uri, tags)


def record_report(
    store: Store, report: Path, results: Path, metrics: Mapping[str, Mapping[str, Any]], preset: str
) -> None:
    """Log report and plots to the invocation's run, and one run per predictor with its metrics on every split.

    The UI compares the latter side by side: a training has the metrics of one split only.
    `metrics` is {dataset: {split: {predictor: {task: {metric: value}}}}}.
    """
    for dataset, splits in metrics.items():
        experiment = f"perfcast/{dataset}"
        with parent_run(store, experiment) as record, tempfile.TemporaryDirectory() as temporary:
            # both folders have the dataset's name, and would be one folder among the artifacts
            for kind in ("plots", "evaluation"):
                if (results / kind / dataset).is_dir():
                    hidden = shutil.ignore_patterns(".*")
                    shutil.copytree(results / kind / dataset, Path(temporary) / kind, ignore=hidden)
            record.log_artifacts(report, Path(temporary) / "plots", Path(temporary) / "evaluation")
        by_predictor: dict[str, dict[str, float]] = {}
        for split, predictors in splits.items():
            for predictor, tasks in predictors.items():
                by_predictor.setdefault(predictor, {}).update(_flatten_metrics(split, tasks))
        for predictor, values in sorted(by_predictor.items()):
            tags = {"perfcast.kind": "comparison", "dataset": dataset, "predictor": predictor}
            with start_run(store, experiment, f"{predictor}: all splits", tags) as record:
                record.log_params({"predictor": predictor, "preset": preset})
                record.log_metrics(values)


def _flatten_metrics(split: str, tasks: Mapping[str, Any]) -> dict[str, float]:
    """Return {split/task/metric: value} of the protocol's two leading metrics."""
    return {
        f"{split}/{task}/{metric}": value
        for task, metrics in tasks.items()
        for metric, value in metrics.items()
        if metric in _LEADING
    }

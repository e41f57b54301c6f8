"""An open run of MLflow: parameters, metrics, learning curves, dataset and artifacts."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag
from mlflow.tracking.context.registry import resolve_tags

from perfcast.tracking.store import Store, locked

KIND_TAG = "perfcast.kind"
RECORD_TAG = "perfcast.record"
"""Tag of a run: the SHA-256 of the file that it records."""
LIVE_TAG = "perfcast.live"
"""Tag of the run of a live training: the SHA-256 of the file that will be recorded in it."""
_BATCH = 900  # MLflow accepts at most 1,000 metrics in one call
# the UI then opens the experiment as trainings, not as traces of a language model
_EXPERIMENT_TAGS = {"mlflow.experimentKind": "custom_model_development"}
_CONTEXT = ("mlflow.user", "mlflow.source.git.commit")


def open_experiment(client: MlflowClient, store: Store, name: str) -> str:
    """Return the id of the experiment, made when there is none."""
    with locked(store):
        if experiment := client.get_experiment_by_name(name):
            return str(experiment.experiment_id)
        return str(client.create_experiment(name, artifact_location=store.place(name), tags=_EXPERIMENT_TAGS))


@dataclass
class Run:
    """An open run of MLflow.

    `time` is the time stamp of its metrics in milliseconds, by default the present. One process at a time writes,
    because sqlite lets those that wait starve when many write at once.
    """

    client: MlflowClient
    run_id: str
    store: Store
    time: int | None = None

    def log_params(self, params: Mapping[str, Any]) -> None:
        """Record parameters."""
        with locked(self.store):
            entries = [Param(name, str(value)) for name, value in sorted(params.items())]
            self.client.log_batch(self.run_id, params=entries)

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Record tags."""
        with locked(self.store):
            self.client.log_batch(self.run_id, tags=[RunTag(name, value) for name, value in tags.items()])

    def log_metrics(
        self, metrics: Mapping[str, float], step: int = 0, *, model_id: str | None = None, data: Dataset | None = None
    ) -> None:
        """Record numbers, as those of a model on a dataset if given; NaN and infinity are left out."""
        about = {"model_id": model_id, "run_id": self.run_id} if model_id else {}
        if data:
            about |= {"dataset_name": data.name, "dataset_digest": data.digest}
        self._log(((name, value, step) for name, value in metrics.items()), **about)

    def log_history(self, history: pd.DataFrame) -> None:
        """Record per-epoch curves.

        Shapes: `history` has the columns seed, fold, epoch and one column per curve. The first seed and fold go under
        the plain name of the curve, so that runs compare; the others carry their seed and fold.
        """
        curves = [name for name in history.select_dtypes("number") if name not in {"seed", "fold", "epoch"}]
        for number, ((seed, fold), rows) in enumerate(history.groupby(["seed", "fold"], sort=False)):
            where = f"training_seed{seed}_fold{fold}" if number else "training"
            for name in curves:
                self._log((f"{where}/{name}", *point) for point in zip(rows[name], rows["epoch"], strict=True))

    def _log(self, entries: Iterable[tuple[str, float, int]], **about: str) -> None:
        now = int(time.time() * 1000) if self.time is None else self.time
        finite = [
            Metric(name, float(value), now, int(step), **about) for name, value, step in entries if math.isfinite(value)
        ]
        for start in range(0, len(finite), _BATCH):
            with locked(self.store):
                self.client.log_batch(self.run_id, metrics=finite[start : start + _BATCH])

    def log_artifacts(self, *paths: Path) -> None:
        """Copy files and folders to the run; those that are missing are left out."""
        for path in paths:
            if path.is_dir():
                self.client.log_artifacts(self.run_id, str(path), path.name)
            elif path.is_file():
                self.client.log_artifact(self.run_id, str(path))

    def log_dataset(self, dataset: Dataset, context: str) -> None:
        """Record a dataset of the run and the use of it."""
        with locked(self.store):  # two runs with a new dataset would both insert it
            self.client.log_inputs(self.run_id, [DatasetInput(dataset, [InputTag("mlflow.data.context", context)])])


def start_run(
    client: MlflowClient,
    store: Store,
    experiment: str,
    name: str,
    tags: Mapping[str, str],
    *,
    start: int | None = None,
    time: int | None = None,
) -> Run:
    """Make a run in an experiment, tagged with invocation, user and commit; its metrics have the time stamp `time`.

    Units: start, time: milliseconds.
    """
    where = open_experiment(client, store, experiment)
    context = {name: value for name, value in resolve_tags().items() if name in _CONTEXT}
    tagged = {**tags, "perfcast.invocation": store.invocation, **context}
    made = client.create_run(where, start_time=start, tags=tagged, run_name=name)
    return Run(client, made.info.run_id, store, time)

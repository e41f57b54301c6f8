"""An open run of MLflow: parameters, metrics, learning curves, dataset and artifacts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from perfcast.tracking.store import Store, locked

if TYPE_CHECKING:
    from mlflow import MlflowClient

_BATCH = 900  # MLflow accepts at most 1,000 metrics in one call
_PARAM_LENGTH = 500


@dataclass(frozen=True)
class DatasetEntry:
    """A dataset as MLflow lists it: name, digest, place, and optionally schema and profile as JSON."""

    name: str
    digest: str
    source: str
    schema: str | None = None
    profile: str | None = None


@dataclass
class Run:
    """An open run: log to it until its `with` block ends.

    `time` is the time stamp of its metrics in milliseconds, by default the present.
    """

    client: MlflowClient
    run_id: str
    store: Store
    time: int | None = None

    def _record(self, **batch: Any) -> None:
        """Write a batch; one process at a time, because sqlite lets those that wait starve when many write at once."""
        with locked(self.store):
            self.client.log_batch(self.run_id, **batch)

    def _now(self) -> int:
        return int(datetime.now(UTC).timestamp() * 1000) if self.time is None else self.time

    def log_params(self, params: Mapping[str, Any]) -> None:
        """Record parameters."""
        from mlflow.entities import Param

        self._record(params=[Param(name, str(value)[:_PARAM_LENGTH]) for name, value in sorted(params.items())])

    def log_metrics(
        self,
        metrics: Mapping[str, float],
        step: int = 0,
        *,
        model_id: str | None = None,
        dataset: DatasetEntry | None = None,
    ) -> None:
        """Record numbers, as those of a model on a dataset if given; NaN and infinity are left out."""
        from mlflow.entities import Metric

        now = self._now()
        about = {"model_id": model_id, "run_id": self.run_id} if model_id else {}
        if dataset:
            about |= {"dataset_name": dataset.name, "dataset_digest": dataset.digest}
        finite = {name: float(value) for name, value in metrics.items() if math.isfinite(value)}
        self._log([Metric(name, value, now, step, **about) for name, value in finite.items()])

    def _log(self, entries: list[Any]) -> None:
        for start in range(0, len(entries), _BATCH):
            self._record(metrics=entries[start : start + _BATCH])

    def log_history(self, history: pd.DataFrame) -> None:
        """Record per-epoch curves.

        Shapes: `history` has the columns seed, fold, epoch and one column per curve. The first seed and fold go under
        the plain name of the curve, so that runs compare; the others carry their seed and fold.
        """
        from mlflow.entities import Metric

        now = self._now()
        curves = [name for name in history.select_dtypes("number") if name not in {"seed", "fold", "epoch"}]
        first = (history["seed"].iloc[0], history["fold"].iloc[0]) if len(history) else None
        entries = []
        for (seed, fold), part in history.groupby(["seed", "fold"], sort=False):
            where = "curve" if (seed, fold) == first else f"curve_seed{seed}_fold{fold}"
            for name in curves:
                entries += [
                    Metric(f"{where}/{name}", float(value), now, int(epoch))
                    for epoch, value in zip(part["epoch"], part[name], strict=True)
                    if math.isfinite(value)
                ]
        self._log(entries)

    def log_artifacts(self, *paths: Path) -> None:
        """Copy files and folders to the run; those that are missing are left out."""
        for path in paths:
            if path.is_dir():
                self.client.log_artifacts(self.run_id, str(path), path.name)
            elif path.is_file():
                self.client.log_artifact(self.run_id, str(path))

    def log_dataset(self, entry: DatasetEntry, context: str) -> None:
        """Record a dataset of the run and the use of it."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        dataset = Dataset(entry.name, entry.digest, "local", entry.source, schema=entry.schema, profile=entry.profile)
        with locked(self.store):  # two runs with a new dataset would both insert it
            self.client.log_inputs(self.run_id, [DatasetInput(dataset, [InputTag("mlflow.data.context", context)])])

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Record tags."""
        from mlflow.entities import RunTag

        self._record(tags=[RunTag(name, value) for name, value in tags.items()])

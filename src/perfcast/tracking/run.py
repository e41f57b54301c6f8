"""An open run of MLflow: parameters, metrics, learning curves, artifacts and models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from perfcast import __version__
from perfcast.tracking.store import Store, locked

if TYPE_CHECKING:
    from mlflow import MlflowClient

_BATCH = 900  # MLflow accepts at most 1,000 metrics in one call
_PARAM_LENGTH = 500
_FOLDER = Path(__file__).parent


@dataclass
class Run:
    """An open run: log to it until its `with` block ends."""

    client: MlflowClient
    run_id: str
    store: Store

    def _record(self, **batch: Any) -> None:
        """Write a batch; one process at a time, because sqlite lets those that wait starve when many write at once."""
        with locked(self.store):
            self.client.log_batch(self.run_id, **batch)

    def log_params(self, params: Mapping[str, Any]) -> None:
        """Record parameters, nested ones under dotted names."""
        from mlflow.entities import Param

        flat = dict(_flatten(params))
        self._record(params=[Param(k, str(v)[:_PARAM_LENGTH]) for k, v in sorted(flat.items())])

    def log_metrics(self, metrics: Mapping[str, float], step: int = 0) -> None:
        """Record numbers under stable names; those that are not finite are left out."""
        from mlflow.entities import Metric

        now = int(datetime.now(UTC).timestamp() * 1000)
        entries = [Metric(name, float(value), now, step) for name, value in metrics.items() if math.isfinite(value)]
        for start in range(0, len(entries), _BATCH):
            self._record(metrics=entries[start : start + _BATCH])

    def log_history(self, history: pd.DataFrame) -> None:
        """Record per-epoch curves.

        Shapes: `history` has the columns seed, fold, epoch and one column per curve. The first seed and fold go under
        the plain name of the curve, so that runs compare; the others carry their seed and fold.
        """
        from mlflow.entities import Metric

        now = int(datetime.now(UTC).timestamp() * 1000)
        curves = [name for name in history.columns if name not in {"seed", "fold", "epoch"}]
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
        for start in range(0, len(entries), _BATCH):
            self._record(metrics=entries[start : start + _BATCH])

    def log_artifacts(self, *paths: Path) -> None:
        """Copy files and folders to the run."""
        for path in paths:
            if path.is_dir():
                self.client.log_artifacts(self.run_id, str(path), path.name)
            elif path.is_file():
                self.client.log_artifact(self.run_id, str(path))

    def log_dataset(self, name: str, digest: str, context: str) -> None:
        """Record the dataset of the run, by digest."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        entry = Dataset(name=name, digest=digest[:36], source_type="local", source=name, schema=None, profile=None)
        with locked(self.store):  # two runs with a new dataset would both insert it
            self.client.log_inputs(self.run_id, [DatasetInput(entry, [InputTag("mlflow.data.context", context)])])

    def log_model(self, folder: Path, example: pd.DataFrame, predictions: pd.DataFrame) -> str:
        """Log a saved predictor as a pyfunc model with signature and input example; return its URI."""
        import mlflow
        from mlflow.models import infer_signature

        mlflow.set_tracking_uri(self.client.tracking_uri)
        with mlflow.start_run(run_id=self.run_id):
            logged = mlflow.pyfunc.log_model(
                name="model",
                python_model=str(_FOLDER / "pyfunc_model.py"),
                artifacts={"predictor": str(folder)},
                signature=infer_signature(example, predictions),
                input_example=example,
                pip_requirements=[f"perfcast=={__version__}"],
            )
        return str(logged.model_uri)

    def log_champion(self, folder: Path, fields: Mapping[str, str], example: pd.DataFrame) -> str:
        """Log a champion's folder as a pyfunc model of described machines; return its URI.

        `fields` maps the fields that may describe a machine, all optional, to MLflow's type of their values;
        `example` is such a machine.
        """
        import mlflow
        from mlflow.models import ModelSignature
        from mlflow.types import ColSpec, Schema

        inputs = [ColSpec(type=kind, name=name, required=False) for name, kind in fields.items()]
        mlflow.set_tracking_uri(self.client.tracking_uri)
        with mlflow.start_run(run_id=self.run_id):
            logged = mlflow.pyfunc.log_model(
                name="model",
                python_model=str(_FOLDER / "pyfunc_champion.py"),
                artifacts={"champion": str(folder)},
                signature=ModelSignature(inputs=Schema(inputs)),
                input_example=example,
                pip_requirements=[f"perfcast=={__version__}"],
            )
        return str(logged.model_uri)

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Record tags."""
        for name, value in tags.items():
            self.client.set_tag(self.run_id, name, value)


def _flatten(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from _flatten(item, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", item

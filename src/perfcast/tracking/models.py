"""Models of MLflow: saved predictors by name, and champions in the registry, logged as code and data."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.models import ModelSignature, infer_signature
from mlflow.models.model import ModelInfo
from mlflow.types import ColSpec, Schema

import perfcast
from perfcast.inference import load_champion, parse_machines, predict_machines, read_machines
from perfcast.inference.champion import build_features
from perfcast.inference.predict import make_options
from perfcast.predictors.predictor import load_predictor
from perfcast.tracking.run import Run
from perfcast.tracking.store import locked

_FOLDER = Path(__file__).parent
_PACKAGE = Path(perfcast.__file__).parent


def log_predictor(run: Run, name: str, folder: Path, table: pd.DataFrame, tags: Mapping[str, str]) -> ModelInfo:
    """Log a saved predictor with an example of three rows. It is loaded where perfcast is installed.

    `table` has the columns of the training table.
    """
    predictor = load_predictor(folder)
    example = table[predictor.input_names()].head(3)
    return _log(
        run,
        name=name,
        python_model=str(_FOLDER / "pyfunc_model.py"),
        artifacts={"predictor": str(folder)},
        signature=_signature(example, predictor.predict(example)),
        input_example=example,
        tags={**tags, "mlflow.source.name": "perfcast pipeline train"},
        model_type=tags.get("predictor"),
    )


def log_champion(run: Run, name: str, folder: Path, tags: Mapping[str, str]) -> ModelInfo:
    """Log a champion's folder as a model of described machines, with the code of perfcast that reads it.

    One that reads the last seconds of a running machine is logged as its predictor alone.
    """
    champion = load_champion(folder)
    if not champion.describes_machines:
        measured = champion.reference_data.measured
        rows = build_features(champion.dataset, measured.frame.tail(3), measured.columns, champion.features)
        return log_predictor(run, name, folder / "model", rows.frame, tags)
    example = champion.example_machine()
    options = make_options(neighbors=0, explain=False)
    machines = parse_machines(read_machines(example), champion)
    predictions = predict_machines(machines, champion, options).to_frame()
    inputs = [ColSpec(type=kind, name=field, required=False) for field, kind in champion.field_types().items()]
    return _log(
        run,
        name=name,
        python_model=str(_FOLDER / "pyfunc_model.py"),
        artifacts={"champion": str(folder)},
        signature=ModelSignature(inputs=Schema(inputs), outputs=_signature(predictions).inputs),
        input_example=example,
        code_paths=[str(_PACKAGE)],
        tags={**tags, "mlflow.source.name": "perfcast pipeline champion"},
        model_type=tags.get("predictor"),
    )


def _signature(*tables: pd.DataFrame) -> Any:
    """Infer MLflow's signature of inputs, and of outputs if given."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Hint: Inferred schema contains integer")
        return infer_signature(*tables)


def _log(run: Run, **options: Any) -> ModelInfo:
    mlflow.set_tracking_uri(run.client.tracking_uri)
    with mlflow.start_run(run_id=run.run_id):
        return mlflow.pyfunc.log_model(pip_requirements=requirements(), **options)


def requirements() -> list[str]:
    """Return MLflow and the distributions that predictors of perfcast need, pinned to what is installed."""
    lines = [line for line in metadata.requires("perfcast") or () if "extra ==" not in line or '"train"' in line]
    names = {"mlflow", *(re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in lines)}
    return [f"{name}=={metadata.version(name)}" for name in sorted(names)]


def register_champion(run: Run, dataset: str, model: ModelInfo, tags: Mapping[str, str], description: str) -> str:
    """Register a logged model as the newest version of perfcast-<dataset>, alias `champion`; return the version."""
    client, name = run.client, f"perfcast-{dataset}"
    with locked(run.store):
        try:
            client.get_registered_model(name)
        except MlflowException:
            client.create_registered_model(name, description=f"Best predictor of {dataset} by inner validation")
        version = client.create_model_version(
            name, model.model_uri, run_id=run.run_id, tags=dict(tags), description=description, model_id=model.model_id
        )
        client.set_registered_model_alias(name, "champion", version.version)
        # by which the page of the model names its version
        mark = json.dumps([{"name": name, "version": version.version}])
        client.set_logged_model_tags(model.model_id, {"mlflow.modelVersions": mark})
    return str(version.version)

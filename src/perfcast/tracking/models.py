"""Models of MLflow: saved predictors by name, and champions in the registry, logged as code and data."""

from __future__ import annotations

import ast
import json
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd

import perfcast
from perfcast.code_hash import closure
from perfcast.inference import load_champion, parse_machines, predict_machines, read_machines
from perfcast.inference.predict import make_options
from perfcast.predictors.predictor import load_predictor
from perfcast.tracking.run import Run
from perfcast.tracking.store import locked

_FOLDER = Path(__file__).parent
_PACKAGE = Path(perfcast.__file__).parent
_MODULES = ("perfcast.predictors.predictor",)


@dataclass(frozen=True)
class LoggedModel:
    """Id and address of a model that was logged."""

    model_id: str
    uri: str


def log_predictor(run: Run, name: str, folder: Path, table: pd.DataFrame, tags: Mapping[str, str]) -> LoggedModel:
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
        pip_requirements=requirements(*_MODULES, type(predictor).__module__),
        tags={**tags, "mlflow.source.name": "perfcast pipeline train"},
        model_type=tags.get("predictor"),
    )


def log_champion(run: Run, name: str, folder: Path, tags: Mapping[str, str]) -> LoggedModel:
    """Log a champion's folder as a model of described machines, with the code of perfcast that reads it.

    One that reads the last seconds of a running machine is logged as its predictor alone.
    """
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema

    champion = load_champion(folder)
    if not champion.describes_machines:
        rows = champion.build_features(champion.reference_data.measured.frame.tail(3))
        return log_predictor(run, name, folder / "model", rows.frame, tags)
    example = champion.example_machine()
    options = make_options(neighbors=0, explain=False)
    machines = parse_machines(read_machines(example), champion)
    predictions = predict_machines(machines, champion, options).to_frame()
    inputs = [ColSpec(type=kind, name=field, required=False) for field, kind in champion.field_types().items()]
    return _log(
        run,
        name=name,
        python_model=str(_FOLDER / "pyfunc_champion.py"),
        artifacts={"champion": str(folder)},
        signature=ModelSignature(inputs=Schema(inputs), outputs=_signature(predictions).inputs),
        input_example=example,
        code_paths=[str(_PACKAGE)],
        pip_requirements=requirements(*_MODULES, "perfcast.inference", type(champion.predictor).__module__),
        tags={**tags, "mlflow.source.name": "perfcast pipeline champion"},
        model_type=tags.get("predictor"),
    )


def _signature(*tables: pd.DataFrame) -> Any:
    """Infer MLflow's signature of inputs, and of outputs if given."""
    from mlflow.models import infer_signature

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Hint: Inferred schema contains integer")
        return infer_signature(*tables)


def _log(run: Run, **options: Any) -> LoggedModel:
    import mlflow

    mlflow.set_tracking_uri(run.client.tracking_uri)
    with mlflow.start_run(run_id=run.run_id):
        logged = mlflow.pyfunc.log_model(**options)
    return LoggedModel(str(logged.model_id), str(logged.model_uri))


def requirements(*modules: str) -> list[str]:
    """Return the installed distributions, pinned, that modules of this package and all that they import need.

    The predictors' libraries are those that are loaded now, so load the model first.
    """
    files = [Path(sys.modules[name].__file__ or "") for name in closure(*modules) if name in sys.modules]
    names = {"mlflow"}.union(*(_imports(path) for path in files if path.suffix == ".py"))
    names &= set(sys.modules) - sys.stdlib_module_names - {"perfcast"}
    return sorted({pin for name in names for pin in _pins(name)})


@cache
def _imports(path: Path) -> frozenset[str]:
    """Return the packages that a file imports; once a process, because hundreds of models share their files."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return frozenset(names)


@cache
def _pins(package: str) -> list[str]:
    """Return the installed distributions of a package, pinned; the complete table of them takes seconds."""
    try:
        return [f"{package}=={metadata.version(package)}"]
    except metadata.PackageNotFoundError:
        distributions = _distributions().get(package, [])
    return [f"{distribution}=={metadata.version(distribution)}" for distribution in distributions]


_distributions = cache(metadata.packages_distributions)


def register_champion(run: Run, dataset: str, model: LoggedModel, tags: Mapping[str, str], description: str) -> str:
    """Register a logged model as the newest version of perfcast-<dataset>, alias `champion`; return the version."""
    from mlflow.exceptions import MlflowException

    client, name = run.client, f"perfcast-{dataset}"
    with locked(run.store):
        try:
            client.get_registered_model(name)
        except MlflowException:
            client.create_registered_model(name, description=f"Best predictor of {dataset} by inner validation")
        version = client.create_model_version(
            name, model.uri, run_id=run.run_id, tags=dict(tags), description=description, model_id=model.model_id
        )
        client.set_registered_model_alias(name, "champion", version.version)
        # by which the page of the model names its version
        mark = json.dumps([{"name": name, "version": version.version}])
        client.set_logged_model_tags(model.model_id, {"mlflow.modelVersions": mark})
    return str(version.version)

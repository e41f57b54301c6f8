"""Check of an experiment with everything that conf/ says about it, before anything is planned."""

from __future__ import annotations

import dataclasses
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from perfcast import plugins, splits
from perfcast.config.conf_files import read_ablations, read_conf, read_yaml, require_mapping, validated
from perfcast.config.dataset_conf import DatasetConf, read_dataset
from perfcast.config.experiment_params import Params, require_names, validate
from perfcast.config.predictor_conf import PredictorConf, read_predictor
from perfcast.domain import conf_folders, domain_of
from perfcast.experiment.leakage_control import read_leakage_conf
from perfcast.predictors.factory import TARGET, WITHOUT_COLUMNS
from perfcast.sources.source_spec import parse_source
from perfcast.tracking import store_from
from perfcast.utils.errors import UserError, unknown_name
from perfcast.utils.nested import merged

_TRAINER = "perfcast.training.loop.TrainerConfig"
_OF_PROJECT = ("conf", "workflow", "src", "data", "docs", "tests", ".git", ".snakemake", ".dvc")


def check_experiment(content: Any, project: Path) -> Params:
    """Check an experiment and what it uses of conf/, and that every file of conf/ can be read.

    Raises: UserError, one line that names the file and the key.
    """
    conf = project / "conf"
    params = validate(content, conf)
    for path in (path for folder in conf_folders(conf) for path in sorted(folder.rglob("*.yaml"))):
        read_yaml(path)
    for name in params.sources:
        parse_source(name, read_conf(conf, "source", name))
    for name in params.datasets:
        _check_dataset(name, dataset := read_dataset(conf, name), conf)
        if dataset.bridge and dataset.bridge.dataset not in params.datasets:
            requirement = f"datasets must have {dataset.bridge.dataset}, whose champion estimates the rows of {name}"
            raise UserError(requirement, f"they are {', '.join(params.datasets)}", "add it, with splits and predictors")
    for name in {*params.predictors, read_leakage_conf(conf).control}:
        _check_predictor(name, read_predictor(conf, name))
    for name, ablation in read_ablations(conf).items():
        base = read_predictor(conf, ablation.predictor)
        check_arguments(base.target, merged(base.params, ablation.params), f"ablations.{name}.params")
    trainer = require_mapping(read_yaml(conf / "trainer" / "default.yaml"), "conf/trainer/default.yaml")
    check_arguments(_TRAINER, trainer, "conf/trainer/default.yaml")
    store_from(read_yaml(conf / "tracking" / "default.yaml"), project, {})
    return params


def check_training(config: Mapping[str, Any]) -> None:
    """Check the parts of a composed training: its dataset, predictor and trainer. Raises: UserError, one line."""
    dataset, predictor = (f"conf/{group}/{config[f'{group}_name']}.yaml" for group in ("dataset", "predictor"))
    validated(DatasetConf, dataset, config["dataset"])
    _check_predictor(config["predictor_name"], validated(PredictorConf, predictor, config["predictor"]))
    # a predictor that is no network reads no options of the trainer, and does without the import of torch
    if _TRAINER.rpartition(".")[0] in sys.modules:
        check_arguments(_TRAINER, config["trainer"], "conf/trainer/default.yaml")


def check_results_folder(results: Any, project: Path) -> str:
    """Return the folder of results as it is named. Raises: UserError when it cannot be one."""
    requirement = "results must be a folder of its own"
    if not isinstance(results, str) or not results.strip():
        raise UserError(requirement, f"it is {results!r}", "leave it out for results/")
    folder = (project / results).resolve()
    root = project.resolve()
    if root.is_relative_to(folder):
        raise UserError(requirement, f"{results!r} holds the project", "leave it out for results/")
    inside = folder.relative_to(root).parts[:1] if folder.is_relative_to(root) else ()
    if inside and inside[0] in _OF_PROJECT:
        raise UserError(requirement, f"{inside[0]}/ has files of the project", "leave it out for results/")
    return results


def _check_dataset(name: str, dataset: DatasetConf, conf: Path) -> None:
    """Check the names of feature groups and splits in the conf of a dataset."""
    where = f"conf/dataset/{name}.yaml"
    build = plugins.load_function(dataset.target, f"_target_ in {where}")
    if check := getattr(inspect.getmodule(build), "check_options", None):
        check(name, dataset.options)
    if dataset.name != name:
        raise UserError(f"name in {where} must be that of the file", f"it is {dataset.name!r}", f"write {name}")
    if dataset.bridge and read_dataset(conf, dataset.bridge.dataset).bridge:
        raise UserError(f"bridge in {where} must name a dataset without one", f"{dataset.bridge.dataset} has one")
    for feature in dataset.features:
        plugins.load("features", feature, f"each of features in {where}")
    require_names(f"each of tables in {where}", dataset.tables, domain_of(dataset.target).tables)
    require_names(f"each of splits in {where}", dataset.splits, splits.names())
    require_names(f"each of described in {where}", dataset.described, dataset.splits)


def _check_predictor(name: str, predictor: PredictorConf) -> None:
    """Check every argument in the conf of a predictor against the constructor of its class."""
    where = f"conf/predictor/{name}.yaml"
    check_arguments(predictor.target, predictor.params, f"params in {where}")
    check_arguments(predictor.target, merged(predictor.params, predictor.quick), f"quick in {where}")
    for dataset, tuned in predictor.tuned.items():
        for entry in tuned.values():
            for values in entry.folds:
                check_arguments(predictor.target, values, f"folds in conf/tuned/{dataset}/{name}.yaml")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "int": ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "float": ("a finite number", _is_number),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "str": ("text", lambda value: isinstance(value, str)),
    "Sequence[float]": (
        "a list of finite numbers",
        lambda value: isinstance(value, list) and bool(value) and all(map(_is_number, value)),
    ),
}
"""Annotation -> its words, and the check of a value; values of another annotation are checked by the class."""


def check_arguments(path: str, arguments: Mapping[str, Any], where: str) -> None:
    """Check that the dataclass of a dotted path takes arguments of these names and values.

    Classes that the arguments name are checked in the same way.
    Raises: UserError, which names the place `where`.
    """
    loaded: Any = plugins.load_class(path, f"_target_ in {where.rpartition(' in ')[2]}")
    fields = _read_arguments(loaded)
    for name, value in arguments.items():
        if name not in fields:
            raise unknown_name(f"each of {where}", str(name), fields)
        _check_nested(value, f"{where}.{name}")
        annotation = fields[name].removesuffix(" | None")
        if value is None and annotation != fields[name]:
            continue
        words, is_right = _KINDS.get(annotation, ("", lambda value: True))
        if not is_right(value):
            raise UserError(f"{where}.{name} must be {words}", f"it is {value!r:.80}")


def _read_arguments(loaded: Any) -> dict[str, str]:
    """Return the annotations of what the constructor of a class takes, by name; "" without one."""
    if dataclasses.is_dataclass(loaded):
        return {field.name: str(field.type) for field in dataclasses.fields(loaded) if field.init}
    named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    taken = [each for each in inspect.signature(loaded).parameters.values() if each.kind in named]
    return {each.name: "" if each.annotation is each.empty else str(each.annotation) for each in taken}


def _check_nested(value: Any, where: str) -> None:
    """Check every class that a value names, see `check_arguments`."""
    if not isinstance(value, Mapping):
        return
    if TARGET in value:
        arguments = {name: inner for name, inner in value.items() if name not in (TARGET, WITHOUT_COLUMNS)}
        check_arguments(str(value[TARGET]), arguments, where)
    else:
        for name, inner in value.items():
            _check_nested(inner, f"{where}.{name}")

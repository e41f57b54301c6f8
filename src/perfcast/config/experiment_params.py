"""The experiment: params.yaml or a file of conf/experiment, validated before anything is planned."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from perfcast import plugins
from perfcast.config.conf_files import (
    Ablation,
    StrictModel,
    known,
    read_ablations,
    read_yaml,
    require_mapping,
    validated,
)
from perfcast.config.dataset_conf import DatasetConf, read_dataset
from perfcast.utils.errors import UserError, unknown_name

GROUPS = {"sources": "source", "datasets": "dataset", "predictors": "predictor"}
"""Key of params.yaml -> the folder of conf that defines its names."""


def _number_from_command_line(value: Any) -> Any:
    """Read the digits of `snakemake --config "seeds=[0,1,2]"`, which arrive as text."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


_LARGEST_SEED = 2**32 - 1
Seed = Annotated[int, BeforeValidator(_number_from_command_line), Field(ge=0, le=_LARGEST_SEED)]


class Params(StrictModel):
    """The experiment: params.yaml, overridden by a file of conf/experiment."""

    strict: bool
    mirrors: list[Annotated[str, Field(min_length=1)]]
    network: bool
    sources: list[str] = Field(min_length=1)
    datasets: list[str] = Field(min_length=1)
    splits: list[str] = Field(min_length=1)
    predictors: list[str] = Field(min_length=1)
    plots: list[str]
    preset: Literal["quick", "full"]
    seeds: list[Seed] = Field(min_length=1)
    split_seed: Seed
    resamples: int = Field(ge=10, le=100_000)
    backtest_windows: int = Field(ge=1, le=10)
    level: float = Field(gt=0, lt=1)
    ablations: dict[str, Ablation] = Field(default_factory=dict)
    """Variants by name. `predictors` lists a variant like a predictor."""

    @field_validator("sources", "datasets", "splits", "predictors", "plots", "seeds")
    @classmethod
    def _require_distinct(cls, values: list[Any]) -> list[Any]:
        if twice := [value for number, value in enumerate(values) if value in values[:number]]:
            raise ValueError(f"must list each once; {twice[0]!r} is listed twice")
        return values


RESULTS = "results"
"""Key of the folder of results, which Snakemake alone reads."""


def read_params(project: Path) -> Params:
    """Return the experiment of params.yaml. Raises: UserError for a missing or unknown key and a wrong type."""
    content = require_mapping(read_yaml(project / "params.yaml"), "params.yaml")
    return validated(Params, "params.yaml", {name: value for name, value in content.items() if name != RESULTS})


def validate(content: Any, conf: Path) -> Params:
    """Check the whole experiment before anything is planned: keys, types, and that every name exists.

    Raises: UserError, one line with what is required, what was found and the allowed names.
    """
    params = validated(Params, "params.yaml", content)
    declared = read_ablations(conf) if params.ablations else {}
    for name, ablation in params.ablations.items():
        if declared.get(name) != ablation:
            raise UserError(
                f"ablations.{name} must be declared in a file of conf/experiment",
                "it is declared elsewhere, or differently",
                "copy the experiment's file to conf/experiment",
            )
    existing = {key: known(conf, group) for key, group in GROUPS.items()}
    for key, names in existing.items():
        require_names(f"each of {key} in params.yaml", getattr(params, key), names)
    require_names("each of plots in params.yaml", params.plots, plugins.declared("report.plots"))
    datasets = {name: read_dataset(conf, name) for name in existing["datasets"]}
    offered = {split for dataset in datasets.values() for split in dataset.splits}
    require_names("each of splits in params.yaml", params.splits, offered)
    for name in params.datasets:
        _check_dataset(name, datasets[name], params, existing["predictors"])
    return params


def _check_dataset(name: str, dataset: DatasetConf, params: Params, predictors: Iterable[str]) -> None:
    """Check that a dataset has its sources, a split, a predictor and the tables of its domain."""
    dataset.load_tables()
    remedy = f"or take {name!r} out of datasets"
    for source in dataset.sources.required:
        if source not in params.sources:
            requirement = f"sources in params.yaml must have what dataset {name!r} uses"
            raise UserError(requirement, f"{source!r} is not listed", f"add it, {remedy}")
    if not set(dataset.splits) & set(params.splits):
        fact = f"none of {', '.join(dataset.splits)} is listed"
        raise UserError(f"splits in params.yaml must have one of the dataset {name!r}", fact, f"add one, {remedy}")
    supported = dataset.predictors
    require_names(f"each of predictors in conf/dataset/{name}.yaml", supported or (), predictors)
    if supported is not None and not set(supported) & set(params.predictors):
        requirement = f"predictors in params.yaml must have one that supports the dataset {name!r}"
        raise UserError(requirement, f"none of {', '.join(supported)} is listed", f"add one, {remedy}")


def require_names(what: str, names: Iterable[str], allowed: Iterable[str]) -> None:
    """Raise UserError for the first name that is not allowed."""
    allowed = set(allowed)
    for name in names:
        if name not in allowed:
            raise unknown_name(what, name, allowed)

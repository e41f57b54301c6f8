"""conf/dataset: the definition of each dataset, with the values that others published."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, Self

from pydantic import ConfigDict, Field, model_validator

from perfcast.config.conf_files import StrictModel, known, read_conf, validated
from perfcast.domain import domain_of
from perfcast.schema.metric_names import METRICS
from perfcast.utils.errors import UserError, unknown_name


class DatasetSources(StrictModel):
    """Sources of a dataset."""

    required: list[str] = Field(min_length=1)
    optional: list[str] = Field(default_factory=list)


class Bridge(StrictModel):
    """Bridge to another dataset, whose champion estimates the rows."""

    dataset: str
    """Name of the other dataset."""
    name: str
    """Beginning of the names of the columns: `<name>_estimate` and so on."""
    tasks: dict[str, str]
    """Tasks, and those of the other dataset that estimate them."""
    without: str | None = None
    """Column: the predictor that estimates a row has seen no row of its value. None: the champion of all results."""


class PublishedErrors(StrictModel):
    """Published errors: of which method, where, the split with rows drawn alike, and values of METRICS by task.

    A metric is a key of its own, such as `mape` or `spearman`, with a mapping from task to value.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, dict[str, float]]

    what: str
    split: str
    citation: str
    predictor: str = ""
    """Name of the same method here; "" where there is none."""

    @model_validator(mode="after")
    def _require_metrics(self) -> Self:
        """Require the other keys to be metrics, at least one of them with a task."""
        unknown = [name for name in self.values if name not in METRICS]
        if unknown or not any(self.values.values()):
            fact = f"not {unknown[0]!r}" if unknown else "there is none"
            raise ValueError(f"must have a metric by task, one of {', '.join(METRICS)}; {fact}")
        return self

    @property
    def values(self) -> dict[str, dict[str, float]]:
        """Metric -> task -> value."""
        return self.__pydantic_extra__


class DatasetConf(StrictModel):
    """conf/dataset/<name>.yaml: the definition of one dataset.

    `_target_` is Hydra's key for the dotted path of the function that builds the table.
    """

    name: str
    target: str = Field(alias="_target_")
    title: str
    sources: DatasetSources
    features: list[str]
    bridge: Bridge | None = None
    splits: list[str] = Field(min_length=1)
    predictors: list[str] | None = Field(default=None, min_length=1)
    """Predictors that support the dataset; None: all."""
    described: list[str] = Field(default_factory=list)
    """Splits whose test machines are also predicted as users describe them, level by level."""
    tables: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Further tables of the evaluation that the domain makes, with their options."""
    evaluated_until: str | None = Field(default=None, pattern=r"^\d{4}-(0[1-9]|1[0-2])$")
    """Last month of the results in splits without months of their tests; the champion learns every result."""
    label_outlier: float | None = Field(default=None, gt=0)
    published: list[PublishedErrors] = Field(default_factory=list)
    notice: str = ""
    """What every answer says of the dataset, such as the end of a benchmark."""
    options: dict[str, Any] = Field(default_factory=dict)

    @property
    def module(self) -> str:
        """The module that defines the function."""
        return self.target.rpartition(".")[0]

    def load_tables(self) -> dict[str, Callable[..., Any]]:
        """Return the functions of `tables`, each with its options.

        Raises: UserError when the domain has no such table, or its function other options.
        """
        domain = domain_of(self.target)
        where = f"tables of conf/dataset/{self.name}.yaml"
        functions: dict[str, Callable[..., Any]] = {}
        for name, options in self.tables.items():
            if name not in domain.tables:
                raise unknown_name(f"a name in {where}", name, domain.tables)
            function = domain.load(domain.tables[name])
            try:
                signature(function).bind("points", "table", **options)
            except TypeError as error:
                requirement = f"{name} in {where} must have the options of its function"
                raise UserError(requirement, str(error), f"edit {name}") from None
            functions[name] = partial(function, **options)
        return functions


def read_dataset(conf: Path, name: str) -> DatasetConf:
    """Read and check the definition of a dataset."""
    return validated(DatasetConf, f"conf/dataset/{name}.yaml", read_conf(conf, "dataset", name))


def read_datasets(conf: Path) -> dict[str, DatasetConf]:
    """Read the definitions of all datasets, by name."""
    return {name: read_dataset(conf, name) for name in known(conf, "dataset")}

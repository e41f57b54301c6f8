"""conf/predictor and conf/tuned: class, hyperparameters, search space and tuned values of each predictor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, PlainValidator, ValidationInfo, field_validator, model_validator

from perfcast.config.conf_files import StrictModel, conf_files, read_conf, read_yaml, validated
from perfcast.domain import conf_folders
from perfcast.utils.errors import unknown_name
from perfcast.utils.nested import flattened, merged


def _number(value: Any) -> int | float:
    """Return a finite number; pydantic's message about a union would list all its members."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("must be a finite number such as 10 or 0.001")
    return value


def _scalar(value: Any) -> Any:
    if value is not None and not isinstance(value, bool | int | float | str):
        raise ValueError("must be a single value")
    return value


class Range(StrictModel):
    """Numbers from `low` to `high`, both included: whole ones when both are whole, else real ones.

    With `log` equal ratios are equally likely.
    """

    low: Annotated[int | float, PlainValidator(_number)]
    high: Annotated[int | float, PlainValidator(_number)]
    log: bool = False

    @property
    def whole(self) -> bool:
        """True where only whole numbers are tried."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.low < self.high:
            raise ValueError("low must be below high")
        if self.log and self.low <= 0:
            raise ValueError("a range with log must begin above 0")
        return self

    def holds(self, value: Any) -> bool:
        """Return whether a value is in the search space."""
        right = isinstance(value, int if self.whole else int | float) and not isinstance(value, bool)
        return right and self.low <= value <= self.high


class Choices(StrictModel):
    """Single values without an order."""

    choices: list[Annotated[Any, PlainValidator(_scalar)]] = Field(min_length=2)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if any(value in self.choices[:number] for number, value in enumerate(self.choices)):
            raise ValueError("choices must be distinct")
        return self

    def holds(self, value: Any) -> bool:
        """Return whether a value is in the search space."""
        return any(type(choice) is type(value) and choice == value for choice in self.choices)


Dimension = Range | Choices


Settings = dict[str, dict[str, Any]]
"""Arguments of the constructor, under the name of the key that they are from: params, quick or tuned."""


class Tuned(StrictModel):
    """Result of a search for one split: the chosen values of every fold, and the command that found them."""

    command: str
    folds: list[dict[str, Any]] = Field(min_length=1)


class _TunedEntry(Tuned):
    """Tuned values that several splits share."""

    splits: list[str] = Field(min_length=1)


class _TunedFile(StrictModel):
    """conf/tuned/<dataset>/<predictor>.yaml, made with benchmarks/tune.py."""

    entries: list[_TunedEntry] = Field(min_length=1)

    @field_validator("entries")
    @classmethod
    def _require_distinct_splits(cls, entries: list[_TunedEntry]) -> list[_TunedEntry]:
        splits = [split for entry in entries for split in entry.splits]
        if twice := sorted({split for split in splits if splits.count(split) > 1}):
            raise ValueError(f"must name each split once; {twice[0]!r} is named twice")
        return entries


class PredictorConf(StrictModel):
    """conf/predictor/<name>.yaml: one predictor class with its parameters."""

    target: str = Field(alias="_target_")
    """Dotted path of a class inside perfcast or a domain, `_target_` for Hydra: the only key that is required."""
    stochastic: bool = False
    """Whether the class, or one that it is made of, has a parameter `random_state`."""
    bridge: bool = False
    """Whether it reads the estimates of a bridge: datasets without one leave it out."""
    label: str = ""
    """Name in reports; the file's name with spaces by default."""
    params: dict[str, Any] = Field(default_factory=dict)
    """Hyperparameters. They may name further classes by `_target_`: the predictors that this one is made of."""
    quick: dict[str, Any] = Field(default_factory=dict)
    """Hyperparameters of the quick preset that differ."""
    without_columns: list[str] = Field(default_factory=list)
    """Feature columns that an ablation removes, by shell patterns."""
    space: dict[str, Dimension] = Field(default_factory=dict)
    """Search space of benchmarks/tune.py."""
    tuned: dict[str, dict[str, Tuned]] = Field(default_factory=dict)
    """Results of that search by dataset and split, from conf/tuned."""

    @property
    def targets(self) -> list[str]:
        """The class, and those that its hyperparameters name."""
        settings = flattened({"params": self.params, "quick": self.quick})
        return [self.target, *sorted({str(value) for path, value in settings.items() if path.endswith("._target_")})]

    @property
    def modules(self) -> list[str]:
        """The modules of all these classes."""
        return sorted({target.rpartition(".")[0] for target in self.targets})

    @field_validator("space", mode="before")
    @classmethod
    def _check_dimensions(cls, space: Any, info: ValidationInfo) -> Any:
        """Check each entry as a range or as choices, so that an error message lists the keys of that kind."""
        where = (info.context or {}).get("where", "a predictor's conf")
        if not isinstance(space, Mapping):
            return space
        listed = {name for name, entry in space.items() if isinstance(entry, Mapping) and "choices" in entry}
        kinds = {name: Choices if name in listed else Range for name in space}
        return {name: validated(kinds[name], f"space.{name} in {where}", entry) for name, entry in space.items()}

    def settings(self, preset: str) -> Settings:
        """Return the arguments of the constructor, under the name of their key.

        Those of the quick preset are `params` with the values of `quick`, nested ones too.
        """
        return {"quick": merged(self.params, self.quick)} if preset == "quick" else {"params": self.params}

    def arguments(self, preset: str) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return next(iter(self.settings(preset).values()))

    def tuned_settings(self, preset: str, dataset: str, *splits: str) -> list[Settings]:
        """Return the tuned setting of every fold, in the order of folds; empty where no split is tuned.

        The first of `splits` that is tuned counts, so a learning-curve split precedes its base. The quick preset uses
        no tuned values.
        """
        tuned = {} if preset == "quick" else self.tuned.get(dataset, {})
        entry = next((tuned[split] for split in splits if split in tuned), None)
        return [{"tuned": {**self.params, **values}} for values in (entry.folds if entry else [])]


def read_tuned(conf: Path, predictor: str) -> dict[str, dict[str, Tuned]]:
    """Read the tuned values of a predictor from conf/tuned, by dataset and split."""
    tuned = {}
    files = (path for folder in conf_folders(conf) for path in (folder / "tuned").glob(f"*/{predictor}.yaml"))
    for path in sorted(files):
        where = f"conf/tuned/{path.parent.name}/{path.name}"
        entries = validated(_TunedFile, where, read_yaml(path)).entries
        tuned[path.parent.name] = {
            split: Tuned(command=entry.command, folds=entry.folds) for entry in entries for split in entry.splits
        }
    return tuned


def read_predictor(conf: Path, name: str) -> PredictorConf:
    """Read and check the definition of a predictor."""
    content = read_conf(conf, "predictor", name)
    if "tuned" in content:
        keys = [key for key in PredictorConf.model_fields if key != "tuned"]
        raise unknown_name(f"a key of conf/predictor/{name}.yaml", "tuned", keys)
    checked = validated(PredictorConf, f"conf/predictor/{name}.yaml", content)
    return checked.model_copy(update={"tuned": read_tuned(conf, name)})


def read_predictor_labels(conf: Path) -> dict[str, str]:
    """Return the labels of the predictors whose files have one."""
    contents = {name: read_conf(conf, "predictor", name) for name in conf_files(conf, "predictor")}
    return {name: str(content["label"]) for name, content in sorted(contents.items()) if content.get("label")}

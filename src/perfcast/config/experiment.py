"""The configuration: params.yaml and conf/, validated before anything is planned. The only module that knows Hydra."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from perfcast.config.search_space import Choices, Dimension, Range
from perfcast.schema.metric_names import METRICS
from perfcast.utils import plugins, size_limits
from perfcast.utils.errors import UserError, unknown_name
from perfcast.utils.safe_yaml import read_yaml_text

# which key of params.yaml lists which kind of named thing
GROUPS = {"sources": "source", "datasets": "dataset", "predictors": "predictor"}


def _number_from_command_line(value: Any) -> Any:
    """Read the digits of `snakemake --config "seeds=[0,1,2]"`, which arrive as text."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


Seed = Annotated[int, BeforeValidator(_number_from_command_line), Field(ge=0)]


class _Strict(BaseModel):
    """A mapping with known keys of known types and no others."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Ablation(_Strict):
    """A variant of a predictor, declared by an experiment: the predictor's conf with some values taken away.

    `params` overrides constructor arguments under every preset. `without_columns` adds feature columns, by shell
    patterns, that the variant does not see. A variant uses no tuned values.
    """

    predictor: str
    params: dict[str, Any] = {}
    without_columns: list[str] = []

    def apply(self, conf: Mapping[str, Any]) -> dict[str, Any]:
        """Return the content of the predictor's conf file with this ablation applied."""
        return {
            **conf,
            "params": {**conf.get("params", {}), **self.params},
            "quick": {**conf.get("quick", {}), **self.params},
            "without_columns": [*conf.get("without_columns", []), *self.without_columns],
        }


class Params(_Strict):
    """The experiment: params.yaml, overridden by a file of conf/experiment."""

    published_until: str = Field(pattern=r"^\d{4}-(0[1-9]|1[0-2])$")
    strict: bool
    mirrors: list[str]
    network: bool
    sources: list[str] = Field(min_length=1)
    datasets: list[str] = Field(min_length=1)
    splits: list[str] = Field(min_length=1)
    predictors: list[str] = Field(min_length=1)
    plots: list[str]
    preset: Literal["quick", "full"]
    seeds: list[Seed] = Field(min_length=1)
    split_seed: int = Field(ge=0)
    resamples: int = Field(ge=10, le=100_000)
    backtest_windows: int = Field(ge=1, le=10)
    level: float = Field(gt=0, lt=1)
    ablations: dict[str, Ablation] = {}
    """Variants by name. `predictors` lists a variant like a predictor."""


class DatasetSources(_Strict):
    """The sources a dataset is built from."""

    required: list[str] = Field(min_length=1)
    optional: list[str] = []


class PublishedErrors(_Strict):
    """What others published: of what, where, the split of ours that asks the same, and any of METRICS by task.

    A metric is a key of its own, such as `mape` or `spearman`, with a mapping from task to value.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, dict[str, float]]

    what: str
    split: str
    citation: str
    predictor: str = ""
    """The one here that does the same, "" where none does."""

    @model_validator(mode="after")
    def _metrics(self) -> Self:
        """Hold the keys beside the declared ones to be metrics, at least one of them with a task."""
        given = self.values
        unknown = [name for name in given if name not in METRICS]
        if unknown or not any(given.values()):
            found = f"not {unknown[0]!r}" if unknown else "there is none"
            raise ValueError(f"must have a metric by task, one of {', '.join(METRICS)}; {found}")
        return self

    @property
    def values(self) -> dict[str, dict[str, float]]:
        """Metric -> task -> value."""
        return self.__pydantic_extra__


class DatasetConf(_Strict):
    """conf/dataset/<name>.yaml: the definition of one dataset.

    `_target_` is Hydra's key for the dotted path of the function that builds the table.
    """

    name: str
    target: str = Field(alias="_target_")
    title: str
    sources: DatasetSources
    features: list[str]
    splits: list[str] = Field(min_length=1)
    predictors: list[str] | None = Field(default=None, min_length=1)
    """Those that can answer its questions; None: all of them."""
    label_outlier: float | None = Field(default=None, gt=0)
    published: list[PublishedErrors] = []
    options: dict[str, Any] = {}

    @property
    def module(self) -> str:
        """The module that defines the function."""
        return self.target.rpartition(".")[0]


Settings = dict[str, dict[str, Any]]
"""The constructor's arguments by the setting's name."""


class Tuned(_Strict):
    """Result of `perfcast tune` for one split: the chosen values of every fold, and the command that finds them."""

    command: str
    folds: list[dict[str, Any]] = Field(min_length=1)


class _TunedEntry(Tuned):
    """Tuned values that several splits share."""

    splits: list[str] = Field(min_length=1)


class _TunedFile(_Strict):
    """conf/tuned/<dataset>/<predictor>.yaml, generated by `perfcast tune --write`."""

    entries: list[_TunedEntry] = Field(min_length=1)

    @field_validator("entries")
    @classmethod
    def _require_distinct_splits(cls, entries: list[_TunedEntry]) -> list[_TunedEntry]:
        splits = [split for entry in entries for split in entry.splits]
        if twice := sorted({split for split in splits if splits.count(split) > 1}):
            raise ValueError(f"must name each split once; {twice[0]!r} is named twice")
        return entries


class PredictorConf(_Strict):
    """conf/predictor/<name>.yaml: one predictor class with its parameters.

    `_target_` is Hydra's key for the dotted path of a class inside `perfcast.predictors`. `without_columns` names
    feature columns, by shell patterns, that an ablation removes. `space` is the search space of `perfcast tune`;
    `tuned` holds its results by dataset and split, from conf/tuned.
    """

    target: str = Field(alias="_target_")
    stochastic: bool
    params: dict[str, Any] = {}
    candidates: dict[str, dict[str, Any]] = {}
    quick: dict[str, Any] = {}
    without_columns: list[str] = []
    space: dict[str, Dimension] = {}
    tuned: dict[str, dict[str, Tuned]] = {}

    @property
    def module(self) -> str:
        """The module that defines the class."""
        return self.target.rpartition(".")[0]

    @field_validator("space", mode="before")
    @classmethod
    def _dimensions(cls, space: Any, info: ValidationInfo) -> Any:
        """Check each parameter's entry as what it means to be, so that a mistake is told in that kind's keys."""
        where = (info.context or {}).get("where", "a predictor's conf")
        if not isinstance(space, Mapping):
            return space
        return {
            name: validated(
                Choices if isinstance(entry, Mapping) and "choices" in entry else Range,
                f"space.{name} in {where}",
                entry,
            )
            for name, entry in space.items()
        }

    def settings(self, preset: str) -> Settings:
        """Return the constructor's arguments by candidate: what each training part chooses from under a preset.

        `quick` overrides single values of `params` and leaves nothing to choose; otherwise every entry of `candidates`
        overrides single values of `params`, and without candidates `params` is the only setting.
        """
        if preset == "quick":
            return {"quick": {**self.params, **self.quick}}
        return {name: {**self.params, **values} for name, values in (self.candidates or {"params": {}}).items()}

    def tuned_settings(self, preset: str, dataset: str, *splits: str) -> list[Settings]:
        """Return the sole setting of every fold of a tuned question, in the order of folds; empty where none is tuned.

        The first of `splits` that is tuned counts: a split that is a form of another one is named before that one. The
        quick preset uses no tuned values.
        """
        tuned = {} if preset == "quick" else self.tuned.get(dataset, {})
        found = next((tuned[split] for split in splits if split in tuned), None)
        return [{"tuned": {**self.params, **values}} for values in (found.folds if found else [])]


def _explain(where: str, error: ValidationError, allowed: Sequence[str]) -> UserError:
    """Turn the first complaint of pydantic into one line."""
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return unknown_name(f"a key of {where}", key, allowed)
    if first["type"] == "missing":
        return UserError(f"{where} must have the key {key!r}", "it is missing", f"its keys are {', '.join(allowed)}")
    place = f"{key!r} in {where}" if key else where
    told = first["msg"].lower().removeprefix("value error, ")
    return UserError(f"{place}: {told}", f"found {first['input']!r}", f"edit {where}")


Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], where: str, content: Any) -> Model:
    """Check a mapping against a model. Raises: UserError naming the file, the key and what is allowed."""
    if not isinstance(content, Mapping):
        raise UserError(f"{where} must be a mapping of keys to values", f"found {type(content).__name__}")
    try:
        return model.model_validate(dict(content), context={"where": where})
    except ValidationError as error:
        raise _explain(where, error, [field.alias or key for key, field in model.model_fields.items()]) from None


def read_yaml(path: Path) -> Any:
    """Read one YAML file. Raises: UserError when it is absent or is not YAML."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(size_limits.YAML + 1)
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{path} must exist", "there is no such file", "run from the project's folder") from None
    except OSError as error:
        raise UserError(f"{path} must be readable", (error.strerror or str(error)).lower()) from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path} must be UTF-8 text", f"byte {error.start + 1} is not", "save it as UTF-8") from None
    return read_yaml_text(text, str(path))


def known(conf: Path, group: str) -> list[str]:
    """List the named things of one group: the files of conf/<group>/, and for predictors the ablations."""
    names = {path.stem for path in (Path(conf) / group).glob("*.yaml")}
    return sorted(names | set(read_ablations(conf)) if group == "predictor" else names)


def read_conf(conf: Path, group: str, name: str) -> dict[str, Any]:
    """Read conf/<group>/<name>.yaml; for an ablation, the predictor's file with the ablation applied.

    Raises: UserError with the names that exist.
    """
    path = Path(conf) / group / f"{name}.yaml"
    if path.is_file():
        return _read_mapping(path, f"conf/{group}/{name}.yaml")
    ablation = read_ablations(conf).get(name) if group == "predictor" else None
    if ablation is None:
        raise unknown_name(f"a {group}", name, known(conf, group))
    return ablation.apply(read_conf(conf, group, ablation.predictor))


def read_ablations(conf: Path) -> dict[str, Ablation]:
    """Read the ablations of all experiments, by name.

    Raises: UserError when a name has two meanings, or an ablation's predictor has no conf file.
    """
    ablations: dict[str, Ablation] = {}
    for path in sorted((Path(conf) / "experiment").glob("*.yaml")):
        where = f"conf/experiment/{path.name}"
        declared = _read_mapping(path, where).get("ablations", {})
        for name, content in _require_mapping(declared, f"ablations in {where}").items():
            ablation = validated(Ablation, f"ablations.{name} in {where}", content)
            if (Path(conf) / "predictor" / f"{name}.yaml").exists() or ablations.get(name, ablation) != ablation:
                raise UserError(f"ablations.{name} in {where} must have a name of its own", "it is used twice")
            base = ablation.predictor
            if not (Path(conf) / "predictor" / f"{base}.yaml").is_file():
                files = [file.stem for file in (Path(conf) / "predictor").glob("*.yaml")]
                raise unknown_name(f"ablations.{name}.predictor in {where}", base, files)
            ablations[name] = ablation
    return ablations


def read_experiment(path: Path) -> dict[str, Any]:
    """Read a file of conf/experiment: keys of params.yaml with other values, and `results`, the folder of results."""
    return _read_mapping(path, str(path))


def read_tuned(conf: Path, predictor: str) -> dict[str, dict[str, Tuned]]:
    """Read the tuned values of a predictor from conf/tuned, by dataset and split."""
    tuned = {}
    for path in sorted((Path(conf) / "tuned").glob(f"*/{predictor}.yaml")):
        where = f"conf/tuned/{path.parent.name}/{path.name}"
        entries = validated(_TunedFile, where, read_yaml(path)).entries
        tuned[path.parent.name] = {
            split: Tuned(command=entry.command, folds=entry.folds) for entry in entries for split in entry.splits
        }
    return tuned


def _read_mapping(path: Path, where: str) -> dict[str, Any]:
    return dict(_require_mapping(read_yaml(path), where))


def _require_mapping(content: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        raise UserError(f"{where} must be a mapping of keys to values", f"found {type(content).__name__}")
    return content


def read_dataset(conf: Path, name: str) -> DatasetConf:
    """Read and check the definition of a dataset."""
    return validated(DatasetConf, f"conf/dataset/{name}.yaml", read_conf(conf, "dataset", name))


def read_predictor(conf: Path, name: str) -> PredictorConf:
    """Read and check the definition of a predictor."""
    content = read_conf(conf, "predictor", name)
    if "tuned" in content:
        keys = [key for key in PredictorConf.model_fields if key != "tuned"]
        raise unknown_name(f"a key of conf/predictor/{name}.yaml", "tuned", keys)
    checked = validated(PredictorConf, f"conf/predictor/{name}.yaml", content)
    return checked.model_copy(update={"tuned": read_tuned(conf, name)})


def validate(content: Any, conf: Path) -> Params:
    """Check the whole experiment before anything is planned: keys, types, and that every name exists.

    Raises: UserError, one line with what is required, what was found and the allowed names.
    """
    params = validated(Params, "params.yaml", content)
    for name, ablation in params.ablations.items():
        if read_ablations(conf).get(name) != ablation:
            raise UserError(
                f"ablations.{name} must be declared in a file of conf/experiment",
                "it is declared elsewhere, or differently",
                "copy the experiment's file to conf/experiment",
            )
    for key, group in GROUPS.items():
        _require(f"each of {key} in params.yaml", getattr(params, key), known(conf, group))
    # loaded by name, like a plug-in: the digest of code that imports config must not change with a caption
    catalog = importlib.import_module("perfcast.report.plots.catalog")
    _require("each of plots in params.yaml", params.plots, list(catalog.read_catalog()))
    for name in params.predictors:
        where = f"_target_ in conf/predictor/{name}.yaml"
        plugins.check_class("predictors", read_predictor(conf, name).target, where)
    for name in params.datasets:
        plugins.check_function(
            "data.datasets", read_dataset(conf, name).target, f"_target_ in conf/dataset/{name}.yaml"
        )
        used = read_dataset(conf, name).sources
        for source in (*used.required, *used.optional):
            if source not in params.sources:
                raise UserError(
                    f"sources in params.yaml must have what dataset {name!r} uses",
                    f"{source!r} is not listed",
                    f"add it, or take {name!r} out of datasets",
                )
    for name in params.datasets:
        able = read_dataset(conf, name).predictors
        _require(f"each of predictors in conf/dataset/{name}.yaml", able or (), known(conf, "predictor"))
        if able is not None and not set(able) & set(params.predictors):
            raise UserError(
                f"predictors in params.yaml must have one that can answer the dataset {name!r}",
                f"none of {', '.join(able)} is listed",
                f"add one, or take {name!r} out of datasets",
            )
    offered = {split for name in known(conf, "dataset") for split in read_dataset(conf, name).splits}
    _require("each of splits in params.yaml", params.splits, offered)
    return params


def _require(what: str, names: Iterable[str], allowed: Iterable[str]) -> None:
    """Raise for the first name that is not allowed."""
    allowed = set(allowed)
    for name in names:
        if name not in allowed:
            raise unknown_name(what, name, allowed)


_ALWAYS = ("trainer=default", "tracking=default")
"""Choices that hold where an override says nothing else."""


def _check_chosen(conf: Path, overrides: Sequence[str]) -> None:
    """Read what overrides choose by name, so that nothing else is read and what cannot be is told in one line."""
    groups = {path.name for path in conf.glob("*") if path.is_dir()}
    for override in (*_ALWAYS, *overrides):
        group, equals, name = override.lstrip("+").partition("=")
        group = group.partition("@")[0]
        if equals and group in groups:
            read_conf(conf, group, name.strip("'\""))


def _resolve_ablation(conf: Path, override: str, ablations: Mapping[str, Ablation]) -> list[str]:
    """Replace the choice of an ablation by the choice of its predictor and the values that it changes."""
    group, _, name = override.partition("=")
    if group != "predictor" or name not in ablations:
        return [override]
    ablation = ablations[name]
    values = [
        f"++predictor.{block}.{key}={json.dumps(value)}"
        for block in ("params", "quick")
        for key, value in ablation.params.items()
    ]
    hidden = read_conf(conf, "predictor", name)["without_columns"]
    return [f"predictor={ablation.predictor}", *values, f"++predictor.without_columns={json.dumps(hidden)}"]


def compose(root: Path, overrides: Sequence[str]) -> dict[str, Any]:
    """Compose conf/config.yaml with params.yaml and overrides by Hydra; return plain nested values.

    Raises: UserError in one line for a wrong name, key or syntax.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    root = Path(root).resolve()
    _check_chosen(root / "conf", overrides)
    read_yaml(root / "params.yaml")
    ablations = read_ablations(root / "conf")
    predictor = next((text.partition("=")[2] for text in reversed(overrides) if text.startswith("predictor=")), "")
    overrides = [part for override in overrides for part in _resolve_ablation(root / "conf", override, ablations)]
    try:
        with initialize_config_dir(str(root / "conf"), version_base="1.3"):
            composed = hydra_compose("config", [f"hydra.searchpath=[file://{root}]", *overrides])
            resolved: Any = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    except (HydraException, OmegaConfBaseException) as error:
        told = str(error).partition("Config search path")[0]
        lines = [line.strip() for line in told.splitlines() if line.strip()]
        raise UserError("an override must name values of conf/ or params.yaml", " ".join(lines)[:2000]) from None
    if tuned := read_tuned(root / "conf", predictor):
        resolved["predictor"]["tuned"] = {
            dataset: {split: entry.model_dump() for split, entry in splits.items()} for dataset, splits in tuned.items()
        }
    return dict(resolved)

"""Reading and checking of params.yaml and conf/, one file per named thing; experiments declare ablations as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from perfcast.domain import conf_folders
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError, unknown_name
from perfcast.utils.nested import merged
from perfcast.utils.result_digests import verify_digest
from perfcast.utils.safe_yaml import read_yaml_text


class StrictModel(BaseModel):
    """A mapping with known keys of known types and no others."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Ablation(StrictModel):
    """Variant of a predictor that an experiment declares: the predictor's conf with some values changed.

    `params` overrides constructor arguments under every preset. `without_columns` adds feature columns, by shell
    patterns, that the variant does not see. A variant uses no tuned values.
    """

    predictor: str
    params: dict[str, Any] = Field(default_factory=dict)
    without_columns: list[str] = Field(default_factory=list)

    def apply(self, conf: Mapping[str, Any]) -> dict[str, Any]:
        """Return the content of the predictor's conf file with this ablation applied."""
        content = {key: value for key, value in conf.items() if key != "label"}
        return {
            **content,
            "params": merged(conf.get("params", {}), self.params),
            "quick": merged(conf.get("quick", {}), self.params),
            "without_columns": [*conf.get("without_columns", []), *self.without_columns],
        }


def _explain(where: str, error: ValidationError, allowed: Sequence[str]) -> UserError:
    """Return the first error of pydantic as one line."""
    first = error.errors(include_url=False)[0]
    if isinstance(cause := first.get("ctx", {}).get("error"), UserError):  # raised by a validator
        return cause
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return unknown_name(f"a key of {where}", key, allowed)
    if first["type"] == "missing":
        return UserError(f"{where} must have the key {key!r}", "it is missing", f"its keys are {', '.join(allowed)}")
    field = f"{key!r} in {where}" if key else where
    message = first["msg"].lower().removeprefix("value error, ")
    return UserError(f"{field}: {message}", f"found {first['input']!r:.80}", f"edit {where}")


Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], where: str, content: Any) -> Model:
    """Check a mapping against a model. Raises: UserError naming the file, the key and what is allowed."""
    values = dict(require_mapping(content, where))
    try:
        return model.model_validate(values, context={"where": where})
    except ValidationError as error:
        raise _explain(where, error, [field.alias or key for key, field in model.model_fields.items()]) from None


def read_yaml(path: Path) -> Any:
    """Read one YAML file. Raises: UserError when it is absent, is not YAML, or has changed since a stage wrote it."""
    verify_digest(Path(path))
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


def require_mapping(content: Any, where: str) -> Mapping[str, Any]:
    """Return a mapping. Raises: UserError for anything else."""
    if not isinstance(content, Mapping):
        raise UserError(f"{where} must be a mapping of keys to values", f"found {type(content).__name__}")
    return content


def conf_files(conf: Path, group: str) -> dict[str, Path]:
    """Return the files of one group by name: those of domains, and those of conf/<group>/, which come first."""
    folders = reversed(conf_folders(conf))
    files = {path.stem: path for folder in folders for path in (folder / group).glob("*.yaml")}
    return dict(sorted(files.items()))


def known(conf: Path, group: str) -> list[str]:
    """Return the names of one group: its files, and for predictors the ablations too."""
    names = set(conf_files(conf, group))
    if group == "source":
        return sorted(names | {name for name in conf_files(conf, "dataset").keys() - names if own_csv(conf, name)})
    return sorted(names | set(read_ablations(conf)) if group == "predictor" else names)


def own_csv(conf: Path, name: str) -> str:
    """Return the CSV file of data/embedded that is the source of the dataset of this name, "" where none is."""
    path = conf_files(conf, "dataset").get(name)
    content = require_mapping(read_yaml(path), f"conf/dataset/{name}.yaml") if path else {}
    options = content.get("options")
    return str(options.get("csv", "")) if isinstance(options, Mapping) else ""


def find_conf(conf: Path, group: str, name: str) -> Path:
    """Return the file of a named thing. Raises: UserError with the names that exist."""
    files = conf_files(conf, group)
    if name not in files:
        raise unknown_name(f"a name of conf/{group}", name, files)
    return files[name]


def read_conf(conf: Path, group: str, name: str) -> dict[str, Any]:
    """Read conf/<group>/<name>.yaml; for an ablation, the predictor's file with the ablation applied.

    A source without a file is that of a dataset which is one CSV file of a user's own.

    Raises: UserError with the names that exist.
    """
    if path := conf_files(conf, group).get(name):
        return dict(require_mapping(read_yaml(path), f"conf/{group}/{name}.yaml"))
    if group == "source" and (csv := own_csv(conf, name)):
        texts = dict.fromkeys(("title", "license", "terms", "citation"), f"a table of your own: data/embedded/{csv}")
        return {**texts, "remedy": f"put {csv} into data/embedded", "embedded": True, "files": [{"name": csv}]}
    ablation = read_ablations(conf).get(name) if group == "predictor" else None
    if ablation is None:
        raise unknown_name(f"a {group}", name, known(conf, group))
    return ablation.apply(read_conf(conf, group, ablation.predictor))


def read_ablations(conf: Path) -> dict[str, Ablation]:
    """Return the ablations of all experiments by name.

    Raises: UserError when a name has two meanings, or an ablation's predictor has no conf file.
    """
    ablations: dict[str, Ablation] = {}
    predictors = conf_files(conf, "predictor")
    for path in conf_files(conf, "experiment").values():
        where = f"conf/experiment/{path.name}"
        declared = require_mapping(read_yaml(path), where).get("ablations", {})
        for name, content in require_mapping(declared, f"ablations in {where}").items():
            ablation = validated(Ablation, f"ablations.{name} in {where}", content)
            if name in predictors or ablations.get(name, ablation) != ablation:
                raise UserError(f"ablations.{name} in {where} must have a name of its own", "it is used twice")
            base = ablation.predictor
            if base not in predictors:
                raise unknown_name(f"ablations.{name}.predictor in {where}", base, predictors)
            ablations[name] = ablation
    return ablations

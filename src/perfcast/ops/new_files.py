"""Files of a new predictor, dataset or domain, from the texts in new_files.yaml."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

import pandas as pd

from perfcast.config.conf_files import known, read_yaml
from perfcast.data.csv_dataset import BUILD, CATEGORY, DAY, check_options, column_name
from perfcast.data.strict_csv import read_header, read_rows
from perfcast.utils.errors import UserError, printable, unknown_name
from perfcast.utils.io import write_text
from perfcast.utils.safe_yaml import yaml_text

_PREDICTOR_TEXTS = "docs/_site/predictors.yaml"
_OTHERS = "\nOther predictors:\n"
_HEAD = """\
# Chosen by the file's header and values: correct it. Numbers have a unit, "" for a count; texts are a `category`.
"""
_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_TIMES = "time|runtime|latency|seconds|duration"
_ROLES = {
    "target": ("positive", f"score|result|target|throughput|ops|{_TIMES}"),
    "date": ("date", ""),
    "task": ("text", "task|suite|test|benchmark|workload|operator|kernel"),
    "entity": ("text", "machine|system|model|processor|cpu|gpu|device|server|host|name|entity"),
}
"""Key of the conf -> the kind of its column, and words of its name."""
_TYPED = {"target": (("positive", "number"), "positive numbers"), "date": (("date",), "dates, YYYY-MM-DD")}
"""Key of the conf -> the kinds that its column may have, and their words."""
_KIND_WORDS = {"positive": "numbers", "number": "numbers", "date": "dates", "text": "texts", "": "nothing"}
_UNIT = re.compile(r"[(\[]([^)\]]+)[)\]]\s*$")
_TYPED_SHARE = 0.9
"""Share of the cells of a column of numbers or dates that are some: the rows of the others are rejected."""
_DISTINCT_SHARE = 0.5
"""A text with more distinct values, as a share of the rows, describes nothing that rows share."""
_UNSEEN_ENTITIES = 10
"""Entities that splits by entity need."""


def write_predictor(name: str, project: Path) -> str:
    """Write a predictor, its conf, an experiment with it and its text; return what was written and what to run."""
    _require_new(name, known(project / "conf", "predictor"))
    if not (project / "src" / "perfcast" / "predictors").is_dir():
        raise UserError("--project must be a clone of perfcast", f"{project} has no src/perfcast/predictors")
    class_name = "".join(word.capitalize() for word in name.split("_"))
    files = _fill("predictor", name=name, words=name.replace("_", " ").capitalize(), class_name=class_name)
    entry = files.pop(_PREDICTOR_TEXTS)
    path = project / _PREDICTOR_TEXTS
    written = _write(files, project)
    texts = path.read_text(encoding="utf-8")
    write_text(path, texts + ("" if _OTHERS in texts else _OTHERS) + entry)
    tests = f"python -m pytest tests/contract/test_predictors.py -k {name}"
    return _report([*written, path], tests, f"make experiment NAME={name}")


def write_domain(name: str, out: Path) -> str:
    """Write a distribution with a domain; return what was written and what to run."""
    _require_new(name, [name] if name.isidentifier() and find_spec(name) else [])
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError("the folder of a new domain must be new", f"{out} is there", "name another with --out")
    words = name.replace("_", " ")
    written = _write(_fill("domain", name=name, words=words, title=words.capitalize()), out)
    run = f'snakemake --configfile "$(perfcast config --path experiment/{name})"'
    ask = f"perfcast predict --dataset {name}_runs --results results/{name} --size 4"
    return _report(written, f"python -m pip install {out}", run, ask)


def write_dataset(file: Path, given: Mapping[str, str], project: Path) -> str:
    """Write the conf of a CSV file and copy the file to data/embedded; return what was written and what to run.

    Args: `given` names the columns of `target`, `entity`, `task` and `date`; the others are chosen.
    """
    name = column_name(file.name.partition(".")[0])
    conf_folder = project / "conf"
    _require_new(name, [*known(conf_folder, "dataset"), *known(conf_folder, "source")])
    if not (conf_folder / "dataset").is_dir():
        raise UserError("--project must have conf/dataset", f"{project} has none", "run from the project's folder")
    copied = project / "data" / "embedded" / f"{name}{'.csv.gz' if file.name.endswith('.gz') else '.csv'}"
    conf, example = describe_csv(name, file, copied.name, given)
    check_options(name, conf["options"])
    if copied.exists() and not copied.samefile(file):
        raise UserError("the copy of the file must be new", f"{copied} is there", "rename your file")
    if not copied.exists():
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copied)
    path = conf_folder / "dataset" / f"{name}.yaml"
    write_text(path, _HEAD + yaml_text(conf))
    lists = f'"datasets=[{name}]" "sources=[{name}]" "splits=[{",".join(conf["splits"])}]"'
    ask = f"perfcast predict --dataset {name} --results results/{name} {example}"
    read = {**conf["options"], "target": next(iter(conf["options"]["target"]))}
    roles = ", ".join(f"{key}: {read.get(key, 'none')}" for key in _ROLES)
    return _report([copied, f"{path} ({roles})"], f"snakemake --config {lists} results=results/{name}", ask)


def describe_csv(dataset: str, file: Path, csv: str, given: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """Return the conf of a CSV file, chosen by its header and values, and flags that describe one machine of it.

    Raises: UserError when the file has no positive numbers, or a given column is not in it.
    """
    if not file.is_file():
        raise UserError("FILE must be a CSV file with a header", f"{file} is no file")
    with _of_own_file():
        header = read_header(file)
    if len(header) == 1:
        raise UserError("FILE must have two columns or more, with commas between", f"its header is {header[0][:60]!r}")
    for key, heading in given.items():
        if heading and heading not in header:
            raise unknown_name(f"--{key}", heading, header)
    with _of_own_file():
        rows = read_rows(dataset, file, header).frame[header]
    texts = rows.apply(lambda cells: cells.str.strip()).replace("", None)
    kinds = {name: _kind(texts[name].dropna()) for name in header}
    chosen = dict(given)
    for key, (kinds_allowed, what) in _TYPED.items():
        if (named := given.get(key)) and kinds[named] not in kinds_allowed:
            fact = f"{named!r} has {_KIND_WORDS[kinds[named]]}"
            raise UserError(f"--{key} must be a column of {what}", fact, "name another, or correct the file")
    for key, (kind, words) in _ROLES.items():
        free = [name for name in header if kinds[name] == kind and name not in chosen.values()]
        others = [] if key == "task" else free[-1:] if kind != "text" else sorted(free, key=texts.nunique().get)[-1:]
        chosen[key] = chosen[key] or next(iter([*(name for name in free if _is_named(name, words)), *others]), "")
    if not chosen["target"]:
        raise UserError("FILE must have a column of positive numbers", f"{file} has none", "name it with --target")
    left = [name for name in header if kinds[name] not in ("", "date") and name not in chosen.values()]
    few = [name for name in left if kinds[name] != "text" or texts[name].nunique() <= _DISTINCT_SHARE * len(texts)]
    features = {name: CATEGORY if kinds[name] == "text" else _unit(name) for name in few}
    if not features:
        raise UserError("FILE must have a column that describes what was measured", "only the target is left")
    entities = texts[chosen["entity"] or [*features]].drop_duplicates().shape[0]
    splits = ["random", *(["unseen_entity"] if entities >= _UNSEEN_ENTITIES else [])]
    options: dict[str, Any] = {"csv": csv, "target": {chosen["target"]: _unit(chosen["target"])}}
    options |= {key: chosen[key] for key in ("entity", "task", "date") if chosen[key]}
    options |= {"lower_is_better": _is_named(chosen["target"], _TIMES), "features": {"machine": features}}
    conf: dict[str, Any] = {"name": dataset, "_target_": BUILD, "title": dataset.replace("_", " ").capitalize()}
    conf |= {"sources": {"required": [dataset]}, "features": []}
    conf |= {"splits": [*splits, *(["forward_last"] if chosen["date"] else [])], "options": options}
    values = [f"{column_name(name)}={printable(texts[name].dropna().iloc[0])}" for name in features]
    return conf, " ".join(f"--set {shlex.quote(value)}" for value in values)


@contextmanager
def _of_own_file() -> Iterator[None]:
    """Give errors of a file the remedy of somebody who has it."""
    try:
        yield
    except UserError as error:
        raise UserError(error.requirement, error.fact, "correct the file") from None


def _kind(cells: pd.Series) -> str:
    """Return what the known cells of a column are: dates, positive or other numbers, or texts; "" without any."""
    numbers = pd.to_numeric(cells, errors="coerce")
    kinds = {
        "date": cells.str.fullmatch(DAY),
        "positive": numbers > 0,
        "number": numbers.notna(),
        "text": cells.notna(),
    }
    return next((kind for kind, is_one in kinds.items() if is_one.mean() > _TYPED_SHARE), "")


def _is_named(heading: str, words: str) -> bool:
    """Return whether one of some words, joined by |, is among those of a heading."""
    return re.search(rf"(?:^|_)(?:{words})s?(?:_|$)", column_name(heading)) is not None


def _unit(heading: str) -> str:
    """Return the unit in brackets at the end of a heading, such as `Clock (GHz)`; "" without one."""
    match = _UNIT.search(heading)
    return match[1].strip() if match else ""


def _require_new(name: str, names: list[str]) -> None:
    if not _NAME.fullmatch(name):
        raise UserError("NAME must be lower case with underscores", f"it is {name!r}", "such as mean_score")
    if name in names:
        raise UserError("NAME must be new", f"there is {name!r} already", "choose another name")


def _fill(kind: str, **values: str) -> dict[str, str]:
    """Return the texts of a kind by path; `$name` and the like are replaced."""
    texts = read_yaml(Path(__file__).with_name("new_files.yaml"))[kind]
    fill = {each: Template(each).safe_substitute(values) for pair in texts.items() for each in pair}
    return {fill[path]: fill[text] for path, text in texts.items()}


def _write(files: Mapping[str, str], folder: Path) -> list[Path]:
    """Write texts by path, none of which may exist, and return their paths."""
    texts = {folder / path: text for path, text in files.items()}
    if present := [path for path in texts if path.exists()]:
        raise UserError("new files must not overwrite others", f"{present[0]} is there", "choose another name")
    for path, text in texts.items():
        write_text(path, text)
    return [*texts]


def _report(written: Sequence[object], *commands: str) -> str:
    return "\n".join(["wrote", *(f"  {path}" for path in written), "next", *(f"  {command}" for command in commands)])

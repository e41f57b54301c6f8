"""Files of a new predictor, dataset or domain, from the texts in new_files.yaml."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

import pandas as pd

from perfcast.config.conf_files import known, read_yaml
from perfcast.data.csv_dataset import BUILD, CATEGORY, DAY, check_options, column_name
from perfcast.data.strict_csv import read_header, read_rows
from perfcast.utils.errors import UserError, unknown_name
from perfcast.utils.io import write_text
from perfcast.utils.safe_yaml import yaml_text

_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_TARGETS = r"score|result|target|throughput|ops|time|runtime|latency|seconds|duration"
_TIMES = r"time|runtime|latency|seconds|duration"
_TASKS = r"task|suite|test|benchmark|workload|operator|kernel"
_ENTITIES = r"machine|system|model|processor|cpu|gpu|device|server|host|name|entity"
_UNIT = re.compile(r"[(\[]([^)\]]+)[)\]]\s*$|[ _](mhz|ghz|kib|mib|gib|kb|mb|gb|tb|ms|us|s|w)$", re.IGNORECASE)
_UNITS = {each.lower(): each for each in ("MHz", "GHz", "KiB", "MiB", "GiB", "KB", "MB", "GB", "TB", "W", "MT/s")}
_TYPED_SHARE = 0.9
"""Share of the cells of a column of numbers or dates that are some: the rows of the others are rejected."""
_DISTINCT_SHARE = 0.5
"""A text with more distinct values, as a share of the rows, describes nothing that rows share."""
_UNSEEN_ENTITIES = 10
"""Entities that splits by entity need."""


def write_predictor(name: str, project: Path) -> str:
    """Write a predictor, its conf, an experiment with it and its text; return what was written and what to run."""
    _require_name(name)
    _require_new(name, known(project / "conf", "predictor"))
    if not (project / "src" / "perfcast" / "predictors").is_dir():
        raise UserError("--project must be a clone of perfcast", f"{project} has no src/perfcast/predictors")
    class_name = "".join(word.capitalize() for word in name.split("_"))
    values = {"name": name, "words": name.replace("_", " ").capitalize(), "class_name": class_name}
    texts = project / "docs" / "_site" / "predictors.yaml"
    before = texts.read_text(encoding="utf-8") if texts.is_file() else ""
    written = _write("predictor", project, values)
    if before:
        (entry,) = _fill("predictor_text", values).values()
        heading = "" if "\nOther predictors:\n" in before else "\nOther predictors:\n"
        write_text(texts, before + heading + entry)
        written.append(str(texts))
    tests = f"python -m pytest tests/contract/test_predictors.py -k {name}"
    return _report(written, tests, f"make experiment NAME={name}")


def write_domain(name: str, out: Path) -> str:
    """Write a distribution with a domain; return what was written and what to run."""
    _require_name(name)
    if find_spec(name) is not None:
        raise UserError("NAME must be that of a new package", f"{name} can be imported already", "choose another name")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError("the folder of a new domain must be new", f"{out} is there", "name another with --out")
    words = name.replace("_", " ")
    (runs,) = _fill("domain_data", {}).values()
    values = {"name": name, "words": words, "title": words.capitalize()}
    values |= {"sha256": hashlib.sha256(runs.encode()).hexdigest(), "bytes": str(len(runs.encode()))}
    written = [*_write("domain", out, values), *_write("domain_data", out, {"name": name})]
    run = f'snakemake --configfile "$(perfcast config --path experiment/{name})"'
    ask = f"perfcast predict --dataset {name}_runs --results results/{name} --size 4"
    return _report(written, f"python -m pip install {out}", run, ask)


def write_dataset(file: Path, given: Mapping[str, str], project: Path) -> str:
    """Write the conf of a CSV file and copy the file to data/embedded; return what was written and what to run.

    Args: `given` names the columns of `target`, `entity`, `task` and `date`; the others are chosen.
    """
    name = column_name(file.name.partition(".")[0])
    _require_name(name)
    _require_new(name, known(project / "conf", "dataset"))
    _require_new(name, known(project / "conf", "source"))
    if not (project / "conf" / "dataset").is_dir():
        raise UserError("--project must have conf/dataset", f"{project} has none", "run from the project's folder")
    suffix = ".csv.gz" if file.name.endswith(".gz") else ".csv"
    conf, example = describe_csv(name, file, f"{name}{suffix}", given)
    check_options(name, conf["options"])
    copied = project / "data" / "embedded" / f"{name}{suffix}"
    if copied.exists() and not copied.samefile(file):
        raise UserError("the copy of the file must be new", f"{copied} is there", "rename your file")
    copied.parent.mkdir(parents=True, exist_ok=True)
    if not copied.exists():
        shutil.copyfile(file, copied)
    path = project / "conf" / "dataset" / f"{name}.yaml"
    (head,) = _fill("dataset", {}).values()
    write_text(path, head + yaml_text(conf))
    lists = " ".join(f'"{key}=[{names}]"' for key, names in (("datasets", name), ("sources", name)))
    run = f'snakemake --config {lists} "splits=[{",".join(conf["splits"])}]" results=results/{name}'
    return _report(
        [str(copied), str(path)], run, f"perfcast predict --dataset {name} --results results/{name} {example}"
    )


def describe_csv(dataset: str, file: Path, csv: str, given: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """Return the conf of a CSV file, chosen by its header and values, and flags that describe one machine of it.

    Raises: UserError when the file has no positive numbers, or a given column is not in it.
    """
    if not file.is_file():
        raise UserError("FILE must be a CSV file with a header", f"{file} is no file")
    header = read_header(file)
    for key, heading in given.items():
        if heading and heading not in header:
            raise unknown_name(f"--{key}", heading, header)
    texts = read_rows(dataset, file, header).frame[header].apply(lambda cells: cells.str.strip()).replace("", None)
    values = {name: pd.to_numeric(texts[name], errors="coerce") for name in header}
    filled = [name for name in header if texts[name].notna().any()]
    dates = [name for name in filled if texts[name].dropna().str.fullmatch(DAY).mean() > _TYPED_SHARE]
    known = [name for name in filled if name not in dates]
    numbers = [name for name in known if values[name][texts[name].notna()].notna().mean() > _TYPED_SHARE]
    words = [name for name in known if name not in numbers]
    positive = [name for name in numbers if (values[name].dropna() > 0).mean() > _TYPED_SHARE]
    chosen = dict(given)
    chosen["target"] = given["target"] or _pick(positive, _TARGETS) or next(iter(positive[::-1]), "")
    if not chosen["target"]:
        raise UserError("FILE must have a column of positive numbers", f"{file} has none", "name it with --target")
    free = [name for name in header if name not in chosen.values()]
    chosen["date"] = chosen["date"] or next((name for name in dates if name in free), "")
    chosen["task"] = chosen["task"] or _pick([name for name in words if name in free], _TASKS)
    free = [name for name in words if name not in chosen.values()]
    chosen["entity"] = (
        chosen["entity"] or _pick(free, _ENTITIES) or max(free, key=lambda n: texts[n].nunique(), default="")
    )
    few = [name for name in words if texts[name].nunique() <= _DISTINCT_SHARE * len(texts)]
    features = {name: _unit(name) if name in numbers else CATEGORY for name in header if name in (*numbers, *few)}
    features = {name: unit for name, unit in features.items() if name not in chosen.values()}
    if not features:
        raise UserError("FILE must have a column that describes what was measured", "only the target is left")
    entities = texts[chosen["entity"] or [*features]].drop_duplicates().shape[0]
    splits = ["random", *(["unseen_entity"] if entities >= _UNSEEN_ENTITIES else [])]
    options: dict[str, Any] = {"csv": csv, "target": {chosen["target"]: _unit(chosen["target"])}}
    options |= {key: chosen[key] for key in ("entity", "task", "date") if chosen[key]}
    options |= {"lower_is_better": bool(_pick([chosen["target"]], _TIMES)), "features": {"machine": features}}
    conf: dict[str, Any] = {"name": dataset, "_target_": BUILD, "title": dataset.replace("_", " ").capitalize()}
    conf |= {"sources": {"required": [dataset]}, "features": []}
    conf |= {"splits": [*splits, *(["forward_last"] if chosen["date"] else [])], "options": options}
    shown = {column_name(name): texts[name].dropna().iloc[0] for name in features}
    return conf, " ".join(f"--set '{name}={value}'" for name, value in shown.items())


def _pick(names: list[str], pattern: str) -> str:
    """Return the first column that is named so: one word of its name is, or "" where none is."""
    return next((name for name in names if re.search(rf"(?:^|_)(?:{pattern})s?(?:_|$)", column_name(name))), "")


def _unit(heading: str) -> str:
    """Return the unit at the end of a heading, such as `Clock (GHz)` or `memory_gib`; "" without one."""
    match = _UNIT.search(heading)
    unit = (match[1] or match[2]).strip() if match else ""
    return _UNITS.get(unit.lower(), unit)


def _require_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise UserError("NAME must be lower case with underscores", f"it is {name!r}", "such as mean_score")


def _require_new(name: str, names: list[str]) -> None:
    if name in names:
        raise UserError("NAME must be new", f"conf/ has {name!r} already", "choose another name")


def _fill(kind: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of a kind by path; `$name` and the like are replaced."""
    texts = read_yaml(Path(__file__).with_name("new_files.yaml"))[kind]
    fill = {text: Template(text).safe_substitute(values) for pair in texts.items() for text in pair}
    return {fill[path]: fill[text] for path, text in texts.items()}


def _write(kind: str, folder: Path, values: Mapping[str, str]) -> list[str]:
    """Write the files of a kind, none of which may exist, and return their paths."""
    texts = {folder / path: text for path, text in _fill(kind, values).items()}
    if present := [path for path in texts if path.exists()]:
        raise UserError("new files must not overwrite others", f"{present[0]} is there", "choose another name")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    return [str(path) for path in texts]


def _report(written: list[str], *commands: str) -> str:
    return "\n".join(["wrote", *(f"  {path}" for path in written), "next", *(f"  {command}" for command in commands)])

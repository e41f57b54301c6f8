"""Miniature project on generated inputs: the whole pipeline, small enough for a test."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfcast import plugins
from perfcast.config.conf_files import conf_files, own_csv, read_yaml
from perfcast.utils.errors import UserError
from perfcast.utils.io import sha256, write_text
from perfcast.utils.nested import merged
from perfcast.utils.safe_yaml import yaml_text

# What makes a training take a second: only parameters that a predictor's conf has are touched.
_SMALL = {"epochs": 2, "n_estimators": 10}


def make_project(project: Path, out: Path, *, rows: int, seed: int) -> None:
    """Write a runnable copy of a project with generated sources and their checksums.

    Args:
        project: Folder of the project to copy.
        out: Folder of the miniature project.
        rows: Approximate rows of each source.
        seed: Seed of the generators.

    Raises:
        UserError: `project` is no clone of the repository, or `out` exists and is not empty.
    """
    if absent := [name for name in ("params.yaml", "Snakefile", "conf", "workflow") if not (project / name).exists()]:
        remedy = "work in the clone, or name it with --project"
        raise UserError("--project must be a clone of perfcast", f"{project} has no {absent[0]}", remedy)
    if out.exists() and any(out.iterdir()):
        raise UserError("the folder of a miniature project must be new", f"{out} is not empty", "choose another folder")
    out.mkdir(parents=True, exist_ok=True)
    shutil.copytree(project / "conf", out / "conf")
    shutil.copytree(project / "workflow", out / "workflow")
    shutil.copy(project / "Snakefile", out / "Snakefile")
    (out / "profiles").symlink_to("workflow/profiles")
    params = read_yaml(project / "params.yaml")
    for source in params["sources"]:
        if csv := own_csv(project / "conf", source):
            copied = out / "data" / "embedded" / csv
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(project / "data" / "embedded" / csv, copied)
        else:
            _generate_source(out, source, rows, seed)
    for name, path in conf_files(out / "conf", "predictor").items():
        conf = read_yaml(path)
        quick = conf.get("quick", {})
        conf["quick"] = merged(quick, _small_values(merged(conf.get("params", {}), quick)))
        write_text(out / "conf" / "predictor" / f"{name}.yaml", yaml_text(conf))
    params |= {"mirrors": ["mirror"], "network": False, "resamples": 50}
    write_text(out / "params.yaml", yaml_text(params))


def _small_values(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that make a training take a second, those of nested predictors too."""
    nested = {name: _small_values(value) for name, value in arguments.items() if isinstance(value, Mapping)}
    return {**{name: _SMALL[name] for name in _SMALL if name in arguments}, **{k: v for k, v in nested.items() if v}}


def _generate_source(out: Path, source: str, rows: int, seed: int) -> None:
    """Write the generated files of a source to the mirror, or to data/embedded, and their checksums to conf/."""
    conf: dict[str, Any] = read_yaml(conf_files(out / "conf", "source")[source])
    if conf.get("embedded"):
        plugins.load("testing", source).write(out / "data" / "embedded", rows=rows, seed=seed)
        return
    plugins.load("testing", source).write(out / "mirror" / source, rows=rows, seed=seed)
    for file in conf["files"]:
        file["mirror"] = f"{source}/{file['name']}"  # generators write flat names, without the folders of a mirror
        generated = out / "mirror" / file["mirror"]
        if generated.is_file():
            file["sha256"] = sha256(generated)
            file["bytes"] = generated.stat().st_size
            file.pop("max_bytes", None)
    write_text(out / "conf" / "source" / f"{source}.yaml", yaml_text(conf))

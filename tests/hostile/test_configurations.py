"""Mistakes in params.yaml and conf/: every reader and `snakemake -n` refuse each in one line before planning."""

from __future__ import annotations

import shutil

import pytest
import yaml
from hostile_input import REPOSITORY, refused
from small_project import EXPERIMENT, run_snakemake, small_project
from small_project import change as change_params

from perfcast.config.conf_files import conf_files

SOURCE, DATASET = "conf/source/perfcastdb.yaml", "conf/dataset/host_gemm.yaml"
RIDGE, TRAINER, TRACKING = "conf/predictor/ridge.yaml", "conf/trainer/default.yaml", "conf/tracking/default.yaml"
LEAKAGE, ABLATIONS = "conf/leakage/default.yaml", "conf/experiment/ablation.yaml"
FOREST, TUNED = "conf/predictor/random_forest.yaml", "conf/tuned/host_gemm/ridge.yaml"
USED = {
    "predictor": ["nearest", "ridge", "random_forest", "hybrid_ensemble"],
    "dataset": ["host_gemm", "perfcastdb"],
    "source": ["host_gemm", "perfcastdb"],
    "experiment": ["ablation", "full"],
}
"""What stays of conf/: every check reads all of it."""


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Parameters and conf of the project."""
    folder = tmp_path_factory.mktemp("plain") / "project"
    shutil.copytree(REPOSITORY / "conf", folder / "conf")
    shutil.copy(REPOSITORY / "params.yaml", folder)
    for group, names in USED.items():
        shutil.rmtree(folder / "conf" / group)
        (folder / "conf" / group).mkdir()
        for name in names:
            shutil.copy(conf_files(REPOSITORY / "conf", group)[name], folder / "conf" / group)
    shutil.rmtree(folder / "conf" / "tuned")
    change_params(folder, **{**EXPERIMENT, "sources": USED["source"], "predictors": USED["predictor"][:3]})
    return folder


def rewrite(name, edit):
    """Return what changes the bytes of a file."""

    def craft(project):
        (project / name).write_bytes(edit((project / name).read_bytes()))

    return craft


def change(name, edit):
    """Return what changes the values of a file in place."""

    def encode(text):
        content = yaml.safe_load(text)
        edit(content)
        return yaml.safe_dump(content, sort_keys=False).encode()

    return rewrite(name, encode)


def put(name, *keys, value):
    def edit(content):
        for key in keys[:-1]:
            content = content.setdefault(key, {}) if isinstance(content, dict) else content[key]
        content[keys[-1]] = value

    return change(name, edit)


def append(name, text):
    def craft(project):
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((path.read_text() if path.exists() else "") + text)

    return craft


def params(**values):
    return change("params.yaml", lambda content: content.update(values))


def first_file(**values):
    return change(SOURCE, lambda content: content["files"][0].update(values))


TUNED_TEXT = "entries:\n- splits: [random]\n  command: search\n  folds: [{alpha_of: 1.0}]\n"
TEXTS = {
    "of nothing": lambda text: b"",
    "with a list": lambda text: b"[1, 2]",
    "of UTF-16": lambda text: text.decode().encode("utf-16"),
    "with a command": lambda text: text + b"x: !!python/object/apply:os.system ['true']\n",
    "of 2 MB": lambda text: text + b"# " + b"x" * 2_000_000,
}
MISTAKES = {
    **{
        f"{name} with a list": (rewrite(name, lambda text: b"[1]"), "mapping")
        for name in (DATASET, TRAINER, TRACKING, RIDGE, SOURCE)
    },
    f"{DATASET} of nothing": (rewrite(DATASET, lambda text: b""), "conf/dataset"),
    f"{TRAINER} of no YAML": (rewrite(TRAINER, lambda text: b"a: ["), "YAML"),
    f"{TRACKING} of no text": (rewrite(TRACKING, lambda text: b"\x00"), ""),
    "outlier of a dataset below nothing": (put(DATASET, "label_outlier", value=-1.0), "label_outlier"),
    "claim of no metric": (
        put(DATASET, "published", value=[{"what": "x", "split": "random", "citation": "x"}]),
        "there is none",
    ),
    "class elsewhere": (put(RIDGE, "_target_", value="os.system"), "'os.system'"),
    "unknown key of a predictor": (put(RIDGE, "paramz", value={}), "did you mean 'params'"),
    "absolute source file": (first_file(name="/etc/x"), "plain relative path"),
    "source without files": (put(SOURCE, "files", value=[]), "files"),
    "unknown key of the tracking": (put(TRACKING, "enable", value=True), "enable"),
    "shuffles of the leakage checks past all": (put(LEAKAGE, "shuffles", value=10**6), "shuffles"),
    "unknown parameter": (put(RIDGE, "params", "color", value=1), "'color'"),
    "unknown parameter in tuned values": (append(TUNED, TUNED_TEXT), "conf/tuned/host_gemm/ridge.yaml"),
    "unknown parameter of an ablation": (
        change(ABLATIONS, lambda content: next(iter(content["ablations"].values())).update(params={"x": 1})),
        "ablations.",
    ),
    "unknown feature group": (put(DATASET, "features", value=["gemms"]), "did you mean 'gemm'"),
    "unknown split of a dataset": (put(DATASET, "splits", value=["random", "randm"]), "'randm'"),
    "described split that it has not": (put(DATASET, "described", value=["forward_2023"]), "described"),
    "unknown table of the evaluation": (put(DATASET, "tables", value={"errors": {}}), "tables of conf/dataset"),
    "another name than that of the file": (put(DATASET, "name", value="../gemm"), "name in conf/dataset"),
    "mirror path elsewhere": (first_file(mirror="../x.csv"), "plain relative path"),
    "checksum of a source too short": (first_file(sha256="0"), "hexadecimal"),
    "doubled key of params.yaml": (append("params.yaml", "level: 0.5\n"), "a name is repeated"),
    "unknown device key": (put(TRAINER, "gpus", value=1), "'gpus'"),
    "unknown control of the leakage checks": (put(LEAKAGE, "control", value="ridgee"), "'ridgee'"),
    "seed too large": (params(seeds=[2**40]), "seeds"),
    "predictor twice": (params(predictors=["ridge", "ridge"]), "listed twice"),
    "unknown predictor": (params(predictors=["ridgee"]), "did you mean 'ridge'"),
    "dataset without its source": (params(sources=["perfcastdb"]), "host_gemm"),
    "unknown plot": (params(plots=["pie"]), "headline"),
    "level in percent": (params(level=90), "level"),
    "unknown key of params.yaml": (params(splitz=["random"]), "did you mean 'splits'"),
    "key that params.yaml lacks": (change("params.yaml", lambda content: content.pop("seeds")), "seeds"),
    **{f"params.yaml {name}": (rewrite("params.yaml", edit), "") for name, edit in TEXTS.items()},
    "conf that is a folder": (lambda project: (project / "conf/predictor/x.yaml").mkdir(), "x.yaml"),
}


READERS = {
    "params.yaml": ["sources"],
    SOURCE: ["pipeline", "ingest", "perfcastdb", "--out", "out", "--offline"],
    TRACKING: ["pipeline", "record"],
}
"""A further reader of a file."""


@pytest.mark.parametrize("name", MISTAKES)
def test_every_reader_refuses_every_mistake_in_one_line(plain, tmp_path, capsys, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    project = tmp_path / "project"
    shutil.copytree(plain, project)
    craft, words = MISTAKES[name]
    craft(project)
    refused(["config", "--project", project], capsys, words)
    for file, command in READERS.items():
        if (project / file).read_bytes() != (plain / file).read_bytes():
            refused([*command, "--project", project], capsys, out=tmp_path / "out")


@pytest.fixture(scope="module")
def runnable(tmp_path_factory):
    project = small_project(tmp_path_factory.mktemp("runnable") / "project")
    shutil.copy(conf_files(REPOSITORY / "conf", "source")["host_gemm"], project / "conf" / "source")
    return project


ON_THE_WAY = ["unknown predictor", "unknown parameter", "mirror path elsewhere", "doubled key of params.yaml"]
RESULTS = {"none": "results=", "the project": "results=.", "conf": "results=conf/x"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ON_THE_WAY, *RESULTS])
def test_snakemake_refuses_mistakes_in_one_line(runnable, tmp_path, name):
    project = tmp_path / "project"
    shutil.copytree(runnable, project, symlinks=True)
    if name in RESULTS:
        words, arguments = "results must be a folder of its own", ["--config", RESULTS[name]]
    else:
        craft, words = MISTAKES[name]
        arguments = []
        if "perfcastdb" in words or "mirror" in name:
            craft, words = put("conf/source/host_gemm.yaml", "files", value=[{"name": "../x"}]), "plain relative path"
        craft(project)
    code, output = run_snakemake(project, "--dry-run", *arguments)
    lines = [line for line in output.splitlines() if line.startswith("perfcast:")]
    assert (code, len(lines)) == (2, 1), output
    assert words in lines[0]
    assert "Traceback" not in output


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["doubled key", "another file"])
def test_snakemake_refuses_a_doubled_key_of_a_further_configfile(runnable, tmp_path, kind):
    further = tmp_path / "further.yaml"
    further.write_text("level: 0.8\nlevel: 0.5\n" if kind == "doubled key" else "levle: 0.8\n")
    code, output = run_snakemake(runnable, "--dry-run", "--configfile", str(further))
    assert code == 2
    assert "Traceback" not in output
    assert ("a name is repeated" if kind == "doubled key" else "did you mean 'level'") in output

"""Invalid flags of every command, params.yaml and files of conf/, in one table per kind."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from champion_project import project
from hostile_input import REPOSITORY, call, refused

from perfcast.config.conf_files import conf_files

COMMANDS = {
    "no command": [],
    "no such command": "predictions",
    "an option of no command": "sources --nope",
    "ingest: no source": "pipeline ingest --out x",
    "ingest: a path": "pipeline ingest ../../etc/passwd --out out/x",
    "ingest: a control character": ["pipeline", "ingest", "\x1b[31mred", "--out", "out/x"],
    "standardize: no raw folder": "pipeline standardize host_gemm --raw none --table x --rejected x --quality x",
    "split: no such": "pipeline split at_random --table none.parquet --out out/x",
    "split: a seed below nothing": "pipeline split random --table x --out x --seed -1",
    "split: a seed past all": "pipeline split random --table x --out x --seed 99999999999999999999",
    "split: a seed of another script": "pipeline split random --table x --out x --seed ²",
    "split: a table that is none": "pipeline split random --table README.md --out out/x",
    "split: a folder for a table": "pipeline split random --table src --out out/x",
    "features: a table that is none": "pipeline features host_gemm --table README.md --out out/x",
    "features: no such dataset": "pipeline features host_gem --table README.md --out out/x",
    "in-domain: folds that are none": (
        "pipeline in-domain host_gemm random --table README.md --folds README.md --out out/x"
    ),
    "in-domain: backtests": "pipeline in-domain host_gemm random --table x --folds x --out x --backtest-windows 1e9",
    "train: no such predictor": "pipeline train host_gemm random ridgee --table x --folds x --out out/x",
    "train: an override": "pipeline train host_gemm random ridge --table x --folds x --out out/x --override a=[",
    "train: a table that is none": "pipeline train host_gemm random ridge --table x --folds x --out out/x",
    "train: a preset": "pipeline train host_gemm random ridge --table x --folds x --out out/x --preset slow",
    "train: a seed": "pipeline train host_gemm random ridge --table x --folds x --out out/x --seeds one",
    "tune: no trials": "tune host_gemm random ridge --table x --folds x --out out/x --trials 0",
    "tune: no folds": "tune host_gemm random ridge --table x --folds none --out out/x",
    "evaluate: no runs": "pipeline evaluate host_gemm --table x --runs none --splits a --predictors b --out out/x",
    "evaluate: a level": (
        "pipeline evaluate host_gemm --table x --runs x --splits a --predictors b --out x --level nan"
    ),
    "evaluate: resamples": (
        "pipeline evaluate host_gemm --table x --runs x --splits a --predictors b --out x --resamples 0"
    ),
    "champion: no runs": (
        "pipeline champion host_gemm --runs none --table x --standard x --raw x --splits random --predictors "
        "ridge --out out/x"
    ),
    "leakage: no table": (
        "pipeline leakage host_gemm --table none --standard none --folds x --runs x --splits random "
        "--predictors ridge --out out/x"
    ),
    "plots: no evaluation": "pipeline plots host_gemm --evaluation none --out out/x",
    "plots: no such": "pipeline plots host_gemm --evaluation none --plots nope --out out/x",
    "metrics: no evaluation": "pipeline metrics none --out out/x",
    "available: nothing ingested": "pipeline available host_gemm --raw none --out out/x",
    "report: an experiment that is none": "pipeline report --out out/x --experiment {",
    "report: an experiment of a list": "pipeline report --out out/x --experiment [1]",
    "report: an experiment nested without end": ["pipeline", "report", "--out", "out/x", "--experiment", "[" * 9999],
    "report: no results": "pipeline report --results none --out out/x",
    "compare: no such sides": "compare none nothing",
    "compare: an empty folder": "compare src src",
    "compare: an option as a revision": "compare src --output=/tmp/x",
    "summary: no results": "summary --results none",
    "times: no number": "pipeline times --since yesterday",
    "times: no results": "pipeline times --results none",
    "fake: no rows": "pipeline fake out --rows 0",
    "fake: rows past all": "pipeline fake out --rows 1000000000000",
    "fake: a folder in use": "pipeline fake src",
    "fake: a file": "pipeline fake README.md",
    "measure: nothing": "measure",
    "measure: no such": "measure gpu",
    "measure: no configurations": "measure gemm --configurations 0",
    "measure: configurations past all": "measure gemm --configurations 99999999999",
    "measure: a budget without end": "measure gemm --budget-minutes inf",
    "measure: a budget that is none": "measure gemm --budget-minutes nan",
    "measure: threads": "measure gemm --threads 100000",
    "measure: kernels": "measure suite --kernels triadd",
    "measure: a budget of the suite": "measure suite --budget-minutes nan",
    "doctor: no project": "doctor --project none",
    "config: a name": "config predictor=../../params",
    "config: a syntax": "config a=b=[{",
    "config: an interpolation": "config seeds=${oc.env:HOME}${nope:1}",
    "ui: a port": "ui --port 70000",
    "ui: no project": "ui --project none",
    "sources: no project": "sources --project none",
}
"""Typed words; the folder is the repository, and out/ must stay empty."""


@pytest.mark.reliability("commands, flags and environments that are wrong")
@pytest.mark.parametrize("name", COMMANDS)
def test_invalid_command_gets_one_line(tmp_path, capsys, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    for entry in ("conf", "params.yaml", "src", "README.md"):
        (tmp_path / entry).symlink_to(REPOSITORY / entry)
    message = refused(split_words(COMMANDS[name]), capsys, out=tmp_path / "out")
    command, colon, _ = name.partition(":")
    assert not colon or message.startswith((f"perfcast {command}", f"perfcast pipeline {command}")), message


def split_words(command):
    return command.split() if isinstance(command, str) else command


PREDICTION_COMMANDS = {
    "a level": "predict --processor x --level nan",
    "a level past one": "predict --processor x --level 1.5",
    "a month": "predict --processor x --when 2026-13",
    "a month of year 0": "predict --processor x --when 0000-01",
    "neighbors": "predict --processor x --nearest -1",
    "neighbors past all": "predict --processor x --nearest 999999999",
    "no machine": "predict",
    "a setting": "predict --set tdp",
    "a setting twice": "predict --set tdp=1 --set tdp=2",
    "a setting of no name": "predict --set =1",
    "a processor of noise": "predict --processor ()()()",
    "a processor of 100 kB": ["predict", "--processor", "x" * 100_000],
    "half a character": ["predict", "--processor", "\udcff"],
    "chips": ["predict", "--processor", "Xeon Gold 6148", "--chips", "1e309"],
    "memory": ["predict", "--processor", "Xeon Gold 6148", "--chips", "2", "--set", "memory.total=99999999999999 GB"],
    "two shapes": "predict --json --csv",
    "rank: no candidates": "rank none.csv",
    "rank: a goal": ["rank", "none.csv", "--target", "fprate >= lots"],
    "rank: a probability": "rank none.csv --sure 2",
    "rank: an ending": "rank none.csv --out x.xlsx",
    "what-if: nothing varied": "what-if",
    "what-if: a range without end": ["what-if", "--processor", "Xeon Gold 6148", "--vary", "chips=1..1e9:0.001"],
    "what-if: a step of nothing": ["what-if", "--processor", "Xeon Gold 6148", "--vary", "chips=1..4:0"],
    "what-if: a range of nothing": ["what-if", "--processor", "Xeon Gold 6148", "--vary", "chips=nan..nan"],
    "what-if: too many": [
        *["what-if", "--processor", "Xeon Gold 6148", "--vary", "chips=1..1000", "--vary", "cores=1..1000"]
    ],
    "compare: a number of 5000 digits": ["compare", "9" * 5000 + " x Xeon Gold 6148", "Xeon Gold 6148"],
    "compare: a name of 100 kB": ["compare", "x" * 100_000, "Xeon Gold 6148"],
    "similar: a count": ["similar", "--processor", "Xeon Gold 6148", "--count", "0"],
    "similar: a task": ["similar", "--processor", "Xeon Gold 6148", "--task", "fprat"],
    "serve: a port": "serve --port 70000",
    "serve: a host": ["serve", "--port", "0", "--host", "not a host"],
    "serve: a batch": "serve --port 0 --max-batch 0",
    "serve: a batch past all": "serve --port 0 --max-batch 100000000",
}


@pytest.mark.reliability("commands, flags and environments that are wrong")
@pytest.mark.parametrize("name", PREDICTION_COMMANDS)
def test_invalid_prediction_command_gets_one_line(capsys, name):
    refused([*split_words(PREDICTION_COMMANDS[name]), "--champion", project().folder], capsys)


def changed(**values):
    return lambda text: yaml.safe_dump({**yaml.safe_load(text), **values}).encode()


PARAMS = {
    "nothing": lambda text: b"",
    "a list": lambda text: b"[1, 2]",
    "no YAML": lambda text: b"a: [",
    "UTF-16": lambda text: text.decode().encode("utf-16"),
    "NUL bytes": lambda text: bytes(100),
    "a command": lambda text: text + b"x: !!python/object/apply:os.system ['true']\n",
    "a reference": lambda text: text + b"x: &a [1]\ny: *a\n",
    "a key twice": lambda text: text + b"strict: true\n",
    "a key too many": changed(speed=3),
    "2 MB": lambda text: text + b"# " + b"x" * 2_000_000,
    "nested without end": lambda text: b"[" * 5000,
    "an impossible date": lambda text: text + b"x: !!timestamp 2026-13-45\n",
    "a seed below nothing": changed(seeds=[-1]),
    "a seed of text": changed(seeds=["one"]),
    "a seed that is none": changed(seeds=[float("nan")]),
    "a level past one": changed(level=1.0),
    "a level that is none": changed(level=float("nan")),
    "resamples past all": changed(resamples=10**9),
    "backtests of nothing": changed(backtest_windows=0),
    "no dataset": changed(datasets=[]),
    "a dataset elsewhere": changed(datasets=["../../etc/passwd"]),
    "a predictor that is none": changed(predictors=["ridgee"]),
    "a predictor of a number": changed(predictors=[7]),
    "a mapping for a list": changed(predictors={"a": 1}),
    "a month that is none": changed(published_until="2024-13"),
    "yes for true": changed(strict="yes"),
    "a number past all": lambda text: text.replace(b"resamples: ", b"resamples: " + b"9" * 5000),
}


@pytest.mark.reliability("wrong configurations and parameters")
@pytest.mark.parametrize("name", PARAMS)
def test_invalid_params_yaml_gets_one_line(tmp_path, capsys, name):
    (tmp_path / "conf").symlink_to(REPOSITORY / "conf")
    text = (REPOSITORY / "params.yaml").read_bytes()
    (tmp_path / "params.yaml").write_bytes(PARAMS[name](text))
    for command in ("config", "sources"):
        refused([command, "--project", tmp_path], capsys)


def with_value(*keys, value):
    def change(text):
        content = yaml.safe_load(text)
        inside = content
        for key in keys[:-1]:
            inside = inside[key]
        inside[keys[-1]] = value
        return yaml.safe_dump(content).encode()

    return change


INGEST = ["pipeline", "ingest", "spec_power", "--out", "o/x", "--offline"]
CONF = {
    "dataset a list": ("dataset/host_gemm", lambda text: b"[1]", ["config"]),
    "dataset nothing": ("dataset/host_gemm", lambda text: b"", ["config"]),
    "dataset an outlier": ("dataset/host_gemm", with_value("label_outlier", value=-1.0), ["config"]),
    "dataset a feature": ("dataset/host_gemm", with_value("features", value="gemm"), ["config"]),
    "dataset no split": ("dataset/host_gemm", with_value("splits", value=[]), ["config"]),
    "dataset a claim of no metric": (
        *("dataset/host_gemm", with_value("published", value=[{"what": "x", "split": "random", "citation": "x"}])),
        ["config"],
    ),
    "source a climbing name": ("source/spec_power", with_value("files", 0, "name", value="../x"), INGEST),
    "source an absolute name": ("source/spec_power", with_value("files", 0, "name", value="/etc/x"), INGEST),
    "source the manifest's name": ("source/spec_power", with_value("files", 0, "name", value="manifest.json"), INGEST),
    "source a digest": ("source/spec_power", with_value("files", 0, "sha256", value="0" * 63), INGEST),
    "source a size below nothing": ("source/spec_power", with_value("files", 0, "bytes", value=-1), INGEST),
    "source a size of text": ("source/spec_power", with_value("files", 0, "bytes", value="many"), INGEST),
    "source a plain address": ("source/spec_power", with_value("files", 0, "url", value="http://example.org"), INGEST),
    "source a file's address": ("source/spec_power", with_value("files", 0, "url", value="file:///etc/x"), INGEST),
    "source an address of no port": (
        "source/spec_power",
        with_value("files", 0, "url", value="https://a:99999999/"),
        INGEST,
    ),
    "source no files": ("source/spec_power", with_value("files", value=[]), INGEST),
    "source a module": (
        "source/spec_power",
        with_value("module", value="os"),
        ["pipeline", "ingest", "spec_power", "--out", "o"],
    ),
    "predictor a class": ("predictor/ridge", with_value("_target_", value="os.system"), ["config"]),
    "predictor a space": ("predictor/ridge", with_value("space", value={"x": {"low": 2}}), ["config"]),
    "predictor a key": ("predictor/ridge", with_value("paramz", value={}), ["config"]),
    "predictor parameters of a list": ("predictor/ridge", with_value("params", value=[1]), ["config"]),
    "trainer a list": ("trainer/default", lambda text: b"[1]", ["config"]),
    "trainer no YAML": ("trainer/default", lambda text: b"a: [", ["config"]),
    "tracking a list": ("tracking/default", lambda text: b"[1]", ["ui"]),
    "tracking no YAML": ("tracking/default", lambda text: b"\x00", ["ui"]),
    "tracking a key": ("tracking/default", with_value("enable", value=True), ["ui"]),
    "leakage check a predictor": ("leakage/default", with_value("control", value="nope"), None),
    "leakage check shuffles": ("leakage/default", with_value("shuffles", value=10**6), None),
}


@pytest.mark.reliability("wrong configurations and parameters")
@pytest.mark.parametrize("name", CONF)
def test_invalid_conf_file_gets_one_line(tmp_path, capsys, monkeypatch, name):
    file, change, command = CONF[name]
    shutil.copytree(REPOSITORY / "conf", tmp_path / "conf")
    params = yaml.safe_load((REPOSITORY / "params.yaml").read_text())
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    path = tmp_path / "conf" / f"{file}.yaml"
    if not path.exists():  # of a domain
        shutil.copy(conf_files(REPOSITORY / "conf", path.parent.name)[path.stem], path)
    path.write_bytes(change(path.read_bytes()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.execv", None)
    if command is None:
        from perfcast.experiment.leakage_control import read_leakage_conf
        from perfcast.utils.errors import UserError

        with pytest.raises(UserError):
            read_leakage_conf(Path("conf"))
        return
    refused(command, capsys)


@pytest.mark.reliability("--out names a device, a pipe or a link")
def test_an_answer_does_not_replace_its_input_and_says_what_it_replaces(capsys, tmp_path):
    machines, out = tmp_path / "machines.csv", tmp_path / "answer.csv"
    machines.write_text("processor,chips\nXeon Gold 6148,2\n")
    before = machines.read_text()
    command = ["predict", machines, "--champion", project().folder, "--out"]
    refused([*command, machines], capsys, "--out must not be an input")
    assert machines.read_text() == before
    assert call([*command, out], capsys)[0] == 0
    status, output = call([*command, out], capsys)
    assert status == 0
    assert "existed and was replaced" in output
    status, output = call([*command, out, "--processor", "none"], capsys)
    assert (status, "replaced" in output) == (2, False)

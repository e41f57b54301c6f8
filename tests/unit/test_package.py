"""perfcast as a package: what a base installation can do, what an extra adds, and what the wheel holds."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from bridged_project import bridged_results
from champion_project import project
from packaging.requirements import Requirement

from perfcast.predictors.predictor import load_predictor
from perfcast.utils.errors import EXTRAS, UserError, explain_missing_module

ROOT = Path(__file__).parents[2]
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAMED = ["torch", "snakemake", "mlflow", "dvc", "pytorch_lightning", "fastapi", "hydra", "matplotlib"]
MODULES = {"scikit-learn": "sklearn", "hydra-core": "hydra", "xgboost-cpu": "xgboost", "psycopg2-binary": "psycopg2"}

BASE = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

champion, BLOCKED, commands = json.loads(sys.argv[1])
sys.meta_path.insert(0, Blocked())
import perfcast
from perfcast.cli.main import COMMANDS, main

def run(words):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as stopped:
            code = stopped.code
    return [code, out.getvalue(), err.getvalue()]

answer = perfcast.predict({"processor": "Xeon Gold 6148", "chips": 2}, champion)
results = {" ".join(words): run(words) for words in commands}
helped = {name: run([name.replace("_", "-"), "--help"])[0] for name in COMMANDS}
print(json.dumps({"estimates": len(answer.machines[0].estimates), "results": results, "helped": helped}))
"""

_SPEC = importlib.util.spec_from_file_location("release", ROOT / ".github" / "release.py")
release = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(release)

DESCRIBED = ["--processor", "Xeon Gold 6148", "--chips", "2"]


def call(command, folder, **environment):
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Return what the commands answer in a process without the packages of any extra."""
    folder = tmp_path_factory.mktemp("base")
    champion = ["--champion", str(project().folder)]
    (folder / "machines.csv").write_text("processor,chips\nXeon Gold 6148,2\nXeon Gold 6148,1\n")
    commands = [
        ["predict", *champion, *DESCRIBED],
        ["rank", "machines.csv", *champion, "--target", "CINT2017rate >= 100"],
        ["what-if", *champion, *DESCRIBED, "--vary", "memory=12 x 32 GB DDR4-2666|12 x 16 GB DDR4-2666"],
        ["similar", *champion, *DESCRIBED, "--count", "1"],
        ["serve", *champion, "--port", "0"],
        ["config"],
        ["measure", "gemm"],
    ]
    blocked = sorted({*NAMED, *EXTRAS})
    arguments = json.dumps([str(project().folder), blocked, commands])
    answer = json.loads(call([sys.executable, "-c", BASE, arguments], folder))
    return {**answer, "results": list(answer["results"].values())}


def test_a_base_installation_predicts_ranks_varies_and_compares(base):
    assert base["estimates"] == 4
    for (code, out, err), words in zip(
        base["results"], ["SPECrate2017_int_base", "rank", "memory", "distance"], strict=False
    ):
        assert code == 0, err
        assert words in out
    assert set(base["helped"].values()) == {0}
    assert {"predict", "serve", "doctor"} <= set(base["helped"])


def test_a_command_names_the_extra_that_it_needs(base):
    needed = {"serve": "serve", "config": "pipeline", "measure gemm": "train"}
    for (code, _, err), (command, extra) in zip(base["results"][4:], needed.items(), strict=True):
        assert code == 2
        assert re.fullmatch(
            rf"perfcast {command}: {command} needs the packages of an extra, but \w+ is not installed; "
            rf"pip install 'perfcast\[{extra}\]'\n",
            err,
        ), err
    assert explain_missing_module(ModuleNotFoundError("x", name="perfcast.nothing"), "serve") is None


def test_every_module_of_the_table_is_brought_by_its_extra():
    extras = METADATA["optional-dependencies"]
    for module, extra in EXTRAS.items():
        names = {Requirement(text).name for text in extras[extra]}
        assert module in {MODULES.get(name, name.replace("-", "_")) for name in names}, module
    assert set(METADATA["optional-dependencies"]) >= {"serve", "train", "pipeline", "docs", "dev", "all"}


def test_the_lock_has_digests_and_satisfies_every_range():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    entries = re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})+)$", lock, re.MULTILINE)
    pinned = {re.sub(r"[-_.]+", "-", name.lower()): version for name, version, _ in entries}
    assert len(pinned) == len(re.findall(r"^[^#\s].*==", lock, re.MULTILINE)) > 200
    extras = METADATA["optional-dependencies"]
    wanted = [
        *METADATA["dependencies"],
        *(text for name in ("serve", "train", "pipeline", "docs", "dev") for text in extras[name]),
    ]
    for requirement in map(Requirement, wanted):
        name = re.sub(r"[-_.]+", "-", requirement.name.lower())
        assert name == "perfcast" or requirement.specifier.contains(pinned[name]), requirement


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Return the wheel of a copy of the source with two champions, built without the network."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("src", "conf", "workflow"):
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "params.yaml", "Snakefile"):
        shutil.copy(ROOT / name, source)
    return release.build_wheel(source, bridged_results() / "champion", folder)


def test_the_wheel_has_every_file_that_a_command_reads(wheel):
    archive = zipfile.ZipFile(wheel)
    names = set(archive.namelist())
    tracked = {
        path.relative_to(ROOT / "src").as_posix()
        for package in ("perfcast", "snakemake_logger_plugin_perfcast")
        for path in (ROOT / "src" / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert tracked <= names
    conf = {path.relative_to(ROOT).as_posix() for path in (ROOT / "conf").rglob("*.yaml")}
    assert {f"perfcast/project/{name}" for name in (*conf, "params.yaml", "Snakefile")} <= names
    for name in ("perfcast/py.typed", "perfcast/__init__.pyi", "perfcast/serving/page/index.html"):
        assert name in names
    assert not [name for name in names if name.endswith(".pyc") or name.startswith(("tests", "results"))]
    metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
    for line in ("Requires-Python: <3.15,>=3.11", "License-Expression: Apache-2.0", "Provides-Extra: serve"):
        assert line in metadata, line
    assert re.search(r'^Requires-Dist: torch.*extra == "train"', metadata, re.MULTILINE)
    assert not re.search(r"^Requires-Dist: torch[^;]*$", metadata, re.MULTILINE)


def test_the_installed_wheel_predicts_outside_the_repository(wheel, tmp_path):
    folder = tmp_path / "installed"
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    call(
        [sys.executable, "-m", "pip", "--quiet", "install", "--no-deps", "--target", str(packages), str(wheel)],
        tmp_path,
    )
    # after the installed package, so that the environment's editable one is not found
    (packages / "environment.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    away = tmp_path / "away"
    away.mkdir()
    python = [str(folder / "bin" / "python")]
    clean = {"PYTHONPATH": "", "HOME": str(tmp_path)}
    where = call([*python, "-c", "import perfcast; print(perfcast.__file__)"], away, **clean)
    assert where.startswith(str(folder))
    champion = ["--champion", str(project().folder), *DESCRIBED]
    described = [*python, "-m", "perfcast", "predict", *DESCRIBED, "--csv"]
    mine, others = (call([*described, *further], away, **clean) for further in ([], ["--results", bridged_results()]))
    assert mine == others and "SPECspeed2026_int_base" in mine, "the champions of the package answer"
    assert "SPECspeed2017_int_base" in call([*python, "-m", "perfcast", "predict", *champion, "--csv"], away, **clean)
    assert "spec_cpu2017" in call([*python, "-m", "perfcast", "sources"], away, **clean)
    assert "valid: " in call([*python, "-m", "perfcast", "config"], away, **clean)
    call([*python, "-m", "perfcast", "pipeline", "fake", "demo", "--rows", "60"], away, **clean)
    assert (away / "demo" / "Snakefile").is_file()


def test_a_champion_whose_model_needs_an_extra_names_it(monkeypatch):
    def refuse(name):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr("perfcast.plugins.importlib.import_module", refuse)
    with pytest.raises(UserError, match=r"torch is not installed; pip install 'perfcast\[train\]'"):
        load_predictor(project().folder / "model")

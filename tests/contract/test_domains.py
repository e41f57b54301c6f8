"""Contract of every domain: what it names exists, its names are its own, and the project works without its folder."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from finished_project import NAME, STAGES
from small_project import REPOSITORY, call, change, rules_run

from perfcast import plugins, splits
from perfcast.config.conf_files import conf_files, read_yaml
from perfcast.config.dataset_conf import read_dataset
from perfcast.domain import Domain, conf_folders, domains
from perfcast.evaluation.evaluate_runs import TABLES

CONF = REPOSITORY / "conf"
DOMAINS = {domain.name: domain for domain in domains()[1:]}
REMOVABLE = sorted(DOMAINS.keys() - {"servers"})
CHECK = """
import os, sys
import hydra.compose, lightgbm, matplotlib.figure, mlflow, pyarrow.parquet, scipy.optimize, sklearn.ensemble, torch

for project in sys.argv[1:]:
    if os.fork() == 0:
        os.chdir(project)
        sys.path.insert(0, f"{project}/src")
        from perfcast.cli.main import main
        from perfcast.domain import domains
        print(project, *(domain.name for domain in domains()), "end", flush=True)
        assert main(["config"]) == 0
        main(["--help"])
        sys.exit(0)
    assert os.wait()[1] == 0, project
"""
"""Program that prints the domains and the help of projects, and checks the experiment between them."""


def confs(domain: str, group: str) -> list[Path]:
    return sorted((DOMAINS[domain].conf / group).glob("*.yaml"))


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
class TestDomain:
    def test_every_path_loads(self, domain: Domain) -> None:
        paths = [*domain.descriptions.values(), *domain.tables.values()]
        paths += [*domain.leakage_checks, *filter(None, [domain.shift])]
        assert all(domain.load(path) is not None for path in paths)
        assert not domain.tables.keys() & {*TABLES}

    def test_every_command_is_a_module(self, domain: Domain) -> None:
        for command in domain.commands:
            *family, name = command.replace("-", "_").split()
            module = plugins.load(".".join(["cli", *family]), name)
            assert module.__name__.startswith(domain.package)
            assert callable(module.add_arguments)
            assert callable(module.run)

    def test_datasets_are_of_the_domain_and_have_their_parts(self, domain: Domain) -> None:
        for path in confs(domain.name, "dataset"):
            conf = read_dataset(CONF, path.stem)
            assert conf.target.startswith(f"{domain.package}.")
            assert plugins.load_function(conf.target, path.stem)
            assert set(conf.splits) <= set(splits.names())
            assert set(conf.features) <= set(plugins.names("features"))
            assert conf.load_tables().keys() == conf.tables.keys()


@pytest.mark.parametrize("kind", ["cli", "features", "sources", "testing"])
def test_names_of_plug_ins_are_unique(kind: str) -> None:
    names = [path.rpartition(".")[2] for path in plugins.modules(kind)]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("group", ["source", "dataset", "predictor", "experiment"])
def test_names_of_conf_files_are_unique(group: str) -> None:
    names = [path.stem for folder in conf_folders(CONF) for path in (folder / group).glob("*.yaml")]
    assert sorted(names) == sorted(set(names))


def splits_of(datasets: set[str]) -> set[str]:
    return {split for name in datasets for split in read_dataset(CONF, name).splits}


def without(folder: Path, *names: str, parts: tuple[str, ...] = ("src", "conf")) -> Path:
    """Copy the project without the folders of domains and what the experiments of the core name of them."""
    for part in parts:
        shutil.copytree(REPOSITORY / part, folder / part, ignore=shutil.ignore_patterns("*.egg-info"))
    for part in ("Snakefile", "params.yaml", "pyproject.toml"):
        shutil.copy(REPOSITORY / part, folder)
    for name in names:
        for place in (folder / "src" / "perfcast", folder / "tests"):
            shutil.rmtree(place / "domains" / name, ignore_errors=True)
    lost = {
        f"{group}s": {path.stem for name in names for path in confs(name, group)} for group in ("source", "dataset")
    }
    lost["splits"] = splits_of(lost["datasets"]) - splits_of(conf_files(CONF, "dataset").keys() - lost["datasets"])
    for path in (folder / "params.yaml", *(folder / "conf" / "experiment").glob("*.yaml")):
        content = read_yaml(path)
        left = {key: [each for each in content[key] if each not in lost[key]] for key in lost if key in content}
        path.write_text(yaml.safe_dump({**content, **left}, sort_keys=False))
    return folder


@pytest.mark.slow
def test_the_project_works_without_any_domain(tmp_path: Path) -> None:
    projects = {name: without(tmp_path / name, name) for name in REMOVABLE}
    output = call(tmp_path, sys.executable, "-c", CHECK, *map(str, projects.values()))
    for name, project in projects.items():
        names, _, text = output.partition(f"{project} ")[2].partition("end")
        assert names.split() == ["core", *sorted(DOMAINS.keys() - {name})]
        assert "predict" in text.partition(f"{tmp_path}")[0]


STAGE_BY_STAGE = """
import json, sys
from perfcast.cli.main import main
for words in json.loads(sys.argv[1]):
    assert main(["pipeline", *words]) == 0, words
"""


@pytest.mark.slow
def test_every_stage_runs_without_all_domains_but_servers(tmp_path: Path) -> None:
    project = without(tmp_path / "project", *REMOVABLE, parts=("src", "conf", "workflow", "tests", "data/embedded"))
    call(project, "ruff", "check", "src", "tests/contract")
    call(project, "lint-imports", "--no-cache")
    # predictors of several domains are the core's, and only those domains have an experiment with them; the page of
    # the packed tables has those of all domains
    tests = ("tests/contract/test_sources.py", "tests/contract/test_domains.py", "tests/contract/test_experiments.py")
    call(project, sys.executable, "-m", "pytest", *tests, "-k", "not (every_predictor or page_of)", "-m", "not slow")
    call(project, sys.executable, "-m", "perfcast", "pipeline", "fake", "mini", "--rows", "300")
    mini = project / "mini"
    (mini / "src").symlink_to(project / "src")
    change(mini, datasets=["spec_cpu2017"], splits=["random"], predictors=["nearest", "ridge"], plots=["headline"])
    assert "report" in rules_run(call(mini, "snakemake", "--dry-run"))
    stages = [[word.replace(NAME, "spec_cpu2017") for word in words] for words in STAGES.values()]
    call(mini, sys.executable, "-c", STAGE_BY_STAGE, json.dumps(stages))
    assert (mini / "results" / "report.html").is_file()

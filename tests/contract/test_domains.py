"""Contract of every domain: what it names exists, its names are its own, and the project works without its folder."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest
from small_project import REPOSITORY, call, change

from perfcast import plugins, splits
from perfcast.config.conf_files import read_yaml
from perfcast.config.dataset_conf import read_dataset
from perfcast.domain import Domain, domains

DOMAINS = {domain.name: domain for domain in domains()[1:]}
REMOVABLE = sorted(DOMAINS.keys() - {"servers"})
CHECK = """
from pathlib import Path
from perfcast.domain import domains
from perfcast.config.conf_files import read_yaml
from perfcast.experiment.workflow_graph import Graph
print(*Graph.read(Path(), read_yaml(Path("params.yaml"))).datasets, *(domain.name for domain in domains()))
"""
"""Program that checks the experiment and prints the names of its datasets and of the domains."""


def confs(domain: Domain, group: str) -> list[Path]:
    return sorted((domain.conf / group).glob("*.yaml"))


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
class TestDomain:
    def test_every_path_loads(self, domain: Domain) -> None:
        paths = [*domain.descriptions.values(), *domain.tables.values(), *domain.leakage_checks]
        assert all(domain.load(path) is not None for path in [*paths, *filter(None, [domain.designs])])

    def test_every_command_is_a_module(self, domain: Domain) -> None:
        for command in domain.commands:
            *family, name = command.replace("-", "_").split()
            module = plugins.load(".".join(["cli", *family]), name)
            assert module.__name__.startswith(domain.package)
            assert callable(module.add_arguments)
            assert callable(module.run)

    def test_datasets_are_of_the_domain_and_have_their_parts(self, domain: Domain) -> None:
        for path in confs(domain, "dataset"):
            conf = read_dataset(REPOSITORY / "conf", path.stem)
            assert conf.target.startswith(f"{domain.package}.")
            assert plugins.load_function(conf.target, path.stem)
            assert set(conf.splits) <= set(splits.names())
            assert set(conf.features) <= set(plugins.names("features"))


@pytest.mark.parametrize("kind", ["cli", "features", "sources", "testing"])
def test_names_of_plug_ins_are_unique(kind: str) -> None:
    assert not [
        name for name, count in Counter(path.split(".")[-1] for path in plugins.modules(kind)).items() if count > 1
    ]


@pytest.mark.parametrize("group", ["source", "dataset", "predictor", "experiment"])
def test_names_of_conf_files_are_unique(group: str) -> None:
    files = [path.stem for domain in (*DOMAINS.values(),) for path in confs(domain, group)]
    files += [path.stem for path in (REPOSITORY / "conf" / group).glob("*.yaml")]
    assert len(files) == len(set(files))


def without(folder: Path, *names: str) -> Path:
    """Copy the project without the folders of domains and what the default experiment has of them."""
    lost = {
        group: {path.stem for name in names for path in confs(DOMAINS[name], group)} for group in ("source", "dataset")
    }
    for name in ("src", "conf", "workflow", "tests"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("Snakefile", "params.yaml", "pyproject.toml", "README.md"):
        shutil.copy(REPOSITORY / name, folder)
    for name in names:
        shutil.rmtree(folder / "src" / "perfcast" / "domains" / name)
        shutil.rmtree(folder / "tests" / "domains" / name)
    params = read_yaml(folder / "params.yaml")
    left = {group: [name for name in params[f"{group}s"] if name not in lost[group]] for group in lost}
    offered = {split for name in left["dataset"] for split in read_dataset(REPOSITORY / "conf", name).splits}
    splits_left = [name for name in params["splits"] if name in offered]
    change(folder, sources=left["source"], datasets=left["dataset"], splits=splits_left)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", REMOVABLE)
def test_the_project_works_without_the_folder_of_a_domain(tmp_path: Path, name: str) -> None:
    project = without(tmp_path, name)
    assert call(project, sys.executable, "-c", CHECK).split()[-len(DOMAINS) :] == [
        "core",
        *sorted(DOMAINS.keys() - {name}),
    ]
    assert "predict" in call(project, sys.executable, "-m", "perfcast", "--help")
    assert "train" in call(project, "snakemake", "-n", "--forceall")


@pytest.mark.slow
def test_the_graph_runs_without_all_domains_but_servers(tmp_path: Path) -> None:
    project = without(tmp_path / "project", *REMOVABLE)
    call(project, "ruff", "check", "src", "tests/contract")
    call(project, "lint-imports", "--no-cache")
    call(
        project, sys.executable, "-m", "pytest", "tests/contract/test_sources.py", "tests/contract/test_experiments.py"
    )
    call(project, sys.executable, "-m", "perfcast", "pipeline", "fake", "mini", "--rows", "300")
    change(project / "mini", datasets=["spec_cpu2017"], splits=["random"], predictors=["nearest", "ridge"], plots=[])
    (project / "mini" / "src").symlink_to(project / "src")
    call(project / "mini", "snakemake")
    assert (project / "mini" / "results" / "report" / "spec_cpu2017.html").is_file()

"""What the README tells people to type exists."""

import re
from pathlib import Path

import pytest

from perfcast.cli.main import COMMANDS, STAGES
from perfcast.config.conf_files import read_yaml

PROJECT = Path(__file__).parents[2]
README = (PROJECT / "README.md").read_text()
BLOCKS = "\n".join(re.findall(r"```(?:bash|sh)?\n(.*?)```", README, re.DOTALL))
INLINE = "\n".join(re.findall(r"`([^`\n]+)`", README))
TYPED = f"{BLOCKS}\n{INLINE}"


@pytest.mark.parametrize("command", sorted(set(re.findall(r"\bperfcast ((?:pipeline )?[a-z-]+)", TYPED))))
def test_perfcast_commands_exist(command):
    known = [*COMMANDS, *[f"pipeline {stage}" for stage in STAGES]]
    assert command.replace("-", "_") in known


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\bmake ([a-z]+)\b", TYPED))))
def test_make_targets_exist(target):
    assert re.search(rf"^{target}:", (PROJECT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:src|tests|conf|data|workflow)/[^`<*]+)`", README))))
def test_paths_exist(path):
    assert (PROJECT / path).exists()


def test_sources_and_splits_of_the_tables_are_those_of_the_experiment():
    params = read_yaml(PROJECT / "params.yaml")
    for name in (*params["sources"], "random", "unseen_cpu", "forward_2023", "forward_2024"):
        assert f"`{name}`" in README


def test_the_readme_offers_something_to_type():
    assert "make run" in BLOCKS
    assert "make test" in BLOCKS

"""The stages of dvc.yaml: each depends on the code and parameters of its rules, and versions what they make."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from perfcast.config.conf_files import known
from perfcast.config.experiment_params import Params

ROOT = Path(__file__).parents[2]
CONF = ROOT / "conf"
DVC = yaml.safe_load((ROOT / "dvc.yaml").read_text())
STAGES = DVC["stages"]
FIRST = [name for name in STAGES if name != "report"]


RULES = {
    "ingest": ["ingest", "available"],
    "standardize": ["standardize"],
    "features": ["features", "split"],
    "train": ["train", "in_domain", "champion"],
    "evaluate": ["leakage", "described", "evaluate", "metrics", "headline"],
}


def rules_of(stage):
    """Return the rules whose results a stage has; its command names the last ones, and Snakemake adds those before."""
    commands = STAGES[stage]["cmd"]
    command = commands if isinstance(commands, str) else commands[0]
    assert set(command.split("--until ")[1].split()) <= set(RULES[stage])
    return RULES[stage]


@pytest.mark.parametrize("stage", FIRST)
def test_a_stage_depends_on_the_code_the_configuration_and_the_workflow(stage):
    assert {"Snakefile", "workflow", "conf", "src/perfcast"} <= set(STAGES[stage]["deps"])


@pytest.mark.parametrize("stage", FIRST)
def test_a_stage_depends_on_all_parameters_of_its_rules(stage):
    parameters = set(STAGES[stage]["params"])
    assert parameters <= set(Params.model_fields)
    named = {
        "ingest": {"mirrors", "network", "strict"},
        "standardize": {"published_until"},
        "split": {"split_seed"},
        "train": {"preset", "seeds", "backtest_windows"},
        "in_domain": {"backtest_windows"},
        "champion": {"preset", "seeds", "backtest_windows"},
        "leakage": {"split_seed"},
        "evaluate": {"split_seed", "resamples", "level"},
    }
    assert set().union(*(named.get(rule, set()) for rule in rules_of(stage))) <= parameters


def test_the_stages_name_every_rule_but_those_of_the_report():
    texts = [path.read_text() for path in (ROOT / "workflow" / "rules").glob("*.smk")]
    rules = {name for text in texts for name in re.findall(r"^(?:rule|checkpoint) (\w+):", text, re.MULTILINE)}
    assert {rule for stage in FIRST for rule in rules_of(stage)} == rules - {"plots", "report", "record"}


def test_every_result_of_a_rule_is_versioned():
    outs = {path.removeprefix("results/") for stage in STAGES.values() for out in stage["outs"] for path in out}
    texts = [path.read_text() for path in (ROOT / "workflow" / "rules").glob("*.smk")]
    written = {name for text in texts for name in re.findall(r"\{RESULTS\}/([\w.]+)", text)}
    assert written - {"logs", "benchmarks"} == outs
    assert "params.yaml" in STAGES["report"]["params"][0]


def test_the_champions_are_artifacts():
    paths = {artifact["path"] for artifact in DVC["artifacts"].values()}
    assert paths <= {f"results/champion/{name}" for name in known(CONF, "dataset")}
    assert len(paths) == len(DVC["artifacts"])

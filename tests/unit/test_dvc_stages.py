"""The stages of dvc.yaml: each depends on the code and parameters of its rules, and versions what they make."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from perfcast.config.conf_files import known
from perfcast.config.dataset_conf import read_dataset
from perfcast.config.experiment_params import Params
from perfcast.config.predictor_conf import read_predictor
from perfcast.ops.made_here import VERSIONED
from perfcast.utils import plugins
from perfcast.utils.code_hash import closure, module_path

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
    (command,) = [line for line in STAGES[stage]["cmd"] if line.startswith("snakemake")]
    assert set(command.split("--until ")[1].split()) <= set(RULES[stage])
    return RULES[stage]


def modules_of(rule):
    """Return what a rule's command loads by name."""
    predictors = [read_predictor(CONF, name).module for name in known(CONF, "predictor")]
    imputations = sorted(path.stem for path in (ROOT / "src/perfcast/inference/imputation").glob("*.py"))
    loaded = {
        "ingest": [f"perfcast.data.sources.{name}" for name in plugins.names("data.sources")],
        "standardize": [read_dataset(CONF, name).module for name in known(CONF, "dataset")],
        "features": [f"perfcast.features.{name}" for name in plugins.names("features")],
        "split": [f"perfcast.splits.{name}" for name in plugins.names("splits")],
        "train": predictors,
        "leakage": predictors,
        "described": [*predictors, *[f"perfcast.inference.imputation.{name}" for name in imputations]],
        "champion": [*predictors, *[f"perfcast.inference.imputation.{name}" for name in imputations]],
    }
    return [f"perfcast.cli.pipeline.{rule}", *loaded.get(rule, ())]


@pytest.mark.parametrize("stage", FIRST)
def test_a_stage_depends_on_all_code_of_its_rules(stage):
    dependencies = [ROOT / path for path in STAGES[stage]["deps"]]
    assert all(path.exists() for path in dependencies if "results" not in path.parts)
    paths = {module_path(module) for rule in rules_of(stage) for module in closure(*modules_of(rule))}
    # `__init__` of the package and of the command line have no code that a result depends on
    outside = {
        str(path.relative_to(ROOT))
        for path in paths
        if path.name != "__init__.py" and not any(path.is_relative_to(folder) for folder in dependencies)
    }
    assert outside == set()


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


def test_every_stage_first_removes_what_came_from_elsewhere():
    assert {stage["cmd"][0] for stage in STAGES.values()} == {"perfcast pipeline forget"}
    assert "params.yaml" in STAGES["report"]["params"][0]


def test_the_stages_version_what_is_removed_with_them():
    outs = {path.removeprefix("results/") for stage in STAGES.values() for out in stage["outs"] for path in out}
    assert outs == set(VERSIONED)


@pytest.mark.reliability("results that came by DVC stay in part")
def test_every_result_of_a_rule_is_versioned_and_removed():
    texts = [path.read_text() for path in (ROOT / "workflow" / "rules").glob("*.smk")]
    written = {name for text in texts for name in re.findall(r"\{RESULTS\}/([\w.]+)", text)}
    assert written - {"logs", "benchmarks"} == set(VERSIONED)


def test_the_champions_are_artifacts():
    paths = {artifact["path"] for artifact in DVC["artifacts"].values()}
    assert paths <= {f"results/champion/{name}" for name in known(CONF, "dataset")}
    assert len(paths) == len(DVC["artifacts"])

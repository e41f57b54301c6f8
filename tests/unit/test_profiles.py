"""Profiles of clusters: every rule for a cluster states its memory and time, and profiles name existing rules."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SLURM = yaml.safe_load((ROOT / "workflow/profiles/slurm/config.yaml").read_text())


def rules():
    """Return the text of every rule by its name."""
    bodies = {}
    for path in sorted((ROOT / "workflow" / "rules").glob("*.smk")):
        for part in re.split(r"^(?=(?:rule|checkpoint) \w+:)", path.read_text(), flags=re.MULTILINE)[1:]:
            # a rule ends where a line is not indented any more
            body = re.split(r"^(?=\S)", part.partition("\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
            bodies[re.match(r"\w+ (\w+):", part)[1]] = body
    return bodies


def local():
    listed = re.search(r"^localrules:\n((?:    \w+,\n)+)", (ROOT / "Snakefile").read_text(), re.MULTILINE)[1]
    return set(re.findall(r"\w+", listed))


def test_every_rule_for_a_cluster_states_its_memory_and_time():
    names = set(rules()) - local()
    assert {"train", "standardize", "report"} <= names
    for name in names:
        assert re.search(r"resources:\n\s+mem_mb=.*\n\s+runtime=", rules()[name]), name


def test_local_rules_and_groups_are_rules():
    assert local() - {"all"} <= set(rules())
    assert set(SLURM["groups"]) <= set(rules()) - local()
    assert set(SLURM["group-components"]) <= set(SLURM["groups"].values())


@pytest.mark.skipif(find_spec("snakemake_executor_plugin_slurm") is None, reason="needs pip install -e '.[slurm]'")
def test_snakemake_knows_every_option_of_the_profile():
    completed = subprocess.run(
        [sys.executable, "-m", "snakemake", "--help"], check=True, capture_output=True, text=True
    )
    for option in SLURM:
        assert re.search(rf"--{option}[ ,\]\n]", completed.stdout), option

"""Files around the code fit it: stages and plots of DVC, the cluster's profile, the container, CI, citation, links."""

from __future__ import annotations

import csv
import fnmatch
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from dvc_render.html import HTML
from generated_results import fake_table, write_in_domain, write_runs

from perfcast.config.experiment_params import Params
from perfcast.evaluation import evaluate, write_evaluation

ROOT = Path(__file__).parents[2]
CONF = ROOT / "conf"
DVC = yaml.safe_load((ROOT / "dvc.yaml").read_text())
STAGES = DVC["stages"]
FIRST = [name for name in STAGES if name != "report"]


RULES = {
    "ingest": ["ingest", "available"],
    "standardize": ["standardize"],
    "features": ["features", "split", "bridge"],
    "train": ["train", "roll", "in_domain", "champion"],
    "evaluate": ["leakage", "described", "evaluate", "metrics", "headline"],
}


def rules_of(stage):
    """Return the rules whose results a stage has; its command names the last ones, and Snakemake adds those before."""
    commands = STAGES[stage]["cmd"]
    command = commands if isinstance(commands, str) else commands[0]
    assert set(command.split("--until ")[1].split()) <= set(RULES[stage])
    return RULES[stage]


@pytest.mark.parametrize("stage", FIRST)
def test_a_stage_depends_on_code_configuration_workflow_and_all_parameters_of_its_rules(stage):
    assert {"Snakefile", "workflow", "conf", "src/perfcast"} <= set(STAGES[stage]["deps"])
    parameters = set(STAGES[stage]["params"])
    assert parameters <= set(Params.model_fields)
    named = {
        "ingest": {"mirrors", "network", "strict"},
        "split": {"split_seed"},
        **{rule: {"preset", "seeds", "backtest_windows"} for rule in ("train", "champion")},
        "in_domain": {"backtest_windows"},
        "leakage": {"split_seed"},
        "evaluate": {"split_seed", "resamples", "level"},
    }
    assert set().union(*(named.get(rule, set()) for rule in rules_of(stage))) <= parameters


TEMPLATES = ROOT / ".dvc" / "plots"
PLOTS = {
    name: plot
    for entry in yaml.safe_load((ROOT / "dvc.yaml").read_text())["plots"]
    if isinstance(entry, dict)
    for name, plot in entry.items()
}


@pytest.fixture(scope="module")
def columns(tmp_path_factory):
    """The columns of every table of an evaluation, by its file's name."""
    folder = tmp_path_factory.mktemp("plots")
    table = fake_table(rows=200, seed=0)
    runs = write_runs(table, folder / "runs", seed=0, errors={"nearest": 0.1, "network": 0.05})
    in_domain = write_in_domain(table, folder / "in_domain_score", seed=0)
    write_evaluation(evaluate(runs, table, resamples=10, seed=0, in_domain=in_domain), folder / "evaluation")
    tables = {}
    for path in (folder / "evaluation").glob("*.csv"):
        with path.open() as file:
            tables[path.name] = next(csv.reader(file))
    return tables


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_reads_columns_that_an_evaluation_writes(name, columns):
    plot = PLOTS[name]
    template = (TEMPLATES / f"{plot['template']}.json").read_text()
    json.loads(template)
    for path, column in plot["y"].items():
        known = columns[Path(path).name]
        assert {column, plot["x"]} <= set(known)
        fields = set(re.findall(r"datum\.(\w+)", template)) | set(re.findall(r'"field": "(\w+)"', template))
        computed = set(re.findall(r'"as": "(\w+)"', template)) | {"curve", "value", "rev", "filename"}
        assert fields <= {*known, *computed}


def test_the_page_loads_from_the_network_only_scripts_that_are_not_beside_the_environment():
    assert "html_template = plots/page.html" in (ROOT / ".dvc" / "config").read_text()
    page = HTML((TEMPLATES / "page.html").read_text()).with_scripts("<script src='https://x'></script>")
    text = page.with_element("<div>drawn</div>").embed()
    assert "<div>drawn</div>" in text
    assert "https://x" not in text
    local = re.findall(r'<script src="(\.\./[^"]+)"></script>', text)
    assert [Path(path).name for path in local] == ["vega.js", "vega-lite.js", "vega-embed.js"]
    makefile = (ROOT / "Makefile").read_text()
    assert {Path(path).parent.name for path in local} == {"vega"} and "$(VENV)/share/vega/vega.js:" in makefile
    for line in text.splitlines():
        assert "https://" not in line or "document.write" in line


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_pinned_bounded_and_read_only(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w/-]+@v\d+", action) for action in used), used
    made = [words.split()[1] for step in steps(workflow) if (words := step.get("run", "")).startswith("make ")]
    assert set(made) <= TARGETS


def test_citation_and_changelog_agree() -> None:
    citation = read(ROOT / "CITATION.cff")
    heading = f"## [{citation['version']}] - {citation['date-released']}"
    assert heading in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    license_text = re.search(r'^license = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert license_text is not None
    assert citation["license"] == license_text[1]


def test_links_to_files_of_the_repository_exist() -> None:
    for path in ROOT.glob("*.md"):
        links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8"))
        # generated pages are checked by the site's build
        assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == [], path


BUILD_STAGE = "build"


def instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions with their words, continued lines joined."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [
        (word.upper(), operands.strip())
        for word, _, operands in (line.partition(" ") for line in joined.splitlines() if line)
    ]


def copied() -> list[str]:
    """Return what is copied from the repository."""
    sources = []
    for word, operands in instructions():
        words = [part for part in shlex.split(operands) if not part.startswith("--")]
        if word == "COPY" and f"--from={BUILD_STAGE}" not in operands:
            sources += words[:-1]
    return sources


def reaches_the_build(path: str) -> bool:
    """Return whether .dockerignore admits a file of the repository; the last matching pattern decides."""
    ignored = False
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    for line in lines:
        pattern = line.lstrip("!").removeprefix("**/")
        names = Path(path).parts if "**/" in line else [path, *map(str, Path(path).parents)]
        if any(fnmatch.fnmatch(name, pattern) for name in names):
            ignored = not line.startswith("!")
    return not ignored


def test_everything_copied_is_there_and_reaches_the_build():
    sources = copied()
    folders = {source.partition("/")[0] for source in sources}
    assert {"requirements.lock", "src", "conf", "workflow", "Snakefile", "params.yaml", "data"} <= folders
    assert [source for source in sources if not (ROOT / source).exists() or not reaches_the_build(source)] == []
    kept_out = ("results/metrics.json", ".venv/bin/python", ".git/config", "src/perfcast/__pycache__/x.pyc")
    assert not any(map(reaches_the_build, kept_out))
    assert reaches_the_build("src/perfcast/__init__.py")


def test_it_runs_snakemake_as_an_unprivileged_user_and_the_job_of_kubernetes_fits_it():
    user = [operands for word, operands in instructions() if word == "USER"][-1]
    assert user.isdecimal() and int(user) >= 1000
    assert [json.loads(operands) for word, operands in instructions() if word == "ENTRYPOINT"] == [["snakemake"]]
    names = [word for word, _ in instructions()]
    assert names.index("USER") > max(position for position, name in enumerate(names) if name == "RUN")
    claim, job = yaml.safe_load_all((ROOT / "workflow/kubernetes/job.yaml").read_text())
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (volume,) = pod["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"]}
    folder = [operands for word, operands in instructions() if word == "WORKDIR"][-1]
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {f"{folder}/results", f"{folder}/.snakemake"}
    assert str(pod["securityContext"]["runAsUser"]) == user
    command = [sys.executable, "-m", "snakemake", *container["args"], "--version"]
    checked = subprocess.run(command, check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.slow
def test_snakemake_has_nothing_to_complain_about() -> None:
    done = subprocess.run(["snakemake", "--lint"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]

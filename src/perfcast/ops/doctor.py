"""Checks of the machine and the project before a run."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil  # type: ignore[import-untyped]
from rich.markup import escape
from rich.table import Table

from perfcast.config.conf_files import read_conf, read_yaml
from perfcast.config.dataset_conf import read_dataset
from perfcast.config.experiment_params import Params, validate
from perfcast.experiment.experiment_check import check_experiment
from perfcast.ops.run_lock import LOCK, hold_results
from perfcast.sources.locations import SourcePlaces, find_places, locate_source
from perfcast.sources.source_spec import parse_source
from perfcast.tracking import explain_failure, open_client, store_from
from perfcast.utils.errors import UserError
from perfcast.utils.io import abandoned_paths
from perfcast.utils.progress import Progress, ignore_progress

FINE = "fine"
CARE = "care"
BROKEN = "broken"
"""A run succeeds; it runs, but differs from what a user may expect; it fails."""
OLDEST = (3, 11)
_SHOWN = 4
DISK = 1 << 30
"""Free bytes that the default run needs: its results are 400 MB, with copies of models in MLflow's store."""
MEMORY = 4 << 30
"""Bytes of available memory that two jobs at a time need."""
_GIB = float(1 << 30)


@dataclass(frozen=True)
class ProjectPlace:
    """Project in which a run would start. `params` is None where params.yaml is not valid."""

    project: Path
    sources: SourcePlaces
    params: Params | None

    @property
    def results(self) -> Path:
        """Default folder of results."""
        return self.project / "results"


@dataclass(frozen=True)
class Finding:
    """Result of one check: its subject, its state (FINE, CARE or BROKEN), the fact, and the remedy."""

    what: str
    state: str
    fact: str
    remedy: str = ""


def check_software(place: ProjectPlace) -> list[Finding]:
    """Compare with the oldest supported Python and with requirements.lock."""
    installed = platform.python_version()
    oldest = ".".join(map(str, OLDEST))
    python = Finding("Python", FINE, installed)
    if sys.version_info[:2] < OLDEST:
        python = Finding("Python", BROKEN, f"{installed}, older than {oldest}", f"install Python {oldest} or newer")
    return [python, _packages(place.project / "requirements.lock")]


def _packages(lock: Path) -> Finding:
    if not lock.is_file():
        return Finding("packages", CARE, "there is no requirements.lock to compare with", "work in a clone of perfcast")
    locked = dict(re.findall(r"^([A-Za-z0-9_.\-]+)==(\S+)", lock.read_text(encoding="utf-8"), re.MULTILINE))
    missing = []
    other = []
    for name, pinned in locked.items():
        try:
            there = version(name)
        except PackageNotFoundError:
            missing.append(name)
            continue
        if there.partition("+")[0] != pinned.partition("+")[0]:  # a local label, such as cpu, is the same release
            other.append(f"{name} {there}, locked {pinned}")
    if missing:
        return Finding("packages", BROKEN, f"missing: {_some(missing)}", "run rm -f .venv/.ready && make setup")
    if other:
        remedy = "for the results of dvc.lock, run rm -f .venv/.ready && make setup"
        return Finding("packages", CARE, f"other versions than locked: {_some(other)}", remedy)
    return Finding("packages", FINE, f"{len(locked)}, as locked")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return "; ".join(names[:_SHOWN]) + more


def check_configuration(place: ProjectPlace) -> list[Finding]:
    """Check the experiment as every run does."""
    try:
        params = check_experiment(read_yaml(place.project / "params.yaml"), place.project)
    except UserError as error:
        return [Finding("configuration", BROKEN, str(error), "edit params.yaml or the conf")]
    fact = f"{len(params.datasets)} datasets, {len(params.predictors)} predictors, preset {params.preset}"
    return [Finding("configuration", FINE, fact)]


def check_data_sources(place: ProjectPlace) -> list[Finding]:
    """Find every source that params.yaml lists, without the network."""
    if place.params is None:
        return []
    conf = place.project / "conf"
    params = place.params
    required = {source for name in params.datasets for source in read_dataset(conf, name).sources.required}
    specs = [parse_source(name, read_conf(conf, "source", name)) for name in params.sources]
    locations = {spec.name: locate_source(spec, place.sources) for spec in specs}
    here = [name for name, location in locations.items() if location.is_local]
    absent = [name for name in locations if name not in here]
    findings = [Finding("sources", FINE, f"on this machine: {', '.join(here)}")] if here else []
    if absent and params.network:
        findings.append(Finding("sources", CARE, f"to be downloaded: {', '.join(absent)}", "see perfcast sources"))
    elif absent:
        stops = params.strict and required & set(absent)
        fact = "the run stops" if stops else "the datasets that need them are left out"
        remedy = "set network to true, or name a folder that has them in mirrors or PERFCAST_MIRROR"
        findings.append(Finding("sources", BROKEN if stops else CARE, f"not here: {', '.join(absent)}; {fact}", remedy))
    return findings


def check_free_space(place: ProjectPlace) -> list[Finding]:
    """Measure the free space of the results folder, the available memory and the usable cores."""
    folder = next(path for path in (place.results, place.project) if path.is_dir())
    free = shutil.disk_usage(folder).free
    available = psutil.virtual_memory().available
    disk = Finding("disk", FINE, f"{free / _GIB:.1f} GiB free")
    if not os.access(folder, os.W_OK):
        disk = Finding("disk", BROKEN, f"{folder.name or folder} cannot be written to", "change its permissions")
    elif free < DISK:
        fact = f"{disk.fact}, {DISK / _GIB:g} GiB are needed"
        disk = Finding("disk", BROKEN, fact, "make room, or set results elsewhere")
    memory = Finding("memory", FINE, f"{available / _GIB:.1f} GiB available")
    if available < MEMORY:
        fact = f"{memory.fact}, two jobs at a time need {MEMORY / _GIB:g} GiB"
        memory = Finding("memory", CARE, fact, "run one job at a time: snakemake --cores 1")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return [disk, memory, Finding("cores", FINE, f"{cores}; snakemake --cores N uses fewer")]


def check_leftovers(place: ProjectPlace) -> list[Finding]:
    """Return the state of the lock, and count unfinished files."""
    lock = Finding("lock", FINE, "none")
    unfinished = Finding("unfinished files", FINE, "none")
    with suppress(OSError):  # another user's, or no run yet
        if (place.results / LOCK).is_file():
            try:
                os.close(hold_results(place.results))
            except UserError as error:
                lock = Finding("lock", CARE, error.fact, error.remedy)
    if left := list(abandoned_paths(place.results, without={place.results / "mlflow"})):
        fact = f"{len(left)} under temporary names in {place.results.name}, which nothing reads"
        unfinished = Finding("unfinished files", CARE, fact, "the next run removes them")
    return [lock, unfinished]


def check_tracking(place: ProjectPlace) -> list[Finding]:
    """Open the store; the first run makes a missing one."""
    if place.params is None:  # then conf/ may not be there either
        return []
    store = store_from(read_conf(place.project / "conf", "tracking", "default"), place.project, os.environ)
    if store is None:
        return [Finding("tracking", CARE, "off in conf/tracking/default.yaml: no training is recorded")]
    if store.uri.startswith("sqlite:///") and not os.path.lexists(Path(store.uri.removeprefix("sqlite:///")).parent):
        return [Finding("tracking", FINE, "no store yet; the first run makes it")]
    try:
        open_client(store)
    except Exception as error:  # whatever a store, a driver or a server raises
        fact = f"the store cannot be used: {explain_failure(error)}; a run keeps its results"
        return [Finding("tracking", CARE, fact, "afterwards, `perfcast pipeline record` catches up")]
    return [Finding("tracking", FINE, "the store answers")]


def find_place(project: Path, environment: Mapping[str, str]) -> ProjectPlace:
    """Return the place of a project. Raises: UserError when the folder does not exist."""
    if not project.is_dir():
        raise UserError("--project must be a folder", f"there is no folder {project}", "name a clone of perfcast")
    try:
        params = validate(read_yaml(project / "params.yaml"), project / "conf")
    except UserError:  # check_configuration reports it
        params = None
    return ProjectPlace(project, find_places(project, params.mirrors if params else (), environment), params)


def examine(place: ProjectPlace, progress: Progress = ignore_progress) -> list[Finding]:
    """Run all checks, in the order in which a user would repair."""
    checks = (check_software, check_configuration, check_data_sources, check_free_space, check_leftovers)
    findings = []
    for done, check in enumerate((*checks, check_tracking)):
        progress(check.__name__.removeprefix("check_").replace("_", " "), done, len(checks) + 1)
        findings += check(place)
    return findings


def tabulate_findings(findings: Sequence[Finding]) -> Table:
    """Return the findings as a table with colored states."""
    colors = {BROKEN: "bold red", CARE: "yellow"}
    table = Table(box=None, pad_edge=False)
    for heading in ("", "state", "found", "what to do"):
        table.add_column(heading, overflow="fold")
    for finding in findings:
        state = f"[{colors.get(finding.state, 'green')}]{finding.state}[/]"
        table.add_row(finding.what, state, escape(finding.fact), escape(finding.remedy))
    return table

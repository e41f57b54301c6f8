# The validated experiment, the shell functions and the input functions that the other files use.
import os
import re
import shlex
import sys
from datetime import datetime
from pathlib import Path

from perfcast.config.conf_files import read_yaml
from perfcast.experiment.experiment_check import check_results_folder
from perfcast.experiment.leakage_control import read_leakage_conf
from perfcast.experiment.workflow_graph import SourceStatus, plan_source
from perfcast.experiment.workflow_graph import Graph, remove_unfinished
from perfcast.splits import frozen_split
from perfcast.ops.run_lock import LOCK, end_on_hangup, hold_results
from perfcast.utils.errors import UserError
from perfcast.utils.result_digests import verify_inputs


def refuse(error):
    """End the run in one line."""
    print(f"perfcast: {error}", file=sys.stderr)
    raise SystemExit(2)


RESULTS = config.pop("results", "results")

# One invocation is one parent run in MLflow; its jobs inherit the name.
os.environ.setdefault("PERFCAST_INVOCATION", f"{datetime.now():%Y-%m-%d %H:%M:%S}")

try:
    check_results_folder(RESULTS, Path())
    for file in (*workflow.configfiles, *workflow.config_settings.configfiles):
        read_yaml(Path(file))  # Snakemake takes the last of two equal keys
    GRAPH = Graph.read(Path(), config, Path(RESULTS))
    LEAKAGE = read_leakage_conf(GRAPH.conf)
except UserError as error:
    refuse(error)

PARAMS = GRAPH.params

# `logged FILE COMMAND` writes the messages of a command to a file, which the progress display reads; where the disk is full,
# the last one is shown. Every job shares the lock of the results.
shell.prefix(
    "set -euo pipefail; "
    f"{{{{ exec 9< {shlex.quote(str(Path(RESULTS) / LOCK))} && flock --shared 9; }}}} 2> /dev/null || true; "
    f'perfcast() {{{{ "{sys.executable}" -m perfcast "$@"; }}}}; '
    "logged() {{ local log=$1 last code=0; shift; "
    '{{ last=$("$@" 2>&1 >&3 | {{ tee "$log" 2> /dev/null || true; }} | tail -n 1); }} 3>&1 || code=$?; '
    '[ -s "$log" ] || [ -z "$last" ] || echo "$last" >&2; return $code; }}; '
    # not params: another mirror ingests no source again that is present
    f"ingest_options=({GRAPH.ingest_options()}); "
)


wildcard_constraints:
    source="|".join(PARAMS.sources),
    dataset="|".join(PARAMS.datasets),
    split="|".join({*PARAMS.splits, *filter(None, map(frozen_split, PARAMS.splits))}),
    predictor="|".join(PARAMS.predictors),


# Requests to a cluster: 1.5 times the memory of the largest job of a kind in results/benchmarks (train 1.2 GB, the
# others 0.2 to 0.7 GB), and many times its seconds. Each retry requests more.
def gigabytes(first):
    """Return the memory of a job by attempt. Units: GB to MB."""
    return lambda wildcards, attempt: 1000 * first * attempt


def minutes(first):
    """Return the time of a job by attempt. Units: minutes."""
    return lambda wildcards, attempt: first * attempt


def per_run(name):
    """Return an input function: one file of every run of a dataset."""
    return lambda w: expand(
        f"{RESULTS}/runs/{w.dataset}/{{split}}/{{predictor}}/{name}",
        split=GRAPH.splits_of(w.dataset),
        predictor=GRAPH.predictors_of(w.dataset),
    )


def per_split(folder):
    """Return an input function: the file of every split of a dataset in a folder of results."""
    return lambda w: expand(f"{RESULTS}/{folder}/{w.dataset}/{{split}}.parquet", split=GRAPH.splits_of(w.dataset))


def described(wildcards):
    """Return the predictions of described machines of a dataset, none without a split of them."""
    return f"{RESULTS}/described/{wildcards.dataset}.parquet" if GRAPH.described_splits_of(wildcards.dataset) else []


def base(wildcards):
    """Return the dataset whose champion estimates the rows of a dataset with a bridge."""
    return GRAPH.datasets[wildcards.dataset].bridge.dataset


def bridge(wildcards):
    """Return the estimates of a dataset by the champion of another one, none without a bridge."""
    return f"{RESULTS}/features/{wildcards.dataset}.bridge" if GRAPH.datasets[wildcards.dataset].bridge else []


def plan(source):
    """Return the plan of a source: whether it can be had, as far as the files of this machine tell."""
    return plan_source(
        Path(f"{RESULTS}/raw/{source}/manifest.json"),
        Path(f"{RESULTS}/logs/ingest/{source}.json"),
        lambda: GRAPH.is_local(source),
        network=PARAMS.network,
        strict=PARAMS.strict,
    )


try:
    SOURCES = {source: plan(source) for source in PARAMS.sources}
except UserError as error:  # a manifest that has changed
    refuse(error)
STATUS = {source: planned.status for source, planned in SOURCES.items()}


def manifests(wildcards):
    """Return the manifests of a dataset's sources; optional ones that the experiment does not list are left out."""
    sources = GRAPH.datasets[wildcards.dataset].sources
    used = [*sources.required, *(source for source in sources.optional if source in PARAMS.sources)]
    return [f"{RESULTS}/raw/{source}/manifest.json" for source in used]


def begin():
    """Lock the results and verify what jobs will read, or end this run in one line.

    Snakemake deletes the outputs of a job before it starts, so a job that refuses its inputs costs the last results.
    """
    try:
        hold_results(Path(RESULTS))
        verify_inputs(inputs_of_planned_jobs())
    except UserError as error:
        print(f"perfcast: {error}", file=sys.stderr)
        raise SystemExit(1)
    end_on_hangup()
    remove_unfinished(Path(RESULTS))


def inputs_of_planned_jobs():
    """Return the inputs of the jobs that will run, without those that these jobs make."""
    jobs = list(workflow.dag.needrun_jobs())
    made = {path for job in jobs for path in job.output}
    return [Path(path) for path in sorted({path for job in jobs for path in job.input} - made)]


def repeat_note():
    """Print the note of a run that could not be recorded."""
    note = Path(RESULTS) / "logs" / "record.txt"
    if note.exists() and (text := note.read_text().strip()).startswith("NOT"):
        print(f"perfcast: tracking: {text}", file=sys.stderr)


def folder(name):
    """Return a parameter function: the folder of a dataset in a folder of results."""
    return lambda w: f"{RESULTS}/{name}/{w.dataset}"


def plans_only():
    """Return whether nothing runs: a dry run, a lint, a graph or Snakemake's report."""
    return workflow.executor_plugin is None or workflow.dryrun


def available():
    """Return the datasets that have their required sources.

    The files of this machine tell before anything runs, unless the network must be asked for a source for the first time.
    Then a run asks the checkpoint, and a dry run assumes that the source can be had.
    """
    if SourceStatus.UNKNOWN in STATUS.values() and not plans_only():
        path = Path(checkpoints.available.get().output[0])
        try:
            return GRAPH.read_available(path)
        except UserError as error:
            refuse(error)
    return GRAPH.available(STATUS)


def per_dataset(path):
    """Return an input function: one path of every available dataset."""
    return lambda wildcards: expand(f"{RESULTS}/{path}", dataset=available())


def removed(wildcards):
    """Return the intermediate results that are missing where the last results exist.

    Snakemake makes a missing input again only for a job that must run.
    """
    stages = (
        rules.ingest, rules.standardize, rules.features, rules.split, rules.in_domain, rules.train, rules.leakage, rules.evaluate
    )  # fmt: skip
    patterns = [re.sub(r"\{(\w+),[^{}]*\}", r"{\1}", path) for stage in stages for path in map(str, stage.output)]
    paths = [
        path
        for dataset in available()
        if Path(f"{RESULTS}/plots/{dataset}").exists()
        for pattern in patterns
        for path in expand(
            pattern,
            dataset=dataset,
            source=PARAMS.sources,
            split=GRAPH.splits_of(dataset),
            predictor=GRAPH.predictors_of(dataset),
        )
    ]
    paths += [
        f"{RESULTS}/{path}"
        for dataset in available()
        if Path(f"{RESULTS}/plots/{dataset}").exists()
        for path, is_there in {
            f"described/{dataset}.parquet": GRAPH.described_splits_of(dataset),
            f"features/{dataset}.bridge": GRAPH.datasets[dataset].bridge,
        }.items()
        if is_there
    ]
    return [path for path in dict.fromkeys(paths) if not Path(path).exists()]

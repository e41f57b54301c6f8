# The validated experiment, the shell functions and the input functions that the other files use.
import os
import re
import sys
import time
from datetime import datetime
from pathlib import Path

from perfcast.utils.errors import UserError
from perfcast.experiment.workflow_graph import Graph, remove_unfinished

RESULTS = config.pop("results", "results")
STARTED = time.time()

# One invocation is one parent run in MLflow; its jobs inherit the name.
os.environ.setdefault("PERFCAST_INVOCATION", f"{datetime.now():%Y-%m-%d %H:%M:%S}")

try:
    GRAPH = Graph.read(Path(), config)
except UserError as error:
    print(f"perfcast: {error}", file=sys.stderr)
    raise SystemExit(2)

PARAMS = GRAPH.params

# `logged FILE COMMAND` shows the messages of a command and writes them to a file.
shell.prefix(
    "set -euo pipefail; "
    f'perfcast() {{{{ "{sys.executable}" -m perfcast "$@"; }}}}; '
    'logged() {{ local log=$1; shift; "$@" 2> >(tee "$log" >&2); }}; '
)


wildcard_constraints:
    source="|".join(PARAMS.sources),
    dataset="|".join(PARAMS.datasets),
    split="|".join(PARAMS.splits),
    predictor="|".join(PARAMS.predictors),


# Requests to a cluster: 1.5 times the memory that `perfcast times` shows for the largest job of a kind (train 1.2 GB, the
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


def manifests(wildcards):
    """Return the manifests of a dataset's sources."""
    return [f"{RESULTS}/raw/{source}/manifest.json" for source in GRAPH.sources_of(wildcards.dataset)]


def folder(name):
    """Return a parameter function: the folder of a dataset in a folder of results."""
    return lambda w: f"{RESULTS}/{name}/{w.dataset}"


def available():
    """Return the datasets whose required sources exist; ingestion decides, hence a checkpoint."""
    return GRAPH.read_available(Path(checkpoints.available.get().output[0]))


def per_dataset(path):
    """Return an input function: one path of every available dataset."""
    return lambda wildcards: expand(f"{RESULTS}/{path}", dataset=available())


def interrupted(wildcards):
    """Return the last results of the datasets of the previous run.

    Snakemake looks for incomplete files of killed jobs before it evaluates the checkpoint. It finds those of the jobs
    that these results need.
    """
    datasets = GRAPH.read_available(Path(f"{RESULTS}/raw/available.json"))
    return expand(f"{RESULTS}/{{folder}}/{{dataset}}", folder=["champion", "plots"], dataset=datasets)


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
    return [path for path in dict.fromkeys(paths) if not Path(path).exists()]

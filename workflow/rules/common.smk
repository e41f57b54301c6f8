# The validated experiment, and the functions that the other files use.
from pathlib import Path

from snakemake.logging import logger

from perfcast.cli.pipeline import STAGES
from perfcast.config.conf_files import read_yaml
from perfcast.experiment.workflow_graph import Graph, SourceStatus
from perfcast.ops import jobs
from perfcast.utils.errors import UserError

jobs.name_invocation()


try:
    for file in (*workflow.configfiles, *workflow.config_settings.configfiles):
        read_yaml(Path(file))  # Snakemake takes the last of two equal keys
    GRAPH = Graph.read(Path(), config, config.pop("results", "results"))
    GRAPH.status  # a manifest may have changed
except UserError as error:
    jobs.refuse(error)

PARAMS = GRAPH.params
RESULTS = str(GRAPH.results)
RUN = "logged {log:q} perfcast pipeline {params.arguments:q}"


shell.prefix(jobs.shell_prefix(GRAPH.results, GRAPH.ingest_options()))


wildcard_constraints:
    source="|".join(PARAMS.sources),
    dataset="|".join(PARAMS.datasets),
    split="|".join(GRAPH.split_names),
    predictor="|".join(PARAMS.predictors),


def arguments(stage, **given):
    """Return parameters: the words of a stage, and its values without files.

    The stage says which arguments it has. Their values are files and wildcards of the job, else those of the experiment.
    Snakemake runs a job again for other values, but not for parameters that read its files.
    """

    def values(wildcards, files=()):
        own = {name: value(wildcards) if callable(value) else value for name, value in given.items()}
        known = {**GRAPH.arguments(wildcards.get("dataset")), **dict(wildcards.items()), **dict(files), **own}
        return STAGES[stage].words(known)

    return {
        "arguments": lambda wildcards, input, output: [stage, *values(wildcards, [*input.items(), *output.items()])],
        "values": lambda wildcards: values(wildcards),
    }


def available():
    """Return the datasets that have their required sources.

    The files of this machine tell before anything runs, unless the network must be asked for a source for the first time.
    Then a run asks the checkpoint; what only plans, such as a dry run, assumes that the source can be had.
    """
    plans_only = workflow.executor_plugin is None or workflow.dryrun
    if plans_only or SourceStatus.UNKNOWN not in GRAPH.status.values():
        return GRAPH.available(GRAPH.status)
    try:
        return GRAPH.read_available(Path(checkpoints.available.get().output[0]))
    except UserError as error:
        jobs.refuse(error)


def per_dataset(path):
    """Return an input function: one path of every available dataset."""
    return lambda wildcards: expand(f"{RESULTS}/{path}", dataset=available())

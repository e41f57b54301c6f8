# What every rule uses: the validated experiment, the command, digests of code and conf.
import os
import sys
import time
from pathlib import Path

from perfcast import config as perfcast_config
from perfcast import plugins, run_lock
from perfcast.digest import closure, code_digest
from perfcast.errors import UserError

CONF = Path("conf")
RESULTS = config.pop("results", "results")
PERFCAST = f"{sys.executable} -m perfcast"
STARTED = time.time()

# One invocation is one parent run in MLflow; sub-processes of this one keep its name.
os.environ.setdefault(
    "PERFCAST_INVOCATION",
    f"{__import__('datetime').datetime.now():%Y-%m-%d %H:%M:%S}",
)

try:
    PARAMS = perfcast_config.validate(config, CONF)
    DATASETS = {name: perfcast_config.read_dataset(CONF, name) for name in PARAMS.datasets}
    PREDICTORS = {name: perfcast_config.read_predictor(CONF, name) for name in PARAMS.predictors}
except UserError as error:
    print(f"perfcast: {error}", file=sys.stderr)
    raise SystemExit(2)


def holding_the_results(execute):
    """Wrap Snakemake's start of jobs: one run at a time, and what a killed one left is cleared first.

    Only there is it known whether anything will be run: a dry run, a report or a summary asks for nothing.
    """

    def held(*given, executor_plugin, **settings):
        dry = executor_plugin.common_settings.dryrun_exec
        if workflow.exec_mode.name == "DEFAULT" and workflow.execution_settings.lock and not dry:
            try:
                told = run_lock.hold(Path(), RESULTS)
            except UserError as error:
                print(f"perfcast: {error}", file=sys.stderr)
                raise SystemExit(2)
            if told:
                print(f"perfcast: {told}", file=sys.stderr)
        return execute(*given, executor_plugin=executor_plugin, **settings)

    return held


workflow.execute = holding_the_results(workflow.execute)


wildcard_constraints:
    source="|".join(PARAMS.sources),
    dataset="|".join(PARAMS.datasets),
    split="|".join(PARAMS.splits),
    predictor="|".join(PARAMS.predictors),


def code(command, *modules):
    """Digest of what a command imports, and of the plug-ins it loads by name: an edit re-runs what depends on it.

    Whatever knows splits looks among all of them.
    """
    splits = plugins.names("splits") if "perfcast.splits" in closure(f"perfcast.cli.pipeline.{command}") else []
    loaded = [*modules, *[f"splits.{name}" for name in splits]]
    return code_digest(f"perfcast.cli.pipeline.{command}", *[f"perfcast.{module}" for module in loaded])


def conf_digest(group, name):
    """Digest of one conf file's values (comments do not count)."""
    import hashlib
    import json

    values = perfcast_config.read_conf(CONF, group, name)
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:16]


def predictors_of(dataset):
    """The predictors of the experiment that can answer a data set's questions."""
    able = DATASETS[dataset].predictors
    return [name for name in PARAMS.predictors if able is None or name in able]


def splits_of(dataset):
    """The splits of a data set that the experiment asks for."""
    return [name for name in DATASETS[dataset].splits if name in PARAMS.splits]


def seeds_of(predictor):
    """One training per seed for predictors with randomness, one in all for the others."""
    return PARAMS.seeds if PREDICTORS[predictor].stochastic else PARAMS.seeds[:1]


def available(wildcards=None):
    """The data sets whose required sources were found; known only after ingestion, hence a checkpoint."""
    import json

    with checkpoints.available.get().output[0].open() as file:
        found = json.load(file)["datasets"]
    return [name for name in PARAMS.datasets if name in found]


# What jobs ask a cluster for: half as much memory again as `perfcast pipeline times` tells of the largest (train 1.2 GB, the others
# 0.2 to 0.7 GB), and many times their seconds. A job that was killed as it was not enough asks for more at every attempt.
def gigabytes(first):
    """The memory of a job."""
    return lambda wildcards, attempt: 1000 * first * attempt


def minutes(first):
    """The time of a job."""
    return lambda wildcards, attempt: first * attempt

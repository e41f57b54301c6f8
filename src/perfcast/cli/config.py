"""Check params.yaml and conf/, or print where a file of them is.

`perfcast pipeline train ... --cfg job` prints the configuration of a training.

Examples:
    perfcast config
    perfcast config --path experiment/llm
"""

from __future__ import annotations

import argparse

from perfcast.cli.arguments import add_project


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--path", metavar="GROUP/NAME", help="print where a file of conf/ is, that of a domain too")
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Print that all is valid, or the path of a file."""
    from perfcast.config.conf_files import find_conf, read_yaml
    from perfcast.experiment.experiment_check import check_experiment

    if options.path:
        group, _, name = options.path.partition("/")
        print(find_conf(options.project / "conf", group, name))
        return 0
    params = check_experiment(read_yaml(options.project / "params.yaml"), options.project)
    print(f"valid: {len(params.datasets)} datasets, {len(params.splits)} splits, {len(params.predictors)} predictors")
    return 0

"""Check params.yaml and conf/, and print a configuration.

Examples:
    perfcast config predictor=ridge split=random
    perfcast config --path experiment/llm
"""

from __future__ import annotations

import argparse
from pathlib import Path

from perfcast.cli.arguments import add_shared
from perfcast.utils.packaged_project import default_project


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("override", nargs="*", metavar="KEY=VALUE", help="values of the configuration")
    parser.add_argument("--path", metavar="GROUP/NAME", help="print where a file of conf/ is, that of a domain too")
    add_shared(parser, "--project")
    parser.set_defaults(project=default_project(Path()))


def run(options: argparse.Namespace) -> int:
    """Print the composed configuration as YAML, or the path of a file."""
    from perfcast.config.compose import compose
    from perfcast.config.conf_files import find_conf, read_yaml
    from perfcast.experiment.experiment_check import check_experiment
    from perfcast.utils.safe_yaml import yaml_text

    if options.path:
        group, _, name = options.path.partition("/")
        print(find_conf(options.project / "conf", group, name))
        return 0
    params = check_experiment(read_yaml(options.project / "params.yaml"), options.project)
    keys = {entry.partition("=")[0].lstrip("+") for entry in options.override}
    first = {"dataset": params.datasets[0], "predictor": params.predictors[0], "split": params.splits[0]}
    chosen = [f"{key}={value}" for key, value in first.items() if key not in keys]
    print(yaml_text(compose(options.project, [*chosen, *options.override])), end="")
    return 0

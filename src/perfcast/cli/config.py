"""Check params.yaml and conf/, and print the configuration of one training."""

from __future__ import annotations

import argparse

from perfcast.cli._arguments import add_shared
from perfcast.config.experiment import compose, read_yaml, validate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("override", nargs="*", metavar="KEY=VALUE", help="e.g. predictor=ridge split=random")
    add_shared(parser, "--project")


def run(options: argparse.Namespace) -> int:
    """Print the composed configuration as YAML."""
    import yaml

    params = validate(read_yaml(options.project / "params.yaml"), options.project / "conf")
    keys = {entry.partition("=")[0].lstrip("+") for entry in options.override}
    first = {"dataset": params.datasets[0], "predictor": params.predictors[0], "split": params.splits[0]}
    chosen = [f"{key}={value}" for key, value in first.items() if key not in keys]
    print(yaml.safe_dump(compose(options.project, [*chosen, *options.override]), sort_keys=False), end="")
    return 0

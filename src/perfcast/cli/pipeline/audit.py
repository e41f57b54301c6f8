"""Check the files of one dataset for leakage, and fail where there is any."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from perfcast.cli import _numbers
from perfcast.cli._common import add_project
from perfcast.config import read_predictor
from perfcast.experiment.leakage_control import read_audit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("dataset")
    parser.add_argument("--table", type=Path, required=True, help="the table with features")
    parser.add_argument("--standard", type=Path, required=True, help="the table without them")
    parser.add_argument("--folds", type=Path, required=True, help="folder of the dataset's splits")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the dataset's runs")
    parser.add_argument("--splits", nargs="+", required=True)
    parser.add_argument("--predictors", nargs="+", required=True)
    parser.add_argument("--resamples", type=_numbers.resamples, default=1000, help="bootstrap resamples (default 1000)")
    parser.add_argument("--seed", type=_numbers.seed, default=0)
    parser.add_argument("--out", type=Path, required=True)
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Check one dataset; 2 and one line per finding where something leaks."""
    from perfcast.audit import Control, Evidence, Run, audit, complaints
    from perfcast.experiment.selection import predictor_factories
    from perfcast.io import write_json
    from perfcast.schema import Column
    from perfcast.table_files import read_declarations, read_parquet, read_table

    conf = options.project / "conf"
    control = read_audit(conf)
    factories = predictor_factories(read_predictor(conf, control.control), "quick", {})
    standard = read_declarations(options.standard)["columns"]
    pairs = [(split, predictor) for split in options.splits for predictor in options.predictors]
    evidence = Evidence(
        table=read_table(options.table),
        standard=tuple(Column(**{**entry, "tags": tuple(entry["tags"])}) for entry in standard),
        splits={name: read_parquet(options.folds / f"{name}.parquet") for name in options.splits},
        runs=tuple(Run(split, predictor, options.runs / split / predictor) for split, predictor in pairs),
        stochastic=frozenset(name for name in options.predictors if read_predictor(conf, name).stochastic),
        control=Control(control.control, next(iter(factories.values())), control.shuffles),
        resamples=options.resamples,
        seed=options.seed,
    )
    report = audit(evidence)
    write_json(options.out, report)
    lines = complaints(report)
    for line in lines:
        print(f"perfcast pipeline audit: {line}", file=sys.stderr)
    return 2 if lines else 0

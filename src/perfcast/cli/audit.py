"""Look at the files of one data set anew for leaks, and refuse to go on where there is one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from perfcast.cli import _numbers
from perfcast.cli._common import add_project
from perfcast.config import known, read_predictor, read_yaml, validated
from perfcast.errors import unknown_name

if TYPE_CHECKING:
    from perfcast.evaluation.leakage import Control


class AuditConf(BaseModel):
    """conf/leakage/default.yaml: the predictor that is trained on shuffled scores, and how often."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    control: str
    shuffles: int = Field(ge=1, le=100)


def read_audit(conf: Path) -> AuditConf:
    """Read and check conf/leakage/default.yaml. Raises: UserError for a wrong key or type, or an unknown predictor."""
    where = "conf/leakage/default.yaml"
    chosen = validated(AuditConf, where, read_yaml(Path(conf) / "leakage" / "default.yaml"))
    if chosen.control not in known(conf, "predictor"):
        raise unknown_name(f"control in {where}", chosen.control, known(conf, "predictor"))
    return chosen


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("dataset")
    parser.add_argument("--table", type=Path, required=True, help="the table with features")
    parser.add_argument("--standard", type=Path, required=True, help="the table without them")
    parser.add_argument("--folds", type=Path, required=True, help="folder of the data set's splits")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the data set's runs")
    parser.add_argument("--splits", nargs="+", required=True)
    parser.add_argument("--predictors", nargs="+", required=True)
    parser.add_argument("--resamples", type=_numbers.resamples, default=1000, help="bootstrap resamples (default 1000)")
    parser.add_argument("--seed", type=_numbers.seed, default=0)
    parser.add_argument("--out", type=Path, required=True)
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Audit one data set; 2 and one line per finding where something leaks."""
    from perfcast.evaluation.leakage import Artifacts, Run, check_leakage, leakage_errors
    from perfcast.io import write_json
    from perfcast.schema import Column
    from perfcast.table_files import read_declarations, read_parquet, read_table

    conf = options.project / "conf"
    standard = read_declarations(options.standard)["columns"]
    artifacts = Artifacts(
        table=read_table(options.table),
        standard=tuple(Column(**{**entry, "tags": tuple(entry["tags"])}) for entry in standard),
        splits={name: read_parquet(options.folds / f"{name}.parquet") for name in options.splits},
        runs=tuple(
            Run(split, predictor, options.runs / split / predictor)
            for split in options.splits
            for predictor in options.predictors
        ),
        stochastic=frozenset(name for name in options.predictors if read_predictor(conf, name).stochastic),
        control=_control(conf),
        resamples=options.resamples,
        seed=options.seed,
    )
    found = check_leakage(artifacts)
    write_json(options.out, found)
    told = leakage_errors(found)
    for complaint in told:
        print(f"perfcast audit: {complaint}", file=sys.stderr)
    return 2 if told else 0


def _control(conf: Path) -> Control:
    """Return the control that conf/leakage/default.yaml names, with its short schedule."""
    from perfcast.evaluation.leakage import Control
    from perfcast.experiment import makers

    chosen = read_audit(conf)
    own = makers(read_predictor(conf, chosen.control), "quick", {})
    return Control(chosen.control, next(iter(own.values())), chosen.shuffles)

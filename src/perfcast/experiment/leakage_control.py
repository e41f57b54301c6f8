"""Input of the leakage checks: files of a dataset, and the negative control that conf/leakage configures.

The control is a predictor trained on shuffled scores, which must score like chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from perfcast.config.conf_files import StrictModel, known, read_yaml, validated
from perfcast.config.dataset_conf import read_dataset
from perfcast.config.predictor_conf import read_predictor
from perfcast.domain import domain_of
from perfcast.utils.errors import unknown_name

if TYPE_CHECKING:
    from perfcast.evaluation.leakage import Artifacts


class LeakageConf(StrictModel):
    """conf/leakage/default.yaml: the negative control."""

    control: str
    """Predictor that is trained on shuffled scores."""
    shuffles: int = Field(ge=10, le=100)
    """How often. Ten are the fewest that raise a false alarm in less than 1 of 1,000 tables."""


def read_leakage_conf(conf: Path) -> LeakageConf:
    """Read and check conf/leakage/default.yaml. Raises: UserError for a wrong key or type, or an unknown predictor."""
    where = "conf/leakage/default.yaml"
    chosen = validated(LeakageConf, where, read_yaml(Path(conf) / "leakage" / "default.yaml"))
    if chosen.control not in known(conf, "predictor"):
        raise unknown_name(f"control in {where}", chosen.control, known(conf, "predictor"))
    return chosen


def collect_artifacts(
    conf: Path,
    *,
    table: Path,
    standard: Path,
    folds: Path,
    runs: Path,
    splits: Sequence[str],
    predictors: Sequence[str],
    seed: int,
) -> Artifacts:
    """Read the files of a dataset for the leakage checks, and prepare the negative control.

    `table` is the table with features, `standard` that without; `folds` is the folder of splits, `runs` that of runs.
    """
    from perfcast.evaluation.leakage import Artifacts, Control, Run
    from perfcast.experiment.selection import predictor_factory
    from perfcast.schema.table import Column
    from perfcast.schema.table_files import read_declarations, read_parquet, read_table

    control = read_leakage_conf(conf)
    declared = read_predictor(conf, control.control)
    make = predictor_factory(declared, declared.arguments("quick"), {})
    columns = read_declarations(standard)["columns"]
    pairs = [(split, predictor) for split in splits for predictor in predictors]
    features = read_table(table)
    return Artifacts(
        table=features,
        standard=tuple(Column(**{**entry, "tags": tuple(entry["tags"])}) for entry in columns),
        splits={name: read_parquet(folds / f"{name}.parquet") for name in splits},
        runs=tuple(Run(split, predictor, runs / split / predictor) for split, predictor in pairs),
        control=Control(control.control, make, control.shuffles),
        seed=seed,
        **_read_declared(conf, features.dataset),
    )


def _read_declared(conf: Path, dataset: str) -> dict[str, Any]:
    """Return the feature groups and the domain of a dataset, nothing for a dataset without a conf file."""
    if dataset not in known(conf, "dataset"):
        return {}
    declared = read_dataset(conf, dataset)
    return {"features": tuple(declared.features), "domain": domain_of(declared.target)}

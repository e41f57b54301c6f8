"""The champion: the predictor with the smallest inner validation error, fitted on every row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.config.conf_files import read_yaml
from perfcast.config.dataset_conf import read_dataset
from perfcast.config.predictor_conf import read_predictor
from perfcast.evaluation import choose_champion
from perfcast.evaluation.supplementary_tables import predicts_shares
from perfcast.experiment.described import DescribedData, fit_described_uncertainty
from perfcast.experiment.fitting import fit_rows, last_year, training_rows
from perfcast.experiment.selection import PredictorFactory, predictor_factory
from perfcast.inference.champion_files import save_champion
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Table
from perfcast.schema.table_files import read_parquet
from perfcast.sources.source_spec import MANIFEST
from perfcast.splits import is_compared
from perfcast.utils.io import atomic_folder, read_object, sha256
from perfcast.utils.progress import Progress, ignore_progress

_REASON = "geometric mean over splits of the inner validation {error}, measured inside the training parts"
_NO_SPLIT = "first predictor listed: every split leaks on purpose or trains on less, so no split compares predictors"
_NO_VALIDATION = "first predictor listed: no split has validation rows to choose by"


@dataclass(frozen=True)
class ChampionChoice:
    """The chosen predictor, the reason, and the errors that were compared.

    `errors` is {split: {predictor: inner validation error or None}} in `metric`; `excluded` lists splits that do not
    count.
    """

    predictor: str
    reason: str
    metric: str
    errors: dict[Any, dict[Any, Any]]
    excluded: list[str]


def select_champion(
    runs: Path, splits: Sequence[str], predictors: Sequence[str], *, are_shares: bool = False
) -> ChampionChoice:
    """Select the predictor with the smallest inner validation error over the runs of a dataset.

    The error is the MAPE, of shares the MAE in points. Splits that leak on purpose or train on less do not count, nor
    does one without any error. Without any error at all the first predictor is selected.
    """
    compared = [split for split in splits if is_compared(split)]
    metric, words, read = (
        ("validation_mae", "MAE (points)", _validation_points)
        if are_shares
        else ("validation_mape", "MAPE (%)", _validation_mape)
    )
    lines = [(split, predictor, read(runs / split / predictor)) for split in compared for predictor in predictors]
    inner = pd.DataFrame(lines, columns=["split", "predictor", "error"])
    if not compared:
        name = predictors[0]
        reason = _NO_SPLIT
    elif inner["error"].isna().all():
        name = predictors[0]
        reason = _NO_VALIDATION
    else:
        has_error = inner.groupby("split")["error"].transform("count") > 0
        name = choose_champion(inner[has_error])
        reason = _REASON.format(error=words)
    known = inner.astype(object).where(inner.notna(), None)
    errors = known.pivot(index="split", columns="predictor", values="error").to_dict("index")
    return ChampionChoice(name, reason, metric, errors, [split for split in splits if split not in compared])


def _validation_mape(run: Path) -> float | None:
    value: float | None = read_object(run / "validation.json", "validation_mape")["validation_mape"]
    return value


def _validation_points(run: Path) -> float | None:
    """Return the MAE in points of the first backtest of the first fold, None where there is none."""
    frame = read_parquet(run / "backtest.parquet", ("fold", "backtest", "measured", "predicted"))
    first = frame[(frame["fold"] == 0) & (frame["backtest"] == 0)]
    return None if first.empty else float(100 * (first["predicted"] - first["measured"]).abs().mean())


def fit_all_rows(table: Table, make: PredictorFactory, seed: int, label_outlier: float | None) -> Predictor:
    """Fit on every measured row, for machines that nobody has measured; choices are made on the last year."""
    rows = training_rows(table, np.full(len(table.frame), "train", dtype=object), label_outlier)
    return fit_rows(make(seed), table, rows, last_year(table, rows))


def describe_source(raw: Path, name: str) -> dict[str, str]:
    """Return the address of an ingested source, and when its files were retrieved, as its manifest says."""
    manifest = read_object(raw / name / MANIFEST)
    return {"source": manifest.get("homepage", ""), "retrieved": manifest.get("retrieved", "")}


def write_champion(
    out: Path,
    conf: Path,
    dataset: str,
    *,
    runs: Path,
    table: Path,
    standard: Path,
    raw: Path,
    splits: Sequence[str],
    predictors: Sequence[str],
    preset: str,
    seed: int,
    max_backtests: int,
    progress: Progress = ignore_progress,
) -> dict[str, Any]:
    """Select, fit and write the champion of a dataset; return its about.json.

    `conf` is the folder of configuration files, `out` the folder that `load_champion` reads.
    """
    progress("selection by inner validation", 0, 4)
    declared = read_dataset(conf, dataset)
    base = out.parent / declared.bridge.dataset if declared.bridge else None
    data = DescribedData.read(declared, table, standard, raw, base)
    selected = select_champion(runs, splits, predictors, are_shares=predicts_shares(data.table))
    progress(f"fit of {selected.predictor} on {len(data.table.frame)} rows", 1, 4)
    trainer = read_yaml(conf / "trainer" / "default.yaml")
    chosen = read_predictor(conf, selected.predictor)
    make = predictor_factory(chosen, chosen.arguments(preset), trainer)
    predictor = fit_all_rows(data.table, make, seed, declared.label_outlier)
    progress("uncertainty on backtests", 2, 4)
    uncertainty = fit_described_uncertainty(data, make, seed, declared.label_outlier, max_backtests)
    about = {
        "predictor": selected.predictor,
        "chosen_by": selected.reason,
        selected.metric: selected.errors,
        "splits_not_counted": selected.excluded,
        "features": declared.features,
        "dataset": dataset,
        "preset": preset,
        "seed": seed,
        "rows": len(data.table.frame),
        "table_sha256": sha256(table),
        "bridge": declared.bridge and declared.bridge.model_dump(),
        "notice": declared.notice,
        **describe_source(raw, declared.sources.required[0]),
    }
    progress(f"writing of {out}", 3, 4)
    with atomic_folder(out) as folder:
        save_champion(
            folder,
            predictor,
            uncertainty,
            standard=data.standard,
            table=data.table,
            raw=data.raw,
            about=about,
            base=base,
        )
    return about

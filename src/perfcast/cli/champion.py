"""Choose the best predictor by inner validation, fit it on every row, register it in MLflow."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from perfcast.cli import _numbers
from perfcast.cli._common import add_project
from perfcast.config import compose, read_dataset, read_predictor, read_yaml

_REASON = "geometric mean over splits of the inner validation MAPE (%), measured inside the training parts"
_NO_QUESTION = (
    "first predictor listed: every split leaks on purpose or trains on less, so none is a question to choose by"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("dataset")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the data set's runs")
    parser.add_argument("--table", type=Path, required=True, help="the table with features")
    parser.add_argument("--standard", type=Path, required=True, help="the standard table that it was made from")
    parser.add_argument("--raw", type=Path, required=True, help="folder of the ingested sources")
    parser.add_argument("--splits", nargs="+", required=True)
    parser.add_argument("--predictors", nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--schedule", choices=["quick", "full"], default="full")
    parser.add_argument(
        "--rehearsals", type=_numbers.rehearsals, default=1, help="most rehearsals that its intervals rest on"
    )
    parser.add_argument("--seed", type=_numbers.seed, default=0)
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Write the champion's folder: the model, and about.json with what it is and why it was chosen."""
    import pandas as pd

    from perfcast import experiment
    from perfcast.calibrating import calibrate
    from perfcast.evaluation import choose_champion
    from perfcast.inference.champion import save_champion
    from perfcast.io import atomic_folder, read_object, sha256
    from perfcast.splits import is_question
    from perfcast.table_files import read_table

    questions = [split for split in options.splits if is_question(split)]
    inner = pd.DataFrame(
        [
            {
                "split": split,
                "predictor": predictor,
                "valid_mape": read_object(options.runs / split / predictor / "inner.json", "valid_mape")["valid_mape"],
            }
            for split in questions
            for predictor in options.predictors
        ],
        columns=["split", "predictor", "valid_mape"],
    )
    if not questions:
        name, reason = options.predictors[0], _NO_QUESTION
    elif inner["valid_mape"].isna().all():
        # too few rows to set some aside: nothing to choose by, so the first baseline serves and about.json says so
        name, reason = options.predictors[0], "first predictor listed: no split sets rows aside to choose by"
    else:
        name, reason = choose_champion(inner), _REASON
    conf = read_predictor(options.project / "conf", name)
    dataset = read_dataset(options.project / "conf", options.dataset)
    table = read_table(options.table)
    trainer = read_yaml(options.project / "conf" / "trainer" / "default.yaml")
    candidates = experiment.makers(conf, options.schedule, trainer)
    fitted, choice = experiment.fit_all(table, candidates, options.seed, dataset.label_outlier)
    make = candidates[choice.candidate]
    calibrated = calibrate(table, make, options.seed, dataset.label_outlier, options.rehearsals)
    errors = (
        inner.astype(object).where(inner.notna(), None).pivot(index="split", columns="predictor", values="valid_mape")
    )
    about = {
        "dataset": options.dataset,
        "predictor": name,
        "schedule": options.schedule,
        "seed": options.seed,
        "rows": len(table.frame),
        "table_sha256": sha256(options.table),
        "chosen_by": reason,
        "valid_mape": errors.to_dict("index"),
        "splits_not_counted": [split for split in options.splits if split not in questions],
        "candidate": asdict(choice),
        "features": dataset.features,
    }
    raw = {
        source: options.raw / source
        for source in (*dataset.sources.required, *dataset.sources.optional)
        if read_object(options.raw / source / "manifest.json", "status")["status"] == "present"
    }
    with atomic_folder(options.out) as folder:
        save_champion(
            folder, fitted, calibrated, standard=read_table(options.standard), table=table, raw=raw, about=about
        )
    print(f"{options.dataset}: champion {name}", file=sys.stderr)
    _record(options, about)
    return 0


def _record(options: argparse.Namespace, about: dict[str, Any]) -> None:
    """Log the champion's folder as a model and give it the alias `champion` in the registry."""
    from perfcast import tracking
    from perfcast.inference.champion import load_champion

    config = compose(options.project, [f"dataset={options.dataset}", f"predictor={about['predictor']}", "split=all"])
    store = tracking.store_from(config["tracking"], options.project, os.environ)
    if store is None:
        return
    tags = {"perfcast.kind": "champion", "dataset": options.dataset, "predictor": about["predictor"]}
    with tracking.start_run(store, f"perfcast/{options.dataset}", f"champion: {about['predictor']}", tags) as record:
        record.log_params({key: about[key] for key in ("predictor", "schedule", "seed", "rows", "table_sha256")})
        record.log_artifacts(options.out / "about.json")
        champion = load_champion(options.out)
        uri = record.log_champion(options.out, champion.field_types(), champion.example_machine())
        tracking.register_champion(store, options.dataset, record.run_id, uri, tags)

"""Write forecasts of announced processors that nobody has measured.

The file is an entry of <results>/ledger, named by its SHA-256, and is never
made again. `perfcast update` scores it when results come. With --split the
entry is a run that was trained before the test months of the split.

Examples:
    perfcast ledger --dataset spec_cpu2026
    perfcast ledger --split forward_2025 --predictor hybrid_trees
"""

from __future__ import annotations

import argparse
from datetime import date
from typing import TYPE_CHECKING

from perfcast.cli import asking
from perfcast.cli.arguments import add_project
from perfcast.utils.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from perfcast.schema.table import Table

_YEARS = 2
"""Models whose facts were public longer before the newest result will hardly get a first result."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    asking.add_champion(parser, facts=False)
    parser.add_argument("--split", metavar="NAME", help="forward split of a run: a forecast that was frozen before it")
    parser.add_argument("--predictor", default="hybrid_trees", metavar="NAME", help="predictor of the run")
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Write the entry, score it, and print its scores."""
    from perfcast.code_hash import code_digest
    from perfcast.experiment.ledger import FOLDER, add_entry, list_ledger
    from perfcast.schema.table_files import read_table

    table = read_table(options.results / "features" / f"{options.dataset}.parquet")
    make = _take_run if options.split else _predict_announced
    predictions, about = make(options, table)
    folder = options.results / FOLDER
    about |= {
        "dataset": table.dataset,
        "made": str(date.today()),
        "revision": code_digest("perfcast.inference.predict"),
    }
    name = f"{table.dataset}-{about['until']}"
    path = add_entry(folder, name, predictions, about)
    print(f"{path}: {len(predictions)} forecasts")
    for line in list_ledger(folder, table):
        print(line)
    return 0


def _take_run(options: argparse.Namespace, table: Table) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the predictions of a run, by result, and what tells of it."""
    import pandas as pd

    from perfcast.experiment.task_export import export_run
    from perfcast.schema.table import Tag
    from perfcast.splits import declaration

    since = declaration(options.split).since
    if not since:
        raise UserError("--split must be a forward split", f"{options.split} has no first month", "take forward_2025")
    results = options.results
    folder = results / "runs" / table.dataset / options.split / options.predictor
    in_domain = results / "in_domain" / table.dataset / f"{options.split}.parquet"
    made = export_run(folder, options.split, "", in_domain)
    made = made[made["seed"] == made["seed"].min()]
    renamed = made.rename(columns={"row": table.column_of(Tag.ROW), "point": "estimate"})
    until = str(pd.Period(since, freq="M") - 1)
    names = [table.column_of(Tag.ROW), "estimate", "low", "high"]
    return renamed[names], {"predictor": options.predictor, "until": until}


def _predict_announced(options: argparse.Namespace, table: Table) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the champion's predictions of unmeasured models, and what tells of it."""
    from perfcast.api import load_champion
    from perfcast.schema.table import Tag
    from perfcast.utils.packaged_project import default_champion

    path = options.champion or default_champion(options.results, options.dataset)
    champion = load_champion(path, dataset=options.dataset)
    machines = list_unmeasured(table)
    described = machines.rename(columns={"cpu_model": "processor"})
    answers = champion.predict(described).to_frame().dropna(subset="estimate")
    tasks = {title: task for task, title in champion.rules.names.task_titles.items()}
    # answers are by the line of their machine, the first of which is 1
    named = machines.iloc[answers["line"].astype(int) - 1].reset_index(drop=True)
    answers = answers.reset_index(drop=True)
    named[table.column_of(Tag.TASK)] = answers["task"].map(tasks)
    for name in ("estimate", "low", "high"):
        named[name] = answers[name]
    return named, {"predictor": champion.name, "until": str(champion.results_until)}


def list_unmeasured(table: Table) -> pd.DataFrame:
    """Return the CPU models with facts and without results, with one processor and as many as two, if they take two.

    Shapes: one row per machine, columns cpu_model and chips.
    """
    import pandas as pd

    from perfcast.domains.servers.processors.cpu_models import KNOWN_FROM, read_cpu_models
    from perfcast.schema.table import Tag

    since = table.frame[table.column_of(Tag.TIME)].max() - pd.DateOffset(years=_YEARS)
    listed = read_cpu_models()
    measured = set(table.frame["cpu_model"].dropna().astype("str"))
    chosen = listed[(listed[KNOWN_FROM] > since) & ~listed.index.isin(measured)]
    rows = []
    for name, sockets in chosen["max_sockets"].items():
        chips = (1, 2) if sockets >= 2 else (1,)
        rows += [{"cpu_model": name, "chips": count} for count in chips]
    return pd.DataFrame(rows, columns=["cpu_model", "chips"])

"""Select the best predictor by inner validation, fit it on every row, register it in MLflow."""

from __future__ import annotations

import argparse
import sys

from perfcast.cli._arguments import add_shared, present_sources
from perfcast.config.conf_files import read_yaml
from perfcast.config.dataset_conf import read_dataset
from perfcast.config.predictor_conf import read_predictor


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "dataset --runs --table --standard --raw --splits --predictors --out")
    add_shared(parser, "--preset --backtest-windows --seed --project")


def run(options: argparse.Namespace) -> int:
    """Write the champion's folder: the model, and about.json with its name and the reason of the choice."""
    from perfcast.experiment.champion import describe_champion, fit_champion, select_champion
    from perfcast.inference.champion import save_champion
    from perfcast.schema.table_files import read_table
    from perfcast.utils.io import atomic_folder, sha256

    conf = options.project / "conf"
    selected = select_champion(options.runs, options.splits, options.predictors)
    dataset, table = read_dataset(conf, options.dataset), read_table(options.table)
    champion = fit_champion(
        table,
        read_predictor(conf, selected.predictor),
        dataset,
        preset=options.preset,
        trainer=read_yaml(conf / "trainer" / "default.yaml"),
        seed=options.seed,
        max_backtests=options.backtest_windows,
    )
    about = {
        **describe_champion(champion, selected),
        **{"dataset": options.dataset, "preset": options.preset, "seed": options.seed},
        **{"rows": len(table.frame), "table_sha256": sha256(options.table), "features": dataset.features},
    }
    raw = present_sources(options.raw, (*dataset.sources.required, *dataset.sources.optional))
    standard = read_table(options.standard)
    with atomic_folder(options.out) as folder:
        save_champion(
            folder, champion.predictor, champion.uncertainty, standard=standard, table=table, raw=raw, about=about
        )
    print(f"{options.dataset}: champion {selected.predictor}", file=sys.stderr)
    return 0

"""Search a predictor's hyperparameters for one split, fold by fold, on validation rows inside the training part."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from perfcast.cli._arguments import add_shared
from perfcast.utils.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "dataset split predictor --table --folds --preset --project")
    parser.add_argument("--out", type=Path, required=True, help="folder of the studies: <dataset>/<split>/<predictor>")
    parser.add_argument("--trials", type=int, default=20, help="finished trials per fold, earlier runs' included")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="start no trial of a fold after this time")
    parser.add_argument("--seed", type=int, default=0, help="seed of the search and of every training")
    parser.add_argument("--fold", type=int, nargs="+", metavar="K", help="only these folds (default: all)")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="processes that share the work; changes no result"
    )
    parser.add_argument(
        "--at-once",
        type=int,
        default=1,
        metavar="N",
        help="trials of a fold that are proposed together and run side by side; part of the search, because none of "
        "them uses the results of the others (default: 1)",
    )
    parser.add_argument(
        "--storage",
        default="sqlite",
        metavar="PLACE",
        help="where the studies are: sqlite, a file below --out; journal, a file that a network file system can hold; "
        "or the URL of a database",
    )
    parser.add_argument(
        "--worker",
        action="store_true",
        help="run trials until every study is complete, and write nothing else: for further jobs",
    )
    parser.add_argument("--write", action="store_true", help="write the chosen values into conf/tuned")
    parser.add_argument(
        "--also",
        nargs="+",
        default=[],
        metavar="SPLIT",
        help="write the values for these splits too; their files lie beside --folds, and the search must not use their "
        "test rows",
    )


def run(options: argparse.Namespace) -> int:
    """Continue the study of every fold and write the outcome."""
    _check(options)
    from perfcast.config.conf_files import read_yaml
    from perfcast.config.dataset_conf import read_dataset
    from perfcast.config.predictor_conf import read_predictor

    conf = read_predictor(options.project / "conf", options.predictor)
    dataset = read_dataset(options.project / "conf", options.dataset)
    from perfcast.experiment import tuning
    from perfcast.experiment.tuning.search import write_tuned
    from perfcast.schema.table_files import read_table
    from perfcast.splits import read_folds
    from perfcast.utils.io import sha256, write_text
    from perfcast.utils.safe_yaml import yaml_text

    table = read_table(options.table)
    folds = read_folds(options.folds, table)
    count = len(folds.columns)
    chosen = range(count) if options.fold is None else sorted(set(options.fold))
    if wrong := [fold for fold in chosen if not 0 <= fold < count]:
        raise UserError(f"--fold must be from 0 to {count - 1} in {options.split}", f"got {wrong[0]}")
    for split in options.also:
        _check_unseen(options, split, folds)
    search = tuning.make_search(
        f"{options.dataset}/{options.split}/{options.predictor}",
        conf,
        options.preset,
        machine=read_yaml(options.project / "conf" / "trainer" / "default.yaml"),
        seed=options.seed,
        label_outlier=dataset.label_outlier,
        origin={"table": sha256(options.table), "folds": sha256(options.folds)},
        at_once=options.at_once,
    )
    if options.jobs > (possible := len(chosen) * options.at_once):
        raise UserError(
            f"--jobs must be at most folds x --at-once, here {possible}",
            f"got {options.jobs}",
            f"Set --jobs {possible}, or a larger --at-once",
        )
    place = options.out / options.dataset / options.split
    store = tuning.open_store(place / options.predictor, options.storage)

    def report(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    parts = {fold: folds[folds.columns[fold]].to_numpy() for fold in chosen}
    tuning.begin(search, store, parts)
    with _helpers(options, report):
        tuning.tune(search, store, table, parts, trials=options.trials, timeout=options.timeout, report=report)
    if options.worker:
        return 0
    outcomes = {
        fold: outcome
        for fold in range(count)
        if (outcome := tuning.outcome(search, store, fold, options.trials)) is not None
    }
    command = _command(options)
    content = {"command": command, "folds": {f"fold_{fold}": asdict(outcome) for fold, outcome in outcomes.items()}}
    write_text(place / f"{options.predictor}.yaml", yaml_text(content))
    if options.write:
        minimum = options.trials if options.timeout is None else 1
        behind = [fold for fold in range(count) if fold not in outcomes or outcomes[fold].trials < minimum]
        if behind:
            raise UserError(
                f"--write must find {minimum} finished trials in each of the {count} folds",
                f"fold {behind[0]} has {outcomes[behind[0]].trials if behind[0] in outcomes else 0}",
                "run again without --fold",
            )
        values = [outcomes[fold].values for fold in range(count)]
        splits = [options.split, *options.also]
        conf_folder = options.project / "conf"
        path = write_tuned(conf_folder, options.dataset, options.predictor, splits, command=command, folds=values)
        report(f"{path.relative_to(options.project)}: tuned for {', '.join(splits)}")
    return 0


def _check(options: argparse.Namespace) -> None:
    """Check numbers and files before slow imports."""
    if options.trials < 1 or options.seed < 0 or (options.timeout is not None and options.timeout <= 0):
        raise UserError("--trials and --timeout must be positive and --seed not negative", "one of them is not")
    if options.jobs < 1 or options.at_once < 1:
        raise UserError("--jobs and --at-once must be positive", "one of them is not")
    if options.worker and (options.write or options.jobs > 1):
        raise UserError("--worker must be one process that writes nothing", "--write or --jobs was given")
    if not options.folds.is_file():
        raise UserError(
            "--folds must be a split", f"no file {options.folds}", "run snakemake, or perfcast pipeline split"
        )


def _check_unseen(options: argparse.Namespace, split: str, folds: pd.DataFrame) -> None:
    """Raise for a split that tests on rows which the search trains or validates on."""
    from perfcast.splits import read_folds

    path = options.folds.with_name(f"{split}.parquet")
    if not path.is_file():
        raise UserError("--also must name splits whose files lie beside --folds", f"no file {path}", "run snakemake")
    other = read_folds(path)
    if len(other.columns) != len(folds.columns) or len(other) != len(folds):
        raise UserError(
            f"--also must name splits of the same rows and folds as {options.split}",
            f"{split} has {len(other.columns)} folds of {len(other)} rows",
        )
    for mine, its in zip(folds.columns, other.columns, strict=True):
        seen = folds[mine].isin(["train", "validation"]).to_numpy() & (other[its] == "test").to_numpy()
        if seen.any():
            raise UserError(
                "--also must name splits whose test rows take no part in the search",
                f"{split} tests on {int(seen.sum())} of them",
                "tune it by itself",
            )


@contextmanager
def _helpers(options: argparse.Namespace, report: Callable[[str], None]) -> Iterator[None]:
    """Start `--jobs` minus one further processes that share the work within the block."""
    words = [sys.executable, "-m", "perfcast", *_words(options), "--worker", "--storage", options.storage]
    words += ["--project", str(options.project)]
    if options.fold is not None:
        words += ["--fold", *map(str, options.fold)]
    helpers = [subprocess.Popen(words) for _ in range(options.jobs - 1)]
    try:
        yield
        for helper in helpers:
            if code := helper.wait():
                report(f"a helper process ended with exit code {code}; another process repeated its trial")
    finally:
        for helper in helpers:
            helper.terminate()
            helper.wait()


def _command(options: argparse.Namespace) -> str:
    """Return the command that, in the project's folder, finds the same values for all folds.

    The study of a fold does not depend on the other folds, so --fold is left out.
    """
    words = ["perfcast", *_words(options)]
    if options.also:
        words += ["--also", *options.also]
    return shlex.join([*words, *(["--write"] if options.write else [])])


def _words(options: argparse.Namespace) -> list[str]:
    """Return the arguments that determine the values."""
    words = ["tune", options.dataset, options.split, options.predictor]
    for name in ("table", "folds", "out"):
        path: Path = getattr(options, name)
        inside = path.is_absolute() and path.is_relative_to(options.project.resolve())
        words += [f"--{name}", str(path.relative_to(options.project.resolve()) if inside else path)]
    words += ["--trials", str(options.trials), "--seed", str(options.seed), "--preset", options.preset]
    if options.timeout is not None:
        words += ["--timeout", f"{options.timeout:g}"]
    if options.at_once > 1:
        words += ["--at-once", str(options.at_once)]
    return words

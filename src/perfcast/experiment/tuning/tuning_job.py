"""Tuning of one predictor for one split: the studies of its folds, the outcome file, and the tuned values in conf."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from perfcast.config.conf_files import read_yaml
from perfcast.config.dataset_conf import read_dataset
from perfcast.config.predictor_conf import read_predictor
from perfcast.experiment.tuning.search import Search, make_search, write_tuned
from perfcast.experiment.tuning.studies import Store, open_store
from perfcast.experiment.tuning.trial_runs import begin, outcome, tune
from perfcast.schema.table_files import read_table
from perfcast.splits import read_folds
from perfcast.utils.errors import UserError
from perfcast.utils.io import sha256, write_text
from perfcast.utils.safe_yaml import yaml_text

Report = Callable[[str], None]
"""Gets one line for the user."""


@dataclass(frozen=True)
class TuningJob:
    """Options of `perfcast tune`. Units: `timeout` seconds; None starts trials until all are done.

    `folds` are the numbers of the folds to work on, all without them. `at_once` trials of a fold are proposed together.
    `also` names splits that get the same values. `write` puts the values into conf/tuned.
    """

    dataset: str
    split: str
    predictor: str
    table_file: Path
    folds_file: Path
    out: Path
    project: Path
    preset: str
    trials: int
    seed: int
    timeout: float | None = None
    folds: Sequence[int] | None = None
    at_once: int = 1
    storage: str = "sqlite"
    also: Sequence[str] = ()
    write: bool = False

    @property
    def place(self) -> Path:
        """Folder of the studies and outcomes of the split."""
        return self.out / self.dataset / self.split

    @property
    def conf(self) -> Path:
        """Folder of configuration files."""
        return self.project / "conf"

    @property
    def command(self) -> str:
        """The command that, in the project's folder, finds the same values for all folds.

        The study of a fold does not depend on the other folds, so --fold is left out.
        """
        words = ["perfcast", *self.words]
        if self.also:
            words += ["--also", *self.also]
        return shlex.join([*words, *(["--write"] if self.write else [])])

    @property
    def words(self) -> list[str]:
        """The words of the command that determine the values."""
        words = ["tune", self.dataset, self.split, self.predictor]
        for name, path in (("table", self.table_file), ("folds", self.folds_file), ("out", self.out)):
            inside = path.is_absolute() and path.is_relative_to(self.project.resolve())
            words += [f"--{name}", str(path.relative_to(self.project.resolve()) if inside else path)]
        words += ["--trials", str(self.trials), "--seed", str(self.seed), "--preset", self.preset]
        if self.timeout is not None:
            words += ["--timeout", f"{self.timeout:g}"]
        return [*words, *(["--at-once", str(self.at_once)] if self.at_once > 1 else [])]


def tune_predictor(job: TuningJob, report: Report, *, processes: int = 1, worker: bool = False) -> None:
    """Continue the study of every fold and write the outcome; a worker runs trials alone.

    Args:
        report: Gets a line per trial.
        processes: Processes that share the work; no result depends on their number.

    Raises: UserError for options that the split, the store or the studies so far refuse.
    """
    if worker and (job.write or processes > 1):
        raise UserError("--worker must be one process that writes nothing", "--write or --jobs was given")
    if not job.folds_file.is_file():
        fact = f"no file {job.folds_file}"
        raise UserError("--folds must be a split", fact, "run snakemake, or perfcast pipeline split")
    search = _make_search(job)
    table = read_table(job.table_file)
    folds = read_folds(job.folds_file, table)
    count = len(folds.columns)
    chosen = range(count) if job.folds is None else sorted(set(job.folds))
    if wrong := [fold for fold in chosen if not 0 <= fold < count]:
        raise UserError(f"--fold must be from 0 to {count - 1} in {job.split}", f"it is {wrong[0]}")
    if processes > (possible := len(chosen) * job.at_once):
        remedy = f"set --jobs {possible}, or a larger --at-once"
        raise UserError(f"--jobs must be at most folds x --at-once, here {possible}", f"it is {processes}", remedy)
    for split in job.also:
        check_unseen(split, job.split, job.folds_file, folds)
    store = open_store(job.place / job.predictor, job.storage)
    subsets = {fold: folds[folds.columns[fold]].to_numpy() for fold in chosen}
    begin(search, store, subsets)
    with _start_helpers(job, processes - 1, report):
        tune(search, store, table, subsets, trials=job.trials, timeout=job.timeout, report=report)
    if not worker:
        _write_outcomes(job, search, store, count, report)


def _make_search(job: TuningJob) -> Search:
    return make_search(
        f"{job.dataset}/{job.split}/{job.predictor}",
        read_predictor(job.conf, job.predictor),
        job.preset,
        machine=read_yaml(job.conf / "trainer" / "default.yaml"),
        seed=job.seed,
        label_outlier=read_dataset(job.conf, job.dataset).label_outlier,
        origin={"table": sha256(job.table_file), "folds": sha256(job.folds_file)},
        at_once=job.at_once,
    )


def _write_outcomes(job: TuningJob, search: Search, store: Store, count: int, report: Report) -> None:
    """Write the best trial of every fold to the outcome file and, where the job says so, into conf/tuned."""
    outcomes = {fold: best for fold in range(count) if (best := outcome(search, store, fold, job.trials)) is not None}
    content = {"command": job.command, "folds": {f"fold_{fold}": asdict(best) for fold, best in outcomes.items()}}
    write_text(job.place / f"{job.predictor}.yaml", yaml_text(content))
    if not job.write:
        return
    minimum = job.trials if job.timeout is None else 1
    trials = {fold: outcomes[fold].trials if fold in outcomes else 0 for fold in range(count)}
    if behind := [fold for fold in trials if trials[fold] < minimum]:
        raise UserError(
            f"--write must find {minimum} finished trials in each of the {count} folds",
            f"fold {behind[0]} has {trials[behind[0]]}",
            "run again without --fold",
        )
    values = [outcomes[fold].values for fold in range(count)]
    splits = [job.split, *job.also]
    path = write_tuned(job.conf, job.dataset, job.predictor, splits, command=job.command, folds=values)
    report(f"{path.relative_to(job.project)}: tuned for {', '.join(splits)}")


def check_unseen(other: str, split: str, folds_file: Path, folds: pd.DataFrame) -> None:
    """Raise a UserError where the split `other` tests on rows that the search of `split` trains or validates on.

    The file of `other` lies beside `folds_file`, that of `split`, whose content is `folds`.
    """
    path = folds_file.with_name(f"{other}.parquet")
    if not path.is_file():
        raise UserError("--also must name splits whose files lie beside --folds", f"no file {path}", "run snakemake")
    others = read_folds(path)
    if len(others.columns) != len(folds.columns) or len(others) != len(folds):
        raise UserError(
            f"--also must name splits of the same rows and folds as {split}",
            f"{other} has {len(others.columns)} folds of {len(others)} rows",
        )
    for name, name_of_other in zip(folds.columns, others.columns, strict=True):
        seen = folds[name].isin(["train", "validation"]).to_numpy() & (others[name_of_other] == "test").to_numpy()
        if seen.any():
            raise UserError(
                "--also must name splits whose test rows take no part in the search",
                f"{other} tests on {int(seen.sum())} of them",
                "tune it by itself",
            )


@contextmanager
def _start_helpers(job: TuningJob, count: int, report: Report) -> Iterator[None]:
    """Start further processes that share the work within the block."""
    words = [sys.executable, "-m", "perfcast", *job.words, "--worker", "--storage", job.storage]
    words += ["--project", str(job.project)]
    if job.folds is not None:
        words += ["--fold", *map(str, job.folds)]
    helpers = [subprocess.Popen(words) for _ in range(count)]
    try:
        yield
        for helper in helpers:
            if code := helper.wait():
                report(f"a helper process ended with exit code {code}; another process repeated its trial")
    finally:
        for helper in helpers:
            helper.terminate()
            helper.wait()

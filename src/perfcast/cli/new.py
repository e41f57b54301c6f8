"""Write the files of a new predictor, dataset or domain."""

from __future__ import annotations

from pathlib import Path

from perfcast.cli.pipeline import Stage


def dataset(file: Path, project: Path, **given: str | None) -> None:
    """Write the conf of a CSV file of your own, by looking at it.

    The file is copied to data/embedded. The target is the column that is named
    like a score or a time, else the last one of numbers. Texts tell what was
    measured and what was run; the other columns are features. Read the conf that
    is written, and correct it.

    Examples:
        perfcast new dataset scores.csv
        perfcast new dataset scores.csv --target ops --entity machine --task suite
    """
    from perfcast.ops.new_files import write_dataset

    print(write_dataset(file, {name: heading or "" for name, heading in given.items()}, project))


def domain(name: str, out: Path | None) -> None:
    """Write a new domain, a distribution of its own.

    It has a dataset, a split, a feature group and rules of descriptions.

    Examples:
        perfcast new domain bikes --out bikes
    """
    from perfcast.ops.new_files import write_domain

    print(write_domain(name, out or Path(name)))


def predictor(name: str, project: Path) -> None:
    """Write the files of a new predictor.

    They are its module, its conf, an experiment and its text in the
    documentation. It works, as the mean of the training scores: put your idea in
    its place.

    Examples:
        perfcast new predictor mean_score
    """
    from perfcast.ops.new_files import write_predictor

    print(write_predictor(name, project))


_NAME = {"name": {"help": "name in lower case with underscores"}}
_FILE = {"file": {"type": Path, "help": "CSV file with a header"}}
_COLUMNS = {"target": "measured quantity", "entity": "name of what was measured", "task": "name of what was run"}
_GIVEN = {
    f"--{name}": {"metavar": "COLUMN", "help": f"column with the {text}"}
    for name, text in {**_COLUMNS, "date": "date of the measurement"}.items()
}
_OUT = {"--out": {"type": Path, "metavar": "FOLDER", "help": "folder to write (default: the name)"}}
KINDS = {
    "dataset": Stage(dataset, "--project", {**_FILE, **_GIVEN}, {}),
    "domain": Stage(domain, "", {**_NAME, **_OUT}, {}),
    "predictor": Stage(predictor, "--project", _NAME, {}),
}
"""Kinds of new files, each a command."""

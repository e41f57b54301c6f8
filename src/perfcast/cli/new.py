"""Write the files of a new predictor, dataset or domain."""

from __future__ import annotations

from pathlib import Path

from perfcast.cli.stage import Stage


def dataset(
    file: Path,
    *,
    target: str = "",
    entity: str = "",
    task: str = "",
    date: str = "",
    project: Path = Path(),
) -> None:
    """Write the conf of a CSV file of your own, by looking at it.

    The file is copied to data/embedded. The target is the column that is named
    like a score or a time, else the last one of numbers. Texts tell what was
    measured and what was run; the other columns are features. Read the conf that
    is written, and correct it.

    Args:
        file: CSV file with a header
        target: column with the measured quantity
        entity: column with the name of what was measured
        task: column with the name of what was run
        date: column with the date of the measurement

    Examples:
        perfcast new dataset scores.csv
        perfcast new dataset scores.csv --target ops --entity machine --task suite
    """
    from perfcast.ops.new_files import write_dataset

    columns = {"target": target, "entity": entity, "task": task, "date": date}
    print(write_dataset(file, columns, project))


def domain(name: str, *, out: Path | None = None) -> None:
    """Write a new domain, a distribution of its own.

    It has a dataset, a split, a feature group and rules of descriptions.

    Args:
        name: name in lower case with underscores
        out: folder to write (default: the name)

    Examples:
        perfcast new domain bikes --out bikes
    """
    from perfcast.ops.new_files import write_domain

    print(write_domain(name, out or Path(name)))


def predictor(name: str, *, project: Path = Path()) -> None:
    """Write the files of a new predictor.

    They are its module, its conf, an experiment and its text in the
    documentation. It works, as the mean of the training scores: put your idea in
    its place.

    Args:
        name: name in lower case with underscores

    Examples:
        perfcast new predictor mean_score
    """
    from perfcast.ops.new_files import write_predictor

    print(write_predictor(name, project))


KINDS = {"dataset": Stage(dataset), "domain": Stage(domain), "predictor": Stage(predictor)}
"""Kinds of new files, each a command."""

"""The champion of a data set: a folder that holds all that forecasts need, and nothing that is executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from perfcast.describing.entries import Vocabulary
from perfcast.describing.names import PartNames
from perfcast.errors import UserError
from perfcast.forecasting.donors import Donors
from perfcast.forecasting.knowledge import Knowledge, completion_of, describing_columns, fields_of
from perfcast.forecasting.neighbours import Neighbourhood
from perfcast.forecasting.tasks import TaskNames
from perfcast.io import first_changed, read_json
from perfcast.predictors.base import Predictor, load_predictor
from perfcast.uncertainty.conformal import UncertaintyModel


@dataclass(frozen=True)
class Champion:
    """The best predictor of a data set, fitted on every row, with what it knows and how sure it is."""

    dataset: str
    name: str
    schedule: str
    features: tuple[str, ...]
    predictor: Predictor
    knowledge: Knowledge
    calibrated: UncertaintyModel | None = None
    """How sure it is; None where too few rows were there to say so."""
    neighbourhood: Neighbourhood | None = None
    """What finds the nearest measured machines; None where there is no calibration to say what is near."""

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What a machine may be described by."""
        columns = describing_columns(self.knowledge.measured, self.features)
        return Vocabulary(columns, fields_of(self.dataset))

    @cached_property
    def part_names(self) -> PartNames:
        """The names that parts are known by."""
        return self.knowledge.part_names

    @cached_property
    def task_names(self) -> TaskNames:
        """The names that tasks are known by."""
        return TaskNames(self)

    @cached_property
    def designs(self) -> list[str]:
        """The designs of parts that something was measured of, the most measured first; see `completion`."""
        module = completion_of(self.dataset)
        return list(self.knowledge.measured.frame[module.DESIGN].value_counts().index) if module else []

    @cached_property
    def donors(self) -> Donors:
        """The measured results that say what is usual."""
        return Donors(self.knowledge.measured)

    @cached_property
    def typical(self) -> dict[str, int]:
        """The measured row of every task whose first target is the median of its last year."""
        return self.knowledge.typical(self.predictor.targets_)


def load_champion(folder: Path | str, dataset: str | None = None) -> Champion:
    """Read what `perfcast pipeline champion` wrote.

    Raises: UserError when there is none, it is another data set's than the one asked for, or something in it is not
    what was saved.
    """
    folder = Path(folder)
    path = folder / "about.json"
    if not path.is_file():
        what = "a champion" if dataset is None else f"a champion of {dataset!r}"
        raise UserError(f"there must be {what}", f"there is no {path}", "run snakemake to make it")
    try:
        return _loaded(folder, read_json(path), dataset)
    except UserError:
        raise
    except Exception as error:  # whatever a library raises for bytes that are not those it wrote
        fact = f"{folder} cannot be read ({type(error).__name__})"
        raise UserError("a champion must be as it was saved", fact, "make it again, or fetch it again") from error


def _loaded(folder: Path, about: Mapping[str, Any], dataset: str | None) -> Champion:
    if dataset is not None and about["dataset"] != dataset:
        raise UserError(f"the champion must be one of {dataset!r}", f"{folder} is of {about['dataset']!r}")
    if not (folder / "knowledge").is_dir():
        raise UserError("a champion must hold its knowledge", f"{folder} is of an older version", "make it again")
    if changed := first_changed(folder, about["files"]):
        raise UserError("a champion must be as it was saved", f"{changed} was changed", "make it again")
    knowledge = Knowledge.load(folder / "knowledge")
    place = folder / "intervals"
    calibrated = UncertaintyModel.load(place) if place.is_dir() else None
    return Champion(
        about["dataset"],
        about["predictor"],
        about["schedule"],
        tuple(about["features"]),
        load_predictor(folder / "model"),
        knowledge,
        calibrated,
        Neighbourhood.load(folder / "knowledge", knowledge.measured, calibrated) if calibrated else None,
    )

"""Public interface for Python: a champion with its operations, and the predictors as estimators.

Defaults and answers are those of the commands of the same names.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import date
from difflib import get_close_matches
from functools import cached_property, wraps
from html import escape
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypedDict, TypeGuard, TypeVar, Unpack

from perfcast.decisions.criteria import read_request
from perfcast.decisions.fleet import Sizing, size_fleet
from perfcast.decisions.machine_comparison import Comparison, compare_machines
from perfcast.decisions.match import INSTANCES, find_match
from perfcast.decisions.nearest_machines import MAX_COUNT, NearestMachines, find_nearest
from perfcast.decisions.ranking import Ranking, rank_machines
from perfcast.decisions.sizing_request import read_sizing
from perfcast.decisions.what_if import Grid, predict_grids
from perfcast.inference import champion as champion_folder
from perfcast.inference import champion_files
from perfcast.inference.machine_files import MachineEntry, Machines, read_machines
from perfcast.inference.measured_index import PublishedScores
from perfcast.inference.options import PredictOptions, make_options
from perfcast.inference.predict import predict_machines
from perfcast.inference.prediction import Driver, Estimate, Neighbor, Prediction, Predictions, Value
from perfcast.inference.suites import Measured, Suites, read_measured
from perfcast.predictors.predictor import Predictor
from perfcast.utils.errors import UserError, explain_missing_module
from perfcast.utils.nested import merged
from perfcast.utils.packaged_project import default_champion, packaged_project

__all__ = [
    "DEFAULT_CHAMPION",
    "Champion",
    "Comparison",
    "Driver",
    "Estimate",
    "Grid",
    "Hyperparameter",
    "Machines",
    "NearestMachines",
    "Neighbor",
    "Prediction",
    "Predictions",
    "Predictor",
    "Preset",
    "PublishedScores",
    "Ranking",
    "Sizing",
    "UserError",
    "Value",
    "estimator",
    "load_champion",
    "predict",
]

DEFAULT_CHAMPION = Path("results/champion/spec_cpu2017")
Preset = Literal["quick", "full"]
Hyperparameter = bool | int | float | str | None | Sequence[float] | Sequence[str] | Mapping[str, object]
Month = str | date | None
"""`2026-03` or a date; None is the month of the newest result or of a later launch."""

_OPTIONS = {"target": "targets", "task": "tasks", "no-assume": "assume"}
"""Options of the commands whose arguments in Python have another name."""


class Asked(TypedDict, total=False):
    """Keywords of everything that predicts, see `Champion`."""

    when: Month
    level: float
    assume: bool
    measured: Machines | None
    suite: Literal["both"] | None


class Predicted(Asked, total=False):
    """Keywords of `Champion.predict`: `neighbors` is the number of nearest measured results of an estimate."""

    neighbors: int
    explain: bool
    strict: bool


_KEYWORDS = {f"Unpack[{each.__name__}]": tuple(each.__annotations__) for each in (Asked, Predicted)}

_P = ParamSpec("_P")
_R = TypeVar("_R")


def for_python(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a function whose errors have the words of Python.

    An unknown keyword is a TypeError that names the nearest ones, messages name arguments instead of options, and an
    absent optional package is a `UserError`.
    """
    known = [name for name in inspect.signature(function).parameters if name not in ("self", "options")]
    known += _KEYWORDS.get(function.__annotations__.get("options", ""), ())
    takes_any = "hyperparameters" in known

    @wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        unknown = [] if takes_any else [name for name in kwargs if name not in known]
        if unknown:
            raise _unknown_keyword(f"{function.__name__}()", unknown[0], known)
        try:
            return function(*args, **kwargs)
        except UserError as error:
            raise UserError(*map(_name_arguments, (error.requirement, error.fact, error.remedy))) from error.__cause__
        except ImportError as error:
            raise explain_missing_module(error, f"{function.__name__}()") or error from None

    return called


def _unknown_keyword(function: str, name: str, known: Sequence[str]) -> TypeError:
    near = get_close_matches(name, known, n=2, cutoff=0.4) or known
    return TypeError(f"{function} has no argument {name!r}; did you mean {' or '.join(map(repr, near))}?")


def _name_arguments(text: str) -> str:
    return re.sub(r"--([a-z][a-z-]*)", lambda match: _OPTIONS.get(match[1], match[1].replace("-", "_")), text)


class Champion(champion_folder.Champion):
    """Best predictor of a dataset, fitted on every row, with its reference data and calibration.

    `machines` is one machine or several: names with values, a list of them, a frame with a machine per row, or a .csv,
    .json or .yaml file. Arguments of several operations:

    - `when`: month of the measurement, None for that of the newest result or of a later launch.
    - `level`: level of the intervals, 0 to 1.
    - `assume`: whether usual values are imputed for what a description leaves out.
    - `measured`: scores of these machines or of similar ones, as machines with a task and a score; they correct the
      predictions.
    - `suite`: `both` answers with the champion whose estimates this one rests on, too, from the same assumed values.
    - `strict`: whether the first machine that cannot be used raises. Without it, such a machine of several is in the
      answer with the status `refused` and a message.

    Raises: UserError, which is a ValueError, for values that cannot be used.
    """

    @for_python
    def predict(self, machines: Machines, **options: Unpack[Predicted]) -> Predictions:
        """Predict machines that nobody has measured, each for its task, or for all tasks where it names none.

        Args: `neighbors` is the number of nearest measured results of an estimate, 3 by default; `explain` adds values
        and drivers, as it does by default.
        """
        given = dict[str, Any](options)
        suites, entries = self._ask(given, machines)
        strict = given.pop("strict", False)
        chosen, measured = self._prepare(given, entries, suites)
        return predict_machines(entries, suites, chosen, measured, strict=strict)

    @for_python
    def rank(
        self,
        machines: Machines,
        *,
        targets: Sequence[str] | str = (),
        by: str = "score",
        sure: float | None = None,
        electricity_price: float = 0.0,
        years: float = 1.0,
        strict: bool = False,
        **options: Unpack[Asked],
    ) -> Ranking:
        """Rank candidate machines, which may have a name, a price and watts, with the probability of their targets.

        Args: `targets` are texts such as `CINT2017rate >= 1500`; `by` is a quantity such as `score/watts`; candidates
        that meet all targets with less than `sure`, 0.5 by default, come last; the cost has electricity per kWh over
        the `years` of use.
        """
        if sure is not None and not 0 < sure < 1:
            raise UserError("sure must be between 0 and 1", f"it is {sure:g}", "0.9 means 90 %")
        texts = [targets] if isinstance(targets, str) else list(targets)
        rates = {"electricity_price": electricity_price, "years": years}
        given = dict[str, Any](options)
        suites, entries = self._ask(given, machines)
        request = read_request(texts, suites, by=by, sure=sure, **rates)
        chosen, measured = self._prepare(given, [], suites)
        return rank_machines(entries, suites, request, chosen, measured=measured, strict=strict)

    @for_python
    def what_if(
        self,
        machine: Machines,
        *,
        vary: Mapping[str, object] | Sequence[str] | str,
        tasks: Sequence[str] | str = (),
        **options: Unpack[Asked],
    ) -> Grid:
        """Predict one machine with some fields varied, in all combinations.

        Args: `vary` has values by field, `{"cores": [64, 96]}`, or texts such as `cores=64..192:16`; `tasks` are those
        that are predicted, all by default.
        """
        given = dict[str, Any](options)
        suites, entries = self._ask(given, machine)
        if len(entries) != 1:
            raise UserError("one machine is varied", f"there are {len(entries)}", "keep one of them")
        chosen, measured = self._prepare(given, entries, suites)
        names = _read_tasks(tasks, suites)
        return predict_grids(entries[0], _list_varied(vary), suites, names, chosen, measured=measured)

    @for_python
    def similar(
        self,
        machines: Machines,
        *,
        count: int = 10,
        tasks: Sequence[str] | str = (),
        assume: bool = True,
        suite: Literal["both"] | None = None,
    ) -> NearestMachines:
        """Find the measured machines that are nearest to described ones, `count` of every task, with differences."""
        if not 1 <= count <= MAX_COUNT:
            raise UserError(f"count must be between 1 and {MAX_COUNT}", f"it is {count}")
        suites, entries = self._ask({"suite": suite}, machines)
        return find_nearest(entries, suites, count=count, tasks=_read_tasks(tasks, suites), assume=assume)

    @for_python
    def compare(self, machines: Machines, **options: Unpack[Asked]) -> Comparison:
        """Compare machines side by side: scores, the probability that one beats another, drivers of the difference."""
        given = dict[str, Any](options)
        suites, entries = self._ask(given, machines)
        chosen, measured = self._prepare(given, [], suites)
        return compare_machines(entries, suites, chosen, measured=measured)

    @for_python
    def size(
        self,
        fleet: Machines,
        onto: Machines,
        *,
        mix: str | Mapping[str, float] = "",
        sure: float = 0.9,
        headroom: float = 0.0,
        growth: float = 0.0,
        years: float = 1.0,
        spare: int = 0,
        electricity_price: float = 0.0,
        carbon: float = 0.0,
        **options: Unpack[Asked],
    ) -> Sizing:
        """Size a fleet: how many machines of each kind of `onto` replace it, with the probability that they suffice.

        Args: a machine of `fleet` has a `count`, and perhaps its `utilization`; those of `onto` may have a price and
        watts. `mix` has the share of the fleet's time by task, `sure` is the asked probability; `headroom` stays free,
        the need grows by `growth` a year for `years`, and `spare` machines are added. Of two suites the older counts.
        """
        numbers: dict[str, float] = {"sure": sure, "headroom": headroom, "growth": growth, "years": years}
        numbers |= {"spare": spare, "electricity_price": electricity_price, "carbon": carbon}
        given = dict[str, Any](options)
        suites, rows = self._ask(given, fleet)
        targets = with_operations(suites.first).read_entries(onto)
        request = read_sizing(suites.first, mix, **numbers)
        chosen, measured = self._prepare(given, [], Suites(suites.first))
        return size_fleet(rows, targets, suites.first, request, chosen, measured=measured)

    @for_python
    def match(
        self,
        machine: Machines,
        *,
        among: Machines = INSTANCES,
        mix: str | Mapping[str, float] = "",
        sure: float = 0.9,
        headroom: float = 0.0,
        count: int = 10,
        **options: Unpack[Asked],
    ) -> Sizing:
        """Find the smallest machines of a list, by default cloud instances, that replace one machine.

        Args: `sure` is the probability of being as fast, `count` the number of machines in the answer; see `size`.
        """
        given = dict[str, Any](options)
        suites, entries = self._ask(given, machine)
        if len(entries) != 1:
            raise UserError("one machine is matched", f"there are {len(entries)}", "keep one of them")
        champion = with_operations(suites.first)
        listed = None if isinstance(among, str) and among == INSTANCES else champion.read_entries(among)
        request = read_sizing(champion, mix, sure=sure, headroom=headroom)
        chosen, measured = self._prepare(given, entries, Suites(champion))
        return find_match(entries[0], listed, champion, request, chosen, count=count, measured=measured)

    @for_python
    def published(self, machine: Machines, *, tasks: Sequence[str] | str = ()) -> dict[str, PublishedScores]:
        """Return the published results of exactly one described machine by task, empty where there are none."""
        answer = self.predict(machine, neighbors=0, explain=False, strict=True)
        if len(answer.machines) != 1:
            raise UserError("one machine is looked up", f"there are {len(answer.machines)}", "keep one of them")
        wanted = {
            self.rules.names.task_titles.get(task, task) for task in _read_tasks(tasks, Suites(self)) or self.tasks
        }
        by_task = {each.task: each.published for each in answer.machines[0].estimates if each.task in wanted}
        return {task: scores for task, scores in by_task.items() if scores is not None}

    def read_entries(self, machines: Machines) -> list[MachineEntry]:
        """Return the entries of machines of a user; unknown columns of a table are named in a warning."""
        if _are_entries(machines):
            return machines
        entries = super().read_entries(machines)
        if note := self.describe_carried(entries):
            warnings.warn(note, stacklevel=5)
        return entries

    def _repr_html_(self) -> str:
        """Return the properties of the champion for a notebook, with every text escaped."""
        properties = {
            "dataset": self.dataset,
            "predictor": self.name,
            "preset": self.preset,
            "tasks": ", ".join(self.tasks),
            "targets": ", ".join(self.predictor.targets_),
            "measured results": f"{len(self.reference_data.measured.frame):,}",
            "intervals": "calibrated" if self.calibrated else "none",
        }
        rows = [f"<tr><th>{name}</th><td>{escape(value)}</td></tr>" for name, value in properties.items()]
        return f"<table><caption>Champion</caption>{''.join(rows)}</table>"

    def _ask(self, given: dict[str, Any], machines: Machines) -> tuple[Suites, list[MachineEntry]]:
        """Return the suites that `suite` asks for, and the machines as the first of them reads them."""
        suite = given.pop("suite", None)
        if suite not in (None, "both"):
            raise UserError("suite must be 'both' or None", f"it is {suite!r}")
        suites = Suites(self) if suite is None else self.both
        return suites, with_operations(suites.first).read_entries(machines)

    @cached_property
    def both(self) -> Suites:
        """The champion that this one rests on, and this one. Raises: UserError when it rests on none."""
        if self.base is None:
            fact = f"that of {self.dataset} rests on no other"
            raise UserError("suite='both' needs a champion that rests on another", fact, "load one with a bridge")
        return Suites(with_operations(self.base.champion), self)

    def _prepare(
        self, given: dict[str, Any], entries: Sequence[MachineEntry], suites: Suites
    ) -> tuple[PredictOptions, Measured]:
        """Return the options and the user measurements of `Predicted`; one entry gives what measurements leave out."""
        measured, options = given.pop("measured", None), make_options(**given)
        if measured is None:
            return options, ()
        machine = dict(entries[0].values) if len(entries) == 1 else None
        read = measured if _are_entries(measured) else self.read_files(read_machines(measured))
        return options, read_measured(read, suites, machine)


def _read_tasks(tasks: Sequence[str] | str, suites: Suites) -> list[str]:
    names = [tasks] if isinstance(tasks, str) else tasks
    return list(dict.fromkeys(suites.task_names.get(name, "tasks") for name in names))


def _are_entries(machines: object) -> TypeGuard[list[MachineEntry]]:
    """Return whether machines are those of an HTTP request: no file that they name is read."""
    return isinstance(machines, list) and bool(machines) and all(isinstance(each, MachineEntry) for each in machines)


def _list_varied(vary: Mapping[str, object] | Sequence[str] | str) -> list[str]:
    """Return the texts that `read_varied_fields` reads."""
    if isinstance(vary, str):
        return [vary]
    if not isinstance(vary, Mapping):
        return list(vary)
    texts = []
    for name, values in vary.items():
        listed = values if isinstance(values, Sequence) and not isinstance(values, str) else [values]
        texts.append(f"{name}={'|'.join(map(str, listed))}")
    return texts


@for_python
def load_champion(
    path: Path | str = DEFAULT_CHAMPION, *, dataset: str | None = None, power: Path | str | None = None
) -> Champion:
    """Read a champion: the folder that a run leaves, or the file that `perfcast champion export` writes.

    Args: `dataset` is the one that the champion must be of; `power` has the champion of the watts of its machines, for
    `Champion.size`. Raises: UserError when one is absent, damaged or of another dataset or format.
    """
    path = default_champion(Path("results"), "spec_cpu2017") if path == DEFAULT_CHAMPION else path
    return with_operations(champion_files.load_champion(path, dataset, power).require_described())


def with_operations(champion: champion_folder.Champion) -> Champion:
    """Return a champion with the operations of this module."""
    if isinstance(champion, Champion):
        return champion
    return Champion(**{each.name: getattr(champion, each.name) for each in fields(champion) if each.init})


@for_python
def predict(
    machines: Machines,
    champion: champion_folder.Champion | Path | str = DEFAULT_CHAMPION,
    **options: Unpack[Predicted],
) -> Predictions:
    """Predict machines with a champion or the path of one; see `Champion.predict`."""
    loaded = champion if isinstance(champion, champion_folder.Champion) else load_champion(champion)
    return with_operations(loaded).predict(machines, **options)


@for_python
def estimator(name: str, *, preset: Preset | None = None, **hyperparameters: Hyperparameter) -> Predictor:
    """Return an unfitted predictor that follows scikit-learn's conventions: clone, cross-validate, search, pipe it.

    Args: `name` is that of a predictor's configuration such as `hybrid_trees`, or of a class such as `Ridge`, or its
    dotted path; `preset` takes the hyperparameters of the configuration. Without, they are those of the class, or of
    `full` for a predictor made of others. `hyperparameters` replace some, nested mappings value by value. Without
    declared columns `fit` takes every column of X as a feature, typed by its pandas type.
    Raises: UserError when there is no such predictor or preset; TypeError for an unknown hyperparameter.
    """
    from perfcast.predictors.factory import find_predictor

    path, values = _read_configured(name, preset)
    chosen = find_predictor(path)
    known = sorted(inspect.signature(chosen).parameters)
    unknown = sorted(set(hyperparameters) - set(known))
    if unknown:
        raise _unknown_keyword(f"estimator({name!r})", unknown[0], known)
    return chosen(**merged(values, hyperparameters))


def _read_configured(name: str, preset: Preset | None) -> tuple[str, dict[str, object]]:
    """Return the class of a name and the hyperparameters of the preset."""
    from perfcast.domain import conf_folders
    from perfcast.utils.safe_yaml import read_yaml_text

    if preset not in (None, "quick", "full"):
        raise UserError("preset must be quick or full", f"it is {preset!r}")
    folders = conf_folders(packaged_project() / "conf")
    paths = sorted(path for folder in folders for path in (folder / "predictor").glob("*.yaml"))
    contents = {path.stem: read_yaml_text(path.read_text("utf-8"), path.name) for path in paths}
    by_class = {conf["_target_"]: conf for conf in reversed(contents.values())}
    by_class |= {path.rpartition(".")[2]: conf for path, conf in by_class.items()}
    conf = contents.get(name) or by_class.get(name)
    if preset is None and not _is_composite(contents.get(name, {})):
        return (contents[name]["_target_"] if name in contents else name), {}
    if conf is None:
        raise UserError("preset needs a predictor of conf/predictor", f"{name!r} has no configuration", "leave it out")
    quick = conf.get("quick", {}) if preset == "quick" else {}
    return conf["_target_"], merged(conf.get("params", {}), quick)


def _is_composite(conf: Mapping[str, object]) -> bool:
    """Return whether a configuration names predictors that the predictor is made of."""
    params = conf.get("params")
    return isinstance(params, Mapping) and any(isinstance(value, Mapping) for value in params.values())

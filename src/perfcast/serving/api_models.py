"""Models of requests and answers, and one-line messages for requests that do not fit them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, RootModel, Tag

from perfcast.api import Comparison, Grid, NearestMachines, Predictions, Ranking, Sizing, for_python, with_operations
from perfcast.decisions.criteria import choose_by_targets
from perfcast.decisions.match import INSTANCES
from perfcast.decisions.variants import read_varied_fields
from perfcast.inference.machine_fields import MONTH, is_month
from perfcast.inference.machine_files import MachineEntry, read_table, read_tree
from perfcast.inference.options import PredictOptions, make_options
from perfcast.inference.prediction import Prediction
from perfcast.inference.reference_data import DatasetBasis
from perfcast.inference.suites import Suites
from perfcast.serving.request_limits import (
    BODY,
    BOTH,
    DEFAULT_LIMITS,
    EXAMPLE,
    RefusedRequest,
    RequestLimits,
    choose_suites,
)
from perfcast.uncertainty.conformal import LEVEL
from perfcast.utils.errors import UserError, unknown_name

_MAX_SHOWN = 60
_SUITE = "both, or the end of a dataset of GET /health, as 2026"
_REMEDY_OPTIONS = "put options such as level into the query: /predict?level=0.5"
_FORMS = ("machine", "list", "machines")
"""Tags of `RequestBody`; they stand in the locations of validation errors."""


class MachineRequest(RootModel[dict[str, Any]]):
    """One machine: names from GET /fields with values. A number may include its unit; null means unknown."""


class PredictRequest(BaseModel):
    """Several machines."""

    model_config = ConfigDict(extra="forbid")
    machines: list[MachineRequest] = Field(min_length=1, description="GET /health returns the maximum number.")


def _find_form(body: object) -> str | None:
    if isinstance(body, Mapping):
        return "machines" if "machines" in body else "machine"
    return "list" if isinstance(body, list) else None


RequestBody = Annotated[
    Annotated[MachineRequest, Tag("machine")]
    | Annotated[list[MachineRequest], Field(min_length=1), Tag("list")]
    | Annotated[PredictRequest, Tag("machines")],
    Discriminator(_find_form),
]
"""One machine, a list of machines, or such a list under `machines`."""


def list_entries(
    body: MachineRequest | Sequence[MachineRequest] | PredictRequest | str, limits: RequestLimits
) -> list[MachineEntry]:
    """Return the machines of a body, or of the text of a table.

    Raises: RefusedRequest for too many; UserError for values that are nested, and a text that is no table of machines.
    """
    if isinstance(body, MachineRequest):
        return read_tree([body.root], BODY)
    machines: Any = body.machines if isinstance(body, PredictRequest) else body
    if isinstance(body, str):
        machines = list(islice(read_table("the table", body), limits.machines + 1))
    if len(machines) > limits.machines:
        fact = f"this one has {'more' if isinstance(body, str) else len(machines)}"
        remedy = "send several requests, or give the command the file"
        raise RefusedRequest(413, f"a request can have at most {limits.machines} machines", fact, remedy)
    return machines if isinstance(body, str) else read_tree([machine.root for machine in machines], BODY)


def check_month(text: str) -> str:
    """Return a month. Raises: ValueError for another text."""
    if not is_month(text):
        raise ValueError(f"must be {MONTH}")
    return text


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid")
    when: Annotated[str, AfterValidator(check_month)] | None = Field(
        None, description="Month of the measurement, YYYY-MM (default: that of the newest result or a later launch)."
    )
    assume: bool = Field(True, description="Fill unknown values with those of similar machines (default: true).")
    suite: str | None = Field(None, max_length=_MAX_SHOWN, description=_SUITE + " (default: the first)")


class PredictQuery(_Options):
    """Options in the query of a request."""

    suite: str = Field(BOTH, max_length=_MAX_SHOWN, description=_SUITE + " (default: both)")
    level: float = Field(LEVEL, gt=0, lt=1, allow_inf_nan=False, description="Level of the intervals (default: 0.9).")
    neighbors: int | None = Field(
        None, ge=0, le=DEFAULT_LIMITS.neighbors, description="Nearest machines (default: 3; 0 in a large batch)."
    )
    explain: bool | None = Field(
        None, description="Return inputs and drivers of the prediction (default: true; false in a large batch)."
    )
    strict: bool = Field(
        False, description="Refuse the request if one machine cannot be used (default: false, answer the others)."
    )

    def to_options(self, machines: int, limits: RequestLimits) -> PredictOptions:
        """Return the options of a prediction for a number of machines."""
        small = machines <= limits.explained
        neighbors = self.neighbors if self.neighbors is not None else PredictOptions.neighbors * small
        explain = small if self.explain is None else self.explain
        return make_options(level=self.level, when=self.when, assume=self.assume, neighbors=neighbors, explain=explain)


def add_operations(suites: Suites) -> Suites:
    """Return the champions of suites with the operations of Python."""
    with_them = [with_operations(each) for each in suites]
    with_them[-1].both = Suites(*with_them)
    return with_them[-1].both


Answer = Comparison | Grid | NearestMachines | Predictions | Ranking | Sizing
_MACHINES = Field(min_length=1, description="Names from GET /fields with values.")
_DESCRIBED = ("machine", "machines", "measured", "fleet", "onto", "among")
"""Fields that hold machines."""


class DecisionRequest(_Options):
    """Request for a decision; the options are those of the command and of Python with the same name."""

    operation: ClassVar[str]
    """Method of the champion that answers."""
    unread: ClassVar[tuple[str, ...]] = ("suite",)
    """Fields that it does not take."""
    level: float = Field(LEVEL, strict=True, gt=0, lt=1, allow_inf_nan=False, description="Level of the intervals.")

    def choose(self, suites: Suites) -> Suites:
        """Return the suites that answer. Raises: UserError for an unknown one."""
        return choose_suites(suites, self.suite)

    def answer(self, suites: Suites, limits: RequestLimits, **further: Any) -> Answer:
        """Return the answer. Raises: UserError or RefusedRequest for a request that cannot be answered."""
        by, suite = suites.last, BOTH if len(suites) > 1 else None
        chosen = {name: getattr(self, name) for name in type(self).model_fields if name not in self.unread}
        for name in _DESCRIBED:
            if (given := chosen.get(name)) == INSTANCES:
                continue
            if isinstance(given, str):
                chosen[name] = by.carry_unknown(list_entries(given, limits))
            elif given is not None:
                chosen[name] = list_entries(given, limits) if given else None
        answer: Answer = getattr(by, self.operation)(**chosen, **further, suite=suite)
        return answer


class _MeasuredRequest(DecisionRequest):
    measured: tuple[MachineRequest, ...] = Field(
        (), description="Scores of these machines or of similar ones: machines with a task and a score."
    )


class CompareRequest(_MeasuredRequest):
    """Machines side by side."""

    operation = "compare"
    machines: list[MachineRequest] = _MACHINES


class MeasuredRequest(_MeasuredRequest):
    """Machines whose predictions own measurements correct."""

    operation = "predict"
    suite: str | None = Field(BOTH, max_length=_MAX_SHOWN, description=_SUITE + " (default: both)")
    machines: list[MachineRequest] = _MACHINES

    def answer(self, suites: Suites, limits: RequestLimits, **further: Any) -> Answer:
        """Return the corrected predictions; those of few machines are explained."""
        small = len(self.machines) <= limits.explained
        return super().answer(suites, limits, neighbors=PredictOptions.neighbors * small, explain=small, **further)


class RankRequest(_MeasuredRequest):
    """Candidates: machines that may have a name, a price and watts."""

    operation = "rank"
    machines: list[MachineRequest] = _MACHINES
    targets: list[str] = Field([], max_length=32, description="Such as CINT2017rate >= 1500.")
    by: str = Field("score", description="score, low, price, cost, watts or a task; score/price.")
    sure: float | None = Field(None, strict=True, gt=0, lt=1, description="Less probable ones come last (0.5).")
    electricity_price: float = Field(0.0, strict=True, description="Price of a kWh in the cost.")
    years: float = Field(1.0, strict=True, description="Years of use in the cost.")

    def choose(self, suites: Suites) -> Suites:
        """Return the suites that answer: where none is named, those of the targets."""
        if self.suite is None and self.targets:
            return choose_by_targets(self.targets, suites)
        return super().choose(suites)


class SizeRequest(_MeasuredRequest):
    """Fleet of machines with a count and perhaps a utilization, and the machines that may replace it."""

    operation = "size"
    fleet: Annotated[
        Annotated[list[MachineRequest], _MACHINES, Tag("list")] | Annotated[str, Tag("table")],
        Discriminator(lambda given: "table" if isinstance(given, str) else "list"),
        Field(description="Machines with a count; or the text of a table of them, as a file or a spreadsheet has it."),
    ]
    onto: list[MachineRequest] = _MACHINES
    mix: dict[str, float] | str = Field("", description="Share of the fleet's time by task, or TASK:SHARE,TASK:SHARE.")
    sure: float = Field(0.9, strict=True, gt=0, lt=1, description="Probability that the number suffices.")
    headroom: float = Field(0.0, strict=True, ge=0, lt=1, description="Share of the new machines that stays free.")
    growth: float = Field(0.0, strict=True, ge=0, description="Growth of the need in a year.")
    years: float = Field(1.0, strict=True, description="Years of growth, over which prices are spread.")
    spare: int = Field(0, ge=0, description="Further machines, which may fail.")
    electricity_price: float = Field(0.0, strict=True, description="Price of a kWh in the cost.")
    carbon: float = Field(0.0, strict=True, description="CO2 of a kWh in kg.")


class MatchRequest(_MeasuredRequest):
    """Machine to replace, and the machines to choose from."""

    operation = "match"
    machine: MachineRequest
    among: list[MachineRequest] | Literal["instances"] = Field("instances", description="Machines, or instances.")
    mix: dict[str, float] | str = Field("", description="Share of its time by task, or TASK:SHARE,TASK:SHARE.")
    sure: float = Field(0.9, strict=True, gt=0, lt=1, description="Probability of being as fast.")
    headroom: float = Field(0.0, strict=True, ge=0, lt=1, description="Share of the new machine that stays free.")
    count: int = Field(10, ge=1, le=100, description="Machines that are listed.")


class PublishedRequest(DecisionRequest):
    """One described machine whose published results are wanted."""

    operation = "published"
    machine: MachineRequest
    tasks: list[str] = Field([], max_length=64, description="All by default.")

    def answer(self, suites: Suites, limits: RequestLimits, **further: Any) -> Any:
        """Return the published results by task."""
        entries = list_entries(self.machine, limits)
        wanted = [suites.task_names.get(name, "tasks") for name in self.tasks]
        published: dict[str, Any] = {}
        for each in reversed(suites):
            tasks = [task for task in wanted if task in each.tasks]
            if tasks or not wanted:
                answering: Any = with_operations(each)
                published |= answering.published(entries, tasks=tasks)
        return published


class SimilarRequest(DecisionRequest):
    """Described machines whose nearest measured results are wanted."""

    operation = "similar"
    unread = ("suite", "level", "when")
    machines: list[MachineRequest] = _MACHINES
    count: int = Field(10, ge=1, le=100, description="Results of every task.")
    tasks: list[str] = Field([], max_length=64, description="All by default.")


class WhatIfRequest(_MeasuredRequest):
    """One machine with some fields varied, in all combinations."""

    operation = "what_if"
    machine: MachineRequest
    vary: list[str] = Field(min_length=1, max_length=32, description="Such as NAME=64..96:16, or NAME=1,2.")
    tasks: list[str] = Field([], max_length=64, description="All by default.")

    @for_python
    def answer(self, suites: Suites, limits: RequestLimits, **further: Any) -> Answer:
        """Return the grid."""
        fields = suites.first.fields
        count = math.prod(len(field.points) for field in read_varied_fields(self.vary, fields))
        if count > limits.machines:
            raise UserError(f"at most {limits.machines} combinations are possible", f"there are {count}")
        return super().answer(suites, limits, **further)


DECISIONS: dict[str, tuple[type[DecisionRequest], type[Any], str]] = {
    "compare": (CompareRequest, Comparison, "Compare machines side by side"),
    "rank": (RankRequest, Ranking, "Rank candidates by score, watts, price, cost and probability"),
    "size": (SizeRequest, Sizing, "Size a fleet: how many machines replace it, and how sure that is"),
    "match": (MatchRequest, Sizing, "Find the smallest instances, or machines of a list, that replace a machine"),
    "similar": (SimilarRequest, NearestMachines, "Find the measured machines that are nearest"),
    "what-if": (WhatIfRequest, Grid, "Predict one machine with some fields varied"),
    "predict-measured": (MeasuredRequest, Predictions, "Predict machines, corrected by own measurements"),
}
"""Routes with the models of their requests and answers, and their summaries."""


def describe_errors(errors: Sequence[Mapping[str, Any]]) -> tuple[int, str]:
    """Return the HTTP status and the message of the first validation error.

    A body without machines gets 400; a machine or an option with a wrong value gets 422.
    """
    error = errors[0]
    source, *path = error["loc"]
    if source == "query":
        unknown = unknown_name("query options", str(path[0])[:_MAX_SHOWN], PredictQuery.model_fields)
        extra = UserError(unknown.requirement, unknown.fact, unknown.remedy.replace("see conf/", "see /docs"))
        return 422, str(_describe_value(error, str(path[0]), extra))
    if path and path[0] not in _FORMS and isinstance(path[0], str):
        name = ".".join(str(each) for each in path if each != "list")
        extra = UserError("a request must have known fields", f"it has {_show(name)}", "see /docs")
        return 422, str(_describe_value(error, name, extra))
    path = [name for name in path if name not in _FORMS]
    if path and isinstance(path[0], int):
        fact = f"machine {path[0] + 1} is {_show(error['input'])}"
        return 422, str(UserError(f"machines in {BODY} must hold names with values", fact, EXAMPLE))
    if error["type"] == "extra_forbidden":
        fact = f"it also has {', '.join(_show(error['loc'][-1]) for error in errors[:10])}"
        return 400, str(UserError(f"{BODY} must have nothing beside machines", fact, _REMEDY_OPTIONS))
    facts = {"missing": "it is empty", "too_short": "it describes none"}
    fact = facts.get(error["type"], f"it is {_show(error['input'])}")
    return 400, str(UserError(f"{BODY} must describe a machine", fact, EXAMPLE))


def _describe_value(error: Mapping[str, Any], name: str, extra: UserError) -> UserError:
    if error["type"] == "extra_forbidden":
        return extra
    rule = error["msg"].removeprefix("Value error, ").removeprefix("Input ").replace("should", "must", 1)
    return UserError(f"{name[:_MAX_SHOWN]} {rule}", f"got {_show(error['input'])}")


def _show(value: object) -> str:
    return repr(str(value)[:_MAX_SHOWN])


class _ChampionResponse(BaseModel):
    dataset: str
    champion: str
    preset: str
    results_until: str = Field(description="Month of the newest result, YYYY-MM.")
    features: int = Field(description="Number of features of the predictor.")
    kind: str = Field(description="Kind of the numbers: estimates, not official results.")


class PredictResponse(_ChampionResponse):
    """Predictions in the order of the request; a machine that cannot be used has the status `refused`."""

    month: str = Field(description="Month of the measurements that are predicted, YYYY-MM.")
    machines: list[Prediction]
    bases: list[DatasetBasis]


class NamesResponse(BaseModel):
    """Names of entities that match, the most measured first."""

    cpu_models: list[str]


class _Description(BaseModel):
    name: str
    label: str
    meaning: str
    number: bool
    unit: str
    capacity: str | None = Field(description="Column of the entity with the largest possible value.")


class FieldDescription(_Description):
    """A short name that stands for one column or several."""

    example: str
    columns: list[str] = Field(description="Columns that the field fills.")
    aliases: list[str]


class ColumnDescription(_Description):
    """A column of the dataset."""

    group: str
    low: float | None
    high: float | None


class FieldsResponse(BaseModel):
    """Names that a machine can be described by."""

    fields: list[FieldDescription]
    columns: list[ColumnDescription]


class SuiteDescription(BaseModel):
    """Champion of one dataset that the server asks, with the measured results behind its answers."""

    title: str
    champion: str
    preset: str
    basis: DatasetBasis


class HealthResponse(_ChampionResponse):
    """Predictor and limits of the server."""

    status: Literal["ok"]
    version: str
    suites: list[SuiteDescription]
    limits: dict[str, float]
    origins: dict[str, str] = Field(description="Meaning of each origin of a value.")
    form: list[str] = Field(description="Fields and columns to ask for first; without any, the first columns.")
    named_field: str = Field(description="Field of a name, which may have a number before it, as in 2 x EPYC 9654.")
    page_texts: dict[str, str] = Field(description="Texts of the page that differ from those about servers.")


class ErrorResponse(BaseModel):
    """One line with the reason and the remedy."""

    error: str

"""Models of requests for decisions: comparisons, rankings, what-if grids and nearest machines."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from perfcast.decisions.cost_rates import CostRates
from perfcast.decisions.machine_comparison import Comparison, compare_machines
from perfcast.decisions.nearest_machines import NearestMachines, find_nearest_machines
from perfcast.decisions.ranking import Ranking, rank_machines, read_request
from perfcast.decisions.varied_fields import read_varied_fields
from perfcast.decisions.what_if import Grid, predict_grid
from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import parse_machines
from perfcast.inference.predict import PredictOptions, make_options, predict_batch
from perfcast.inference.prediction import Predictions
from perfcast.inference.user_measurements import UserMeasurements, read_measurements
from perfcast.serving.api_models import MachineRequest, check_month, list_entries
from perfcast.serving.request_limits import RequestLimits
from perfcast.uncertainty.conformal import LEVEL
from perfcast.utils.errors import UserError

Answer = Comparison | Grid | NearestMachines | Predictions | Ranking
_MACHINES = Field(min_length=1, description="Names from GET /fields with values.")


class DecisionRequest(BaseModel):
    """Request for a decision; the options are those of the command and of Python with the same name."""

    model_config = ConfigDict(extra="forbid")
    level: float = Field(LEVEL, strict=True, gt=0, lt=1, allow_inf_nan=False, description="Level of the intervals.")
    when: Annotated[str, AfterValidator(check_month)] | None = Field(None, description="Month of the measurement.")
    assume: bool = Field(True, description="Fill unknown values with those of similar machines.")

    @abstractmethod
    def answer(self, champion: Champion, limits: RequestLimits) -> Answer:
        """Return the answer. Raises: UserError or RefusedRequest for a request that cannot be answered."""

    def options(self, neighbors: int = 0, *, explain: bool = False) -> PredictOptions:
        """Return the options of the predictions."""
        chosen = {"level": self.level, "when": self.when, "assume": self.assume}
        return make_options(**chosen, neighbors=neighbors, explain=explain)  # type: ignore[arg-type]


class _MeasuredRequest(DecisionRequest):
    measured: tuple[MachineRequest, ...] = Field(
        (), description="Scores of these machines or of similar ones: machines with a task and a score."
    )

    def read_measured(
        self, champion: Champion, limits: RequestLimits, entries: list[MachineEntry] | None = None
    ) -> UserMeasurements | None:
        """Return the measurements; those of a single machine may leave out its description."""
        if not self.measured:
            return None
        machine = dict(entries[0].values) if entries and len(entries) == 1 else None
        return read_measurements(list_entries(self.measured, limits), champion, machine)


class CompareRequest(_MeasuredRequest):
    """Machines side by side."""

    machines: list[MachineRequest] = _MACHINES

    def answer(self, champion: Champion, limits: RequestLimits) -> Comparison:
        """Return the comparison."""
        entries = list_entries(self.machines, limits)
        measurements = self.read_measured(champion, limits)
        return compare_machines(entries, champion, self.options(), measurements=measurements)


class MeasuredRequest(_MeasuredRequest):
    """Machines whose predictions own measurements correct."""

    machines: list[MachineRequest] = _MACHINES

    def answer(self, champion: Champion, limits: RequestLimits) -> Predictions:
        """Return the corrected predictions."""
        entries = list_entries(self.machines, limits)
        measurements = self.read_measured(champion, limits, entries)
        small = len(entries) <= limits.explained
        options = self.options(PredictOptions.neighbors * small, explain=small)
        return predict_batch(entries, champion, options, measurements)


class RankRequest(_MeasuredRequest):
    """Candidates: machines that may have a name, a price and watts."""

    machines: list[MachineRequest] = _MACHINES
    targets: list[str] = Field([], max_length=32, description="Such as CINT2017rate >= 1500.")
    by: str = Field("score", description="score, watts, price, cost, probability or tasks, joined by * and /.")
    weights: str | None = Field(None, description="Weights of the score's tasks: TASK=NUMBER,...")
    sure: float | None = Field(None, strict=True, gt=0, lt=1, description="Less probable ones come last (0.5).")
    electricity_price: float = Field(0.0, strict=True, description="Price of a kWh in the cost.")
    years: float = Field(1.0, strict=True, description="Years of use in the cost.")
    memory_price: float = Field(0.0, strict=True, description="Price of a GB of memory that the price leaves out.")

    def answer(self, champion: Champion, limits: RequestLimits) -> Ranking:
        """Return the ranking."""
        rates = CostRates(electricity_price=self.electricity_price, years=self.years, memory_price=self.memory_price)
        chosen = {"by": self.by, "weights": self.weights, "sure": self.sure}
        request = read_request(self.targets, champion, **chosen, rates=rates)  # type: ignore[arg-type]
        measurements = self.read_measured(champion, limits)
        entries = list_entries(self.machines, limits)
        return rank_machines(entries, champion, request, self.options(), measurements=measurements)


class SimilarRequest(DecisionRequest):
    """Described machines whose nearest measured results are wanted."""

    machines: list[MachineRequest] = _MACHINES
    count: int = Field(10, ge=1, le=100, description="Results of every task.")
    tasks: list[str] = Field([], max_length=64, description="All by default.")

    def answer(self, champion: Champion, limits: RequestLimits) -> NearestMachines:
        """Return the nearest measured results."""
        parsed = parse_machines(list_entries(self.machines, limits), champion)
        tasks = [champion.task_names.get(name, "tasks") for name in self.tasks]
        return find_nearest_machines(parsed, champion, count=self.count, tasks=tasks, assume=self.assume)


class WhatIfRequest(_MeasuredRequest):
    """One machine with some fields varied, in all combinations."""

    machine: MachineRequest
    vary: list[str] = Field(min_length=1, max_length=32, description="Such as cores=64..96:16, or chips=1,2.")
    tasks: list[str] = Field([], max_length=64, description="All by default.")

    def answer(self, champion: Champion, limits: RequestLimits) -> Grid:
        """Return the grid."""
        entries = list_entries(self.machine, limits)
        varied = read_varied_fields(self.vary, champion.fields)
        count = math.prod(len(field.points) for field in varied)
        if count > limits.machines:
            raise UserError(f"at most {limits.machines} combinations are possible", f"there are {count}")
        tasks = [champion.task_names.get(name, "tasks") for name in self.tasks]
        measurements = self.read_measured(champion, limits, entries)
        return predict_grid(entries[0], varied, champion, tasks, self.options(), measurements=measurements)


DECISIONS: dict[str, tuple[type[DecisionRequest], type[Any], str]] = {
    "compare": (CompareRequest, Comparison, "Compare machines side by side"),
    "rank": (RankRequest, Ranking, "Rank candidates by score, watts, price, cost and probability"),
    "similar": (SimilarRequest, NearestMachines, "Find the measured machines that are nearest"),
    "what-if": (WhatIfRequest, Grid, "Predict one machine with some fields varied"),
    "predict-measured": (MeasuredRequest, Predictions, "Predict machines, corrected by own measurements"),
}
"""Routes with the models of their requests and answers, and their summaries."""

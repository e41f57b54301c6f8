"""Models of requests for decisions: comparisons, rankings, what-if grids and nearest machines."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from perfcast.api import Champion, Comparison, Grid, NearestMachines, Predictions, Ranking, for_python
from perfcast.decisions.variants import read_varied_fields
from perfcast.inference.predict import PredictOptions
from perfcast.serving.api_models import MachineRequest, check_month, list_entries
from perfcast.serving.request_limits import RequestLimits
from perfcast.uncertainty.conformal import LEVEL
from perfcast.utils.errors import UserError

Answer = Comparison | Grid | NearestMachines | Predictions | Ranking
_MACHINES = Field(min_length=1, description="Names from GET /fields with values.")
_DESCRIBED = ("machine", "machines", "measured")
"""Fields that hold machines."""


class DecisionRequest(BaseModel):
    """Request for a decision; the options are those of the command and of Python with the same name."""

    model_config = ConfigDict(extra="forbid")
    operation: ClassVar[str]
    """Method of the champion that answers."""
    unread: ClassVar[tuple[str, ...]] = ()
    """Fields that it does not take."""
    level: float = Field(LEVEL, strict=True, gt=0, lt=1, allow_inf_nan=False, description="Level of the intervals.")
    when: Annotated[str, AfterValidator(check_month)] | None = Field(None, description="Month of the measurement.")
    assume: bool = Field(True, description="Fill unknown values with those of similar machines.")

    def answer(self, champion: Champion, limits: RequestLimits, **further: Any) -> Answer:
        """Return the answer. Raises: UserError or RefusedRequest for a request that cannot be answered."""
        chosen = {name: getattr(self, name) for name in type(self).model_fields if name not in self.unread}
        for name in _DESCRIBED:
            if name in chosen:
                chosen[name] = list_entries(chosen[name], limits) if chosen[name] else None
        answer: Answer = getattr(champion, self.operation)(**chosen, **further)
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
    machines: list[MachineRequest] = _MACHINES

    def answer(self, champion: Champion, limits: RequestLimits, **further: Any) -> Answer:
        """Return the corrected predictions; those of few machines are explained."""
        small = len(self.machines) <= limits.explained
        return super().answer(champion, limits, neighbors=PredictOptions.neighbors * small, explain=small, **further)


class RankRequest(_MeasuredRequest):
    """Candidates: machines that may have a name, a price and watts."""

    operation = "rank"
    machines: list[MachineRequest] = _MACHINES
    targets: list[str] = Field([], max_length=32, description="Such as CINT2017rate >= 1500.")
    by: str = Field("score", description="score, watts, price, cost, probability or tasks, joined by * and /.")
    weights: str | None = Field(None, description="Weights of the score's tasks: TASK=NUMBER,...")
    sure: float | None = Field(None, strict=True, gt=0, lt=1, description="Less probable ones come last (0.5).")
    electricity_price: float = Field(0.0, strict=True, description="Price of a kWh in the cost.")
    years: float = Field(1.0, strict=True, description="Years of use in the cost.")
    memory_price: float = Field(0.0, strict=True, description="Price of a GB of memory that the price leaves out.")


class SimilarRequest(DecisionRequest):
    """Described machines whose nearest measured results are wanted."""

    operation = "similar"
    unread = ("level", "when")
    machines: list[MachineRequest] = _MACHINES
    count: int = Field(10, ge=1, le=100, description="Results of every task.")
    tasks: list[str] = Field([], max_length=64, description="All by default.")


class WhatIfRequest(_MeasuredRequest):
    """One machine with some fields varied, in all combinations."""

    operation = "what_if"
    machine: MachineRequest
    vary: list[str] = Field(min_length=1, max_length=32, description="Such as cores=64..96:16, or chips=1,2.")
    tasks: list[str] = Field([], max_length=64, description="All by default.")

    @for_python
    def answer(self, champion: Champion, limits: RequestLimits, **further: Any) -> Answer:
        """Return the grid."""
        count = math.prod(len(field.points) for field in read_varied_fields(self.vary, champion.fields))
        if count > limits.machines:
            raise UserError(f"at most {limits.machines} combinations are possible", f"there are {count}")
        return super().answer(champion, limits, **further)


DECISIONS: dict[str, tuple[type[DecisionRequest], type[Any], str]] = {
    "compare": (CompareRequest, Comparison, "Compare machines side by side"),
    "rank": (RankRequest, Ranking, "Rank candidates by score, watts, price, cost and probability"),
    "similar": (SimilarRequest, NearestMachines, "Find the measured machines that are nearest"),
    "what-if": (WhatIfRequest, Grid, "Predict one machine with some fields varied"),
    "predict-measured": (MeasuredRequest, Predictions, "Predict machines, corrected by own measurements"),
}
"""Routes with the models of their requests and answers, and their summaries."""

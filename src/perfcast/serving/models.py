"""The shapes of requests and answers, for the OpenAPI description; answers are what `inference.prediction` declares.

Requests are read by `questions`, whose errors are one line in the words of the command line; these models tell a client
what to send and what to expect, and the tests hold answers against them.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Cell = str | float | bool | None


class Machine(BaseModel):
    """One machine: names of GET /vocabulary with values; a number may carry its unit; null says nothing."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"example": {"processor": "EPYC 9654", "chips": 2, "memory": "24 x 64 GB DDR5-4800"}},
    )
    processor: str | None = Field(None, description="The processor's name, however it is typed.")
    chips: float | str | None = Field(None, description="Number of processors.")


class Machines(BaseModel):
    """Several machines."""

    machines: list[Machine] = Field(description="At most as many as GET /health tells.")


class Value(BaseModel):
    """One cell of a machine, and where it comes from."""

    column: str
    group: str
    value: float | str
    unit: str
    origin: Literal["given", "looked up", "implied", "measured", "assumed"]


class Neighbour(BaseModel):
    """A measured machine, and how far it is: 0.05 says that what differs is worth an error of about 5 % more."""

    result: str
    machine: str
    score: float
    published: str = Field(description="YYYY-MM, empty where the data set knows no time.")
    distance: float = Field(description="Natural logarithms of the score.")


class Driver(BaseModel):
    """What a group of characteristics makes of the typical machine's forecast: 1.2 is a fifth more."""

    group: str
    factor: float


class Estimate(BaseModel):
    """The forecast of one machine, task and target."""

    task: str
    target: str
    median: float
    low: float | None = Field(description="Lower end of the interval; null without a calibration.")
    high: float | None
    level: float
    unit: str
    support: float | None = Field(description="1 where the like was measured, nearly 0 where nothing like it was.")
    unlike: str | None = Field(description="What is least like anything measured.")
    missing: int = Field(description="Features of the predictor that are unknown.")
    assumed: int = Field(description="Characteristics that were taken for granted.")
    own: float | None = Field(description="What one's own measurements changed it by; null without any.")
    neighbours: list[Neighbour]
    typical: Neighbour | None = Field(description="The machine that the drivers start from.")
    drivers: list[Driver]


class Forecast(BaseModel):
    """All that is said of one machine."""

    line: int = Field(description="Number of the machine in the request, from 1.")
    machine: str
    estimates: list[Estimate]
    values: list[Value] = Field(description="What the forecast rests on; empty without `explain`.")
    notes: list[str]


class Wrong(BaseModel):
    """Why a machine was not forecast; only with `partial`."""

    line: int
    error: str


class _Answer(BaseModel):
    dataset: str
    champion: str
    schedule: str
    features: int = Field(description="Features that the predictor reads.")
    kind: str = Field(description="What the numbers are: estimates, not official results.")
    errors: list[Wrong] = []


class Forecasts(_Answer):
    """The machines in the order they were asked."""

    machines: list[Forecast]


class Completed(BaseModel):
    """A description with all that is known or assumed, and where every value comes from."""

    line: int
    machine: str
    values: list[Value]
    unknown: list[str] = Field(description="Columns of which nothing is known.")
    notes: list[str]


class Completions(_Answer):
    """The machines in the order they were asked."""

    machines: list[Completed]


class Parts(BaseModel):
    """Names that may be meant, the most measured first."""

    parts: list[str]


class WordField(BaseModel):
    """Something to say in one's own words."""

    name: str
    meaning: str
    example: str
    number: bool
    unit: str
    columns: list[str] = Field(description="The columns that it stands for.")
    aliases: list[str]


class WordColumn(BaseModel):
    """A column of the data set's table."""

    name: str
    group: str
    meaning: str
    number: bool
    unit: str
    low: float | None
    high: float | None


class Words(BaseModel):
    """All that a machine can be described by."""

    fields: list[WordField]
    columns: list[WordColumn]


class Health(BaseModel):
    """Who answers, and what it takes at most."""

    status: Literal["ok"]
    version: str
    dataset: str
    champion: str
    schedule: str
    features: int
    kind: str
    tasks: list[str]
    limits: dict[str, float]
    origins: dict[str, str] = Field(description="Where a value can come from, and what that means.")


class Problem(BaseModel):
    """What was wrong and what to do, in one line."""

    error: str


def schema(model: type[BaseModel], known: dict[str, Any]) -> dict[str, Any]:
    """Return a model's JSON schema for OpenAPI; the models it refers to are put into `known`."""
    found = model.model_json_schema(ref_template="#/components/schemas/{model}")
    known.update(found.pop("$defs", {}))
    return found

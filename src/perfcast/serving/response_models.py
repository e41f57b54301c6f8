"""Models of responses."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from perfcast.inference.prediction import Prediction, Value


class MachineError(BaseModel):
    """Reason why a machine was not predicted; returned only with `partial`."""

    line: int
    error: str


class _ChampionResponse(BaseModel):
    dataset: str
    champion: str
    preset: str
    features: int = Field(description="Number of features of the predictor.")
    kind: str = Field(description="Kind of the numbers: estimates, not official results.")
    errors: list[MachineError] = []


class PredictResponse(_ChampionResponse):
    """Predictions in the order of the request."""

    machines: list[Prediction]


class CompletedMachine(BaseModel):
    """A machine with all known and assumed values and their origins."""

    line: int = Field(description="Number of the machine in the request, from 1.")
    machine: str
    values: list[Value]
    unknown: list[str] = Field(description="Columns without a value.")
    notes: list[str]


class CompleteResponse(_ChampionResponse):
    """Completed machines in the order of the request."""

    machines: list[CompletedMachine]


class CpuNamesResponse(BaseModel):
    """CPU names that match, the most measured first."""

    parts: list[str]


class FieldDescription(BaseModel):
    """A short name that stands for one column or several."""

    name: str
    meaning: str
    example: str
    number: bool
    unit: str
    columns: list[str] = Field(description="Columns that the field fills.")
    aliases: list[str]


class ColumnDescription(BaseModel):
    """A column of the dataset."""

    name: str
    group: str
    meaning: str
    number: bool
    unit: str
    low: float | None
    high: float | None


class VocabularyResponse(BaseModel):
    """Names that a machine can be described by."""

    fields: list[FieldDescription]
    columns: list[ColumnDescription]


class HealthResponse(BaseModel):
    """Predictor and limits of the server."""

    status: Literal["ok"]
    version: str
    dataset: str
    champion: str
    preset: str
    features: int
    kind: str
    tasks: list[str]
    limits: dict[str, float]
    origins: dict[str, str] = Field(description="Meaning of each origin of a value.")


class ErrorResponse(BaseModel):
    """One line with the reason and the remedy."""

    error: str

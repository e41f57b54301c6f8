"""Search space of one hyperparameter: a range of numbers, or a list of choices."""

from __future__ import annotations

import math
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, model_validator

_ON_GRID = 1e-9
"""Largest distance of a value from a whole number of steps, in steps: decimals have no exact binary form."""


def _number(value: Any) -> int | float:
    """Return a finite number; pydantic's message about a union would list all its members."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("must be a finite number such as 10 or 0.001")
    return value


def _scalar(value: Any) -> Any:
    if value is not None and not isinstance(value, bool | int | float | str):
        raise ValueError("must be a single value")
    return value


class _Dimension(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Range(_Dimension):
    """Numbers from `low` to `high`, both included: whole ones when both are whole, else real ones.

    With `log` equal ratios are equally likely; with `step` only whole numbers of steps above `low` are tried.
    """

    low: Annotated[int | float, PlainValidator(_number)]
    high: Annotated[int | float, PlainValidator(_number)]
    log: bool = False
    step: Annotated[int | float | None, PlainValidator(_number)] = None

    @property
    def whole(self) -> bool:
        """True where only whole numbers are tried."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.low < self.high:
            raise ValueError("low must be below high")
        if self.log and self.low <= 0:
            raise ValueError("a range with log must begin above 0")
        if self.step is None:
            return self
        if self.log:
            raise ValueError("log and step exclude each other")
        if self.step <= 0 or (self.whole and not isinstance(self.step, int)) or not self._on_grid(self.high):
            raise ValueError("high must be a whole number of steps above low")
        return self

    def _on_grid(self, value: int | float) -> bool:
        if self.step is None:
            return True
        steps = (value - self.low) / self.step
        return abs(steps - round(steps)) < _ON_GRID

    def holds(self, value: Any) -> bool:
        """Return whether a value is in the search space."""
        right = isinstance(value, int if self.whole else int | float) and not isinstance(value, bool)
        return right and self.low <= value <= self.high and self._on_grid(value)


class Choices(_Dimension):
    """Single values without an order."""

    choices: list[Annotated[Any, PlainValidator(_scalar)]] = Field(min_length=2)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if any(value in self.choices[:number] for number, value in enumerate(self.choices)):
            raise ValueError("choices must be distinct")
        return self

    def holds(self, value: Any) -> bool:
        """Return whether a value is in the search space."""
        return any(type(choice) is type(value) and choice == value for choice in self.choices)


Dimension = Range | Choices

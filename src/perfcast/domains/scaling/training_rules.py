"""Description rules of training runs of language models: size and length, what they imply, and their bounds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from perfcast.domains.scaling.datasets.scaling_columns import FLOP_PER_PARAM_TOKEN
from perfcast.inference.cells import Cells, fill_missing
from perfcast.inference.machine_fields import Cell, Field, Reading, TypedField, alias_field
from perfcast.inference.rules.description_rules import DescriptionRules
from perfcast.inference.rules.limits import Limits, Violation
from perfcast.inference.rules.names import Names
from perfcast.inference.rules.presentation import Presentation
from perfcast.inference.rules.typical_values import TypicalValues
from perfcast.utils.errors import UserError

EFLOP = 1e18
TOKENS_PER_PARAM = 20.0
"""Tokens per parameter of a multiplier of 1. Source: Hoffmann et al., 2022, arXiv 2203.15556."""

_QUANTITY = re.compile(r"(\d{1,20}(?:\.\d{0,20})?(?:e[+]?\d{1,2})?)\s*([kmbgt]?)", re.IGNORECASE)
_FACTORS = {
    "": 1.0,
    "k": 1e3,
    "m": 1e6,
    "b": 1e9,
    "g": 1e9,
    "t": 1e12,
}
_BOUNDS = {"params": (1e6, 1e14), "tokens": (1e6, 1e16)}
_SAME = 0.01
"""Relative difference of given and implied compute that rounding explains."""
_QUANTITIES = ("params", "tokens", "compute")
"""Columns of which any two imply the third."""


def read_quantity(text: str, name: str) -> float:
    """Return a whole number that may end in K, M, B (or G) or T, such as 32B.

    Raises: UserError for any other text.
    """
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        fact = f"it is {text.strip()[:60]!r}"
        raise UserError(f"{name} must be a number that may end in M, B or T", fact, "write it as 32B")
    return float(round(float(match[1]) * _FACTORS[match[2].lower()]))


def _quantity_field(name: str, meaning: str, example: str, *aliases: str) -> Field:
    def read(text: str) -> Reading:
        return Reading({name: repr(read_quantity(text, name))})

    return Field(name, meaning, example, (name,), read, aliases)


TRAINING_FIELDS = (
    _quantity_field("params", "parameters of the model", "32B", "parameters"),
    _quantity_field("tokens", "tokens seen in training", "6T", "training-tokens"),
)
TRAINING_SET_FIELD = alias_field("training-set", "training_set", "text that the model is trained on", "rpj")


def shorten_quantity(value: float) -> str:
    """Return a number with the suffix that makes it shortest to read."""
    suffix = next((name for name in "tbmk" if value >= _FACTORS[name]), "")
    return f"{value / _FACTORS[suffix]:.4g}{suffix.upper()}"


class TrainingRunNames(Names):
    """Names of trained language models."""

    fields: tuple[Field, ...] = TRAINING_FIELDS
    named_field = "params"
    naming_columns = ("params", "tokens")

    def __init__(self, *kinds: str) -> None:
        """Let tasks be named without their kind; of several kinds of one name the first in `kinds` is meant."""
        self.kinds = kinds

    def name_machine(self, entity: str, cells: Mapping[str, Any]) -> str:
        """Return the size and the length of a run, after its training set where it has one."""
        parts = []
        if not pd.isna(cells.get("training_set", np.nan)):
            parts.append(str(cells["training_set"]))
        for name, noun in (("params", "parameters"), ("tokens", "tokens")):
            if not pd.isna(cells.get(name, np.nan)):
                parts.append(f"{shorten_quantity(float(cells[name]))} {noun}")
        return ", ".join(parts) or "a model"

    def alias_tasks(self, tasks: list[str]) -> dict[str, str]:
        """Return the names of tasks without their kind."""
        aliases: dict[str, str] = {}
        for kind in self.kinds:
            for task in tasks:
                if task.endswith(f"_{kind}"):
                    aliases.setdefault(task.removesuffix(f"_{kind}"), task)
        return aliases


class TrainingRunTypicalValues(TypicalValues):
    """Typical values of trained language models."""

    def fill_implied(self, cells: Cells) -> Cells:
        """Fill the quantity that the two others imply, and tokens per parameter."""
        params, tokens, compute = (cells[name] for name in _QUANTITIES)
        flop = compute * EFLOP / FLOP_PER_PARAM_TOKEN
        with np.errstate(divide="ignore", invalid="ignore"):
            filled = fill_missing(cells, {"params": flop / tokens, "tokens": flop / params})
            product = FLOP_PER_PARAM_TOKEN * filled["params"] * filled["tokens"] / EFLOP
            length = filled["tokens"] / filled["params"]
        implied = {
            "compute": product,
            "tokens_per_param": length,
            "multiplier": length / TOKENS_PER_PARAM,
        }
        return fill_missing(filled, implied)


class TrainingRunLimits(Limits):
    """Limits of trained language models."""

    replaced: Mapping[str, tuple[str, ...]] = {
        "params": (
            "compute",
            "tokens_per_param",
            "multiplier",
            "model_size",
            "params_without_embeddings",
        ),
        "tokens": ("compute", "tokens_per_param", "multiplier"),
    }

    def find_violations(self, cells: Cells) -> Iterator[Violation]:
        """Yield quantities that no training run has, and compute that is not 6 x parameters x tokens."""
        lines = cells.index.tolist()
        for name, (low, high) in _BOUNDS.items():
            is_outside = (cells[name] < low) | (cells[name] > high)
            for row in np.flatnonzero(is_outside).tolist():
                fact = f"{cells[name][row]:g} is not between {low:g} and {high:g}"
                yield Violation(lines[row], (name,), fact, "correct it; 32B are 32 x 10^9")
        product = FLOP_PER_PARAM_TOKEN * cells["params"] * cells["tokens"] / EFLOP
        is_other = np.abs(cells["compute"] - product) > _SAME * product
        for row in np.flatnonzero(is_other).tolist():
            fact = f"{cells['compute'][row]:g} EFLOP are not 6 x params x tokens = {product[row]:g} EFLOP"
            yield Violation(
                lines[row],
                ("compute", "params", "tokens"),
                fact,
                "leave one of the three out",
            )


class TrainingRunPresentation(Presentation):
    """Presentation of trained language models."""

    form_fields: tuple[str, ...] = ("params", "tokens")
    example = "--params 32B --tokens 6T"
    origin_meanings: Mapping[str, str] = {"measured": "all measured results of the task have it"}

    def list_notes(
        self,
        cells: Mapping[str, Cell],
        typed: Mapping[str, TypedField],
        label: str,
    ) -> tuple[str, ...]:
        """Return no notes. Raises: UserError when the size or the length of the run is unknown."""
        missing = [name for name in ("params", "tokens") if name not in cells]
        if len(missing) > ("compute" in cells):
            fact = f"{label} has no {' and no '.join(missing)}"
            raise UserError(
                "a training run must have params and tokens",
                fact,
                f"add it, as in {self.example}",
            )
        return ()


class SeveralTextsNames(TrainingRunNames):
    """Names of trained language models of several training sets."""

    fields = (*TRAINING_FIELDS, TRAINING_SET_FIELD)


class SeveralTextsPresentation(TrainingRunPresentation):
    """Presentation of trained language models of several training sets."""

    form_fields = ("params", "tokens", "training-set")
    example = "--params 7B --tokens 140B --training-set rpj"


LLM_LADDER = DescriptionRules(
    TrainingRunNames("accuracy", "loss", "bpb"),
    TrainingRunTypicalValues(),
    TrainingRunLimits(),
    TrainingRunPresentation(),
)
LLM_OVERTRAINING = DescriptionRules(
    SeveralTextsNames("accuracy", "loss"),
    TrainingRunTypicalValues(),
    TrainingRunLimits(),
    SeveralTextsPresentation(),
)

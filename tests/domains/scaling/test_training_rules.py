"""Training runs are read with suffixes, completed and refused by the rules of their dataset."""

from __future__ import annotations

import numpy as np
import pytest

from perfcast.domains.scaling.training_rules import read_quantity
from perfcast.inference.cells import Cells
from perfcast.inference.rules import find_rules
from perfcast.utils.errors import UserError

RULES = find_rules("llm_ladder")


def cells(**known):
    columns = {name: np.array([known.get(name, np.nan)]) for name in ("params", "tokens", "compute", "multiplier")}
    return Cells(columns, np.array([1]))


@pytest.mark.parametrize(
    ("text", "value"), [("32B", 32e9), ("6T", 6e12), ("190 m", 190e6), ("1.3b", 1.3e9), ("7e9", 7e9), ("20", 20)]
)
def test_quantities_are_read_with_suffixes(text, value):
    assert read_quantity(text, "params") == value


@pytest.mark.parametrize("text", ["32X", "", "-3B", "B", "3 B B", "1e999", "nan"])
def test_other_quantities_are_refused(text):
    with pytest.raises(UserError, match=r"params must be a number that may end in M, B or T"):
        read_quantity(text, "params")


def test_two_quantities_imply_the_third():
    filled = RULES.fill_implied(cells(params=1e9, tokens=2e10))
    assert filled["compute"] == pytest.approx(120) and filled["multiplier"] == pytest.approx(1)
    assert RULES.fill_implied(cells(params=1e9, compute=120.0))["tokens"] == pytest.approx(2e10)
    assert list(RULES.find_violations(filled)) == []


@pytest.mark.parametrize(
    ("known", "column"),
    [
        ({"params": 32, "tokens": 6e12}, "params"),
        ({"params": 1e9, "tokens": 1e17}, "tokens"),
        ({"params": 1e9, "tokens": 2e10, "compute": 5.0}, "compute"),
    ],
)
def test_impossible_runs_are_refused(known, column):
    assert [violation.columns[0] for violation in RULES.find_violations(cells(**known))] == [column]


def test_a_run_needs_two_of_its_quantities():
    with pytest.raises(UserError, match="has no tokens"):
        RULES.list_notes({"params": 1e9}, {}, "it")
    assert RULES.list_notes({"params": 1e9, "compute": 120.0}, {}, "it") == ()


def test_tasks_may_be_named_without_their_kind():
    aliases = RULES.alias_tasks(["mmlu_bpb", "mmlu_accuracy", "pile_loss"])
    assert aliases == {"mmlu": "mmlu_accuracy", "pile": "pile_loss"}


def test_a_run_is_named_by_size_and_length():
    assert RULES.name_machine("model_size", {"params": 32e9, "tokens": 6e12}) == "32B parameters, 6T tokens"

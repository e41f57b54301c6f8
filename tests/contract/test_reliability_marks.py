"""Every fault of the attack on an earlier commit has a marked test, and marks can be counted."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

TESTS = Path(__file__).parents[1]
BEFORE = pd.read_csv(TESTS.parent / "results" / "reliability" / "before.csv")


@cache
def marks() -> tuple[ast.Call, ...]:
    """Return the calls `pytest.mark.reliability(...)` of all test files."""
    return tuple(call for path in sorted(TESTS.rglob("test_*.py")) for call in _calls(path))


def _calls(path: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "reliability":
            yield node


def test_marks_name_one_fault_and_perhaps_its_cases() -> None:
    for call in marks():
        (fault,) = call.args
        assert isinstance(fault, ast.Constant), ast.unparse(call)
        assert str(fault.value).strip() == fault.value != "", ast.unparse(call)
        assert [keyword.arg for keyword in call.keywords] in ([], ["cases"]), ast.unparse(call)


def test_the_earlier_attack_is_whole() -> None:
    assert list(BEFORE.columns) == ["fault", "cases", "failed", "lost", "silent", "tracebacks"]
    assert not BEFORE["fault"].duplicated().any()
    kinds = BEFORE[["lost", "silent", "tracebacks"]]
    assert (kinds.max(axis=1) <= BEFORE["failed"]).all()
    assert (BEFORE["failed"] <= BEFORE["cases"]).all()


@pytest.mark.parametrize("fault", BEFORE["fault"])
def test_every_fault_of_the_earlier_attack_has_a_test(fault: str) -> None:
    assert Counter(call.args[0].value for call in marks())[fault], "no test has this mark"  # type: ignore[attr-defined]

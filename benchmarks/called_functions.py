"""Which test calls which function, so that a mutant runs only with the tests that can notice it."""

from __future__ import annotations

import ast
import builtins
import difflib
import pickle
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

Function = tuple[str, int]
"""A file, and the first line of a function with its decorators."""
_RECORDER = "__record_call__"
PROCESSES = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system")


def with_recorder(path: Path, source: str) -> str:
    """Return the source with a call of the recorder at the beginning of every function."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            # other processes have no recorder
            recorder = f"getattr(__import__('builtins'), {_RECORDER!r}, lambda *_: None)"
            call = ast.parse(f"{recorder}({str(path)!r}, {_first_line(node)})").body
            place = 0 if ast.get_docstring(node, clean=False) is None else 1
            node.body[place:place] = call
    return ast.unparse(tree)


class CalledFunctions:
    """Plug-in of pytest that records the functions with a recorder that each test calls, and the test's time.

    A function that is called while tests are collected may be cached, so it counts for all tests. Other processes are
    not watched: a test that starts one, or calls no function here, counts for all functions.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.test = ""
        self.tests: dict[Function, set[str]] = defaultdict(set)
        self.seconds: dict[str, float] = {}
        self.elsewhere: set[str] = set()

    def pytest_sessionstart(self) -> None:
        """Begin to record."""
        sys.addaudithook(self._see_process)
        setattr(builtins, _RECORDER, self._see_call)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Record one test with its fixtures."""
        self.test, start = item.nodeid, time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[self.test] = time.process_time() - start
            self.test = ""

    def pytest_sessionfinish(self) -> None:
        """Write what was recorded."""
        called = set().union(*self.tests.values()) if self.tests else set()
        always = self.elsewhere | (set(self.seconds) - called)
        content = {"tests": dict(self.tests), "seconds": self.seconds, "always": always}
        self.path.write_bytes(pickle.dumps(content))

    def _see_call(self, path: str, line: int) -> None:
        self.tests[path, line].add(self.test)

    def _see_process(self, event: str, arguments: object) -> None:
        if event in PROCESSES and self.test:
            self.elsewhere.add(self.test)


@dataclass(frozen=True)
class ChosenTests:
    """Plug-in of pytest that keeps the tests that call a function, fast ones first; all of them without a function."""

    tests: dict[Function, set[str]]
    seconds: dict[str, float]
    always: set[str]
    function: Function | None = None

    def of(self, function: Function | None) -> ChosenTests:
        """Return the plug-in for one function."""
        return replace(self, function=function)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Choose and order the tests."""
        callers = {""} if self.function is None else self.tests.get(self.function, set())
        chosen = [item for item in items if "" in callers or item.nodeid in callers | self.always]
        items[:] = sorted(chosen, key=lambda item: self.seconds.get(item.nodeid, 0.0))


def enclosing_function(path: Path, source: str, changed: str) -> Function | None:
    """Return the innermost function whose body holds every changed line, None where none does."""
    matcher = difflib.SequenceMatcher(None, source.splitlines(), changed.splitlines(), autojunk=False)
    spans = [(first + 1, max(last, first + 1)) for kind, first, last, _, _ in matcher.get_opcodes() if kind != "equal"]
    innermost = None
    for node in ast.walk(ast.parse(source)):  # outer functions come before inner ones
        if isinstance(node, ast.FunctionDef) and all(
            node.body[0].lineno <= first and last <= (node.end_lineno or 0) for first, last in spans
        ):
            innermost = _first_line(node)
    return None if innermost is None else (str(path), innermost)


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])

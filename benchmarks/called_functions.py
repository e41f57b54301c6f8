"""Which test calls which function, so that a mutant runs only with the tests that can notice it."""

from __future__ import annotations

import ast
import difflib
import pickle
import sys
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

Function = tuple[str, int]
"""A file, and the first line of a function with its decorators."""
PROCESSES = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system")


class CalledFunctions:
    """Plug-in of pytest that records the functions of some files that each test calls, and its time.

    A function that is called while tests are collected may be cached, so it counts for all tests. Other processes are
    not watched: a test that starts one, or calls no function here, counts for all functions.
    """

    def __init__(self, files: frozenset[str], path: Path) -> None:
        self.files, self.path = files, path
        self.test = ""
        self.tests: dict[Function, set[str]] = defaultdict(set)
        self.seconds: dict[str, float] = {}
        self.elsewhere: set[str] = set()

    def pytest_sessionstart(self) -> None:
        """Begin to record."""
        sys.addaudithook(self._see_process)
        sys.settrace(self._see_call)
        threading.settrace(self._see_call)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Record one test with its fixtures."""
        self.test, start = item.nodeid, time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[self.test] = time.process_time() - start
            self.test = ""
            sys.settrace(self._see_call)

    def pytest_sessionfinish(self) -> None:
        """Write what was recorded."""
        sys.settrace(None)
        called = set().union(*self.tests.values()) if self.tests else set()
        always = self.elsewhere | (set(self.seconds) - called)
        content = {"tests": dict(self.tests), "seconds": self.seconds, "always": always}
        self.path.write_bytes(pickle.dumps(content))

    def _see_call(self, frame: FrameType, event: str, argument: object) -> None:
        if frame.f_code.co_filename in self.files:
            self.tests[frame.f_code.co_filename, frame.f_code.co_firstlineno].add(self.test)

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
            innermost = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return None if innermost is None else (str(path), innermost)

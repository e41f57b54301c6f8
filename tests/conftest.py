"""Options shared by all tests, and the table of faults.

`@pytest.mark.reliability("a fault in plain words")` marks a test of a fault; `cases=N` says that one test tries N of
them. `--reliability FILE` writes the cases of every fault and how many failed: `make attack`, `make faults`.
"""

import csv
import os
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import settings

MARK = "reliability"
COLUMNS = ("fault", "cases", "failed", "skipped")


# a run of the suite repeats; --hypothesis-profile=default and `make fuzz` try other examples
settings.register_profile("repeatable", derandomize=True, max_examples=50)
settings.load_profile("repeatable")


def pytest_addoption(parser):
    parser.addoption("--fix", action="store_true", default=False, help="rewrite golden tables and show the difference")
    parser.addoption(f"--{MARK}", type=Path, metavar="FILE", help="write the cases of every marked fault as CSV")


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    if hasattr(config, "workerinput"):  # a process of pytest-xdist has the variables of the first one
        return
    # what modules, builders and commands leave goes with the folders of pytest; a short name, for paths of sockets
    os.environ["TMPDIR"] = tempfile.tempdir = str(config._tmp_path_factory.mktemp("t", numbered=False))
    if config.getoption(MARK):
        config.pluginmanager.register(FaultTable(config.getoption(MARK)))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    for item in items:
        for mark in item.iter_markers(MARK):
            # properties of a test travel from the processes of pytest-xdist with its report
            item.user_properties.append((MARK, [*mark.args, mark.kwargs.get("cases", 1)]))


class FaultTable:
    """Cases of every fault by their outcome, written as CSV when the tests are done."""

    def __init__(self, path):
        self.path = path
        self.counts = defaultdict(lambda: dict.fromkeys(COLUMNS[1:], 0))

    def pytest_runtest_logreport(self, report):
        outcome = report.outcome if report.when == "call" or not report.passed else None
        for name, value in report.user_properties:
            if name == MARK and outcome:
                fault, cases = value
                self.counts[fault]["cases"] += cases
                self.counts[fault][outcome] = self.counts[fault].get(outcome, 0) + cases

    def pytest_sessionfinish(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows({"fault": fault, **self.counts[fault]} for fault in sorted(self.counts))

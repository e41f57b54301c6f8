"""Plug-in of Snakemake that shows a run as one live line, or as few lines in a pipe; its log files have the rest.

Snakemake finds top-level packages of this prefix alone. Its own words are shown where they are asked for: in a dry run,
and with --printshellcmds, --verbose or --debug-dag.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from perfcast.ops.first_table import describe_split
from perfcast.utils.progress import Progress, show_progress
from perfcast.utils.time_left import TimeLeft, read_pinned

__all__ = ["LogHandler"]

_PARTS = 40
"""In a pipe, a line follows each new stage and each such part of the jobs."""
_NOTE = r"perfcast[: ]|dataset |tracking: NOT|.*\bmissing\b"
"""Beginning of the lines that a job of success tells everybody."""
_USUAL = ("Building DAG", "Updating checkpoint", "Using shell", "Assuming unrestricted", "Group jobs")
_REPEATED = ("RuleException:\nCalledProcessError", "Exiting because a job", "WorkflowError:\nAt least one job did not")
"""Beginnings of what Snakemake says beside the message of a failed job."""


class LogHandler(LogHandlerBase):
    """Handler of a run's messages: done and all jobs, stage, time left, and the one line of each failed job.

    The first finished split of each dataset is a table, long before the evaluation.
    """

    writes_to_file = False
    has_filter = False
    has_formatter = False
    needs_rulegraph = False

    def __post_init__(self) -> None:
        self.display = ExitStack()
        self.draw: Progress | None = None
        self.began = time.monotonic()
        self.time_left = TimeLeft(read_pinned())
        self.results = Path()
        self.trainings: dict[str, set[str]] = {}  # titles that each dataset and split waits for
        self.shown: set[str] = set()  # datasets with a table
        self.jobs: dict[int, tuple[str, list[str]]] = {}  # title, logs
        self.rules: set[str] = set()
        self.done = self.total = self.part = 0
        self.failed: list[str] = []

    @property
    def writes_to_stream(self) -> bool:
        """Return whether this handler replaces Snakemake's own output."""
        common = self.common_settings
        return not (common.dryrun or common.printshellcmds or common.verbose or common.debug_dag)

    def emit(self, record: logging.LogRecord) -> None:
        """Show what a person needs of a message."""
        if not self.writes_to_stream:
            return
        if record.levelno >= logging.WARNING:
            self._hide()  # until the next job starts: commands of hooks write to the terminal as well
        fields = vars(record)
        match fields.get("event"):
            case LogEvent.RUN_INFO:
                self.total = fields["stats"]["total"]
            case LogEvent.JOB_INFO:
                self._start(fields["jobid"], fields["rule_name"], fields["wildcards"].values(), fields["log"])
            case LogEvent.JOB_FINISHED if fields["job_id"] in self.jobs:
                self._finish(*self.jobs[fields["job_id"]])
            case LogEvent.PROGRESS:
                self.done, self.total = fields["done"], fields["total"]
            case LogEvent.JOB_ERROR:
                self._fail(fields["jobid"], fields["rule_name"], fields["log"])
            case None if "planned" in fields:
                self._plan(fields["planned"], Path(fields["results"]))
            case None | LogEvent.ERROR:
                text = record.getMessage()
                telling = record.levelno >= logging.WARNING or not (self.total or text.startswith(_USUAL))
                if telling and text != "None" and not text.startswith(_REPEATED):
                    _say(text)

    def close(self) -> None:
        """End the display with a line on what is done."""
        self._hide()
        if self.jobs:
            line = f"{self.done} of {self.total} jobs done in {_spoken(time.monotonic() - self.began)}"
            if self.failed:
                line += f", {len(self.failed)} failed; finished jobs are kept, messages are in {self.failed[-1]}"
            _say(line)
            self.jobs.clear()
        super().close()

    def _plan(self, jobs: Iterable[str], results: Path) -> None:
        """Take the titles of all jobs: the Snakefile tells them, because Snakemake tells their number alone."""
        self.results = results
        self.time_left.plan(jobs)
        for title in jobs:
            rule, *names = title.split()
            if rule in {"train", "roll"}:
                self.trainings.setdefault("/".join(names[:2]), set()).add(title)

    def _finish(self, title: str, logs: list[str]) -> None:
        self.time_left.finish(title, time.monotonic())
        _say(*(line for line in _lines(logs) if re.match(_NOTE, line)))
        for split, waiting in self.trainings.items():
            dataset = split.partition("/")[0]
            if title in waiting and not waiting.difference(self.time_left.finished) and dataset not in self.shown:
                self.shown.add(dataset)
                self._hide()
                _say(describe_split(self.results / "runs" / split))

    def _start(self, job: int, rule: str, wildcards: Iterable[str], logs: list[str]) -> None:
        title = " ".join([rule, *wildcards])
        self.jobs[job] = title, logs
        now = time.monotonic()
        self.time_left.start(title, now)
        seconds = self.time_left.seconds(now, self.began, self.total)
        left = "" if seconds is None else f", about {_spoken(seconds)} left"
        part = self.done * _PARTS // max(self.total, 1)
        if sys.stderr.isatty() or self.draw:
            self.draw = self.draw or self.display.enter_context(show_progress())
            failed = f", {len(self.failed)} failed" if self.failed else ""
            self.draw(f"{title}{left}{failed}", self.done, self.total)
        elif rule not in self.rules or part > self.part:
            _say(f"{self.done} of {self.total} jobs done{left}: {title}")
            self.part = part
        self.rules.add(rule)

    def _fail(self, job: int, rule: str, logs: list[str]) -> None:
        title = self.jobs[job][0] if job in self.jobs else rule
        lines = _lines(logs) or ["failed without a message in its log"]
        messages = [line for line in lines if line.startswith("perfcast ")]
        _say(messages[-1] if messages else f"{title}: {lines[-1]}")
        self.failed.append(logs[0] if logs else ".snakemake/log")

    def _hide(self) -> None:
        self.display.close()
        self.draw = None


def _say(*lines: str) -> None:
    for line in lines:
        print(line, file=sys.stderr, flush=True)


def _lines(logs: Iterable[str]) -> list[str]:
    """Return the lines of a job's log files that are not empty."""
    texts = [Path(log).read_text(errors="replace") for log in logs if Path(log).is_file()]
    return [line for text in texts for line in text.splitlines() if line.strip()]


def _spoken(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"

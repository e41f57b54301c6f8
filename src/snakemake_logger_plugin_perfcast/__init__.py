"""Plug-in of Snakemake that shows a run as one live line, or as few lines in a pipe; its log files have the rest.

Snakemake finds top-level packages of this prefix alone. Its own words are shown where they are asked for: in a dry run,
and with --printshellcmds, --verbose or --debug-dag.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from perfcast.utils.progress import Progress, show_progress

__all__ = ["LogHandler"]

_PARTS = 40
"""In a pipe, a line follows each new stage and each such part of the jobs."""
_NOTES = ("perfcast", "dataset ", "missing ")
"""Beginnings of the lines that a job of success tells everybody."""
_USUAL = ("Building DAG", "Updating checkpoint", "Using shell", "Assuming unrestricted", "Group jobs")
_REPEATED = ("RuleException:\nCalledProcessError", "Exiting because a job", "WorkflowError:\nAt least one job did not")
"""Beginnings of what Snakemake says beside the message of a failed job."""


class LogHandler(LogHandlerBase):
    """Handler of a run's messages: done and all jobs, stage, time left, and the one line of each failed job."""

    writes_to_file = False
    has_filter = False
    has_formatter = False
    needs_rulegraph = False

    def __post_init__(self) -> None:
        self.display = ExitStack()
        self.draw: Progress | None = None
        self.began = time.monotonic()
        self.jobs: dict[int, tuple[str, str, list[str], float]] = {}  # rule, title, logs, start
        self.planned: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.done = self.total = 0
        self.parts = -1
        self.failed: list[str] = []

    @property
    def writes_to_stream(self) -> bool:
        """Whether this handler replaces Snakemake's own output."""
        common = self.common_settings
        return not (common.dryrun or common.printshellcmds or common.verbose or common.debug_dag)

    def emit(self, record: logging.LogRecord) -> None:
        """Show what a person needs of a message."""
        if not self.writes_to_stream:
            return
        fields = vars(record)
        match fields.get("event"):
            case LogEvent.RUN_INFO:
                self.planned = Counter({rule: count for rule, count in fields["stats"].items() if rule != "total"})
                self.total = self.planned.total()
            case LogEvent.JOB_INFO:
                self._start(fields["jobid"], fields["rule_name"], fields["wildcards"].values(), fields["log"])
            case LogEvent.JOB_FINISHED if fields["job_id"] in self.jobs:
                self._finish(fields["job_id"])
            case LogEvent.PROGRESS:
                self.done, self.total = fields["done"], fields["total"]
                if self.done == self.total:
                    self._stop()
            case LogEvent.JOB_ERROR:
                self._fail(fields["jobid"], fields["rule_name"], fields["log"])
            case None | LogEvent.ERROR:
                text = record.getMessage()
                telling = record.levelno >= logging.WARNING or not (self.total or text.startswith(_USUAL))
                if telling and text != "None" and not text.startswith(_REPEATED):
                    print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the display with a line on what is done."""
        self._stop()
        if self.total and self.writes_to_stream:
            line = f"{self.done} of {self.total} jobs done in {_spoken(time.monotonic() - self.began)}"
            if self.failed:
                line += f", {len(self.failed)} failed; finished jobs are kept, messages are in {self.failed[-1]}"
            print(line, file=sys.stderr, flush=True)
            self.total = 0
        super().close()

    def _start(self, job: int, rule: str, wildcards: Iterable[str], logs: list[str]) -> None:
        title = " ".join([rule, *wildcards])
        new = rule not in {known for known, *_ in self.jobs.values()}
        self.jobs[job] = rule, title, logs, time.monotonic()
        if sys.stderr.isatty() or self.draw:
            self.draw = self.draw or self.display.enter_context(show_progress())
            failed = f", {len(self.failed)} failed" if self.failed else ""
            self.draw(f"{title}{self._left()}{failed}", self.done, self.total)
        elif new or self.done * _PARTS // max(self.total, 1) > self.parts:
            self.parts = self.done * _PARTS // max(self.total, 1)
            print(f"{self.done} of {self.total} jobs done{self._left()}: {title}", file=sys.stderr, flush=True)

    def _finish(self, job: int) -> None:
        rule, _, logs, began = self.jobs[job]
        self.ended[rule] += 1
        self.seconds[rule] += time.monotonic() - began
        for line in _lines(logs):
            if line.startswith(_NOTES) or " missing" in line:
                print(line, file=sys.stderr, flush=True)

    def _fail(self, job: int, rule: str, logs: list[str]) -> None:
        lines = _lines(logs)
        title = self.jobs[job][1] if job in self.jobs else rule
        last = lines[-1] if lines else "failed without a message in its log"
        told = [line for line in lines if line.startswith("perfcast ")]
        print(told[-1] if told else f"{title}: {last}", file=sys.stderr, flush=True)
        self.failed.append(logs[0] if logs else ".snakemake/log")

    def _left(self) -> str:
        """Return the time that the jobs left will take at the speed so far; empty before the first has ended."""
        if not self.ended:
            return ""
        busy = sum(self.seconds.values())
        mean = busy / self.ended.total()
        typical = {rule: self.seconds[rule] / count for rule, count in self.ended.items()}
        unknown = self.total - self.planned.total()
        left = sum((count - self.ended[rule]) * typical.get(rule, mean) for rule, count in self.planned.items())
        at_once = busy / (time.monotonic() - self.began)
        return f", about {_spoken((left + unknown * mean) / max(at_once, 1))} left"

    def _stop(self) -> None:
        self.display.close()
        self.draw = None


def _lines(logs: Iterable[str]) -> list[str]:
    """Return the lines of a job's log files that are not empty."""
    texts = [Path(log).read_text(errors="replace") for log in logs if Path(log).is_file()]
    return [line for text in texts for line in text.splitlines() if line.strip()]


def _spoken(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"

"""Jobs that Snakemake would run, from the text of its dry run: expected minutes and the cause of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfcast.code_hash import changed_parts
from perfcast.utils.terminal_tables import format_table

_JOB = re.compile(r"^(?:local)?(?:rule|checkpoint) (\w+):\n((?: {4}.*\n?)+)", re.MULTILINE)
_DIGEST = re.compile(r"'([0-9a-f]{16})'")
_SHORT = 40
_PARAMS = "Params have changed since last execution"
_BEFORE = "Input files updated by another job"
_PLAIN = {
    "Missing output files": "missing",
    "Updated input files": "changed",
    "Set of input files has changed since last execution": "other inputs",
    "Forced execution": "forced",
    "No metadata": "no record of how it was made",
}


@dataclass(frozen=True)
class PlannedJob:
    """One planned job: its rule, its wildcards, its benchmark file if it has one, and Snakemake's reason."""

    rule: str
    wildcards: Mapping[str, str]
    benchmark: str
    reason: str


def parse_plan(text: str) -> list[PlannedJob]:
    """Return the jobs that the output of `snakemake --dry-run` lists, without the one that only gathers results."""
    jobs = []
    for rule, body in _JOB.findall(text):
        fields = dict(re.findall(r"^ {4}(\w+): (.*)$", body, re.MULTILINE))
        wildcards = dict(re.findall(r"(\w+)=([^,\s]+)", fields.get("wildcards", "")))
        if rule != "all":
            jobs.append(PlannedJob(rule, wildcards, fields.get("benchmark", ""), fields.get("reason", "").strip()))
    return jobs


def explain_reason(job: PlannedJob, code: Mapping[str, Mapping[str, str]]) -> str:
    """Return the cause of a job in words; `code` has the parts of the code digests of the last run."""
    title, _, detail = job.reason.partition(": ")
    if title == _PARAMS:
        return _explain_params(job, detail, code)
    if title == _BEFORE:
        return "results before it"
    word = _PLAIN.get(title, title.lower() or "unknown")
    files = detail.split(", ") if detail else []
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{word}: {files[0]}{more}" if files and word in ("missing", "changed") else word


def _explain_params(job: PlannedJob, values: str, code: Mapping[str, Mapping[str, str]]) -> str:
    """Return the changed files of the code, or the value before and now."""
    before, _, now = values.partition("before: ")[2].partition(" now: ")
    files = [file for digest in _DIGEST.findall(before) for file in changed_parts(code.get(digest, {}))]
    values_without_code = [_DIGEST.sub("", text).strip(" ,") for text in (before, now)]
    causes = list(dict.fromkeys(files))
    if any(len(text) > _SHORT for text in values_without_code):
        named = job.wildcards.get("predictor") or job.wildcards.get("source") or job.wildcards.get("dataset")
        causes.append(f"settings of {named}" if named else "a long parameter")
    elif any(text and not text.startswith("<nothing") for text in values_without_code):
        causes.append(" -> ".join(values_without_code))
    elif not causes:
        causes.append("configuration or code")
    return ", ".join(causes)


def tabulate_plan(
    jobs: Sequence[PlannedJob], seconds_of: Callable[[Path], float | None], code: Mapping[str, Mapping[str, str]]
) -> str:
    """Return a table of the jobs by rule and cause, in the order of the plan, with the minutes of their last run."""
    groups: dict[tuple[str, str], list[float | None]] = {}
    for job in jobs:
        known = seconds_of(Path(job.benchmark)) if job.benchmark else 0.0
        groups.setdefault((job.rule, explain_reason(job, code)), []).append(known)
    rows = [[rule, str(len(times)), _minutes(times), cause] for (rule, cause), times in groups.items()]
    every = [seconds for times in groups.values() for seconds in times]
    rows.append(["all", str(len(every)), _minutes(every), ""])
    return "\n".join(format_table(["rule", "jobs", "minutes", "cause"], rows, right=[1, 2]))


def _minutes(times: Sequence[float | None]) -> str:
    """Return the sum of known times in minutes; a job that never ran makes it a lower bound."""
    known = [seconds for seconds in times if seconds is not None]
    if not known:
        return "?"
    return f"{'' if len(known) == len(times) else '> '}{sum(known) / 60:.1f}"

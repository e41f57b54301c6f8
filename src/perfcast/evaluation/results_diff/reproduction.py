"""Comparison of results with those that a revision pinned: bytes of tables, metrics within a tolerance, and causes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfcast.evaluation.results_diff.sides import RESULTS, Lock, digests_of, parse_lock, pinned
from perfcast.utils.errors import UserError
from perfcast.utils.progress import Progress, ignore_progress
from perfcast.utils.safe_yaml import read_mapping

TABLES = tuple(f"{RESULTS}/{name}" for name in ("raw", "standard", "features", "splits", "in_domain"))
"""Outputs that no training changes: equal bytes on every machine."""

EXACT = 1e-4
"""Tolerance of a predictor without a network, as a share of the larger value: the last of six digits."""

RELATIVE = {"mape": 0.05, "medape": 0.05, "p90": 0.05, "width": 0.05, "interval_score": 0.05}
"""Tolerance of errors and widths of a network, as a share of the larger value: other vector units round differently. A
percentage smaller than `SMALL` is compared as if it were that large."""

SMALL = 2.0
ABSOLUTE = {"coverage": 2.0, "pairs": 0.01, "spearman": 0.01, "r2": 0.1, "r2_raw": 0.1}
"""Tolerance of the others of a network, in the unit of the metric. Two machines differed by 0.036 in R2 near 0."""


@dataclass(frozen=True)
class Difference:
    """A metric that differs from the pinned one; `share` is the difference over its tolerance, at most 1 within it."""

    name: tuple[str, ...]
    before: float
    after: float
    share: float


@dataclass(frozen=True)
class Reproduction:
    """Outputs by state, changed dependencies, and metrics that differ, largest difference first."""

    commit: str
    equal: list[str]
    different: list[str]
    absent: list[str]
    changed: list[str]
    metrics: int
    differences: list[Difference]
    lost: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)

    @property
    def tables_equal(self) -> bool:
        """Return whether all tables that no training changes have equal bytes."""
        return not {*self.different, *self.absent} & {*TABLES}

    @property
    def within(self) -> bool:
        """Return whether all metrics are there and within their tolerances."""
        return not self.lost and all(difference.share <= 1 for difference in self.differences)


def compare_with_revision(project: Path, revision: str, progress: Progress = ignore_progress) -> Reproduction:
    """Compare the project's results with what a revision pinned in dvc.lock and metrics.json.

    Raises: UserError when the revision pinned nothing, or the project has no results.
    """
    commit, text, before = pinned(project, revision)
    lock = parse_lock(text)
    if lock is None:
        raise UserError(
            "a revision to reproduce must have results in its dvc.lock",
            f"{revision!r} has none of {RESULTS}/evaluation",
            "name a revision after a `dvc repro` (`git log --oneline -- dvc.lock`)",
        )
    path = project / RESULTS / "metrics.json"
    # metrics.json is in git, so a clone has it before anything was run
    absent = [path for path in (path, project / RESULTS / "evaluation") if not path.exists()]
    if absent:
        raise UserError(
            "results must be there to be compared with what was pinned",
            f"{absent[0]} does not exist",
            "run `snakemake` first",
        )
    now = digests_of(project, [*lock.outs, *lock.code], progress)
    states = {
        out: "absent" if not now[out] else "equal" if now[out] == md5 else "different" for out, md5 in lock.outs.items()
    }
    pinned_metrics = dict(_flatten(json.loads(before)))
    metrics = dict(_flatten(json.loads(path.read_text(encoding="utf-8"))))
    networks = {
        tuple(file.relative_to(path.parent).parts[1:4]) for file in path.parent.glob("runs/*/*/*/model/**/*.npz")
    }
    differences = [
        Difference(name, value, metrics[name], _share(name[-1], value, metrics[name], name[:3] in networks))
        for name, value in pinned_metrics.items()
        if name in metrics and value != metrics[name]
    ]
    return Reproduction(
        commit,
        equal=[out for out, state in states.items() if state == "equal"],
        different=[out for out, state in states.items() if state == "different"],
        absent=[out for out, state in states.items() if state == "absent"],
        changed=_changed(lock, now, project),
        metrics=len(pinned_metrics),
        differences=sorted(differences, key=lambda difference: (-difference.share, difference.name)),
        lost=["/".join(name) for name in pinned_metrics if name not in metrics],
        added=["/".join(name) for name in metrics if name not in pinned_metrics],
    )


def as_text(reproduction: Reproduction, worst: int = 5) -> str:
    """Return the lines on what was reproduced and what not."""
    lines = [f"pinned by {reproduction.commit[:10]}"]
    if reproduction.changed:
        lines.append(f"changed since, which may change metrics: {', '.join(reproduction.changed)}")
    for state, outs in (
        ("equal bytes", reproduction.equal),
        ("other bytes", reproduction.different),
        ("absent", reproduction.absent),
    ):
        if outs:
            lines.append(f"{state}: {', '.join(out.removeprefix(f'{RESULTS}/') for out in outs)}")
    if reproduction.lost:
        lines.append(
            f"{len(reproduction.lost)} of {reproduction.metrics} metrics are missing, such as {reproduction.lost[0]}"
        )
    if reproduction.added:
        lines.append(f"{len(reproduction.added)} metrics were not pinned, such as {reproduction.added[0]}")
    beyond = sum(difference.share > 1 for difference in reproduction.differences)
    lines.append(
        f"{reproduction.metrics} metrics pinned: {len(reproduction.differences)} differ, "
        f"{beyond} of them by more than the tolerance"
    )
    for difference in reproduction.differences[:worst]:
        change = f"{difference.before:.6g} -> {difference.after:.6g}"
        lines.append(f"  {'/'.join(difference.name):70s} {change:24s} {difference.share:.0%} of the tolerance")
    verdict = "reproduced" if reproduction.tables_equal and reproduction.within else "not reproduced"
    exactly = (
        ", byte for byte"
        if not reproduction.different and not reproduction.absent and not reproduction.differences
        else ""
    )
    tables = "tables equal" if reproduction.tables_equal else "tables differ"
    lines.append(f"{verdict}{exactly}: {tables}, metrics {'within' if reproduction.within else 'beyond'} tolerance")
    return "\n".join(lines) + "\n"


def _changed(lock: Lock, now: Mapping[str, str], project: Path) -> list[str]:
    """Return the dependencies and parameters that are not those the results were made from."""
    path = project / "params.yaml"
    params: dict[str, Any] = read_mapping(path.read_text(encoding="utf-8"), str(path)) if path.is_file() else {}
    names = [name for name, value in lock.params.items() if params.get(name) != value]
    return [dep for dep, md5 in lock.code.items() if md5 and now[dep] != md5] + names


def _flatten(tree: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, (*above, name))
        elif isinstance(value, int | float):
            yield (*above, name), float(value)


def _share(metric: str, before: float, after: float, is_network: bool) -> float:
    """Return a difference as a share of the metric's tolerance; infinite where one of the two is no number."""
    if not (math.isfinite(before) and math.isfinite(after)):
        return math.inf
    larger = max(abs(before), abs(after))
    if not is_network:
        return abs(after - before) / (EXACT * larger)
    if metric in RELATIVE:
        return abs(after - before) / (RELATIVE[metric] * max(larger, SMALL))
    return abs(after - before) / ABSOLUTE.get(metric, 0.01)

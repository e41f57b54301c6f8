"""Whether a run gave what a revision pinned: equal bytes of tables, figures within a tolerance, and why not."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfcast.comparing.lock import Lock, parse_lock
from perfcast.comparing.revision import RESULTS, digests_of, pinned
from perfcast.errors import UserError

TABLES = tuple(f"{RESULTS}/{name}" for name in ("raw", "standard", "features", "splits", "support"))
"""What no training touches: equal bytes on every machine."""

RELATIVE = {"mape": 0.05, "medape": 0.05, "p90": 0.05, "width": 0.05}
"""Tolerance of errors and widths, as a share of the larger value: other vector units round otherwise, and training
carries that on. A figure of percentages smaller than `SMALL` is compared as if it were that large."""

SMALL = 2.0
ABSOLUTE = {"coverage": 2.0, "pairs": 0.01, "spearman": 0.01, "r2": 0.02, "r2_raw": 0.02}
"""Tolerance of the others, in their own unit."""


@dataclass(frozen=True)
class Difference:
    """A figure that is not the pinned one; `share` is the difference over its tolerance, 1 at most when within."""

    name: tuple[str, ...]
    before: float
    after: float
    share: float


@dataclass(frozen=True)
class Reproduction:
    """What was found: outputs by state, changed dependencies, and figures that differ, worst first."""

    commit: str
    equal: list[str]
    different: list[str]
    absent: list[str]
    changed: list[str]
    figures: int
    differences: list[Difference]
    lost: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)

    @property
    def tables_equal(self) -> bool:
        """Whether all tables that no training touches have equal bytes."""
        return not {*self.different, *self.absent} & {*TABLES}

    @property
    def within(self) -> bool:
        """Whether all figures are there and within their tolerances."""
        return not self.lost and all(one.share <= 1 for one in self.differences)


def reproduction(project: Path, revision: str) -> Reproduction:
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
    absent = [one for one in (path, project / RESULTS / "evaluation") if not one.exists()]
    if absent:
        raise UserError(
            "results must be there to be compared with what was pinned",
            f"{absent[0]} does not exist",
            "run `snakemake` first",
        )
    now = digests_of(project, [*lock.outs, *lock.code])
    states = {
        out: "absent" if not now[out] else "equal" if now[out] == md5 else "different" for out, md5 in lock.outs.items()
    }
    figures = dict(_figures(json.loads(before)))
    found = dict(_figures(json.loads(path.read_text(encoding="utf-8"))))
    differences = [
        Difference(name, figures[name], found[name], _share(name[-1], figures[name], found[name]))
        for name in figures
        if name in found and figures[name] != found[name]
    ]
    return Reproduction(
        commit,
        equal=[out for out, state in states.items() if state == "equal"],
        different=[out for out, state in states.items() if state == "different"],
        absent=[out for out, state in states.items() if state == "absent"],
        changed=_changed(lock, now, project),
        figures=len(figures),
        differences=sorted(differences, key=lambda one: (-one.share, one.name)),
        lost=["/".join(name) for name in figures if name not in found],
        added=["/".join(name) for name in found if name not in figures],
    )


def as_text(found: Reproduction, worst: int = 5) -> str:
    """Say in lines what was reproduced and what not."""
    lines = [f"pinned by {found.commit[:10]}"]
    if found.changed:
        lines.append(f"changed since, so figures may move for that reason: {', '.join(found.changed)}")
    for state, outs in (("equal bytes", found.equal), ("other bytes", found.different), ("absent", found.absent)):
        if outs:
            lines.append(f"{state}: {', '.join(out.removeprefix(f'{RESULTS}/') for out in outs)}")
    if found.lost:
        lines.append(f"{len(found.lost)} of {found.figures} figures are not there, such as {found.lost[0]}")
    if found.added:
        lines.append(f"{len(found.added)} figures were not pinned, such as {found.added[0]}")
    beyond = sum(one.share > 1 for one in found.differences)
    lines.append(
        f"{found.figures} figures pinned: {len(found.differences)} differ, {beyond} of them by more than is tolerated"
    )
    for one in found.differences[:worst]:
        told = f"{one.before:.6g} -> {one.after:.6g}"
        lines.append(f"  {'/'.join(one.name):70s} {told:24s} {one.share:.0%} of what is tolerated")
    verdict = "reproduced" if found.tables_equal and found.within else "not reproduced"
    exactly = ", byte for byte" if not found.different and not found.absent and not found.differences else ""
    tables = "tables equal" if found.tables_equal else "tables differ"
    lines.append(f"{verdict}{exactly}: {tables}, figures {'within' if found.within else 'beyond'} tolerance")
    return "\n".join(lines) + "\n"


def _changed(lock: Lock, now: Mapping[str, str], project: Path) -> list[str]:
    """Return the dependencies and parameters that are not those the results were made from."""
    import yaml

    path = project / "params.yaml"
    params: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    names = [name for name, value in lock.params.items() if params.get(name) != value]
    return [dep for dep, md5 in lock.code.items() if md5 and now[dep] != md5] + names


def _figures(tree: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _figures(value, (*above, name))
        elif isinstance(value, int | float):
            yield (*above, name), float(value)


def _share(metric: str, before: float, after: float) -> float:
    """Return a difference as a share of the metric's tolerance; infinite where one of the two is no number."""
    if not (math.isfinite(before) and math.isfinite(after)):
        return math.inf
    if metric in RELATIVE:
        return abs(after - before) / (RELATIVE[metric] * max(abs(before), abs(after), SMALL))
    return abs(after - before) / ABSOLUTE.get(metric, 0.01)

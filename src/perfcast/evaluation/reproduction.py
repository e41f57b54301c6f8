"""Comparison of results with those that a revision pinned: bytes of tables, metrics within a tolerance, and causes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfcast.utils.errors import UserError
from perfcast.utils.progress import Progress, ignore_progress
from perfcast.utils.safe_yaml import read_mapping

METRICS, EVALUATION = "results/metrics.json", "results/evaluation"
TABLES = frozenset(f"results/{name}" for name in ("raw", "standard", "features", "splits", "in_domain"))
"""Outputs that no training changes: equal bytes on every machine."""

EXACT = 1e-4
"""Tolerance of a predictor without a network, as a share of the larger value: the last of six digits."""

RELATIVE = {"mape": 0.05, "medape": 0.05, "p90": 0.05, "width": 0.05, "interval_score": 0.05}
"""Tolerance of errors and widths of a network, as a share of the larger value: other vector units round differently. A
percentage smaller than `SMALL` is compared as if it were that large."""

SMALL = 2.0
ABSOLUTE = {"coverage": 2.0, "pairs": 0.01, "spearman": 0.01, "r2": 0.1, "r2_raw": 0.1}
"""Tolerance of the others of a network, in the unit of the metric. Two machines differed by 0.036 in R2 near 0."""


def compare_with_revision(
    project: Path, revision: str, worst: int = 5, progress: Progress = ignore_progress
) -> tuple[bool, str]:
    """Return whether the project's results are those that a revision pinned, and the lines that say so.

    Tables must have equal bytes, and every metric must be there and within its tolerance.

    Args:
        worst: Number of metrics to show, largest difference first.

    Raises:
        UserError: The revision pinned nothing, or the project has no results.
    """
    commit, lock, pinned = _read_pinned(project, revision)
    # metrics.json is in git, so a clone has it before anything was run
    for path in (project / METRICS, project / EVALUATION):
        if not path.exists():
            raise UserError(
                "results must be there to be compared with what was pinned",
                f"{path} does not exist",
                "run `snakemake` first",
            )
    outs, code, params = _read_stages(lock)
    if EVALUATION not in outs:
        raise UserError(
            "a revision to reproduce must have results in its dvc.lock",
            f"{revision!r} has none of {EVALUATION}",
            "name a revision after a `dvc repro` (`git log --oneline -- dvc.lock`)",
        )
    now = _digests(project, [*outs, *code], progress)
    text = (project / "params.yaml").read_text(encoding="utf-8") if (project / "params.yaml").is_file() else "{}"
    current = read_mapping(text, "params.yaml")
    changed = [path for path, md5 in code.items() if md5 and now[path] != md5]
    changed += [name for name, value in params.items() if current.get(name) != value]
    lines = [f"pinned by {commit[:10]}"]
    if changed:
        lines.append(f"changed since, which may change metrics: {', '.join(changed)}")
    states = {
        out: "absent" if not now[out] else "equal bytes" if now[out] == md5 else "other bytes"
        for out, md5 in outs.items()
    }
    for state in ("equal bytes", "other bytes", "absent"):
        if named := [out.removeprefix("results/") for out, of_out in states.items() if of_out == state]:
            lines.append(f"{state}: {', '.join(named)}")
    tables_equal = all(states[out] == "equal bytes" for out in TABLES & set(states))
    within, differ, texts = _compare_metrics(project, json.loads(pinned), worst)
    exact = not differ and set(states.values()) == {"equal bytes"}
    reproduced = tables_equal and within
    lines += [
        *texts,
        f"{'reproduced' if reproduced else 'not reproduced'}{', byte for byte' if exact else ''}: "
        f"tables {'equal' if tables_equal else 'differ'}, metrics {'within' if within else 'beyond'} tolerance",
    ]
    return reproduced, "\n".join(lines) + "\n"


def _compare_metrics(project: Path, pinned: Mapping[str, Any], worst: int) -> tuple[bool, int, list[str]]:
    """Return whether every metric is within its tolerance, how many differ, and the lines on them."""
    path = project / METRICS
    before, after = dict(_flatten(pinned)), dict(_flatten(json.loads(path.read_text(encoding="utf-8"))))
    networks = {file.relative_to(path.parent).parts[1:4] for file in path.parent.glob("runs/*/*/*/model/**/*.npz")}
    lost, added = ([name for name in have if name not in lack] for have, lack in ((before, after), (after, before)))
    differences = [
        (_share_of_tolerance(name[-1], value, after[name], name[:3] in networks), name)
        for name, value in before.items()
        if name in after and value != after[name]
    ]
    differences.sort(key=lambda difference: (-difference[0], difference[1]))
    lines = []
    if lost:
        lines.append(f"{len(lost)} of {len(before)} metrics are missing, such as {'/'.join(lost[0])}")
    if added:
        lines.append(f"{len(added)} metrics were not pinned, such as {'/'.join(added[0])}")
    beyond = sum(share > 1 for share, _ in differences)
    lines.append(
        f"{len(before)} metrics pinned: {len(differences)} differ, {beyond} of them by more than the tolerance"
    )
    for share, name in differences[:worst]:
        change = f"{before[name]:.6g} -> {after[name]:.6g}"
        lines.append(f"  {'/'.join(name):70s} {change:24s} {share:.0%} of the tolerance")
    return not lost and not beyond, len(differences), lines


def _flatten(tree: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, (*above, name))
        elif isinstance(value, int | float):
            yield (*above, name), float(value)


def _share_of_tolerance(metric: str, before: float, after: float, is_network: bool) -> float:
    """Return a difference as a share of the metric's tolerance; infinite where one of the two is no number."""
    if not (math.isfinite(before) and math.isfinite(after)):
        return math.inf
    larger = max(abs(before), abs(after))
    if not is_network:
        return abs(after - before) / (EXACT * larger)
    if metric in RELATIVE:
        return abs(after - before) / (RELATIVE[metric] * max(larger, SMALL))
    return abs(after - before) / ABSOLUTE.get(metric, 0.01)


def _read_pinned(project: Path, name: str) -> tuple[str, str, str]:
    """Return the commit, dvc.lock and metrics.json of a revision, which git holds."""
    from dvc.api import DVCFileSystem
    from dvc.scm import SCM, SCMError, resolve_rev

    try:
        commit = str(resolve_rev(SCM(str(project)), name))
    except SCMError:
        raise UserError(
            "a revision to reproduce must be a tag, branch, commit or DVC experiment",
            f"{name!r} is none",
            "`git tag` and `git log --oneline` list revisions",
        )
    files = DVCFileSystem(str(project), rev=commit)
    texts: list[str] = []
    for path in ("dvc.lock", METRICS):
        try:
            texts.append(str(files.read_text(path, encoding="utf-8")))
        except OSError:
            raise UserError(
                "a revision to reproduce must have its results pinned in git",
                f"{name!r} has no {path}",
                f"name a revision that holds one (`git log --oneline -- {path}`)",
            )
    lock, metrics = texts
    return commit, lock, metrics


def _read_stages(lock: str) -> tuple[dict[str, str], dict[str, str], dict[str, Any]]:
    """Return digests of outputs and of code, and parameters; outputs that another stage reads are no code."""
    outs: dict[str, str] = {}
    code: dict[str, str] = {}
    params: dict[str, Any] = {}
    for stage in (read_mapping(lock, "dvc.lock").get("stages") or {}).values():
        outs |= {str(out["path"]): str(out.get("md5", "")) for out in stage.get("outs", ())}
        code |= {str(dep["path"]): str(dep.get("md5", "")) for dep in stage.get("deps", ())}
        for values in (stage.get("params") or {}).values():
            params |= values or {}
    return outs, {path: digest for path, digest in code.items() if path not in outs}, params


def _digests(project: Path, paths: Sequence[str], progress: Progress) -> dict[str, str]:
    """Return the digests that dvc.lock would record of files and folders as they are now; "" of an absent one."""
    from dvc.repo import Repo
    from dvc_data.hashfile.build import build

    digests = dict.fromkeys(paths, "")
    with Repo(str(project)) as repo:
        for done, path in enumerate(paths):
            progress(path, done, len(paths))
            place = project.resolve() / path
            if place.exists():
                *_, content = build(repo.cache.local, str(place), repo.fs, "md5", dry_run=True, ignore=repo.dvcignore)
                digests[path] = str(content.hash_info.value)
    return digests

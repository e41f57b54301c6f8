"""Verification of all results of a project by the digests that their stages recorded."""

from __future__ import annotations

from perfcast.ops.doctor import BROKEN, CARE, FINE, Finding, ProjectPlace
from perfcast.utils.result_digests import SUFFIX, find_differences

_INDEX = "report.html"
"""Page of links to other pages, which have digests."""
_APART = ("examples", "leaderboard", "performance", "reliability", "measured")
_APART_EVERYWHERE = ("mlflow", "logs", "benchmarks")
"""Folders of results that no stage reads; the last ones also in the results of other experiments beside them."""
_SHOWN = 4


def check_results(place: ProjectPlace) -> list[Finding]:
    """Verify every result, and name every file that differs."""
    folder = place.results
    if not folder.is_dir():
        return [Finding("results", CARE, f"there is no folder {folder.name}", "run snakemake")]
    apart = [folder / name for name in _APART]
    apart += [path for name in _APART_EVERYWHERE for path in folder.rglob(name)]
    fine, differences, unrecorded = find_differences(folder, apart)
    findings = [
        Finding("results", BROKEN, f"{each.path} {each.fact.removeprefix('it ')}", "delete it and run snakemake")
        for each in differences
    ]
    unrecorded = [path for path in unrecorded if path.name != _INDEX]
    if unrecorded:
        names = ", ".join(str(path.relative_to(folder)) for path in unrecorded[:_SHOWN])
        more = f" and {len(unrecorded) - _SHOWN} more" if len(unrecorded) > _SHOWN else ""
        fact = f"{len(unrecorded)} files have no digest ({names}{more})"
        findings.append(Finding("results", CARE, fact, f"a run records them in files that end in {SUFFIX}"))
    return [*findings, Finding("results", FINE, f"{fine} files are as their stages wrote them")]

"""Verification of all results of a project by the digests that their stages recorded."""

from __future__ import annotations

from perfcast.ops.doctor import BROKEN, CARE, FINE, Finding, ProjectPlace
from perfcast.ops.made_here import are_made_here, report_record
from perfcast.utils.result_digests import SUFFIX, find_differences

_REPORT = "report.html"
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
    for report in [path for path in unrecorded if path.name == _REPORT and report_record(path.parent).is_file()]:
        unrecorded.remove(report)
        if are_made_here(report.parent):
            fine += 1
        else:
            remedy = "delete it and run snakemake, or run make pull if it came by dvc"
            findings.append(Finding("results", BROKEN, f"{report} has changed since its stage wrote it", remedy))
    if unrecorded:
        names = ", ".join(str(path.relative_to(folder)) for path in unrecorded[:_SHOWN])
        more = f" and {len(unrecorded) - _SHOWN} more" if len(unrecorded) > _SHOWN else ""
        fact = f"{len(unrecorded)} files have no digest ({names}{more})"
        findings.append(Finding("results", CARE, fact, f"a run records them in files that end in {SUFFIX}"))
    return [*findings, Finding("results", FINE, f"{fine} files are as their stages wrote them")]

"""Verification of all results of a project by the digests that their stages recorded."""

from __future__ import annotations

from perfcast.ops.doctor import BROKEN, CARE, FINE, Finding, ProjectPlace
from perfcast.ops.made_here import are_made_here, report_record
from perfcast.utils.result_digests import SUFFIX, find_differences

_REPORT = "report.html"
_APART = ("mlflow", "logs", "benchmarks", "examples", "leaderboard")
"""Folders of results that no stage reads."""
_SHOWN = 4


def check_results(place: ProjectPlace) -> list[Finding]:
    """Verify every result, and name every file that differs."""
    folder = place.results
    if not folder.is_dir():
        return [Finding("results", CARE, f"there is no folder {folder.name}", "run snakemake")]
    fine, differences, unrecorded = find_differences(folder, [folder / name for name in _APART])
    findings = [
        Finding("results", BROKEN, f"{each.path} {each.fact.removeprefix('it ')}", "delete it and run snakemake")
        for each in differences
    ]
    report = folder / _REPORT
    if report_record(folder).is_file():
        unrecorded = [path for path in unrecorded if path != report]
        if are_made_here(folder):
            fine += report.is_file()
        else:
            remedy = "delete it and run snakemake, or run make pull if it came by dvc"
            findings.append(Finding("results", BROKEN, f"{report} has changed since its stage wrote it", remedy))
    if unrecorded:
        names = ", ".join(str(path.relative_to(folder)) for path in unrecorded[:_SHOWN])
        more = f" and {len(unrecorded) - _SHOWN} more" if len(unrecorded) > _SHOWN else ""
        fact = f"{len(unrecorded)} files have no digest ({names}{more})"
        findings.append(Finding("results", CARE, fact, f"a run records them in files that end in {SUFFIX}"))
    return [*findings, Finding("results", FINE, f"{fine} files are as their stages wrote them")]

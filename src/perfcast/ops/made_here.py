"""Record of the last report that a run made in a folder of results.

Snakemake trusts its records of how each file was made. Results that came from elsewhere, such as by `dvc checkout`,
are not those of the records, so a changed parameter could go unnoticed. The checksum of the report tells both apart:
its index has the checksums of its pages.
"""

from __future__ import annotations

from pathlib import Path

from perfcast.data.sources.source_spec import MANIFEST
from perfcast.utils.io import read_object, remove_path, sha256, write_text
from perfcast.utils.result_digests import SUFFIX

_RAW, _REPORT = "raw", "report.html"
_RECORD = Path("logs") / "report.sha256"
VERSIONED = (
    *("raw", "standard", "features", "splits", "in_domain", "runs", "champion", "leakage", "evaluation"),
    *("headline", "plots", "model_cards", "metrics.json", "report", _REPORT),
)
"""Results that dvc.yaml versions; other experiments may have their folders beside them."""


def report_record(results: Path) -> Path:
    """Return the path of the record."""
    return results / _RECORD


def record_report(results: Path) -> None:
    """Record that the report, and so all results, are those of Snakemake's records."""
    record = report_record(results)
    record.parent.mkdir(parents=True, exist_ok=True)
    write_text(record, f"{sha256(results / _REPORT)}  {_REPORT}\n")


def are_made_here(results: Path) -> bool:
    """Return whether results are those of the last run; without a report, there is nothing to tell them apart by."""
    report, record = results / _REPORT, report_record(results)
    if not report.exists():
        return True
    return record.exists() and record.read_text(encoding="utf-8").split()[:1] == [sha256(report)]


def remove_results(results: Path) -> list[str]:
    """Remove the versioned results, but no logs, times and MLflow records; return the names of what was removed.

    Ingested files stay without their manifests: ingestion verifies them, and they may be the last copy.
    """
    names = [name for name in VERSIONED if (results / name).exists()]
    for name in names:
        paths = [results / name, results / f"{name}{SUFFIX}"]
        if name == _RAW:
            paths = [*(results / _RAW).glob("available.json*"), *(results / _RAW).glob(f"*/{MANIFEST}")]
        for path in paths:
            remove_path(path)
    return names


def remove_missing_sources(results: Path) -> list[str]:
    """Remove the manifests of missing sources, so that the next run looks for them again; return their names."""
    names = []
    for manifest in sorted((results / "raw").glob(f"*/{MANIFEST}")):
        if read_object(manifest, "status")["status"] == "missing":
            remove_path(manifest)
            names.append(manifest.parent.name)
    return names

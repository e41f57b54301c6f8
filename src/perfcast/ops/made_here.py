"""Record of the last report that a run made in a folder of results.

Snakemake trusts its records of how each file was made. Results that came from elsewhere, such as by `dvc checkout`,
are not those of the records, so a changed parameter could go unnoticed. The checksum of the report tells both apart:
its index has the checksums of its pages. Snakemake sees of a folder only that it exists, so the names of all files are
recorded as well.
"""

from __future__ import annotations

from pathlib import Path

from perfcast.sources.source_spec import MANIFEST
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_object, remove_path, sha256, write_json, write_text
from perfcast.utils.result_digests import SUFFIX

_RAW, _REPORT = "raw", "report.html"
_RECORD = Path("logs") / "report.sha256"
_FILES = Path("logs") / "report.files"
_REMADE = Path("logs") / "remade.json"
VERSIONED = (
    *("raw", "standard", "features", "splits", "in_domain", "runs", "champion", "leakage", "described"),
    *("evaluation", "headline", "plots", "model_cards", "metrics.json", "report", _REPORT),
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
    files = [path for name in VERSIONED for path in (results / name).rglob("*") if path.is_file()]
    names = sorted(path.relative_to(results).as_posix() for path in files if not path.name.startswith("."))
    write_text(results / _FILES, "".join(f"{name}\n" for name in names))


class RemadeFolders:
    """Numbers of times that folders of results were made again because files in them were deleted.

    As a parameter of the job that makes a folder, the number changes with the deletion, and stays afterwards.
    """

    def __init__(self, results: Path) -> None:
        self._path = results / _REMADE
        record = results / _FILES
        names = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
        self._deleted = [name for name in names if not (results / name).exists()]
        try:
            self._counts: dict[str, int] = read_object(self._path)
        except UserError:  # no file, or a damaged one
            self._counts = {}
        self._changed: dict[str, int] = {}

    def count(self, folder: str) -> int:
        """Return the number of a folder, given by its path below the results; one more where it lacks files."""
        count = self._counts.get(folder, 0)
        if any(name.startswith(f"{folder}/") for name in self._deleted):
            self._changed[folder] = count = count + 1
        return count

    def record(self) -> None:
        """Record the numbers that changed; a run does so when it starts."""
        if self._changed:
            write_json(self._path, {**self._counts, **self._changed})


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

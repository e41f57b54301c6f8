"""A declared source of small files, and its ingestion from the folders of one machine."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from perfcast.sources.download import DownloadLimits
from perfcast.sources.ingestion import ingest_source
from perfcast.sources.locations import SourcePlaces
from perfcast.sources.source_spec import SourceSpec, parse_source

GOOD, BAD = b"good bytes\n" * 500, b"evil bytes\n" * 500
ABOUT = {key: f"the {key}" for key in ("title", "license", "terms", "citation", "homepage")}
LIMITS = DownloadLimits(connect=1.0, read=0.3, total=10.0, retries=1)


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def file_conf(body: bytes = GOOD, name: str = "a.csv", url: str = "https://example.invalid/a") -> dict[str, Any]:
    return {"name": name, "sha256": digest(body), "bytes": len(body), "mirror": f"src/{name}", "url": url}


def make_spec(*files: dict[str, Any], **more: Any) -> SourceSpec:
    return parse_source("src", {**ABOUT, **({"files": list(files)} if files else {}), **more})


def places_of(folders: SimpleNamespace, earlier: Path | None = None) -> SourcePlaces:
    """Return where files of a source are looked for."""
    return SourcePlaces(folders.cache, [folders.mirror, folders.second], folders.embedded, earlier)


def ingest(spec: SourceSpec, folders: SimpleNamespace, *, network: bool = False, **more: Any) -> Any:
    return ingest_source(spec, folders.out, places_of(folders), network=network, **{"limits": LIMITS, **more})


def read_manifest(folders: SimpleNamespace) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folders.out / "manifest.json").read_text())
    return manifest


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())

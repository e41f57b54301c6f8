"""Sources: where bytes come from. The only package that touches the network."""

from perfcast.sources._fetch import Limits
from perfcast.sources._ingest import IngestedFile, IngestResult, ingest
from perfcast.sources._locate import LocatedFile, Location, describe, locate
from perfcast.sources._places import Attempt, Place
from perfcast.sources.base import Snapshot, SourceFile, SourceSpec, parse_source

__all__ = [
    "Attempt",
    "IngestResult",
    "IngestedFile",
    "Limits",
    "LocatedFile",
    "Location",
    "Place",
    "Snapshot",
    "SourceFile",
    "SourceSpec",
    "describe",
    "ingest",
    "locate",
    "parse_source",
]

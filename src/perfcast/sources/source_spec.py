"""Specification of a source: its files with checksums, their published addresses, license and terms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, PositiveInt, model_validator

from perfcast.config.conf_files import StrictModel, require_mapping, validated

MANIFEST = "manifest.json"
MAX_FILE_BYTES = 64_000_000
"""Bound in bytes of an embedded file, whose size is not declared."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def is_allowed_url(url: str) -> bool:
    """Return whether `url` may be downloaded: https, or plain http on the loopback address."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK))


def _check_text(value: str) -> str:
    if not value.strip():
        raise ValueError("must be a non-empty text")
    return " ".join(value.split())


def _check_path(value: str) -> str:
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or "\\" in value or str(path) != value or value in {"", ".", MANIFEST}:
        raise ValueError(f"must be a plain relative path, and not {MANIFEST}")
    return value


def _check_digest(value: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", value):
        raise ValueError("must be 64 lower-case hexadecimal digits")
    return value


def _check_url(value: str) -> str:
    if not is_allowed_url(value):
        raise ValueError("must be an https address")
    return value


def _check_distinct(values: list[Any]) -> list[Any]:
    names = [value.name for value in values]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"must have different names; {twice[0]!r} is there twice")
    return values


_Text = Annotated[str, AfterValidator(_check_text)]
_Path = Annotated[str, AfterValidator(_check_path)]
_Url = Annotated[str, AfterValidator(_check_url)]


class SourceFile(StrictModel):
    """One file of a source.

    `name` is its path in results/raw/<source>/ and `mirror` its path below a mirror folder. `size` is its length in
    bytes, None if unknown; a longer file than `max_bytes` is rejected unread. `sha256` is None for embedded files.
    `path` is that below the `mirror` and the `url` of its source, `name` if None.
    """

    name: _Path
    path: _Path | None = None
    sha256: Annotated[str, AfterValidator(_check_digest)] | None = None
    size: PositiveInt | None = Field(default=None, alias="bytes")
    bound: PositiveInt | None = Field(default=None, alias="max_bytes")
    mirror: _Path | None = None
    url: _Url | None = None

    @property
    def max_bytes(self) -> int:
        """The largest length."""
        return self.size or self.bound or MAX_FILE_BYTES


_Files = Annotated[list[SourceFile], Field(min_length=1), AfterValidator(_check_distinct)]


class Snapshot(StrictModel):
    """One complete set of files; `derived_from` names the published snapshot that a local-only one is a subset of.

    `until` is the last month of its results, as 2024-12.
    """

    name: _Text | None
    files: _Files
    derived_from: str | None = None
    until: Annotated[str, Field(pattern=r"^\d{4}-\d{2}$")] | None = None


class SourceSpec(StrictModel):
    """Source as declared in conf/source; any one of its `snapshots` suffices.

    `live` is the newest file, whose publisher adds results to it: nobody knows its checksum. `mirror` and `url` are the
    folders of the files that have none of their own.
    """

    name: str
    title: _Text
    license: _Text
    terms: _Text
    citation: _Text
    homepage: _Text = ""
    retrieved: _Text = ""
    remedy: _Text = ""
    embedded: bool = False
    live: SourceFile | None = None
    mirror: _Path | None = None
    url: _Url | None = None
    files: _Files | None = None
    declared: Annotated[list[Snapshot], Field(min_length=1), AfterValidator(_check_distinct)] | None = Field(
        default=None, alias="snapshots"
    )

    @property
    def snapshots(self) -> list[Snapshot]:
        """The sets of files, in the order of preference."""
        declared = self.declared or [Snapshot(name=None, files=self.files or [])]
        return [each.model_copy(update={"files": [self._place(file) for file in each.files]}) for each in declared]

    def _place(self, file: SourceFile) -> SourceFile:
        """Return a file with the addresses that the source gives it."""
        folders = {name: folder for name in ("mirror", "url") if (folder := getattr(self, name))}
        places = {name: f"{folder}/{file.path or file.name}" for name, folder in folders.items()}
        return file.model_copy(update={name: place for name, place in places.items() if not getattr(file, name)})

    @model_validator(mode="after")
    def _check_origins(self) -> Self:
        """Check that every file can be had: by an address, or from a mirror and with a remedy that says how."""
        if (self.files is None) == (self.declared is None):
            raise ValueError("must declare either 'files' or 'snapshots'")
        if self.live and (self.live.url is None or self.live.bound is None or self.live.sha256):
            raise ValueError("'live' must declare 'url' and 'max_bytes', and no 'sha256'")
        published = {each.name for each in self.snapshots if all(file.url for file in each.files)}
        for snapshot in self.snapshots:
            if snapshot.derived_from is not None and snapshot.derived_from not in published:
                raise ValueError(f"'derived_from' must name a published snapshot, not {snapshot.derived_from!r}")
            for file in snapshot.files:
                self._check_file(file, is_subset=snapshot.derived_from is not None)
        return self

    def _check_file(self, file: SourceFile, *, is_subset: bool) -> None:
        if self.embedded:
            if file.model_fields_set - {"name"}:
                raise ValueError(f"file {file.name!r} must declare its name only, because the source is embedded")
            return
        if file.sha256 is None or (file.size is None) == (file.bound is None):
            raise ValueError(f"file {file.name!r} must declare 'sha256', and either 'bytes' or 'max_bytes'")
        if file.url is None and (file.mirror is None or not (is_subset or self.remedy)):
            raise ValueError(
                f"file {file.name!r} must declare 'url', or 'mirror' and a 'remedy' that says how it is made"
            )


def parse_source(name: str, conf: Mapping[str, Any]) -> SourceSpec:
    """Return the source that the content of a conf file declares.

    Raises: UserError when a key is unknown or missing, or a value has the wrong type or form.
    """
    where = f"conf/source/{name}.yaml"
    return validated(SourceSpec, where, {**require_mapping(conf, where), "name": name})

"""Specification of a source: its files with checksums, their published addresses, license and terms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, PositiveInt, model_validator

from perfcast.config.conf_files import StrictModel, require_mapping, validated
from perfcast.sources.packed import packed_name

MANIFEST = "manifest.json"
MAX_FILE_BYTES = 64_000_000
"""Bound in bytes of an embedded file, whose size is not declared."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def is_allowed_url(url: str) -> bool:
    """Return whether `url` may be downloaded: https, or plain http on the loopback address."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
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
    """One file of a source."""

    name: _Path
    """Path in results/raw/<source>/."""
    path: _Path | None = None
    """Path below the `mirror` and the `url` of the source; None: the name."""
    sha256: Annotated[str, AfterValidator(_check_digest)] | None = None
    """None for embedded files."""
    size: PositiveInt | None = Field(default=None, alias="bytes")
    """Length in bytes, None if unknown."""
    bound: PositiveInt | None = Field(default=None, alias="max_bytes")
    """Length from which a file is rejected unread."""
    mirror: _Path | None = None
    """Path below a mirror folder."""
    url: _Url | None = None

    @property
    def max_bytes(self) -> int:
        """The largest length."""
        return self.size or self.bound or MAX_FILE_BYTES


_Files = Annotated[list[SourceFile], Field(min_length=1), AfterValidator(_check_distinct)]


class SourceSpec(StrictModel):
    """Source as declared in conf/source."""

    name: str
    title: _Text
    license: _Text
    terms: _Text
    citation: _Text
    homepage: _Text = ""
    retrieved: _Text = ""
    remedy: _Text = ""
    embedded: bool = False
    packed: _Text | None = None
    """Function that makes the table of a source whose published figures are in the repository, as
    data/embedded/<name>/<name>.csv.xz."""
    live: SourceFile | None = None
    """The newest file, to which its publisher adds results: nobody knows its checksum."""
    mirror: _Path | None = None
    """Folder below a mirror of the files that have no place of their own."""
    url: _Url | None = None
    """Address of the folder of the files that have none of their own."""
    files: _Files
    """The official files."""

    @property
    def editions(self) -> list[list[SourceFile]]:
        """Sets of files, any one of which suffices: the packed table of the repository, then the official files."""
        official = [self._place(file) for file in self.files]
        if self.packed is None:
            return [official]
        name = packed_name(self.name)
        return [[SourceFile(name=name, path=f"{self.name}/{name}")], official]

    def _place(self, file: SourceFile) -> SourceFile:
        """Return a file with the addresses that the source gives it."""
        folders = {name: folder for name in ("mirror", "url") if (folder := getattr(self, name))}
        places = {name: f"{folder}/{file.path or file.name}" for name, folder in folders.items()}
        return file.model_copy(update={name: place for name, place in places.items() if not getattr(file, name)})

    @model_validator(mode="after")
    def _check_origins(self) -> Self:
        """Check that every file can be had: from the repository, by an address, or as a remedy says."""
        if self.live and (self.live.url is None or self.live.bound is None or self.live.sha256):
            raise ValueError("'live' must declare 'url' and 'max_bytes', and no 'sha256'")
        for file in self.editions[-1]:
            self._check_file(file)
        return self

    def _check_file(self, file: SourceFile) -> None:
        if self.embedded:
            if file.model_fields_set - {"name"}:
                raise ValueError(f"file {file.name!r} must declare its name only, because the source is embedded")
            return
        if file.sha256 is None or (file.size is None) == (file.bound is None):
            raise ValueError(f"file {file.name!r} must declare 'sha256', and either 'bytes' or 'max_bytes'")
        if file.url is None and self.packed is None and not (file.mirror and self.remedy):
            raise ValueError(f"file {file.name!r} must declare 'url', or the source 'packed', or 'mirror' and 'remedy'")


def parse_source(name: str, conf: Mapping[str, Any]) -> SourceSpec:
    """Return the source that the content of a conf file declares.

    Raises: UserError when a key is unknown or missing, or a value has the wrong type or form.
    """
    where = f"conf/source/{name}.yaml"
    return validated(SourceSpec, where, {**require_mapping(conf, where), "name": name})

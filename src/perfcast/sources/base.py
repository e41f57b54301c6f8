"""What a source is: its files, their digests, where they were published, and under which terms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from perfcast.errors import UserError, unknown_name

MANIFEST = "manifest.json"
LARGEST_FILE = 64_000_000
"""Bound in bytes of a file whose size is not declared."""

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SOURCE_KEYS = {"title", "module", "licence", "terms", "citation"}
_SOURCE_OPTIONAL = {"homepage", "retrieved", "files", "snapshots", "embedded", "remedy"}
_FILE_OPTIONAL = {"sha256", "bytes", "max_bytes", "mirror", "url"}


@dataclass(frozen=True)
class SourceFile:
    """One file of a source.

    `name` is its path in results/raw/<source>/, `mirror` its path under a mirror folder, `size` its length in bytes
    where it is known and `at_most` the length beyond which it is refused unread. `sha256` is None for embedded files.
    """

    name: str
    sha256: str | None
    size: int | None
    at_most: int
    mirror: str | None
    url: str | None


@dataclass(frozen=True)
class Snapshot:
    """One complete set of files; `derived_from` names the published snapshot that a local-only one was cut from."""

    name: str | None
    files: tuple[SourceFile, ...]
    derived_from: str | None = None


@dataclass(frozen=True)
class SourceSpec:
    """A source as its conf file declares it; any one of `snapshots` suffices."""

    name: str
    title: str
    module: str
    licence: str
    terms: str
    citation: str
    homepage: str
    retrieved: str
    embedded: bool
    remedy: str
    snapshots: tuple[Snapshot, ...]


def is_allowed_url(url: str) -> bool:
    """Say whether bytes may be fetched from `url`: https, or plain http from this machine itself."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK))


def parse_source(name: str, conf: Mapping[str, Any]) -> SourceSpec:
    """Read one source from its conf file's content.

    Raises: UserError when a key is unknown or missing, or a value has the wrong type or form.
    """
    where = f"source {name!r}"
    _check_keys(where, conf, _SOURCE_KEYS, _SOURCE_OPTIONAL)
    embedded = conf.get("embedded", False)
    if not isinstance(embedded, bool):
        raise UserError(f"'embedded' of {where} must be true or false", f"found {embedded!r}")
    if ("files" in conf) == ("snapshots" in conf):
        raise UserError(f"{where} must declare either 'files' or 'snapshots'", "both or neither is there")
    if "files" in conf:
        snapshots: tuple[Snapshot, ...] = (Snapshot(None, _parse_files(where, conf["files"], embedded)),)
    else:
        snapshots = tuple(_parse_snapshots(where, conf["snapshots"], embedded))
    _check_origins(where, snapshots, embedded)
    return SourceSpec(
        name=name,
        embedded=embedded,
        snapshots=snapshots,
        homepage=_text(where, conf, "homepage") if "homepage" in conf else "",
        retrieved=_text(where, conf, "retrieved") if "retrieved" in conf else "",
        remedy=_text(where, conf, "remedy") if "remedy" in conf else "",
        **{key: _text(where, conf, key) for key in sorted(_SOURCE_KEYS)},
    )


def _parse_snapshots(where: str, entries: Any, embedded: bool) -> Iterator[Snapshot]:
    seen: set[str] = set()
    for entry in _list(where, "snapshots", entries):
        _check_keys(f"a snapshot of {where}", entry, {"name", "files"}, {"derived_from"})
        name = _text(where, entry, "name")
        if name in seen:
            raise UserError(f"the snapshots of {where} must have different names", f"{name!r} is there twice")
        seen.add(name)
        origin = _text(where, entry, "derived_from") if "derived_from" in entry else None
        yield Snapshot(name, _parse_files(f"{where}, snapshot {name!r}", entry["files"], embedded), origin)


def _parse_files(where: str, entries: Any, embedded: bool) -> tuple[SourceFile, ...]:
    files = tuple(_parse_file(where, entry, embedded) for entry in _list(where, "files", entries))
    names = [file.name for file in files]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(f"the files of {where} must have different names", f"{twice[0]!r} is there twice")
    return files


def _parse_file(where: str, entry: Any, embedded: bool) -> SourceFile:
    _check_keys(f"a file of {where}", entry, {"name"}, _FILE_OPTIONAL)
    name = _relative_path(where, entry, "name")
    if name == MANIFEST:
        raise UserError(f"a file of {where} must not be called {MANIFEST}", "that name is the manifest's own")
    where = f"{where}, file {name!r}"
    if embedded:
        unwanted = sorted(_FILE_OPTIONAL & set(entry))
        if unwanted:
            raise UserError(f"{where} must declare its name only, being embedded", f"found {', '.join(unwanted)}")
        return SourceFile(name, None, None, LARGEST_FILE, None, None)
    digest = _text(where, entry, "sha256") if "sha256" in entry else ""
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise UserError(f"'sha256' of {where} must be 64 lower-case hexadecimal digits", f"found {digest!r}")
    if ("bytes" in entry) == ("max_bytes" in entry):
        raise UserError(f"{where} must declare either 'bytes' or 'max_bytes'", "both or neither is there")
    size = _positive(where, entry, "bytes") if "bytes" in entry else None
    url = _text(where, entry, "url") if "url" in entry else None
    if url is not None and not is_allowed_url(url):
        raise UserError(f"'url' of {where} must be an https address", f"found {url!r}")
    return SourceFile(
        name=name,
        sha256=digest,
        size=size,
        at_most=size if size is not None else _positive(where, entry, "max_bytes"),
        mirror=_relative_path(where, entry, "mirror") if "mirror" in entry else None,
        url=url,
    )


def _check_origins(where: str, snapshots: Sequence[Snapshot], embedded: bool) -> None:
    """Require that every file can be had somewhere, and that a cut names the published snapshot it comes from."""
    published = {entry.name for entry in snapshots if all(file.url for file in entry.files)}
    for snapshot in snapshots:
        if snapshot.derived_from is not None and snapshot.derived_from not in published:
            raise unknown_name(f"'derived_from' in {where}", snapshot.derived_from, filter(None, published))
        for file in snapshot.files:
            if not embedded and file.url is None and snapshot.derived_from is None:
                raise UserError(f"file {file.name!r} of {where} must declare 'url'", "it has none")
            if not embedded and file.url is None and file.mirror is None:
                raise UserError(f"file {file.name!r} of {where} must declare 'mirror' or 'url'", "it has neither")


def _check_keys(where: str, conf: Any, required: set[str], optional: set[str]) -> None:
    if not isinstance(conf, Mapping):
        raise UserError(f"{where} must be a mapping of keys to values", f"found {type(conf).__name__}")
    for key in conf:
        if key not in required | optional:
            raise unknown_name(f"a key of {where}", str(key), required | optional)
    missing = sorted(required - set(conf))
    if missing:
        raise UserError(f"{where} must declare {', '.join(sorted(required))}", f"{', '.join(missing)} is missing")


def _list(where: str, key: str, value: Any) -> Sequence[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        raise UserError(f"{key!r} of {where} must be a list that is not empty", f"found {value!r:.80}")
    return value


def _text(where: str, conf: Mapping[str, Any], key: str) -> str:
    value = conf[key]
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"{key!r} of {where} must be a text that is not empty", f"found {value!r:.80}")
    return " ".join(value.split())


def _positive(where: str, conf: Mapping[str, Any], key: str) -> int:
    value = conf[key]
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UserError(f"{key!r} of {where} must be a whole number of bytes above 0", f"found {value!r:.80}")
    return value


def _relative_path(where: str, conf: Mapping[str, Any], key: str) -> str:
    value = _text(where, conf, key)
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or "\\" in value or str(path) != value or value == ".":
        raise UserError(f"{key!r} of {where} must be a plain relative path", f"found {value!r}")
    return value

"""Specification of a source: its files with checksums, their published addresses, license and terms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from perfcast.utils.errors import UserError, unknown_name

MANIFEST = "manifest.json"
MAX_FILE_BYTES = 64_000_000
"""Bound in bytes of an embedded file, whose size is not declared."""

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_REQUIRED_KEYS = {"title", "license", "terms", "citation"}
_OPTIONAL_TEXTS = {"module", "homepage", "retrieved", "remedy"}
_OPTIONAL_KEYS = {*_OPTIONAL_TEXTS, "files", "snapshots", "embedded", "dump", "columns"}
_OPTIONAL_FILE_KEYS = {"sha256", "bytes", "max_bytes", "mirror", "url"}


@dataclass(frozen=True)
class SourceFile:
    """One file of a source.

    `name` is its path in results/raw/<source>/ and `mirror` its path below a mirror folder. `size` is its length in
    bytes, None if unknown; a longer file than `max_bytes` is rejected unread. `sha256` is None for embedded files.
    """

    name: str
    sha256: str | None
    size: int | None
    max_bytes: int
    mirror: str | None
    url: str | None


@dataclass(frozen=True)
class Snapshot:
    """One complete set of files; `derived_from` names the published snapshot that a local-only one is a subset of."""

    name: str | None
    files: tuple[SourceFile, ...]
    derived_from: str | None = None


@dataclass(frozen=True)
class SourceSpec:
    """Source as declared in conf/source; any one of its `snapshots` suffices.

    `columns` maps CSV files to the columns that they must have. Rows of a `dump` may have defects, even of encoding,
    because the dataset rejects them one by one. `module` checks what columns do not describe; "" for none.
    """

    name: str
    title: str
    module: str
    license: str
    terms: str
    citation: str
    homepage: str
    retrieved: str
    embedded: bool
    remedy: str
    dump: bool
    columns: Mapping[str, tuple[str, ...]]
    snapshots: tuple[Snapshot, ...]


def is_allowed_url(url: str) -> bool:
    """Return whether `url` may be downloaded: https, or plain http on the loopback address."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK))


def parse_source(name: str, conf: Mapping[str, Any]) -> SourceSpec:
    """Return the source that the content of a conf file declares.

    Raises: UserError when a key is unknown or missing, or a value has the wrong type or form.
    """
    context = f"source {name!r}"
    _check_keys(context, conf, _REQUIRED_KEYS, _OPTIONAL_KEYS)
    embedded, dump = (_require_flag(context, conf, key) for key in ("embedded", "dump"))
    if ("files" in conf) == ("snapshots" in conf):
        raise UserError(f"{context} must declare either 'files' or 'snapshots'", "both or neither is declared")
    if "files" in conf:
        snapshots: tuple[Snapshot, ...] = (Snapshot(None, _parse_files(context, conf["files"], embedded)),)
    else:
        snapshots = tuple(_parse_snapshots(context, conf["snapshots"], embedded))
    _check_origins(context, snapshots, embedded, has_remedy="remedy" in conf)
    return SourceSpec(
        name=name,
        embedded=embedded,
        snapshots=snapshots,
        dump=dump,
        columns=_parse_columns(context, conf.get("columns", {}), snapshots),
        **{key: _require_text(context, conf, key) for key in sorted(_REQUIRED_KEYS)},
        **{key: _require_text(context, conf, key) if key in conf else "" for key in sorted(_OPTIONAL_TEXTS)},
    )


def _parse_snapshots(context: str, entries: Any, embedded: bool) -> Iterator[Snapshot]:
    names: set[str] = set()
    for entry in _require_list(context, "snapshots", entries):
        _check_keys(f"a snapshot of {context}", entry, {"name", "files"}, {"derived_from"})
        name = _require_text(context, entry, "name")
        if name in names:
            raise UserError(f"the snapshots of {context} must have different names", f"{name!r} is there twice")
        names.add(name)
        origin = _require_text(context, entry, "derived_from") if "derived_from" in entry else None
        yield Snapshot(name, _parse_files(f"{context}, snapshot {name!r}", entry["files"], embedded), origin)


def _parse_columns(context: str, entries: Any, snapshots: Sequence[Snapshot]) -> dict[str, tuple[str, ...]]:
    _check_keys(f"'columns' of {context}", entries, set(), {file.name for file in snapshots[0].files})
    inside = f"'columns' of {context}"
    return {
        name: tuple(_require_text(inside, {name: column}, name) for column in _require_list(inside, name, columns))
        for name, columns in entries.items()
    }


def _parse_files(context: str, entries: Any, embedded: bool) -> tuple[SourceFile, ...]:
    files = tuple(_parse_file(context, entry, embedded) for entry in _require_list(context, "files", entries))
    names = [file.name for file in files]
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise UserError(f"the files of {context} must have different names", f"{duplicates[0]!r} is there twice")
    return files


def _parse_file(context: str, entry: Any, embedded: bool) -> SourceFile:
    _check_keys(f"a file of {context}", entry, {"name"}, _OPTIONAL_FILE_KEYS)
    name = _require_relative_path(context, entry, "name")
    if name == MANIFEST:
        raise UserError(f"a file of {context} must not be called {MANIFEST}", "ingestion writes a file of that name")
    context = f"{context}, file {name!r}"
    if embedded:
        extra_keys = sorted(_OPTIONAL_FILE_KEYS & set(entry))
        if extra_keys:
            requirement = f"{context} must declare its name only, because the source is embedded"
            raise UserError(requirement, f"got {', '.join(extra_keys)}")
        return SourceFile(name, None, None, MAX_FILE_BYTES, None, None)
    digest = _require_text(context, entry, "sha256") if "sha256" in entry else ""
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise UserError(f"'sha256' of {context} must be 64 lower-case hexadecimal digits", f"got {digest!r}")
    if ("bytes" in entry) == ("max_bytes" in entry):
        raise UserError(f"{context} must declare either 'bytes' or 'max_bytes'", "both or neither is declared")
    size = _require_positive(context, entry, "bytes") if "bytes" in entry else None
    url = _require_text(context, entry, "url") if "url" in entry else None
    if url is not None and not is_allowed_url(url):
        raise UserError(f"'url' of {context} must be an https address", f"got {url!r}")
    return SourceFile(
        name=name,
        sha256=digest,
        size=size,
        max_bytes=size if size is not None else _require_positive(context, entry, "max_bytes"),
        mirror=_require_relative_path(context, entry, "mirror") if "mirror" in entry else None,
        url=url,
    )


def _check_origins(context: str, snapshots: Sequence[Snapshot], embedded: bool, *, has_remedy: bool) -> None:
    """Check that every file has an address or a mirror, and that `derived_from` names a published snapshot.

    A file without an address is a subset of a published snapshot, or packed: `remedy` says of what.
    """
    published = {entry.name for entry in snapshots if all(file.url for file in entry.files)}
    for snapshot in snapshots:
        if snapshot.derived_from is not None and snapshot.derived_from not in published:
            raise unknown_name(f"'derived_from' in {context}", snapshot.derived_from, filter(None, published))
        for file in snapshot.files:
            if not embedded and file.url is None and snapshot.derived_from is None and not has_remedy:
                remedy = "declare it, or declare 'remedy' with how the file is made"
                raise UserError(f"file {file.name!r} of {context} must declare 'url'", "it has none", remedy)
            if not embedded and file.url is None and file.mirror is None:
                raise UserError(f"file {file.name!r} of {context} must declare 'mirror' or 'url'", "it has neither")


def _check_keys(context: str, conf: Any, required: set[str], optional: set[str]) -> None:
    if not isinstance(conf, Mapping):
        raise UserError(f"{context} must be a mapping of keys to values", f"got {type(conf).__name__}")
    for key in conf:
        if key not in required | optional:
            raise unknown_name(f"a key of {context}", str(key), required | optional)
    missing = sorted(required - set(conf))
    if missing:
        raise UserError(f"{context} must declare {', '.join(sorted(required))}", f"{', '.join(missing)} is missing")


def _require_list(context: str, key: str, value: Any) -> Sequence[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        raise UserError(f"{key!r} of {context} must be a non-empty list", f"got {value!r:.80}")
    return value


def _require_flag(context: str, conf: Mapping[str, Any], key: str) -> bool:
    value = conf.get(key, False)
    if not isinstance(value, bool):
        raise UserError(f"{key!r} of {context} must be true or false", f"got {value!r}")
    return value


def _require_text(context: str, conf: Mapping[str, Any], key: str) -> str:
    value = conf[key]
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"{key!r} of {context} must be a non-empty text", f"got {value!r:.80}")
    return " ".join(value.split())


def _require_positive(context: str, conf: Mapping[str, Any], key: str) -> int:
    value = conf[key]
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UserError(f"{key!r} of {context} must be a whole number of bytes above 0", f"got {value!r:.80}")
    return value


def _require_relative_path(context: str, conf: Mapping[str, Any], key: str) -> str:
    value = _require_text(context, conf, key)
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or "\\" in value or str(path) != value or value == ".":
        raise UserError(f"{key!r} of {context} must be a plain relative path", f"got {value!r}")
    return value

"""One-line messages for file errors of the operating system: full disk, read-only disk, permissions."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from perfcast.utils.errors import UserError

_AGAIN = "then start again: finished jobs are kept"
_FULL = ("the disk must have room", "no space is left on it", f"make room, {_AGAIN}")
_READ_ONLY = ("the disk must be writable", "it is read-only", f"mount it for writing, {_AGAIN}")
_REFUSED = ("this user must have access", "permission is denied", f"change the permissions, {_AGAIN}")
_BROKEN = ("the disk must work", "reading or writing failed", f"look at the system's messages, {_AGAIN}")
_BY_NUMBER = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: _READ_ONLY,
    errno.EACCES: _REFUSED,
    errno.EPERM: _REFUSED,
    errno.EIO: _BROKEN,
}
_BY_WORDS = {
    "No space left on device": _FULL,
    "database or disk is full": _FULL,
    "Not enough free space to write": _FULL,
    "Read-only file system": _READ_ONLY,
    "attempt to write a readonly database": _REFUSED,
    "Permission denied": _REFUSED,
    "disk I/O error": _BROKEN,
}
"""Texts of libraries that hide the error number."""


def explain_os_error(error: BaseException) -> UserError | None:
    """Return the error as a `UserError`, or None when no file caused it.

    Also looks at the errors that this one was raised from, because libraries wrap errors of the system.
    """
    for cause in _chain(error):
        known = _BY_NUMBER.get(cause.errno or 0) if isinstance(cause, OSError) else None
        known = known or next((message for words, message in _BY_WORDS.items() if words in str(cause)), None)
        if known:
            requirement, fact, remedy = known
            where = getattr(cause, "filename", None)
            return UserError(requirement, f"{fact}{f' ({where})' if where else ''}", remedy)
    if isinstance(error, OSError) and error.errno is not None:  # no such file, a folder where a file must be
        why = (error.strerror or "input/output error").lower()
        fact = f"{error.filename}: {why}" if isinstance(error.filename, str) else why
        return UserError("files must be readable and writable", fact, "name another")
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in seen:
        yield following
        seen.append(following)
        following = following.__cause__ or following.__context__

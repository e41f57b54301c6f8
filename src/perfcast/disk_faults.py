"""Tell in one line what the system refused of files: room, writing, access. Nothing of perfcast is at fault then."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from perfcast.errors import UserError

_AGAIN = "then start again: what was finished is kept"
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
"""What libraries say that hide the system's number."""


def explain(error: BaseException) -> UserError | None:
    """Return the error as one that a user can repair, None where no file is to blame.

    Looked at are also the errors that this one was raised from: libraries wrap what the system told them.
    """
    for one in _chain(error):
        known = _BY_NUMBER.get(one.errno or 0) if isinstance(one, OSError) else None
        known = known or next((told for words, told in _BY_WORDS.items() if words in str(one)), None)
        if known:
            requirement, fact, remedy = known
            where = getattr(one, "filename", None)
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

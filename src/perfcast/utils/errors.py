"""The exception for mistakes of the user, and its one-line message."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from difflib import get_close_matches


class UserError(ValueError):
    """Mistake that the user can repair, as one line: "requirement, but fact; remedy".

    The command line prints it without a traceback and exits with code 2. Every other exception is a bug. It is a
    ValueError for callers from Python.

    Args:
        requirement: The rule, with the field as the user typed it: "--level must be between 0 and 1".
        fact: The value that breaks the rule: "it is 1.5".
        remedy: What to do: "0.9 means 90 %"; empty where the rule says it.
    """

    def __init__(self, requirement: str, fact: str, remedy: str = "") -> None:
        self.requirement = requirement
        self.fact = fact
        self.remedy = remedy
        # a requirement of one word is the field alone: "cores: 24 is more than 16"
        text = f"{requirement}{', but' if ' ' in requirement else ':'} {fact}"
        if remedy:
            text += f"; {remedy}"
        super().__init__(printable(text))


def printable(text: str) -> str:
    """Return a text as one line for any terminal and encoding: unprintable characters are escaped."""
    line = " ".join(text.split())
    return line if line.isprintable() else "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)


def unknown_name(what: str, name: str, known: Iterable[str]) -> UserError:
    """Return the error for an unknown name, with the most similar known name as a hint."""
    names = sorted(known)
    near = get_close_matches(str(name), names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return UserError(
        f"{what} must be one of {', '.join(names) or '(none exist)'}", f"found {name!r}", hint + "see conf/"
    )


_AGAIN = "then start again: finished jobs are kept"
_FULL = ("the disk must have room", "no space is left on it", f"make room, {_AGAIN}")
_READ_ONLY = ("the disk must be writable", "it is read-only", f"mount it for writing, {_AGAIN}")
_REFUSED = ("this user must have access", "permission is denied", f"change the permissions, {_AGAIN}")
_BROKEN = ("the disk must work", "reading or writing failed", f"look at the system's messages, {_AGAIN}")
_BY_NUMBER = {errno.ENOSPC: _FULL, errno.EDQUOT: _FULL, errno.EROFS: _READ_ONLY, errno.EIO: _BROKEN}
_BY_NUMBER |= dict.fromkeys((errno.EACCES, errno.EPERM), _REFUSED)
_BY_WORDS = {
    **dict.fromkeys(("No space left on device", "database or disk is full", "Not enough free space to write"), _FULL),
    **dict.fromkeys(("attempt to write a readonly database", "Permission denied"), _REFUSED),
    "Read-only file system": _READ_ONLY,
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


_MODULES = {
    "serve": "fastapi h11 prometheus_client starlette uvicorn",
    "train": "psutil pytorch_lightning rtdl_num_embeddings rtdl_revisiting_models sklearn tabm torch xgboost",
    "pipeline": "dvc filelock hydra jinja2 markupsafe mlflow omegaconf openpyxl pooch pydantic "
    "requests snakemake urllib3",
    "plot": "matplotlib",
    "mcp": "mcp mcp_types",
    "postgresql": "psycopg2",
}
EXTRAS = {module: extra for extra, modules in _MODULES.items() for module in modules.split()}
"""Extra by the top-level module that it brings; `serve` and `pipeline` both bring pydantic."""


def explain_missing_module(error: ImportError, what: str, extra: str = "") -> UserError | None:
    """Return the error of an absent optional package as a `UserError`, or None for any other module.

    Args: `what` needs the package, such as a command; `extra` replaces that of the module where several bring it.
    """
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        return None
    remedy = f"pip install 'perfcast[{extra or EXTRAS[module]}]'"
    return UserError(f"{what} needs the packages of an extra", f"{module} is not installed", remedy)

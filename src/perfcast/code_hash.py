"""Hashes of the code that a stage imports: an edit re-runs the jobs that depend on it and no others."""

from __future__ import annotations

import ast
import hashlib
import importlib
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from perfcast.domain import domains
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_json, write_json

_ROOT = Path(__file__).parent
_DATA_SUFFIXES = {".csv", ".yaml", ".html", ".md", ".json", ".css", ".js", ".mplstyle"}
_DIGITS = 16


@cache
def _folders() -> dict[str, Path]:
    """Return the folders of this package and of those that have domains, by name."""
    names = {domain.package.partition(".")[0] for domain in domains()} - {_ROOT.name}
    others = {name: Path(str(importlib.import_module(name).__file__)).parent for name in names}
    return {_ROOT.name: _ROOT, **others}


@cache
def module_path(module: str) -> Path | None:
    """Return the file of a module of this package or of one that has a domain, or None for anything else."""
    parts = module.partition(":")[0].split(".")
    if parts[0] not in _folders():
        return None
    base = _folders()[parts[0]].joinpath(*parts[1:])
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


def _stored_file(root: Path) -> Path:
    """Return the file that keeps what was parsed, beside the bytecode and of one version of Python like it."""
    return root / "__pycache__" / f"code_hash.{sys.implementation.cache_tag}.parsed"


@cache
def _stored(root: Path) -> dict[str, list[Any]]:
    """Return what earlier processes parsed: state of the file, imported names and hash of the code, by module.

    Parsing takes a quarter of a second in every job of a run, and two seconds where jobs are planned.
    """
    try:
        stored: dict[str, list[Any]] = read_json(_stored_file(root))
    except UserError:
        return {}
    return stored


@cache
def _parse(module: str) -> tuple[frozenset[str], bytes]:
    """Return the modules of these packages that a module imports, inside functions too, and the hash of its code.

    Of a function, `module:name`, these are its own and what its module imports first.
    """
    path = module_path(module)
    if path is None:
        return frozenset(), b""
    status = path.stat()
    state = [str(path), status.st_mtime_ns, status.st_size]
    stored = _stored(_ROOT)
    if module not in stored or stored[module][0] != state:
        modules, digest = _parse_code(path, module.partition(":")[2])
        stored[module] = [state, sorted(modules), digest]
        _changed.add(module)
    _, modules, digest = stored[module]
    return frozenset(name for name in modules if module_path(name) is not None), bytes.fromhex(digest)


_changed: set[str] = set()
"""Modules that this process parsed since it last kept them."""


def _keep() -> None:
    """Keep what was parsed, where Python may keep bytecode; without it, the next process parses again."""
    if _changed and not sys.dont_write_bytecode and os.access(_ROOT / "__pycache__", os.W_OK):
        with suppress(OSError):  # such as on a full disk
            write_json(_stored_file(_ROOT), _stored(_ROOT))
    _changed.clear()


def _parse_code(path: Path, name: str) -> tuple[set[str], str]:
    """Return the modules that a file, or a function of it with a name, imports, and the hash of its code."""
    tree = ast.parse(path.read_bytes())
    if name:
        nodes = (
            node
            for node in tree.body
            if isinstance(node, ast.Import | ast.ImportFrom) or vars(node).get("name") == name
        )
        tree.body = list(nodes)
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            modules.add(node.module)
            modules.update(f"{node.module}.{alias.name}" for alias in node.names)
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [statement for statement in body if not _is_bare_text(statement)]  # type: ignore[attr-defined]
    return modules, hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_bare_text(statement: ast.stmt) -> bool:
    """Return whether a statement is only a string: the docstring of a module, class, function or attribute."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def closure(*modules: str) -> set[str]:
    """Return the given modules and everything of these packages they import, directly or not."""
    seen: set[str] = set()
    pending = list(modules)
    while pending:
        module = pending.pop()
        if module in seen or module_path(module) is None:
            continue
        seen.add(module)
        pending.extend(_parse(module)[0])
    return seen


def code_digest(*modules: str) -> str:
    """Return 16 hexadecimal digits over the import closure of modules, and over the data files beside its modules.

    Comments, docstrings and formatting do not count.
    """
    members = closure(*modules)
    folders = {path.parent for module in members if (path := module_path(module)) is not None} - {_ROOT}
    parts = {module: _parse(module)[1] for module in members}
    # a subfolder without modules, such as report/templates, belongs to the package above it
    data = {part for folder in folders for part in folder.iterdir() if part.is_dir() and not any(part.glob("*.py"))}
    for path in (path for folder in folders | data for path in folder.iterdir()):
        if path.suffix in _DATA_SUFFIXES:
            parts[os.path.relpath(path, _ROOT)] = hashlib.sha256(path.read_bytes()).digest()
    digest = hashlib.sha256()
    _keep()
    for name, content in sorted(parts.items()):
        digest.update(name.encode() + b"\0" + content)
    return digest.hexdigest()[:_DIGITS]

"""Hashes of the code that a stage imports: an edit re-runs the jobs that depend on it and no others."""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parent
_DATA_SUFFIXES = {".csv", ".yaml", ".html", ".css", ".js"}


def _path(module: str) -> Path | None:
    """Return the file of a module of this package, or None for anything else."""
    parts = module.split(".")
    if parts[0] != _ROOT.name:
        return None
    base = _ROOT.joinpath(*parts[1:])
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


@cache
def imports(module: str) -> frozenset[str]:
    """Return the modules of this package that a module's text imports, inside functions too."""
    path = _path(module)
    if path is None:
        return frozenset()
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            modules.add(node.module)
            modules.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(name for name in modules if _path(name) is not None)


def closure(*modules: str) -> set[str]:
    """Return the given modules and everything of this package they import, directly or not."""
    seen: set[str] = set()
    pending = list(modules)
    while pending:
        module = pending.pop()
        if module in seen or _path(module) is None:
            continue
        seen.add(module)
        pending.extend(imports(module))
    return seen


def code_digest(*modules: str) -> str:
    """Return 16 hexadecimal digits over the text of the import closure and the data files beside its modules."""
    files = {path for module in closure(*modules) if (path := _path(module)) is not None}
    beside = {
        path
        for folder in {file.parent for file in files}
        if folder != _ROOT
        for path in folder.iterdir()
        if path.suffix in _DATA_SUFFIXES
    }
    digest = hashlib.sha256()
    for path in sorted(files | beside):
        digest.update(str(path.relative_to(_ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]

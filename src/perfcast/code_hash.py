"""Hashes of the code that a stage imports: an edit re-runs the jobs that depend on it and no others."""

from __future__ import annotations

import ast
import hashlib
import importlib
import os
from functools import cache
from pathlib import Path

from perfcast.domain import domains

_ROOT = Path(__file__).parent
_DATA_SUFFIXES = {".csv", ".yaml", ".html", ".md", ".json", ".css", ".js", ".mplstyle"}
_DIGITS = 16


@cache
def _folders() -> dict[str, Path]:
    """Return the folders of this package and of those that have domains, by name."""
    names = {domain.package.partition(".")[0] for domain in domains()} - {_ROOT.name}
    others = {name: Path(str(importlib.import_module(name).__file__)).parent for name in names}
    return {_ROOT.name: _ROOT, **others}


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


@cache
def _parse(module: str) -> tuple[frozenset[str], bytes]:
    """Return the modules of these packages that a module imports, inside functions too, and the hash of its code.

    Of a function, `module:name`, these are its own and what its module imports first.
    """
    path = module_path(module)
    if path is None:
        return frozenset(), b""
    tree = ast.parse(path.read_bytes())
    if name := module.partition(":")[2]:
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
    imported = frozenset(name for name in modules if module_path(name) is not None)
    return imported, hashlib.sha256(ast.dump(tree).encode()).digest()


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
    for name, content in sorted(parts.items()):
        digest.update(name.encode() + b"\0" + content)
    return digest.hexdigest()[:_DIGITS]

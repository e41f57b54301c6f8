"""Plug-ins: modules, functions and classes that are found by name, without a registry.

A plug-in module is a module that defines the entry point of its package, so helpers may stand beside it. Configuration
names functions and classes by their dotted path (Hydra's `_target_`).
"""

from __future__ import annotations

import ast
import importlib
import re
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from perfcast.utils.errors import UserError, unknown_name

_ROOT = Path(__file__).parents[1]
_ENTRY_POINTS = {
    "cli": r"^def add_arguments\(",
    "cli.champion": r"^def add_arguments\(",
    "cli.facts": r"^def add_arguments\(",
    "cli.measure": r"^def add_arguments\(",
    "cli.pipeline": r"^def add_arguments\(",
    "cli.results": r"^def add_arguments\(",
    "data.sources": r"^def check\(",
    "features": r"^def derive\(",
    "report.plots": r"^@declare_plot\(",
    "splits": r"^(@| +return )declare_|^\w+ = share_of\(",
    "testing": r"^def write\(",
}
"""Package -> pattern of a line that only its plug-in modules have."""


@cache
def names(package: str) -> tuple[str, ...]:
    """Return the names of the plug-in modules of `perfcast.<package>`, sorted. Modules are read, not imported."""
    entry = re.compile(_ENTRY_POINTS[package], re.MULTILINE)
    files = _ROOT.joinpath(*package.split(".")).glob("*.py")
    return tuple(sorted(file.stem for file in files if entry.search(file.read_text(encoding="utf-8"))))


def load(package: str, name: str) -> ModuleType:
    """Import the plug-in module `perfcast.<package>.<name>`.

    Raises:
        UserError: There is no plug-in of that name. A module that fails to import raises its own error.
    """
    if name not in names(package):
        raise unknown_name(f"a name in {package}", name, names(package))
    return importlib.import_module(f"perfcast.{package}.{name}")


@cache
def declarations(package: str) -> dict[str, tuple[str, ast.Call]]:
    """Return the functions of plug-in modules that a decorator `declare_...(...)` declares, by name, in text order.

    The value is the name of the module and the call of the decorator. Modules are parsed, not imported.

    Raises:
        ValueError: Two functions have the same name.
    """
    declared: dict[str, tuple[str, ast.Call]] = {}
    for module in names(package):
        tree = ast.parse(_ROOT.joinpath(*package.split("."), f"{module}.py").read_bytes())
        for node in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
            for call in (call for call in node.decorator_list if isinstance(call, ast.Call)):
                if isinstance(call.func, ast.Name) and call.func.id.startswith("declare_"):
                    if node.name in declared:
                        raise ValueError(f"two functions of {package} are declared as {node.name!r}, one in {module}")
                    declared[node.name] = module, call
    return declared


@cache
def class_paths(package: str) -> tuple[str, ...]:
    """Return the dotted paths of the public classes of `perfcast.<package>`, sorted, without importing modules."""
    return _definitions(package, ast.ClassDef)


@cache
def function_paths(package: str) -> tuple[str, ...]:
    """Return the dotted paths of the public functions of `perfcast.<package>`, sorted, as `class_paths` does."""
    return _definitions(package, ast.FunctionDef)


def _definitions(package: str, kind: type[ast.ClassDef] | type[ast.FunctionDef]) -> tuple[str, ...]:
    paths = []
    for file in _ROOT.joinpath(*package.split(".")).rglob("*.py"):
        module = ".".join(["perfcast", *file.relative_to(_ROOT).with_suffix("").parts]).removesuffix(".__init__")
        defined = (node.name for node in ast.parse(file.read_bytes()).body if isinstance(node, kind))
        paths += [f"{module}.{name}" for name in defined if not name.startswith("_")]
    return tuple(sorted(paths))


def check_class(package: str, path: str, where: str) -> None:
    """Raise a UserError where `perfcast.<package>` defines no class of this dotted path."""
    _require_defined("class", package, path, class_paths(package), where)


def check_function(package: str, path: str, where: str) -> None:
    """Raise a UserError where `perfcast.<package>` defines no function of this dotted path."""
    _require_defined("function", package, path, function_paths(package), where)


def _require_defined(kind: str, package: str, path: str, known: tuple[str, ...], where: str) -> None:
    if path in known:
        return
    near = get_close_matches(str(path), known, n=1)
    raise UserError(
        f"{where} must be the path of a {kind} in perfcast.{package}",
        f"{path!r} is none",
        f"did you mean {near[0]!r}?" if near else "",
    )


def load_class(package: str, path: str, where: str) -> type:
    """Import the class of a dotted path, and nothing outside `perfcast.<package>`.

    Args:
        where: Names the path in the error message.

    Raises:
        UserError: The path names no class of the package.
    """
    check_class(package, path, where)
    loaded: type = _import_path(path)
    return loaded


def load_function(package: str, path: str, where: str) -> Any:
    """Import the function of a dotted path, and nothing outside `perfcast.<package>`; see `load_class`."""
    check_function(package, path, where)
    return _import_path(path)


def _import_path(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)

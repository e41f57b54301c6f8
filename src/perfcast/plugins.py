"""Plug-ins: modules and classes that are found by name, without a registry."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import ModuleType

from perfcast.errors import UserError, unknown_name

_NOT_PLUGINS = {"base"}


def names(package: str) -> list[str]:
    """List the plug-ins of `perfcast.<package>`: its public modules except `base`."""
    parent = importlib.import_module(f"perfcast.{package}")
    modules = (module.name for module in pkgutil.iter_modules(parent.__path__))
    return sorted(name for name in modules if not name.startswith("_") and name not in _NOT_PLUGINS)


def load(package: str, name: str) -> ModuleType:
    """Import the plug-in module `perfcast.<package>.<name>`.

    Raises: UserError when there is none of that name. A module that exists and fails to import raises its own error.
    """
    known = names(package)
    if name not in known:
        raise unknown_name(f"a name in {package}", name, known)
    return importlib.import_module(f"perfcast.{package}.{name}")


@cache
def class_paths(package: str) -> tuple[str, ...]:
    """Return the dotted paths of the public classes that the modules of `perfcast.<package>` define, sorted.

    The source is parsed and not imported: a plan of the whole graph need not import every library of a predictor.
    """
    root = Path(__file__).parent
    paths = []
    for file in (root / package).rglob("*.py"):
        module = ".".join(["perfcast", *file.relative_to(root).with_suffix("").parts]).removesuffix(".__init__")
        classes = (node.name for node in ast.parse(file.read_bytes()).body if isinstance(node, ast.ClassDef))
        paths += [f"{module}.{name}" for name in classes if not name.startswith("_")]
    return tuple(sorted(paths))


def check_class(package: str, path: str, where: str) -> None:
    """Raise a UserError where `perfcast.<package>` defines no class of this dotted path."""
    if path in class_paths(package):
        return
    near = get_close_matches(str(path), class_paths(package), n=1)
    raise UserError(
        f"{where} must be the path of a class in perfcast.{package}",
        f"{path!r} is none",
        f"did you mean {near[0]!r}?" if near else "",
    )


def load_class(package: str, path: str, where: str) -> type:
    """Import the class of a dotted path, and nothing outside `perfcast.<package>`.

    Args: `where` names the path in the message of the UserError for a path that names no class.
    """
    check_class(package, path, where)
    module, _, name = path.rpartition(".")
    loaded: type = getattr(importlib.import_module(module), name)
    return loaded

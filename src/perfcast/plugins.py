"""Plug-ins: modules, functions and classes that configuration and commands name.

A plug-in module defines the function of its kind, so that helpers may stand beside it. Configuration names functions
and classes by their dotted path (Hydra's `_target_`), inside perfcast or the package of a domain.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from perfcast.domain import Domain, domains
from perfcast.utils.errors import UserError, unknown_name

_FUNCTIONS = {"cli": "add_arguments", "features": "derive", "sources": "check", "testing": "write"}
"""Kind -> the function that its plug-in modules have."""


def names(kind: str) -> tuple[str, ...]:
    """Return the names of the plug-in modules of a kind, such as "features", sorted; each is imported."""
    plugin_names = {
        path.rpartition(".")[2] for path in modules(kind) if _is_plugin(importlib.import_module(path), kind)
    }
    return tuple(sorted(plugin_names))


def load(kind: str, name: str, what: str = "") -> ModuleType:
    """Import the plug-in module of a kind and name; `what` names it in the error.

    Raises:
        UserError: There is no plug-in of that name. A module that fails to import raises its own error.
    """
    for package in _packages(kind):
        if name.isidentifier() and find_spec(f"{package}.{name}"):
            module = importlib.import_module(f"{package}.{name}")
            if _is_plugin(module, kind):
                return module
    raise unknown_name(what or f"a name in {kind}", name, names(kind))


def load_class(path: str, where: str) -> type:
    """Import the class of a dotted path, and nothing outside perfcast and its domains.

    Args:
        where: Names the path in the error message.

    Raises:
        UserError: The path names no class of these packages.
    """
    loaded = _load(path, where, "class")
    if not isinstance(loaded, type):
        raise _not_found(path, where, "class", ())
    return loaded


def load_function(path: str, where: str) -> Any:
    """Import the function of a dotted path, and nothing outside perfcast and its domains; see `load_class`."""
    loaded = _load(path, where, "function")
    if not inspect.isfunction(loaded):
        raise _not_found(path, where, "function", ())
    return loaded


def classes(kind: str) -> dict[str, str]:
    """Return the dotted paths of the public classes in the packages of a kind, by name.

    A module that lacks an optional library is left out.
    """
    paths = {}
    for package in map(importlib.import_module, _packages(kind)):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            with suppress(ImportError):
                for name, value in vars(importlib.import_module(module.name)).items():
                    if isinstance(value, type) and value.__module__ == module.name and not name.startswith("_"):
                        paths[name] = f"{module.name}.{name}"
    return paths


def is_inside(path: str) -> bool:
    """Return whether a dotted path lies in perfcast or in the package of a domain."""
    return any(path.startswith(f"{domain.package}.") for domain in domains())


def modules(kind: str, among: Iterable[Domain] | None = None) -> list[str]:
    """Return the dotted paths of the modules of a kind, of all domains by default, helpers beside plug-ins included."""
    return [
        f"{package}.{module.name}"
        for package in _packages(kind, among)
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__)
        if not module.ispkg
    ]


def declared(kind: str) -> dict[str, Any]:
    """Return the objects that the modules of a kind declare (they have the attribute `declaration`), by name.

    Raises:
        ValueError: Two modules declare one name.
    """
    objects: dict[str, Any] = {}
    for module in modules(kind):
        for name, value in vars(importlib.import_module(module)).items():
            is_declared = not name.startswith("_") and hasattr(value, "declaration")
            if is_declared and objects.setdefault(name, value) is not value:
                raise ValueError(f"two modules declare {name!r} in {kind}, one is {module}")
    return objects


def _packages(kind: str, among: Iterable[Domain] | None = None) -> list[str]:
    """Return the packages of a kind: those of the core and of the domains that have one."""
    packages = [f"{domain.package}.{kind}" for domain in (domains() if among is None else among)]
    return [package for package in packages if _exists(package)]


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _is_plugin(module: ModuleType, kind: str) -> bool:
    return hasattr(module, _FUNCTIONS[kind.partition(".")[0]])


def _load(path: str, where: str, kind: str) -> Any:
    module, _, name = str(path).rpartition(".")
    if not is_inside(str(path)) or not _exists(module):
        raise _not_found(path, where, kind, ())
    loaded = importlib.import_module(module)
    if not hasattr(loaded, name):
        raise _not_found(path, where, kind, [f"{module}.{known}" for known in vars(loaded)])
    return getattr(loaded, name)


def _not_found(path: str, where: str, kind: str, known: Any) -> UserError:
    near = get_close_matches(str(path), known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else ""
    return UserError(f"{where} must be the path of a {kind} in perfcast or a domain", f"{path!r} is none", hint)

"""Plug-ins: modules, functions and classes that configuration and commands name.

A plug-in module defines the function of its kind, so that helpers may stand beside it. Configuration names functions
and classes by their dotted path (Hydra's `_target_`), inside perfcast or the package of a domain.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from perfcast.domain import Domain, domains, exists
from perfcast.utils.errors import UserError, unknown_name

_FUNCTIONS = {"cli": "add_arguments", "features": "derive", "testing": "write"}
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
        if name.isidentifier() and exists(f"{package}.{name}"):
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
    loaded: type = _load(path, where, "class", inspect.isclass)
    return loaded


def load_function(path: str, where: str) -> Any:
    """Import the function of a dotted path, and nothing outside perfcast and its domains; see `load_class`."""
    return _load(path, where, "function", inspect.isroutine)


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
    return [package for package in packages if exists(package)]


def _is_plugin(module: ModuleType, kind: str) -> bool:
    return hasattr(module, _FUNCTIONS[kind.partition(".")[0]])


def _load(path: str, where: str, kind: str, is_kind: Callable[[object], bool]) -> Any:
    module, _, name = str(path).rpartition(".")
    known: list[str] = []
    if any(str(path).startswith(f"{domain.package}.") for domain in domains()) and exists(module):
        loaded = vars(importlib.import_module(module))
        if is_kind(loaded.get(name)):
            return loaded[name]
        known = [] if name in loaded else [f"{module}.{each}" for each in loaded]
    near = get_close_matches(str(path), known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else ""
    raise UserError(f"{where} must be the path of a {kind} in perfcast or a domain", f"{path!r} is none", hint)

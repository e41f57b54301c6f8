"""Plug-ins: modules that are found by name, without a registry."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from perfcast.errors import unknown_name

_NOT_PLUGINS = {"base"}


def names(package: str) -> list[str]:
    """List the plug-ins of `perfcast.<package>`: its public modules except `base`."""
    parent = importlib.import_module(f"perfcast.{package}")
    found = (module.name for module in pkgutil.iter_modules(parent.__path__))
    return sorted(name for name in found if not name.startswith("_") and name not in _NOT_PLUGINS)


def load(package: str, name: str) -> ModuleType:
    """Import the plug-in module `perfcast.<package>.<name>`.

    Raises: UserError when there is none of that name. A module that exists and fails to import raises its own error.
    """
    known = names(package)
    if name not in known:
        raise unknown_name(f"a name in {package}", name, known)
    return importlib.import_module(f"perfcast.{package}.{name}")

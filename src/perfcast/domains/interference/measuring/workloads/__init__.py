"""Workloads that run beside each other: one class each, in the module of its resource.

A new class below `Workload` in one of these modules is measured without any other change.
"""

from __future__ import annotations

from perfcast.domains.interference.measuring.workloads import arithmetic, content, servers, storage, system
from perfcast.domains.interference.measuring.workloads.workload import Workload
from perfcast.utils.errors import UserError, unknown_name

__all__ = ["Workload", "load_workload", "parse_workloads", "workload_names"]

_MODULES = (arithmetic, content, servers, storage, system)

_WORKLOADS: dict[str, type[Workload]] = {
    kind.name(): kind
    for module in _MODULES
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Workload) and kind.__module__ == module.__name__ and kind.MEANING
}


def workload_names() -> list[str]:
    """Return the names of the workloads, sorted."""
    return sorted(_WORKLOADS)


def load_workload(name: str) -> type[Workload]:
    """Return a workload. Raises: UserError for an unknown name."""
    if name not in _WORKLOADS:
        raise unknown_name("a workload", name, workload_names())
    return _WORKLOADS[name]


def parse_workloads(text: str | None) -> list[str]:
    """Return the workloads of a typed list, all without one. Raises: UserError for an unknown name or less than two."""
    if text is None:
        return workload_names()
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        load_workload(name)
    if len(names) < 2:
        raise UserError("--workloads must name at least two workloads", f"it names {len(names)}", "separate by commas")
    return names

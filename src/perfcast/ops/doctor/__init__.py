"""Checks before a run: one module per subject, each with `check(place)`."""

from perfcast.ops.doctor.findings import BROKEN, CARE, FINE, Finding, ProjectPlace

__all__ = ["BROKEN", "CARE", "FINE", "Finding", "ProjectPlace", "examine"]


def examine(place: ProjectPlace) -> list[Finding]:
    """Run all checks, in the order in which a user would repair."""
    from perfcast.ops.doctor import configuration, data_sources, free_space, leftovers, software, tracking_store

    checks = (software, configuration, data_sources, free_space, leftovers, tracking_store)
    return [finding for module in checks for finding in module.check(place)]

"""Slowdown of workloads by their neighbors on shared cores: the measuring campaign, its data and its predictors."""

from __future__ import annotations

from perfcast.domain import Domain

DOMAIN = Domain(
    name="interference",
    package=__name__,
    commands=("measure interference", "watch"),
)

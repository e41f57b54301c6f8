"""Slowdown of workloads by their neighbors on shared cores: measured seconds, splits and predictors."""

from __future__ import annotations

from perfcast.domain import Domain

DOMAIN = Domain(name="interference", package=__name__)

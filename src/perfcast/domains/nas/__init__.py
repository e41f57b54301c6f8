"""Latencies of network architectures on devices of which few are measured (HELP, arXiv 2106.08630)."""

from __future__ import annotations

from perfcast.domain import Domain

DOMAIN = Domain(name="nas", package=__name__)

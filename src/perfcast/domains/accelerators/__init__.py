"""Accelerators of machine learning: published throughput of real machines, and the energy of what they run."""

from __future__ import annotations

from perfcast.domain import Domain

DOMAIN = Domain(name="accelerators", package=__name__, shift="predictors.distance.PairShift")

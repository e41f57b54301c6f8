"""Matrix products, published (GPPerf) and measured on this machine."""

from __future__ import annotations

from perfcast.domain import Domain

DOMAIN = Domain(name="gemm", package=__name__, commands=("measure gemm",))

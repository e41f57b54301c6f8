"""Imputation rules of SPEC CPU 2006."""

from collections.abc import Mapping
from typing import ClassVar

from perfcast.inference.imputation.server_rules import ServerRules


class SpecCpu2006Rules(ServerRules):
    """Rules of servers with the metrics of SPEC CPU 2006."""

    task_aliases: ClassVar[Mapping[str, str]] = {
        "SPECint_rate_base2006": "CINT2006rate",
        "SPECfp_rate_base2006": "CFP2006rate",
        "SPECint_base2006": "CINT2006speed",
        "SPECfp_base2006": "CFP2006speed",
    }


RULES = SpecCpu2006Rules()

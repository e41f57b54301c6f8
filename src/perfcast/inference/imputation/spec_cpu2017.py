"""Imputation rules of SPEC CPU 2017."""

from collections.abc import Mapping
from typing import ClassVar

from perfcast.inference.imputation.server_rules import ServerRules


class SpecCpu2017Rules(ServerRules):
    """Rules of servers with the metrics of SPEC CPU 2017."""

    task_aliases: ClassVar[Mapping[str, str]] = {
        "SPECrate2017_int_base": "CINT2017rate",
        "SPECrate2017_fp_base": "CFP2017rate",
        "SPECspeed2017_int_base": "CINT2017speed",
        "SPECspeed2017_fp_base": "CFP2017speed",
    }


RULES = SpecCpu2017Rules()

"""Complete an older server's description by its processor's name and by arithmetic, as those of spec_cpu2017 are."""

from perfcast.completion.spec_cpu2017 import (
    ADAPTED,
    BLOCKS,
    CAPACITIES,
    DESIGN,
    FIELDS,
    NEW_PART,
    REPLACED,
    WATTS,
    WATTS_ARE,
    assume,
    complete_machine,
    complete_part,
    parts,
    per_processor,
    refusals,
    refuse,
)

__all__ = [
    "ADAPTED",
    "BLOCKS",
    "CAPACITIES",
    "DESIGN",
    "FIELDS",
    "NEW_PART",
    "REPLACED",
    "TASK_NAMES",
    "WATTS",
    "WATTS_ARE",
    "assume",
    "complete_machine",
    "complete_part",
    "parts",
    "per_processor",
    "refusals",
    "refuse",
]

TASK_NAMES = {
    "SPECint_rate_base2006": "CINT2006rate",
    "SPECfp_rate_base2006": "CFP2006rate",
    "SPECint_base2006": "CINT2006speed",
    "SPECfp_base2006": "CFP2006speed",
}
"""SPEC's name of a metric -> suite."""

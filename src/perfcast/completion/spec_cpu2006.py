"""Complete an older server's description by its processor's name and by arithmetic, as those of spec_cpu2017 are."""

from perfcast.completion.spec_cpu2017 import (
    BLOCKS,
    DESIGN,
    FIELDS,
    NEW_PART,
    assume,
    complete_machine,
    complete_part,
    parts,
    refuse,
)

__all__ = ["BLOCKS", "DESIGN", "FIELDS", "NEW_PART", "assume", "complete_machine", "complete_part", "parts", "refuse"]

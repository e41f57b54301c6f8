"""Complete an older server's description by its processor's name and by arithmetic, as those of spec_cpu2017 are."""

from perfcast.completion.spec_cpu2017 import ALIASES, complete_machine, complete_part

__all__ = ["ALIASES", "complete_machine", "complete_part"]

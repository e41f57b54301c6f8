"""The machine at hand, described by what its system and firmware tell: nothing that names it is ever read."""

from perfcast.this_machine.read import Reading, ThisMachine, read_this_machine

__all__ = ["Reading", "ThisMachine", "read_this_machine"]

"""Two results compared: what changed in data, code and parameters, and whether each metric's change is real.

Either side is a results folder or a git revision whose results DVC keeps (`sides`); `changes` gathers everything,
`text` and `page` show it.
"""

from perfcast.comparing.changes import Changes, find_changes
from perfcast.comparing.sides import Side, open_side

__all__ = ["Changes", "Side", "find_changes", "open_side"]

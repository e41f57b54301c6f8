"""Comparison of two results: changes of data, code and parameters, and whether the change of each metric is real.

Either side is a results folder or a git revision whose results DVC keeps (`sides`). `changes` gathers everything;
`diff_text` and `diff_page` show it.
"""

from perfcast.evaluation.results_diff.changes import Changes, find_changes
from perfcast.evaluation.results_diff.sides import Side, open_side

__all__ = ["Changes", "Side", "find_changes", "open_side"]

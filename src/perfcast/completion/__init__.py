"""What a data set's own tables know of a machine that is described only in part: one module per data set, if any.

A module has `ALIASES`, other names a person may write for a column, and `complete(frame, raw)`, which fills missing
cells and never changes a given one.
"""

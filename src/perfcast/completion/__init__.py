"""What is known of a machine that is described only in part: one module per data set, where anything is.

A module has `ALIASES`, other names a person may write for a column; `complete_part(frame, raw)`, which asks tables
about the named part; and `complete_machine(frame)`, which concludes from one cell to another. They fill missing cells
and change no given one, except that a part's name is normalised.
"""

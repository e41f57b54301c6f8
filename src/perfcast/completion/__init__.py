"""What is known of a machine that is described only in part: one module per data set, where anything is.

A module has

- `FIELDS`: what a person may say in other words than the columns (`describing.fields.Field`);
- `NEW_PART` and `DESIGN`: what a part that nothing names must be described by, and the column of its design;
- `parts(raw, measured)`: what the ingested tables know of every named part, one row per name;
- `complete_part(frame, parts)`: fill from that table, and from rules about names it does not hold;
- `complete_machine(frame)`: conclude from one cell of a row to another;
- `assume(frame, last)`: what is taken for granted where nothing is said, `last` the month of the newest result;
- `BLOCKS`: columns that are assumed together, as most measured results of the kind have them;
- `refuse(frame)`: say what is impossible.

They fill missing cells and change no given one.
"""

"""What is known of a machine that is described only in part: one module per data set, where anything is.

A module has

- `FIELDS`: what a person may say in other words than the columns (`describing.fields.Field`);
- `NEW_PART` and `DESIGN`: what a part that nothing names must be described by, and the column of its design;
- `parts(raw, measured)`: what the ingested tables know of every named part, one row per name;
- `complete_part(frame, parts)`: fill from that table, and from rules about names it does not hold;
- `complete_machine(frame)`: conclude from one cell of a row to another;
- `assume(frame, last)`: what is taken for granted where nothing is said, `last` the month of the newest result;
- `BLOCKS`: columns that are assumed together, as most measured results of the kind have them;
- `refusals(frame)`: every rule that a row breaks (line, requirement, what was found); `refuse(frame)` raises the first;
- `TASK_NAMES`: names of tasks beside the data set's own, such as a publisher's;
- `WATTS`: columns whose product stands for a machine's power where nobody says it, and `WATTS_ARE`, what that counts;
- `per_processor(frame)`: say of one processor what was said of all, so that their number may vary;
- `CAPACITIES`: columns that the part bounds, with the part's own column: what is above it is another part;
- `REPLACED`: by column, those that a change of it contradicts and that are worked out anew even where they were given;
- `ADAPTED`: by column, those that are worked out anew where nobody gave them.

They fill missing cells and change no given one.
"""

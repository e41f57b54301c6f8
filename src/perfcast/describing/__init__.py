"""From what a person says of a machine to cells of a standard table: files, fields, units, names of parts."""

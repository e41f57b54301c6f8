"""Size limits for files from outside that several readers share, each with its reason.

conf/source states the exact size of every published file. These limits hold for what the size on disk does not show:
unpacked bytes, length of a line, number of columns. The limits of the server are in `perfcast.serving.request_limits`.
"""

from __future__ import annotations

UNPACKED = 128 << 20
"""Bytes of one file after decompression: the largest published one (SPEC CPU 2017) has 44 million."""

DUMP = 8 << 30
"""Bytes of the SPEC CPU 2017 dump after decompression: it is read in chunks and may hold 100 times today's rows."""

TABLE = 64 << 20
"""Bytes of any other CSV file: the largest published one (scores by benchmark) has 2.9 million."""

DUMP_ROWS = 10_000_000
"""Rows that are read of the SPEC CPU 2017 dump; the published one has 42 thousand."""

TABLE_ROWS = 1_000_000
"""Rows that are read of any other CSV file: the longest published one (scores by benchmark) has 11 thousand."""

REJECTED = 1_000_000
"""Rows of one file that may be quarantined; with more it is not the expected kind of table."""

LINE = 1_000_000
"""Bytes or characters of one line: the longest published one (Intel ARK) has 4.8 thousand."""

COLUMNS = 1_000
"""Columns of a table: the widest published one (Intel ARK) has 247."""

WORKBOOK = 64 << 20
"""Bytes of all members of a workbook: the published one has 26 million."""

TORCH = 16 << 20
"""Bytes of all members of a PyTorch file of plain values: the largest published one has 1.5 million."""

ARCHIVE = 64 << 20
"""Bytes of a tar archive after decompression: the published one has 10 million."""

MEMBERS = 100_000
"""Members of an archive."""

MODEL = 1 << 30
"""Bytes of the arrays of a model after decompression: a file of a run of this user."""

CHAMPION = 128 << 20
"""Bytes of all members of an exported champion: that of both suites of SPEC CPU has 12 million, the largest 30."""

JSON = 64 << 20
"""Bytes of a JSON file that perfcast wrote: the largest (a model's) have a few million."""

YAML = 1 << 20
"""Bytes of a YAML file: the reader needs about a hundred times as much memory. The longest in conf/ has 11 thousand."""

CELLS = 1_000_000_000
"""Rows times columns that are read of a Parquet file: 100 times the rows of SPEC CPU 2017 are 500 million."""

NESTING = 3
"""Levels of JSON and YAML of a user: a list of machines, a machine, a field with parts."""

"""Generated dump of SPEC CPU2006 results."""

from __future__ import annotations

from perfcast.domains.servers.testing.generated_dumps import GeneratedDump
from perfcast.domains.servers.testing.generated_rows import OLDER_CPU_MODELS
from perfcast.domains.servers.testing.spec_cpu2017 import draw_scores

_SUITES = ("CINT2006", "CFP2006", "CINT2006rate", "CFP2006rate")
_MONTHS = 2006 * 12 + 8, 2014 * 12 + 1
DUMP = GeneratedDump("cpu2006-results.csv.xz", _SUITES, _MONTHS, draw_scores, OLDER_CPU_MODELS, "\n")
FILE, write = DUMP.file, DUMP.write

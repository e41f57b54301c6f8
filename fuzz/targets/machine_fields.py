"""Fields that a user types for a machine: numbers with units, names of CPU models, cells of columns."""

from __future__ import annotations

import math

from _refusing import refusing

from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import COLUMNS
from perfcast.domains.servers.server_fields import SERVER_FIELDS
from perfcast.domains.servers.server_rules import SPEC_CPU2017
from perfcast.inference.machine_fields import MachineFields, read_number
from perfcast.inference.name_lookup import EntityNames
from perfcast.schema.table import Kind

FIELDS = MachineFields(COLUMNS, SERVER_FIELDS)
NAMES = EntityNames(
    SPEC_CPU2017, ["epyc 9654", "epyc 9654p", "xeon platinum 8592+", "xeon platinum 8592v", "core i5-8600", "epyc 9755"]
)
UNITS = ("MHz", "MT/s", "KiB", "MiB", "GiB", "GB", "W", "bit", "")
KNOWN = [*FIELDS.fields, *FIELDS.columns]
SEEDS = [
    bytes([number]) + text
    for number in range(0, len(KNOWN), 3)
    for text in (b"24 x 64 GB DDR5-6400", b"3.7 GHz", b"2026-03", b"SLES 15 SP6, kernel 6.4", b"AOCC 5.0")
]


def check(data: bytes) -> None:
    """Read the words as everything they can be."""
    if not data:
        return
    text = data[1:].decode("utf-8", errors="surrogatepass" if data[0] & 128 else "replace") if _decodes(data) else ""
    for unit in UNITS:
        try:
            value = read_number(text, unit)
        except ValueError:
            continue
        if not math.isfinite(value):
            raise AssertionError(f"{text!r} gave {value}")
    match = NAMES.find(text)
    if match.key is not None and match.key not in NAMES.keys:
        raise AssertionError(match)
    NAMES.complete(text, 5)
    with refusing():
        cells = FIELDS.cells({KNOWN[data[0] % len(KNOWN)]: text}, "line 2")
        for name, cell in cells.items():
            column = FIELDS.columns[name]
            if column.kind is Kind.NUMERICAL and not math.isfinite(float(cell)):
                raise AssertionError((name, cell))


def _decodes(data: bytes) -> bool:
    try:
        data[1:].decode("utf-8", errors="surrogatepass" if data[0] & 128 else "replace")
    except UnicodeDecodeError:
        return False
    return True

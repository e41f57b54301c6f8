"""Texts and lines of the generated dumps in the grammar of the published ones."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from perfcast.fake._servers import Part


def format_csv_line(fields: Sequence[str], end: str = "\r\n") -> bytes:
    """Format fields as one line of CSV."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator=end).writerow(fields)
    return buffer.getvalue().encode()


def make_broken_lines(lines: Sequence[bytes], header: Sequence[str], end: str) -> list[bytes]:
    """Return lines that are not rows: a repeated header, shifted fields, missing fields, and bad UTF-8."""
    if not lines:
        return []
    fields = next(csv.reader([lines[0].decode()]))
    rows = [header, [fields[-1], *fields[:-1]], fields[:20]]
    return [*(format_csv_line(row, end) for row in rows), lines[0].replace(b" GHz", b" GHz \xff\xfe")]


def format_caches(part: Part) -> tuple[str, str, str]:
    """Return the three cache columns of a part."""
    l2 = (
        "2 MB" if part.facts["process_node"] == "Intel 7" else "512 KB" if part.facts["cpu_vendor"] == "AMD" else "1 MB"
    )
    l3 = f"{part.l3_mb} MB I+D on chip per chip"
    if part.facts["cpu_vendor"] == "AMD":
        l3 += f", {part.l3_mb // 2} MB shared / {part.cores // 2} cores"
    if part.facts["family"] == "Sierra Forest":
        # As published, the size of a module of four cores is stated per core.
        l2 = "4 MB"
    return "32 KB I + 32 KB D on chip per core", f"{l2} I+D on chip per core", l3


def format_memory(part: Part, dimms: int, dimm_gb: int) -> str:
    """Return the memory column: the fastest DIMMs of the part's generation, running at the part's limit."""
    ddr, limit = int(part.number("ddr_gen", 4)), int(part.number("max_mts_1dpc", 3200))
    rated, letters = (3200, "AA") if ddr == 4 else (max(limit, 4800), "B")
    total = dimms * dimm_gb
    capacity = f"{total // 1024} TB" if total % 1024 == 0 else f"{total} GB"
    running = f", running at {limit}" if limit < rated else ""
    return f"{capacity} ({dimms} x {dimm_gb} GB 2Rx4 PC{ddr}-{rated}{letters}-R{running})"


def format_operating_system(year: int) -> str:
    """Return an operating system of the year."""
    if year < 2020:
        return "SUSE Linux Enterprise Server 12 SP4 (x86_64), Kernel 4.12.14-94.41-default"
    if year < 2022:
        return "Red Hat Enterprise Linux 8.3 (Ootpa), 4.18.0-240.el8.x86_64"
    return "SUSE Linux Enterprise Server 15 SP4 (x86_64), Kernel 5.14.21-150400.22-default"


def format_compiler(part: Part, year: int) -> str:
    """Return the compiler column: AOCC for AMD, Intel classic and later oneAPI for the others."""
    if part.facts["cpu_vendor"] == "AMD":
        return f"C/C++/Fortran: Version {min(5, max(1, year - 2018))}.0.0 of AOCC"
    if year < 2021:
        return (
            f"C/C++: Version {year - 1999}.0.1.144 of Intel C/C++, Compiler Build 20181018 for Linux;, "
            f"Fortran: Version {year - 1999}.0.1.144 of Intel Fortran, Compiler Build 20181018 for Linux"
        )
    return (
        f"C/C++: Version {year}.0 of Intel oneAPI DPC++/C++, Compiler for Linux;, "
        f"Fortran: Version {year}.0 of Intel Fortran Compiler, for Linux;"
    )

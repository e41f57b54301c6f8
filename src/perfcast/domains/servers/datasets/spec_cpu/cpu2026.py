"""Published SPEC CPU2026 results: one row per result; the target is the base score."""

from __future__ import annotations

import pandas as pd

from perfcast.domains.servers.datasets.spec_cpu import spec_dump
from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import name_suites, repair_results, screen_scores, split_suite
from perfcast.domains.servers.datasets.spec_cpu.dump_file import Quarantine

_NOT_COMPARABLE = {
    "energy_measured": (
        *(2, 3, 4, 9, 10, 11, 12, 13, 14, 59, 61, 63, 65, 83, 86, 115, 116),
        *(159, 162, 163, 164, 170, 174, 175, 177, 179, 180, 181, 182, 1),
    ),
    "one_copy": (17, 18, 19, 20, 243, 245),
    "copies_unknown": (15, 16),
}
"""Reason -> numbers of the results of June 2026: energy is above 0 in the dump, a rate run had one copy (as System or
the score says), or its copies are not told. Such scores are not those of a whole machine at full clock."""


def _screen(frame: pd.DataFrame, quarantine: Quarantine) -> pd.DataFrame:
    frame = screen_scores(frame, quarantine, first="2026-05")
    for reason, numbers in _NOT_COMPARABLE.items():
        bad = frame["result_id"].astype("str").str[-5:].isin([f"{number:05d}" for number in numbers])
        frame = quarantine.reject(frame, bad, reason, frame.loc[bad, "result_id"].astype("str"))
    return frame


DUMP = spec_dump.SpecDump(
    source="spec_cpu2026",
    suites=name_suites(2026),
    coded=True,
    screen=_screen,
    derive=lambda frame: frame.assign(**split_suite(frame["suite"])),
    repair=repair_results,
)

build = DUMP.build

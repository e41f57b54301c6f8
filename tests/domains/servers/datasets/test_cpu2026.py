"""SPEC CPU2026: its suites and identifiers, and results that are not those of a whole machine."""

from perfcast.domains.servers.datasets.spec_cpu import cpu2026
from perfcast.domains.servers.testing import spec_cpu2026


def test_runs_of_a_whole_machine_at_full_clock_stay(tmp_path):
    spec_cpu2026.write(tmp_path, rows=40, seed=0)
    built = cpu2026.build({"spec_cpu2026": tmp_path}, {})
    frame, reasons = built.table.frame, built.rejected["reason"].value_counts()
    assert reasons.to_dict() == {"energy_measured": 10, "one_copy": 4, "copies_unknown": 2}
    assert set(frame["suite"]) <= {f"C{kind}2026{run}" for kind in ("INT", "FP") for run in ("rate", "speed")}
    assert frame["result_id"].iloc[0] == "cpu2026-20260410-00005"
    assert (frame["arrival_day"] == "2026-04-10").all()

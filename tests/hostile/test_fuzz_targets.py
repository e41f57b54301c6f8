"""The fuzzer's targets without the fuzzer: each holds on what it begins with, and on all that it ever found."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[2] / "fuzz"
FINDINGS = Path(__file__).parent / "findings"
_spec = importlib.util.spec_from_file_location("fuzz_run", FUZZ / "run.py")
run = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(run)


@pytest.mark.parametrize("name", run.names())
def test_fuzz_target_passes_on_seeds_and_findings(name):
    target = run.load(name)
    inputs = [path.read_bytes() for path in sorted((FINDINGS / name).glob("*"))]
    for data in [b"", *target.SEEDS[:40], *inputs]:
        target.check(data)
        for position in range(1, len(data), max(1, len(data) // 5)):
            target.check(data[:position])
            target.check(data[:position] + b"\xff\x00" + data[position:])


def test_findings_belong_to_existing_targets():
    assert {path.name for path in FINDINGS.glob("*")} <= set(run.names())

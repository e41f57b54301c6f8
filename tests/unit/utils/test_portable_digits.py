"""Instructions and threads of the commands of the pipeline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from perfcast.utils.portable_digits import ONE_THREAD, portable_instructions

CHOSEN = portable_instructions()
SHOWN = """
import json, os, sys
from perfcast.cli.main import main
try:
    main([*sys.argv[1:], "--help"])
except SystemExit:
    print(json.dumps([dict(os.environ), "numpy" in sys.modules or "torch" in sys.modules]))
"""


def variables_of(*command: str, **given: str) -> tuple[dict[str, str], bool]:
    """Return the variables after a command, and whether a library was imported before they were set."""
    inherited = {name: value for name, value in os.environ.items() if name not in {*CHOSEN, *ONE_THREAD}}
    words = [sys.executable, "-c", SHOWN, *command]
    done = subprocess.run(words, env=inherited | given, capture_output=True, text=True, check=True)
    variables, imported = json.loads(done.stdout.splitlines()[-1])
    return variables, imported


def test_a_command_of_the_pipeline_fixes_instructions_and_threads_before_libraries_are_imported() -> None:
    variables, imported = variables_of("pipeline", "train", OMP_NUM_THREADS="2")
    assert not imported
    assert {name: variables.get(name) for name in {*CHOSEN, *ONE_THREAD}} == CHOSEN | ONE_THREAD


def test_instructions_that_the_user_has_chosen_stay() -> None:
    variables, _ = variables_of("pipeline", "train", OPENBLAS_CORETYPE="Nehalem")
    assert variables["OPENBLAS_CORETYPE"] == "Nehalem"


@pytest.mark.parametrize(("flags", "fixed"), [("sse2 avx2 avx512f", True), ("sse2 avx", False), (None, False)])
def test_the_instructions_are_the_same_wherever_there_is_avx2(tmp_path: Path, flags: str | None, fixed: bool) -> None:
    """An AVX2 processor would stop at the instructions of a larger one, and one without it at AVX2."""
    cpuinfo = tmp_path / "cpuinfo"
    if flags:
        cpuinfo.write_text(f"processor : 0\nflags : fpu {flags} sha\n")
    assert bool(portable_instructions(cpuinfo)) == fixed

"""PYTHONOPTIMIZE=2 removes docstrings and assertions: commands have their help, and stages give the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from finished_project import FEATURES, STAGES, finished

PROGRAM = """
import contextlib, io, os, sys
assert False, "assertions are removed"
from perfcast.cli.command_parser import COMMANDS, STAGES
from perfcast.cli.main import main

failed = []
for words in [[], *[name.split() for name in COMMANDS], *[["pipeline", name] for name in STAGES]]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            code = main([*[word.replace("_", "-") for word in words], "--help"])
        except SystemExit as stopped:
            code = stopped.code
    lines = [line for line in out.getvalue().splitlines() if line.strip()]
    if code or len(lines) < 3 or not lines[1].strip().endswith((".", ":")) and "None" in lines[1]:
        failed.append((words, code))
for stage in sys.argv[1].split(";"):
    failed += [stage] * bool(main(["pipeline", *stage.split()]))
print(failed)
"""


@pytest.mark.reliability("PYTHONOPTIMIZE=2 ends in a traceback")
def test_commands_and_stages_work_without_docstrings(tmp_path):
    project, table = finished(), tmp_path / "table.parquet"
    stages = [[table if word == FEATURES else word for word in STAGES["features"]], STAGES["leakage"], STAGES["plots"]]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, ";".join(" ".join(map(str, stage)) for stage in stages)],
        cwd=project,
        env={**os.environ, "PYTHONOPTIMIZE": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip().splitlines()[-1:]) == (0, ["[]"]), done.stderr[-3000:]
    assert table.read_bytes() == (project / FEATURES).read_bytes()

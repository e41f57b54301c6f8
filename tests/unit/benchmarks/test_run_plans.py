"""The benchmark of planned runs: a missing table is one line."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "run_plans.py"


def test_a_missing_table_is_told_in_one_line(tmp_path):
    command = [sys.executable, str(SCRIPT), "--table", str(tmp_path / "none.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr

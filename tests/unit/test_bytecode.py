"""Set-up leaves bytecode of what commands and jobs import, since PYTHONDONTWRITEBYTECODE has them leave none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from champion_project import project

ROOT = Path(__file__).parents[2]
PACKAGES = sysconfig.get_path("purelib")
LATE = 20
"""Modules that libraries may import as late as they need them; a command imports a thousand."""

COUNTED = """
import atexit, json, sys

packages, *words = sys.argv[1:]
compiled = []

def note(event, arguments):
    if event == "compile" and str(arguments[1]).startswith(packages):
        compiled.append(arguments[1])

sys.addaudithook(note)
atexit.register(lambda: print(json.dumps(compiled), file=sys.stderr))
from perfcast.cli.main import main

sys.exit(main(words))
"""


def compiled_by(words: list[str], folder: Path, **variables: str) -> list[str]:
    """Return the files of installed packages that a command compiles."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, PACKAGES, *words],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT / "src"), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stderr.splitlines()[-1])


@pytest.mark.skipif(not Path(sys.prefix, ".ready").exists(), reason="make setup did not make this environment")
def test_a_command_compiles_installed_packages_no_more(tmp_path):
    words = ["predict", "--champion", str(project().folder), "--processor", "Xeon Gold 6148", "--chips", "2"]
    assert len(compiled_by(words, tmp_path)) <= LATE

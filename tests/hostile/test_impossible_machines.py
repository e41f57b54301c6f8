"""Impossible machines and months: refused in one line, or answered with a note that says what was ignored."""

from __future__ import annotations

import pytest
from champion_project import project
from hostile_input import call, refused

from perfcast.cli.main import main

MACHINE = ["--processor", "Xeon Gold 6148", "--chips", "2"]
IMPOSSIBLE = {
    "half a chip": (["--processor", "Xeon Gold 6148", "--set", "chips=1.5"], "chips must be a whole number"),
    "half a module": ([*MACHINE, "--set", "dimm_count=0.5"], "dimm_count must be a whole number"),
    "three threads": ([*MACHINE, "--set", "threads_per_core=3"], "threads_per_core"),
    "1.37 threads": ([*MACHINE, "--set", "threads_per_core=1.37"], "threads_per_core must be a whole number"),
    "half a core": ([*MACHINE, "--set", "cores_enabled_total=39.5"], "cores_enabled_total must be a whole number"),
    "year 1": ([*MACHINE, "--when", "0001-01"], "--when must be a month"),
    "year 9999": ([*MACHINE, "--when", "9999-12"], "--when must be a month"),
    "year 2101": ([*MACHINE, "--when", "2101-01"], "--when must be a month"),
    "test in 1800": ([*MACHINE, "--set", "test_month=1800-01"], "test_month must be a month"),
    "infinite cache": ([*MACHINE, "--set", "l3_mb_per_chip=inf"], "l3_mb_per_chip"),
    "cache of 1e300": ([*MACHINE, "--set", "l3_mb_per_chip=1e300"], "l3_mb_per_chip"),
    "storage of 1e300": ([*MACHINE, "--set", "storage_gb=1e300"], "storage_gb"),
    "no number": ([*MACHINE, "--set", "storage_gb=nan"], "storage_gb"),
    "modules of 0 GB": ([*MACHINE, "--memory", "24 x 0 GB"], "memory (mem_total_gb) must be between 1"),
    "chips below 0": (["--processor", "Xeon Gold 6148", "--chips", "-2"], "chips"),
}


@pytest.mark.reliability("an impossible machine or month is answered like a possible one")
@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_machine_is_refused(capsys, name):
    arguments, words = IMPOSSIBLE[name]
    refused(["predict", *arguments, "--champion", project().folder], capsys, words)


@pytest.mark.reliability("an impossible machine or month is answered like a possible one")
def test_repeated_vary_is_told(capsys):
    command = ["what-if", *MACHINE[:2], "--vary", "chips=1,2", "--vary", "chips=2,4", "--champion", project().folder]
    status, output = call(command, capsys)
    assert (status, "--vary chips is given 2 times" in output) == (0, True)


@pytest.mark.reliability("an impossible machine or month is answered like a possible one")
def test_given_result_id_is_told_to_be_ignored(capsys):
    assert main(["predict", *MACHINE, "--set", "result_id=x", "--champion", str(project().folder)]) == 0
    assert "result_id 'x' was ignored" in capsys.readouterr().out

"""Descriptions of machines: CSV, packed CSV, JSON and YAML, by the first byte."""

from __future__ import annotations

from _refusing import refusing, written

from perfcast.inference.machine_files import read_entries

ENDINGS = ("csv", "json", "yaml")
SEEDS = [
    b"\x00\xef\xbb\xbfprocessor,chips\nEPYC 9654,2\n",
    b'\x00"a","b"\r\n"x\ny",1\r\n',
    b'\x02{"machines": [{"processor": "EPYC 9654", "memory": {"rate": "3.2 GHz"}, "chips": 2}]}',
    b'\x02[{"chips": 1e309}, {"chips": NaN}, {"a": "\\ud800"}]',
    b"\x03machines:\n- processor: EPYC 9654\n  memory: {rate: 3.2 GHz}\n  chips: 0x2\n",
    b"\x03a: &x [1, 2]\nb: *x\n? [q]\n: !!binary aGk=\n<<: {c: 1}\n",
    b"\x03d: 2001-12-14t21:59:43.10-05:00\ne: 1:2:3\nf: .inf\ng: |\n  text\n",
]


def check(data: bytes) -> None:
    """Read a file."""
    if not data:
        return
    path = written(f"machines.{ENDINGS[data[0] % len(ENDINGS)]}", data[1:])
    with refusing():
        for line, where, values, _ in read_entries(path):
            if not (isinstance(line, int) and isinstance(where, str) and all(isinstance(name, str) for name in values)):
                raise AssertionError((line, where, values))

"""The request for processors that stay awake: its bytes, its end, and systems that do not obey or permit it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from perfcast.domains.interference.measuring.awake import awake_processors


def is_open(path: Path) -> bool:
    return any(link.resolve() == path for link in Path("/proc/self/fd").iterdir() if link.exists())


@pytest.mark.parametrize(("driver", "obeyed"), [("haltpoll\n", True), ("none\n", False), ("\n", False)])
def test_the_request_is_no_latency_and_ends_with_the_block(tmp_path, driver, obeyed):
    request, current = tmp_path.resolve() / "latency", tmp_path / "driver"
    request.write_bytes(b"")
    current.write_text(driver)
    with awake_processors(request, current) as awake:
        assert awake is obeyed
        assert struct.unpack("=i", request.read_bytes()) == (0,)
        assert is_open(request)
    assert not is_open(request)


def test_a_system_without_the_request_goes_on(tmp_path):
    with awake_processors(tmp_path / "absent", tmp_path / "driver") as awake:
        assert awake is False
    (tmp_path / "driver").write_text("menu")
    with awake_processors(tmp_path / "absent", tmp_path / "driver") as awake:
        assert awake is False


def test_an_error_inside_the_block_is_not_taken_for_one_of_the_request(tmp_path):
    (tmp_path / "driver").write_text("menu")
    (tmp_path / "latency").write_bytes(b"")
    with pytest.raises(OSError, match="disk"), awake_processors(tmp_path / "latency", tmp_path / "driver"):
        raise OSError("disk")

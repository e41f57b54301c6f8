"""The request for processors that stay awake: its bytes, its end, and systems that do not obey or permit it."""

from __future__ import annotations

import os
import struct

import pytest

from perfcast.microbench.interference.awake import awake_processors


@pytest.mark.parametrize(("driver", "obeyed"), [("haltpoll\n", True), ("none\n", False), ("\n", False)])
def test_the_request_is_no_latency_and_ends_with_the_block(tmp_path, driver, obeyed):
    request, current = tmp_path / "latency", tmp_path / "driver"
    request.write_bytes(b"")
    current.write_text(driver)
    before = set(os.listdir("/proc/self/fd"))
    with awake_processors(request, current) as awake:
        assert awake is obeyed
        assert struct.unpack("=i", request.read_bytes()) == (0,)
        assert any(os.path.realpath(f"/proc/self/fd/{name}") == str(request) for name in os.listdir("/proc/self/fd"))
    assert not any(
        os.path.realpath(f"/proc/self/fd/{name}") == str(request) for name in set(os.listdir("/proc/self/fd")) - before
    )


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

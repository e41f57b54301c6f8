"""One machine without the internet: its folders, a server in place of all others."""

from __future__ import annotations

from types import SimpleNamespace

import pooch
import pytest
from loopback import Loopback


@pytest.fixture
def internet(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(pooch.core, "time", SimpleNamespace(sleep=lambda seconds: None))
    with Loopback() as server:
        yield server


@pytest.fixture
def folders(tmp_path):
    """Folders of one machine: results, cache, two mirrors, embedded data."""
    paths = {name: tmp_path / name for name in ("out", "cache", "mirror", "second", "embedded")}
    for name in ("mirror", "second", "embedded"):
        (paths[name] / "src").mkdir(parents=True)
    return SimpleNamespace(**paths)

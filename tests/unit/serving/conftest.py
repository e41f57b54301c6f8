"""One server for all tests that need no limits of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from champion_project import project
from serving_project import served

from perfcast.serving.request_limits import DEFAULT_LIMITS


@pytest.fixture(scope="session")
def server():
    # slow test machines must not run into the time limit
    with served(project().champion, replace(DEFAULT_LIMITS, seconds=120.0)) as address:
        yield address

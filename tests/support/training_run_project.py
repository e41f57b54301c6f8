"""Champion of generated training runs of language models, made once for all tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from generated_champions import write_champion

from perfcast.domains.scaling.datasets.ladder import build


@cache
def results() -> Path:
    """Return a folder of results with the champion."""
    return write_champion("llm_ladder", ("llm_scaling",), build, "olmo_ladder", rows=240)

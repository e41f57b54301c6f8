"""Bodies and queries of requests, as the server reads them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from urllib.parse import parse_qsl

from _refusing import refusing

from perfcast.serving.limits import DEFAULTS, Refusal
from perfcast.serving.questions import entries_from_body, options_from_query

SEEDS = [
    b'level=0.5&when=2026-03&neighbours=3&explain=true\n{"processor": "EPYC 9654", "chips": 2}',
    b'level=nan&when=2026-3\n{"machines": [{"a": {"b": 1e309}}, {"c": "\\ud800"}, null]}',
    b"neighbours=1e1&assume=no&partial=1\n[1, {}, [{}]]",
]


def check(data: bytes) -> None:
    """Read a query, a line break, and a body."""
    query, _, body = data.partition(b"\n")
    asked = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    for read in (
        lambda: entries_from_body(body, "application/json", DEFAULTS),
        lambda: options_from_query(asked, 1, DEFAULTS),
    ):
        try:
            with refusing():
                read()
        except Refusal as refused:
            if not str(refused).isprintable() or not 400 <= refused.status < 500:
                raise AssertionError(str(refused)) from refused

"""Bodies and queries of HTTP requests, as the server reads them."""

from __future__ import annotations

from urllib.parse import parse_qsl

from _refusing import refusing
from pydantic import TypeAdapter, ValidationError

from perfcast.inference.machine_files import read_json_text
from perfcast.serving.api_models import PredictQuery, RequestBody, describe_errors, list_entries
from perfcast.serving.request_limits import BODY, DEFAULT_LIMITS, RefusedRequest

SEEDS = [
    b'level=0.5&when=2026-03&neighbors=3&explain=true\n{"processor": "EPYC 9654", "chips": 2}',
    b'level=nan&when=2026-3\n{"machines": [{"a": {"b": 1e309}}, {"c": "\\ud800"}, null]}',
    b"neighbors=1e1&assume=no&strict=1\n[1, {}, [{}]]",
]
_BODY = TypeAdapter(RequestBody)


def _read_body(body: bytes) -> None:
    list_entries(_BODY.validate_python(read_json_text(body.decode("latin-1"), BODY)), DEFAULT_LIMITS)


def _read_query(query: bytes) -> None:
    options = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    PredictQuery.model_validate_strings(options).to_options(1, DEFAULT_LIMITS)


def check(data: bytes) -> None:
    """Read a query, a line break, and a body."""
    query, _, body = data.partition(b"\n")
    for read, source, content in ((_read_body, "body", body), (_read_query, "query", query)):
        try:
            with refusing():
                read(content)
        except RefusedRequest as refused:
            status, message = refused.status_code, refused.detail
        except ValidationError as invalid:
            errors = [{**error, "loc": (source, *error["loc"])} for error in invalid.errors()]
            status, message = describe_errors(errors)
        else:
            continue
        if not message.isprintable() or not 400 <= status < 500:
            raise AssertionError(message)

"""What a request asks: machines from its body, options from its query, each refused with one line."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from perfcast.errors import UserError, unknown_name
from perfcast.inference import MachineEntry, PredictOptions
from perfcast.inference.machine_files import read_json_text, read_tree
from perfcast.intervals import LEVEL
from perfcast.serving.limits import Limits, refusal

BODY = "the body"
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])")


@dataclass(frozen=True)
class Options:
    """How a forecast is asked for; `partial` asks for the others where a machine cannot be forecast."""

    asked: PredictOptions
    partial: bool = False


def entries_from_body(body: bytes, content_type: str, limits: Limits) -> list[MachineEntry]:
    """Return the machines of a body: one as a JSON object, a list, or such a list under `machines`.

    Raises: Refusal for a body that is no JSON or of too many machines; UserError for what is no machine.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind != "application/json":
        fact = f"its content type is {kind[:60]!r}" if kind else "it has no content type"
        remedy = "send it with Content-Type: application/json; `perfcast predict` reads CSV files"
        raise refusal(415, f"{BODY} must be JSON", fact, remedy)
    if not body.strip():
        raise refusal(400, f"{BODY} must describe a machine", "it is empty", _EXAMPLE)
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refusal(400, f"{BODY} must be UTF-8 text", f"byte {error.start + 1} is not", "save it as UTF-8") from None
    try:
        value = read_json_text(text, BODY)
    except UserError as error:
        raise refusal(400, error.requirement, error.fact, error.remedy or _EXAMPLE) from None
    if isinstance(value, Mapping) and "machines" in value and set(value) != {"machines"}:
        others = ", ".join(repr(str(name)[:40]) for name in value if name != "machines")
        remedy = "options such as level belong in the query: /forecast?level=0.5"
        raise refusal(400, f"{BODY} must have nothing beside machines", f"it has {others}", remedy)
    listed = value["machines"] if isinstance(value, Mapping) and "machines" in value else value
    if not isinstance(listed, (Mapping, list)):
        raise refusal(400, f"{BODY} must describe a machine", f"it is {str(listed)[:40]!r}", _EXAMPLE)
    count = len(listed) if isinstance(listed, list) else 1
    if not count:
        raise refusal(400, f"{BODY} must describe a machine", "it describes none", _EXAMPLE)
    if count > limits.machines:
        remedy = "send them in several requests"
        raise refusal(413, f"a request must have at most {limits.machines} machines", f"it has {count}", remedy)
    return read_tree(listed, BODY)


_EXAMPLE = 'such as {"processor": "EPYC 9654", "chips": 2}'


def options_from_query(query: Mapping[str, str], machines: int, limits: Limits) -> Options:
    """Return the options of a request about some machines. Raises: UserError for an unknown or impossible one."""
    for name in query:
        if name not in OPTIONS:
            raise UserError(*_parts(unknown_name("an option", name[:60], OPTIONS)))
    few = machines <= limits.explained
    neighbours = _number("neighbours", query.get("neighbours", "3" if few else "0"), 0, limits.neighbours)
    if neighbours != int(neighbours):
        raise UserError("neighbours must be a whole number", f"it is {query['neighbours'][:60]!r}")
    level = _number("level", query.get("level", str(LEVEL)), 0, 1)
    if level in (0, 1):
        raise UserError("level must be between 0 and 1", f"it is {level:g}", "0.9 means 90 %")
    asked = PredictOptions(
        level,
        _month(query["when"]) if "when" in query else pd.Timestamp.now().normalize(),
        _truth("assume", query.get("assume", "true")),
        int(neighbours),
        _truth("explain", query.get("explain", "true" if few else "false")),
    )
    return Options(asked, _truth("partial", query.get("partial", "false")))


OPTIONS = {
    "level": ("level of the intervals, 0 to 1 (0.9)", "number"),
    "when": ("month in which the machine will be measured, YYYY-MM (this month)", "string"),
    "assume": ("whether what nobody said is assumed as it is usual (true)", "boolean"),
    "neighbours": ("measured machines that are shown (3; 0 in a large batch)", "integer"),
    "explain": ("whether to tell what the forecast rests on and its drivers (true; false in a large batch)", "boolean"),
    "partial": ("whether the others are answered where a machine cannot be forecast (false)", "boolean"),
}
"""Options by name: what they mean with their default, and their type."""


def _parts(error: UserError) -> tuple[str, str, str]:
    return error.requirement, error.fact, error.remedy.replace("see conf/", "see /docs")


def _number(name: str, text: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        raise UserError(f"{name} must be a number from {low} to {high}", f"it is {text[:60]!r}")
    return value


def _truth(name: str, text: str) -> bool:
    if text.lower() not in _TRUTH:
        raise UserError(f"{name} must be true or false", f"it is {text[:60]!r}")
    return _TRUTH[text.lower()]


def _month(text: str) -> pd.Timestamp:
    if not _MONTH.fullmatch(text) or not "1990" < text < "2100":
        raise UserError("when must be a month such as 2026-03", f"it is {text[:60]!r}")
    return pd.Timestamp(f"{text}-01")

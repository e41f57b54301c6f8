"""YAML 1.2 of plain values: bounded in size, without references or repeated names; nothing is executed."""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.constructor import DuplicateKeyError, SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.representer import SafeRepresenter

from perfcast.utils import size_limits
from perfcast.utils.errors import UserError

_WIDTH = 120

_MAX_REMEMBERED = 20_000
"""Longest text whose value is remembered, in characters."""


class _TextDates(SafeConstructor):
    """Constructor that leaves dates as text, like months such as 2026-03."""


_TextDates.add_constructor("tag:yaml.org,2002:timestamp", SafeConstructor.construct_yaml_str)


class _WithoutReferences(Composer):
    """Composer that refuses references (*), because they may unfold to more than memory holds."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.parser.check_event(AliasEvent):
            raise MarkedYAMLError(
                problem="references (*) are not read", problem_mark=self.parser.peek_event().start_mark
            )
        return super().compose_node(parent, index)


def read_yaml_text(text: str, source: str) -> Any:
    """Return the value of a YAML text; `source` names it in errors. Raises: UserError, one line, where it is none."""
    if len(text) > size_limits.YAML:
        raise UserError(
            f"{source} must have at most {size_limits.YAML} characters", f"it has {len(text)}", "write it as JSON"
        )
    try:
        return deepcopy(_remember(text)) if len(text) <= _MAX_REMEMBERED else _load(text)
    except RecursionError:
        raise UserError(f"{source} must be YAML of plain values", "it is nested too deep") from None
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None)
        where = f"line {mark.line + 1}: " if mark else ""
        problem = "a name is repeated" if isinstance(error, DuplicateKeyError) else problem
        raise UserError(f"{source} must be YAML", f"{where}{problem or error}") from None
    except UserError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        # from its constructors: numbers too long, and tags on the wrong kind of value
        raise UserError(f"{source} must be YAML of plain values", str(error) or type(error).__name__) from None


def _load(text: str) -> Any:
    reader = YAML(typ="safe", pure=True)
    reader.Constructor = _TextDates
    reader.Composer = _WithoutReferences
    return reader.load(text)


_remember = lru_cache(maxsize=256)(_load)
"""`_load` of texts that were read before: a plan reads each conf file several times, and the reader is slow."""


class _Writer(SafeRepresenter):
    """Representer of plain values whose numbers readers of YAML 1.1 understand too: they take 1e-05 for text."""

    def represent_float(self, data: Any) -> Any:
        node = super().represent_float(data)
        if "." not in node.value:
            node.value = node.value.replace("e", ".0e")
        return node


_Writer.add_representer(float, _Writer.represent_float)


def yaml_text(value: Any, *, sort_keys: bool = False) -> str:
    """Return plain values as YAML.

    Args:
        value: Mappings, lists and single values.
        sort_keys: Order mappings by key, not as they are.
    """
    writer = YAML(typ="safe", pure=True)
    writer.Representer = _Writer
    writer.sort_base_mapping_type_on_output = sort_keys  # type: ignore[assignment]
    writer.default_flow_style = False
    writer.width = _WIDTH
    file = StringIO()
    writer.dump(value, file)
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())

"""YAML of plain values: bounded in size and depth, nothing referred to, no name twice, nothing executed."""

from __future__ import annotations

from typing import Any

import yaml

from perfcast.utils import size_limits
from perfcast.utils.errors import UserError


class _Loader(yaml.SafeLoader):
    """References (*) may unfold to more than memory holds, and of a name that stands twice one would be lost."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):  # type: ignore[no-untyped-call]
            event = self.peek_event()  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="references (*) are not read", problem_mark=event.start_mark)
        return super().compose_node(parent, index)  # type: ignore[no-untyped-call]

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = [getattr(key, "value", None) for key, _ in getattr(node, "value", ())]
        if len({str(key) for key in keys}) < len(keys):
            raise yaml.MarkedYAMLError(problem="a name is repeated", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


# a month such as 2026-03 is text, as everywhere here; YAML would read a full date as a date
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_mapping(text: str, source: str) -> dict[str, Any]:
    """Return the mapping of a YAML text that a program wrote, which may refer to what it said before.

    Raises: UserError, one line, where it is none.
    """
    value = read_yaml_text(text, source, yaml.SafeLoader)
    if value is not None and not isinstance(value, dict):
        raise UserError(f"{source} must be a mapping of keys to values", f"found {type(value).__name__}")
    return dict(value or {})


def read_yaml_text(text: str, source: str, loader: Any = _Loader) -> Any:
    """Return the value of a YAML text; `source` names it in errors. Raises: UserError, one line, where it is none."""
    if len(text) > size_limits.YAML:
        raise UserError(
            f"{source} must have at most {size_limits.YAML} characters", f"it has {len(text)}", "write it as JSON"
        )
    try:
        return yaml.load(text, Loader=loader)
    except RecursionError:
        raise UserError(f"{source} must be YAML of plain values", "it is nested too deep") from None
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        where = f"line {mark.line + 1}: " if mark else ""
        raise UserError(f"{source} must be YAML", f"{where}{problem or error}") from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        # what its constructors raise at impossible dates, numbers too long and tags on the wrong kind of value
        raise UserError(f"{source} must be YAML of plain values", str(error) or type(error).__name__) from None

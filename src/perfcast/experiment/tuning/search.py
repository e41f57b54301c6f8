"""Search of one dataset, split and predictor: its space, and the conditions under which trials are comparable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfcast.config.predictor_conf import PredictorConf
from perfcast.config.search_space import Dimension
from perfcast.experiment import selection
from perfcast.utils.errors import UserError

Values = dict[str, Any]


@dataclass(frozen=True)
class Search:
    """Common properties of the studies of one dataset, split and predictor.

    `name` is <dataset>/<split>/<predictor>. `arguments` are the constructor's under the preset. `space` holds the
    searched ones, `default_values` their values without tuning. `origin` has digests of the table and the folds. Trials
    are proposed in rounds of `at_once`, without knowledge of the other trials of their round.
    """

    name: str
    conf: PredictorConf
    arguments: Values
    space: dict[str, Dimension]
    default_values: Values
    machine: Mapping[str, Any]
    seed: int
    label_outlier: float | None
    origin: Mapping[str, str]
    at_once: int = 1

    def study(self, fold: int) -> str:
        """Return the name of one fold's study."""
        return f"{self.name}/fold_{fold}"

    def conditions(self) -> dict[str, str]:
        """Return digests of the conditions that trials must share to be comparable."""
        return {
            "space": _digest({name: dimension.model_dump() for name, dimension in self.space.items()}),
            "params": _digest({**self.arguments, **self.default_values}),
            "seed": str(self.seed),
            "label_outlier": str(self.label_outlier),
            **self.origin,
            **({"at_once": str(self.at_once)} if self.at_once > 1 else {}),
        }


def make_search(
    name: str,
    conf: PredictorConf,
    preset: str,
    *,
    machine: Mapping[str, Any],
    seed: int,
    label_outlier: float | None,
    origin: Mapping[str, str],
    at_once: int = 1,
) -> Search:
    """Return the search that a predictor's conf describes, without the parameters that the quick preset fixes.

    Raises: UserError when there is nothing to search, or the conf's own value is outside the space.
    """
    predictor = name.rpartition("/")[2]
    where = f"conf/predictor/{predictor}.yaml"
    fixed = conf.quick if preset == "quick" else {}
    space = {key: dimension for key, dimension in conf.space.items() if key not in fixed}
    if not space:
        raise UserError(
            f"{where} must have a space that the {preset} preset leaves open",
            f"{predictor} has none",
            "add `space:`, parameter by parameter",
        )
    arguments = {**conf.params, **fixed}
    known = selection.make_predictor(conf.target, arguments, None).get_params(deep=False)
    for key, dimension in space.items():
        if key not in known:
            raise UserError(f"space in {where} must name parameters of {conf.target}", f"it has none called {key!r}")
        if not dimension.holds(known[key]):
            raise UserError(
                f"space.{key} in {where} must contain the default value, which is tried first",
                f"{known[key]!r} is outside",
                "widen the range or change params",
            )
    default_values = {key: known[key] for key in space}
    return Search(name, conf, arguments, space, default_values, machine, seed, label_outlier, origin, at_once)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]

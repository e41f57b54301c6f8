"""What is searched: the space of a predictor's conf, and all that makes its trials comparable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfcast import experiment
from perfcast.config import PredictorConf
from perfcast.errors import UserError
from perfcast.space import Dimension

Values = dict[str, Any]


@dataclass(frozen=True)
class Search:
    """What the studies of one data set, split and predictor have in common.

    `name` is <dataset>/<split>/<predictor>. `arguments` are the constructor's under the schedule, `space` is what is
    tried of them, `own` the values they have without tuning. `origin` has digests of the table and the folds. Trials
    are proposed `at_once` by `at_once`, none of them knowing of the others.
    """

    name: str
    conf: PredictorConf
    arguments: Values
    space: dict[str, Dimension]
    own: Values
    machine: Mapping[str, Any]
    seed: int
    label_outlier: float | None
    origin: Mapping[str, str]
    at_once: int = 1

    def study(self, fold: int) -> str:
        """Return the name of one fold's study."""
        return f"{self.name}/fold_{fold}"

    def asked(self) -> dict[str, str]:
        """Return digests of what trials must share to be comparable."""
        return {
            "space": _digest({name: dimension.model_dump() for name, dimension in self.space.items()}),
            "params": _digest({**self.arguments, **self.own}),
            "seed": str(self.seed),
            "label_outlier": str(self.label_outlier),
            **self.origin,
            **({"at_once": str(self.at_once)} if self.at_once > 1 else {}),
        }


def make_search(
    name: str,
    conf: PredictorConf,
    schedule: str,
    *,
    machine: Mapping[str, Any],
    seed: int,
    label_outlier: float | None,
    origin: Mapping[str, str],
    at_once: int = 1,
) -> Search:
    """Return the search that a predictor's conf describes; what the quick schedule fixes is not searched.

    Raises: UserError when there is nothing to search, or the conf's own value is outside the space.
    """
    predictor = name.rpartition("/")[2]
    where = f"conf/predictor/{predictor}.yaml"
    fixed = conf.quick if schedule == "quick" else {}
    space = {key: dimension for key, dimension in conf.space.items() if key not in fixed}
    if not space:
        raise UserError(
            f"{where} must have a space that the {schedule} schedule leaves open",
            f"{predictor} has none",
            "add `space:`, parameter by parameter",
        )
    arguments = {**conf.params, **fixed}
    known = experiment.make_predictor(conf.target, arguments, None).get_params(deep=False)
    for key, dimension in space.items():
        if key not in known:
            raise UserError(f"space in {where} must name parameters of {conf.target}", f"it has none called {key!r}")
        if not dimension.holds(known[key]):
            raise UserError(
                f"space.{key} in {where} must hold the value tried first, the conf's own",
                f"{known[key]!r} is outside",
                "widen the range or change params",
            )
    own = {key: known[key] for key in space}
    return Search(name, conf, arguments, space, own, machine, seed, label_outlier, origin, at_once)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]

"""Predictor classes by their dotted paths: only predictors of the package, with a suggestion for a wrong path."""

from __future__ import annotations

from pathlib import Path

import pytest

import perfcast
from perfcast import plugins
from perfcast.config.conf_files import known, validated
from perfcast.config.predictor_conf import PredictorConf, read_predictor
from perfcast.predictors.factory import predictor_class
from perfcast.predictors.linear import Ridge
from perfcast.utils.errors import UserError

ROOT = Path(__file__).parents[3]


def test_predictor_class_accepts_path_and_name() -> None:
    assert predictor_class("perfcast.predictors.linear.Ridge") is Ridge
    assert perfcast.estimator("Ridge", clip=2.0).get_params()["clip"] == 2.0
    assert type(perfcast.estimator("perfcast.predictors.linear.Ridge")) is Ridge


@pytest.mark.parametrize(
    ("target", "part"),
    [
        ("os.system", "'os.system' is none"),
        ("perfcast.predictors.linear.Rigde", "did you mean 'perfcast.predictors.linear.Ridge'"),
        ("perfcast.predictors.linear.np", "is none"),
        (
            "perfcast.predictors.trees.BoostingPredictor",
            "must be a subclass of perfcast.predictors.predictor.Predictor",
        ),
        ("perfcast.predictors.kernel.SvrModel", "another kind of class"),
        ("perfcast.predictors.predictor.Predictor", "has no _fit and _predict"),
    ],
)
def test_predictor_class_refuses_other_paths(target: str, part: str) -> None:
    with pytest.raises(UserError) as raised:
        predictor_class(target)
    assert part in str(raised.value)
    assert "\n" not in str(raised.value)


def test_names_of_configured_classes_are_unique() -> None:
    classes = plugins.classes("predictors")
    configured = {read_predictor(ROOT / "conf", name).target for name in known(ROOT / "conf", "predictor")}
    assert configured <= {*classes.values()}


def test_conf_names_the_class_and_the_modules_of_all_classes() -> None:
    conf = read_predictor(ROOT / "conf", "ridge")
    assert (conf.target, conf.modules) == ("perfcast.predictors.linear.Ridge", ["perfcast.predictors.linear"])
    assert read_predictor(ROOT / "conf", "roofline_trees").modules == [
        "perfcast.predictors.residual_stack",
        "perfcast.predictors.roofline",
        "perfcast.predictors.trees",
    ]


def test_missing_target_is_named_as_written() -> None:
    with pytest.raises(UserError, match=r"must have the key '_target_'.*its keys are _target_, stochastic"):
        validated(PredictorConf, "conf/predictor/x.yaml", {"stochastic": False})

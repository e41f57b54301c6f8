"""params.yaml and conf/ are checked before anything is planned, in one line."""

import shutil
from pathlib import Path

import pytest
import yaml

from perfcast.config.compose import compose
from perfcast.config.conf_files import read_conf, read_yaml, validated
from perfcast.config.dataset_conf import DatasetConf, PublishedErrors
from perfcast.config.experiment_params import validate
from perfcast.config.predictor_conf import PredictorConf
from perfcast.utils.errors import UserError

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def params():
    return read_yaml(PROJECT / "params.yaml")


def test_the_projects_own_params_are_valid(params):
    assert validate(params, PROJECT / "conf").preset in {"quick", "full"}


def test_numbers_of_a_list_may_come_as_text_from_the_command_line(params):
    assert validate({**params, "seeds": ["0", "1"]}, PROJECT / "conf").seeds == [0, 1]


def test_unknown_conf_lists_the_known_ones():
    with pytest.raises(UserError, match="lightgbm"):
        read_conf(PROJECT / "conf", "predictor", "light")


CHOSEN = ["dataset=spec_cpu2017", "predictor=ridge", "split=random"]


def test_hydra_composes_conf_with_params(params):
    composed = compose(PROJECT, CHOSEN)
    assert composed["predictor"]["_target_"].endswith(".Ridge")
    assert composed["seeds"] == params["seeds"]
    assert composed["dataset"]["name"] == "spec_cpu2017"


def test_an_override_wins():
    composed = compose(PROJECT, [*CHOSEN, "seeds=[7,8]", "predictor.params.clip=9"])
    assert composed["seeds"] == [7, 8]
    assert composed["predictor"]["params"]["clip"] == 9


@pytest.mark.parametrize("override", ["predictor=ridgee", "nothing.of.the=kind", "seeds=[1", "=", "dataset=x"])
def test_a_wrong_override_is_one_line(override):
    with pytest.raises(UserError) as raised:
        compose(PROJECT, [*CHOSEN, override])
    assert "\n" not in str(raised.value)


def test_a_wrong_name_lists_the_right_ones():
    with pytest.raises(UserError, match="lightgbm"):
        compose(PROJECT, [*CHOSEN, "predictor=ridgee"])


def test_candidates_override_single_values_and_the_quick_preset_leaves_no_choice():
    conf = PredictorConf(
        _target_="x.Y", stochastic=True, params={"a": 1, "b": 2}, candidates={"x": {}, "y": {"b": 3}}, quick={"a": 0}
    )
    assert conf.settings("full") == {"x": {"a": 1, "b": 2}, "y": {"a": 1, "b": 3}}
    assert conf.settings("quick") == {"quick": {"a": 0, "b": 2}}
    assert PredictorConf(_target_="x.Y", stochastic=False, params={"a": 1}).settings("full") == {"params": {"a": 1}}


def test_a_learning_curve_split_has_its_own_tuned_values_or_those_of_its_base():
    tuned = {split: {"command": "c", "folds": [{"a": a}]} for split, a in (("random", 1), ("random_10_percent", 2))}
    conf = PredictorConf.model_validate({"_target_": "x.Y", "stochastic": False, "tuned": {"demo": tuned}})

    def tuned_values(*splits, preset="full"):
        return [setting["tuned"]["a"] for setting in conf.tuned_settings(preset, "demo", *splits)]

    assert tuned_values("random_05_percent") == []
    assert tuned_values("random_05_percent", "random") == [1]
    assert tuned_values("random_10_percent", "random") == [2]
    assert tuned_values("random_05_percent", "random", preset="quick") == []


def predictor_with(space):
    return validated(PredictorConf, "conf/predictor/x.yaml", {"_target_": "x.Y", "stochastic": False, "space": space})


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"low": 1}, ["space.a in conf/predictor/x.yaml", "'high'", "missing"]),
        ({"low": 1, "hihg": 2, "high": 3}, ["space.a", "'hihg'", "did you mean 'high'"]),
        ({"choice": [1, 2]}, ["space.a", "low"]),
        ({"low": 2, "high": 2}, ["space.a", "low must be below high"]),
        ({"low": "1e-4", "high": 1}, ["'low'", "space.a", "number such as 10 or 0.001", "'1e-4'"]),
        ({"low": True, "high": 3}, ["'low'", "number"]),
        ({"low": 0.0, "high": float("inf")}, ["'high'", "number"]),
        ({"low": 0, "high": 3, "log": True}, ["above 0"]),
        ({"low": 1, "high": 8, "log": "yes"}, ["'log'", "'yes'"]),
        ({"choices": [1]}, ["'choices'", "at least 2"]),
        ({"choices": [1, 1]}, ["distinct"]),
        ({"choices": [[1], [2]]}, ["single value"]),
        ({"choices": [1, 2], "low": 1}, ["'low'", "choices"]),
        ([1, 2], ["space.a", "mapping"]),
        (3, ["space.a", "mapping"]),
    ],
)
def test_a_wrong_entry_of_a_space_is_one_line_that_helps(entry, words):
    with pytest.raises(UserError) as raised:
        predictor_with({"a": entry})
    text = str(raised.value)
    assert "\n" not in text
    for word in words:
        assert word in text


def test_a_space_that_is_no_mapping_is_one_line():
    with pytest.raises(UserError, match=r"space.*conf/predictor/x\.yaml"):
        predictor_with([1])


def test_a_range_is_whole_where_both_ends_are_and_holds_what_may_be_tried():
    space = predictor_with(
        {
            "whole": {"low": 1, "high": 9},
            "real": {"low": 0, "high": 0.3},
            "any": {"choices": [None, True, 1.5, "x"]},
        }
    ).space
    assert (space["whole"].whole, space["real"].whole) == (True, False)
    assert [value for value in (0, 1, 3, 5, 9, 13, 5.0, True) if space["whole"].holds(value)] == [1, 3, 5, 9]
    assert [value for value in (0, 0.1, 0.15, 0.2, 0.3, 0.4) if space["real"].holds(value)] == [0, 0.1, 0.15, 0.2, 0.3]
    assert [space["any"].holds(value) for value in (None, True, 1.5, "x", 1, False)] == [True] * 4 + [False] * 2


@pytest.mark.parametrize("entry", [{"folds": [{}]}, {"command": "c", "folds": []}, {"command": "c", "folds": [3]}])
def test_wrong_tuned_values_are_one_line(entry):
    content = {"_target_": "x.Y", "stochastic": False, "tuned": {"d": {"s": entry}}}
    with pytest.raises(UserError, match=r"tuned\.d\.s") as raised:
        validated(PredictorConf, "conf/predictor/x.yaml", content)
    assert "\n" not in str(raised.value)


PUBLISHED = {"what": "forest", "split": "random", "citation": "Nobody, 2020", "predictor": "random_forest"}


def test_published_values_are_any_metrics_by_task():
    read = validated(PublishedErrors, "a conf", {**PUBLISHED, "mape": {"a": 2.0}, "spearman": {"a": 1}})
    assert read.values == {"mape": {"a": 2.0}, "spearman": {"a": 1.0}}
    assert read.model_dump() == {**PUBLISHED, "mape": {"a": 2.0}, "spearman": {"a": 1.0}}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, ["mape", "there is none"]),
        ({"mape": {}}, ["mape", "there is none"]),
        ({"mapee": {"a": 1.0}}, ["mape", "'mapee'"]),
        ({"mape": {"a": "low"}}, ["mape.a", "'low'"]),
        ({"mape": 2.0}, ["mape", "2.0"]),
    ],
)
def test_a_published_value_that_is_no_metric_by_task_is_one_line(values, words):
    with pytest.raises(UserError) as raised:
        validated(PublishedErrors, "a conf", {**PUBLISHED, **values})
    assert "\n" not in str(raised.value)
    for word in words:
        assert word in str(raised.value)


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"error_source": {"steps": {}}}, ["tables of conf/dataset/spec_cpu2017.yaml", "did you mean 'error_sources'"]),
        ({"error_sources": {"step": {}}}, ["error_sources in tables of conf/dataset", "'step"]),
    ],
)
def test_a_dataset_names_tables_of_its_domain_and_their_options(tables, words):
    content = read_conf(PROJECT / "conf", "dataset", "spec_cpu2017")
    with pytest.raises(UserError) as raised:
        validated(DatasetConf, "a conf", {**content, "tables": tables}).load_tables()
    assert all(word in str(raised.value) for word in words)


@pytest.mark.parametrize(
    ("supported", "words"),
    [
        (["ridgee"], ["conf/dataset/host_gemm.yaml", "did you mean 'ridge'"]),
        (["tabm"], ["'host_gemm'", "none of tabm is listed", "take 'host_gemm' out of datasets"]),
        ([], ["predictors"]),
    ],
)
def test_a_dataset_names_the_predictors_that_support_it(params, tmp_path, supported, words):
    conf = tmp_path / "conf"
    shutil.copytree(PROJECT / "conf", conf)
    path = conf / "dataset" / "host_gemm.yaml"
    content = read_conf(conf, "dataset", "host_gemm")
    path.write_text(yaml.safe_dump({**content, "predictors": ["nearest", "tabm"]}))
    assert validate(params, conf).predictors == params["predictors"]
    path.write_text(yaml.safe_dump({**content, "predictors": supported}))
    with pytest.raises(UserError) as raised:
        validate(params, conf)
    assert all(word in str(raised.value) for word in words)

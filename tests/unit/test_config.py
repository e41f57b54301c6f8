"""params.yaml and conf/ are checked before anything is planned, in one line."""

import shutil
from pathlib import Path

import pytest
import yaml

from perfcast.config import PredictorConf, compose, read_conf, read_yaml, validate
from perfcast.errors import UserError

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def params():
    return read_yaml(PROJECT / "params.yaml")


def test_the_projects_own_params_are_valid(params):
    assert validate(params, PROJECT / "conf").schedule in {"quick", "full"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"predictors": ["lookup", "ridgee"]}, ["ridgee", "did you mean 'ridge'", "lightgbm"]),
        ({"splitz": ["random"]}, ["splitz", "did you mean 'splits'"]),
        ({"seeds": "0"}, ["seeds", "'0'"]),
        ({"seeds": []}, ["seeds"]),
        ({"seeds": [0.5]}, ["seeds"]),
        ({"strict": "yes"}, ["strict", "'yes'"]),
        ({"published_until": "2024"}, ["published_until", "'2024'"]),
        ({"schedule": "long"}, ["schedule", "'long'"]),
        ({"datasets": ["spec"]}, ["spec_cpu2017"]),
        ({"splits": ["yesterday"]}, ["yesterday", "forward_2023"]),
        ({"figures": ["pie"]}, ["pie", "headline"]),
        ({"sources": ["host_gemm"]}, ["spec_cpu2017"]),
        ({"resamples": -1}, ["resamples"]),
    ],
)
def test_a_wrong_key_type_or_name_is_one_line_that_helps(params, change, words):
    with pytest.raises(UserError) as raised:
        validate({**params, **change}, PROJECT / "conf")
    text = str(raised.value)
    assert "\n" not in text
    for word in words:
        assert word in text


def test_numbers_of_a_list_may_come_as_text_from_the_command_line(params):
    assert validate({**params, "seeds": ["0", "1"]}, PROJECT / "conf").seeds == [0, 1]


def test_a_missing_key_names_the_key(params):
    del params["seeds"]
    with pytest.raises(UserError, match="seeds"):
        validate(params, PROJECT / "conf")


@pytest.mark.parametrize("content", [None, [], "text", 3])
def test_params_that_are_no_mapping(content):
    with pytest.raises(UserError, match="mapping"):
        validate(content, PROJECT / "conf")


def test_yaml_that_is_not_yaml(tmp_path):
    (tmp_path / "params.yaml").write_text("a: [1, 2\nb: }")
    with pytest.raises(UserError, match="must be YAML") as raised:
        read_yaml(tmp_path / "params.yaml")
    assert "\n" not in str(raised.value)


def test_unknown_conf_lists_the_known_ones():
    with pytest.raises(UserError, match="lightgbm"):
        read_conf(PROJECT / "conf", "predictor", "light")


CHOSEN = ["dataset=spec_cpu2017", "predictor=ridge", "split=random"]


def test_hydra_composes_conf_with_params(params):
    composed = compose(PROJECT, CHOSEN)
    assert composed["predictor"]["module"] == "ridge"
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


def test_params_with_comments_survive_reading(tmp_path):
    shutil.copy(PROJECT / "params.yaml", tmp_path)
    assert yaml.safe_load((tmp_path / "params.yaml").read_text())["datasets"]


def test_candidates_override_single_values_and_the_quick_schedule_leaves_no_choice():
    conf = PredictorConf(
        module="mlp", stochastic=True, params={"a": 1, "b": 2}, candidates={"x": {}, "y": {"b": 3}}, quick={"a": 0}
    )
    assert conf.settings("full") == {"x": {"a": 1, "b": 2}, "y": {"a": 1, "b": 3}}
    assert conf.settings("quick") == {"quick": {"a": 0, "b": 2}}
    assert PredictorConf(module="ridge", stochastic=False, params={"a": 1}).settings("full") == {"params": {"a": 1}}

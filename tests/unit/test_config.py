"""params.yaml, conf/ and any other YAML are checked before anything is planned, in one line."""

import argparse
import re
import shutil
from pathlib import Path

import pytest
import yaml

from perfcast import plugins
from perfcast.cli.pipeline import train
from perfcast.config.compose import run_hydra
from perfcast.config.conf_files import read_ablations, read_conf, read_yaml, validated
from perfcast.config.dataset_conf import DatasetConf, PublishedErrors
from perfcast.config.experiment_params import validate
from perfcast.config.predictor_conf import PredictorConf
from perfcast.experiment.experiment_check import check_arguments
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError
from perfcast.utils.safe_yaml import read_yaml_text, yaml_text

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def params():
    return read_yaml(PROJECT / "params.yaml")


def test_numbers_of_a_list_may_come_as_text_from_the_command_line(params):
    assert validate({**params, "seeds": ["0", "1"]}, PROJECT / "conf").seeds == [0, 1]


CHOSEN = ["dataset=spec_cpu2017", "predictor=ridge", "split=random"]


def compose(*words):
    composed = []
    run_hydra(PROJECT, words, composed.append)
    return composed


def test_hydra_composes_conf_with_params_and_an_override_wins(params):
    (composed,) = compose(*CHOSEN, "split_seed=8", "predictor.params.clip=9")
    assert composed["predictor"]["_target_"].endswith(".Ridge")
    assert (composed["seeds"], composed["dataset"]["name"]) == (params["seeds"], "spec_cpu2017")
    assert (composed["split_seed"], composed["predictor"]["params"]["clip"]) == (8, 9)


def test_hydra_composes_where_the_help_of_every_option_is_checked(monkeypatch):
    """Python 3.14 checks it when the option is added."""
    container, add = argparse._ActionsContainer, argparse._ActionsContainer.add_argument

    def check(parser, action):
        if "%" in (action.help or ""):
            parser._get_formatter()._expand_help(action)

    def add_checked(parser, *names, **options):
        action = add(parser, *names, **options)
        parser._check_help(action)
        return action

    monkeypatch.setattr(container, "_check_help", check, raising=False)
    monkeypatch.setattr(container, "add_argument", add_checked)
    assert len(compose(*CHOSEN)) == 1
    with pytest.raises(TypeError):
        argparse.ArgumentParser().add_argument("--odd", help=object())


@pytest.mark.parametrize("override", ["predictor=ridgee", "nothing.of.the=kind", "seeds=[1", "="])
def test_a_wrong_override_is_one_line(override):
    with pytest.raises(UserError) as raised:
        compose(*CHOSEN, override)
    assert "\n" not in str(raised.value)
    assert override != "predictor=ridgee" or "did you mean 'ridge'" in str(raised.value)


def test_a_multirun_has_a_folder_for_each_choice_and_ends_with_the_first_error(capsys):
    ablation = next(iter(read_ablations(PROJECT / "conf")))
    composed = compose("--multirun", *CHOSEN, f"predictor=ridge,{ablation}", "seeds=[0],[1]")
    assert [(each["predictor_name"], each["seeds"]) for each in composed] == [
        ("ridge", [0]),
        ("ridge", [1]),
        (ablation, [0]),
        (ablation, [1]),
    ]
    assert composed[0]["out"] == "results/trials/spec_cpu2017/random/predictor=ridge,seeds=[0]"
    assert len({each["out"] for each in composed}) == 4

    def fail(config):
        raise UserError("a training must end", config["predictor_name"])

    with pytest.raises(UserError, match=r"must end, but ridge"):
        run_hydra(PROJECT, CHOSEN, fail)
    assert capsys.readouterr().err == ""


CALL = "{_target_: perfcast.utils.io.write_text, path: executed, text: x}"
"""What Hydra would call at the start of a job."""


@pytest.mark.parametrize(
    "override",
    [
        f"+hydra.callbacks.x={CALL}",
        "hydra.searchpath=[file:///tmp]",
        "hydra/launcher=joblib",
        "+predictor@hydra.callbacks.x=ridge",
        "--config-dir=/tmp",
    ],
)
def test_an_override_cannot_change_hydra_itself(override, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"^an override must") as raised:
        compose(*CHOSEN, override)
    assert "\n" not in str(raised.value)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("override", ["+evil=1", "+predictor.evil=1"])
def test_an_unknown_key_is_refused(override):
    with pytest.raises(UserError, match="evil"):
        train([*CHOSEN, override, "table=/nowhere"], multirun=False, cfg=None)


def own_project(folder):
    shutil.copytree(PROJECT / "conf", folder / "conf")
    shutil.copy(PROJECT / "params.yaml", folder)
    return folder


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("params.yaml", f"hydra: {{callbacks: {{x: {CALL}}}}}\n", "a key of params.yaml"),
        ("conf/config.yaml", f"hydra: {{callbacks: {{x: {CALL}}}}}\n", "a key of conf/config.yaml"),
        (
            "conf/trainer/default.yaml",
            f"# @package hydra.callbacks.x\n{CALL[1:-1].replace(', ', chr(10))}\n",
            "@package",
        ),
        ("conf/tracking/default.yaml", "defaults: [/dataset@hydra.callbacks.x: host_gemm]\n", "defaults"),
    ],
)
def test_a_file_of_somebody_else_executes_nothing(file, text, words, tmp_path, monkeypatch):
    monkeypatch.chdir(own_project(tmp_path))
    path = tmp_path / file
    content = path.read_text()
    path.write_text(text + content if text.startswith("#") else content + text)
    with pytest.raises(UserError, match=words) as raised:
        run_hydra(tmp_path, CHOSEN, lambda config: None)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "executed").exists()


def test_defaults_of_somebody_else_are_refused(tmp_path):
    path = own_project(tmp_path) / "conf" / "config.yaml"
    path.write_text(path.read_text().replace("  - _self_\n", "  - /dataset@hydra.callbacks.x: host_gemm\n  - _self_\n"))
    with pytest.raises(UserError, match="defaults"):
        run_hydra(tmp_path, CHOSEN, lambda config: None)


class PlainClass:
    def __init__(self, *, shift: float = 0.0, **others):
        self.shift = shift


def test_arguments_of_a_class_without_fields_are_checked(monkeypatch):
    monkeypatch.setattr(plugins, "load_class", lambda path, where: PlainClass)
    check_arguments("perfcast.x.PlainClass", {"shift": 0.1}, "params in x.yaml")
    with pytest.raises(UserError, match="did you mean 'shift'"):
        check_arguments("perfcast.x.PlainClass", {"shfit": 0.1}, "params in x.yaml")


def test_the_quick_preset_overrides_single_values():
    conf = PredictorConf(_target_="x.Y", stochastic=True, params={"a": 1, "b": 2}, quick={"a": 0})
    assert conf.settings("full") == {"params": {"a": 1, "b": 2}}
    assert conf.settings("quick") == {"quick": {"a": 0, "b": 2}}


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
        ({"low": 1, "hihg": 2, "high": 3}, ["space.a", "'hihg'", "did you mean 'high'"]),
        ({"low": "1e-4", "high": 1}, ["'low'", "space.a", "number such as 10 or 0.001", "'1e-4'"]),
        ({"low": 0, "high": 3, "log": True}, ["above 0"]),
        ({"choices": [1]}, ["'choices'", "at least 2"]),
    ],
)
def test_a_wrong_entry_of_a_space_is_one_line_that_helps(entry, words):
    with pytest.raises(UserError) as raised:
        predictor_with({"a": entry})
    text = str(raised.value)
    assert "\n" not in text
    for word in words:
        assert word in text


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


@pytest.mark.parametrize("entry", [{"folds": [{}]}, {"command": "c", "folds": []}])
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


def test_a_published_value_that_is_no_metric_by_task_is_one_line():
    wrong = {"there is none": {"mape": {}}, "'mapee'": {"mapee": {"a": 1.0}}, "'low'": {"mape": {"a": "low"}}}
    for word, values in {**wrong, "mape": {}, "2.0": {"mape": 2.0}}.items():
        with pytest.raises(UserError) as raised:
            validated(PublishedErrors, "a conf", {**PUBLISHED, **values})
        assert word in str(raised.value) and "\n" not in str(raised.value)


def test_a_dataset_names_tables_of_its_domain_and_their_options():
    content = read_conf(PROJECT / "conf", "dataset", "llm_serving")
    for tables, words in (
        ({"choice": {"limits": []}}, "did you mean 'choices'"),
        ({"choices": {"limit": []}}, "choices in tables of conf/dataset"),
    ):
        with pytest.raises(UserError, match=words):
            validated(DatasetConf, "a conf", {**content, "tables": tables}).load_tables()


def test_a_dataset_names_the_predictors_that_support_it(params, tmp_path):
    conf = tmp_path / "conf"
    shutil.copytree(PROJECT / "conf", conf)
    path = conf / "dataset" / "host_gemm.yaml"
    content = read_conf(conf, "dataset", "host_gemm")
    path.write_text(yaml.safe_dump({**content, "predictors": ["nearest", "tabm"]}))
    assert validate(params, conf).predictors == params["predictors"]
    for supported, words in (
        (["ridgee"], "conf/dataset/host_gemm.yaml.*did you mean 'ridge'"),
        (["tabm"], "'host_gemm'.*none of tabm is listed.*take 'host_gemm' out of datasets"),
        ([], "predictors"),
    ):
        path.write_text(yaml.safe_dump({**content, "predictors": supported}))
        with pytest.raises(UserError, match=words):
            validate(params, conf)


PLAIN = {
    "2026-03": "2026-03",
    "1e-3": 0.001,
    "[1, 2.5, null, true, x]": [1, 2.5, None, True, "x"],
    "yes": "yes",
    "": None,
    "!!timestamp 2026-03-01": "2026-03-01",
}
REFUSED = {
    "a: 1\nb: 2\na: 3\n": "line 3.*a name is repeated",
    "a: &x [1]\nb: *x\n": "line 2: references",
    "!!python/object/apply:os.system [true]": "could not determine a constructor",
    "!!int x": "plain values",
    "[" * 5000: "nested too deep|line 1",
    "x" * (size_limits.YAML + 1): "at most 1048576 characters.*1048577",
    "9" * 5000: "YAML of plain values",
}


def test_plain_values_are_read_and_anything_else_is_one_line():
    for text, value in PLAIN.items():
        result = read_yaml_text(text, "a.yaml")
        assert (result, type(result)) == (value, type(value))
    for text, pattern in REFUSED.items():
        with pytest.raises(UserError) as raised:
            read_yaml_text(text, "a.yaml")
        assert re.search(f"^a.yaml must .*({pattern})", str(raised.value)), str(raised.value)
        assert "\n" not in str(raised.value)


VALUES = {
    "b": [1e-05, 1e22, 0.1, -0.0, float("inf"), 10**20, True, None],
    "a": ["1e-3", "2026-03", "null", "", "- a", "x: y", "#c", "é", "a\nb", "*r", "0x1f", "word " * 60],
}


def test_written_values_read_back_the_same_here_and_elsewhere():
    text = yaml_text(VALUES)
    assert read_yaml_text(text, "a.yaml") == VALUES
    assert yaml.safe_load(text)["b"] == VALUES["b"]
    assert list(read_yaml_text(text, "a.yaml")) == ["b", "a"]
    assert not re.search(r" $", text, re.MULTILINE)
    assert yaml_text({"b": 1, "a": [2]}, sort_keys=True) == "a:\n- 2\nb: 1\n"

"""Rules for every file of conf/experiment: it is a valid experiment, and together they run every predictor."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from perfcast.config.compose import run_hydra
from perfcast.config.conf_files import conf_files, known, read_ablations, read_conf, read_yaml, validated
from perfcast.config.experiment_params import validate
from perfcast.config.predictor_conf import PredictorConf, read_predictor
from perfcast.experiment.workflow_graph import Graph
from perfcast.predictors import factory
from perfcast.utils.errors import UserError
from perfcast.utils.nested import flattened

ROOT = Path(__file__).parents[2]
CONF = ROOT / "conf"
NAMES = sorted(conf_files(CONF, "experiment"))
ABLATIONS = sorted(read_ablations(CONF))


def merged(name: str) -> dict[str, Any]:
    """Return params.yaml with an experiment's values, as Snakemake merges them, without the folder of results."""
    content = {**read_yaml(ROOT / "params.yaml"), **read_yaml(conf_files(CONF, "experiment")[name])}
    content.pop("results", None)
    return content


@pytest.mark.parametrize("name", NAMES)
class TestExperiment:
    def test_is_valid(self, name: str) -> None:
        params = validate(merged(name), CONF)
        assert set(params.ablations) <= set(params.predictors)

    def test_names_a_folder_of_results_of_its_own(self, name: str) -> None:
        folders = {other: read_yaml(conf_files(CONF, "experiment")[other])["results"] for other in NAMES}
        assert folders[name].split("/")[0] == "results"
        assert [other for other in NAMES if folders[other] == folders[name]] == [name]

    def test_every_split_and_predictor_is_used_by_a_dataset(self, name: str) -> None:
        if name == "default":
            pytest.skip("params.yaml lists the splits of all datasets")
        graph = Graph.read(ROOT, merged(name))
        splits = {split for dataset in graph.datasets for split in graph.splits_of(dataset)}
        predictors = {predictor for dataset in graph.datasets for predictor in graph.predictors_of(dataset)}
        assert (splits, predictors) == (set(graph.params.splits), set(graph.params.predictors))


def test_every_predictor_is_part_of_an_experiment() -> None:
    listed = {predictor for name in NAMES for predictor in merged(name)["predictors"]}
    assert listed == set(known(CONF, "predictor"))


@pytest.mark.parametrize("name", ABLATIONS)
class TestAblation:
    def test_changes_parameters_of_the_constructor_or_hides_columns(self, name: str) -> None:
        ablation = read_ablations(CONF)[name]
        conf = read_predictor(CONF, name)
        kind = factory.predictor_class(conf.target)
        assert set(ablation.params) <= set(inspect.signature(kind).parameters)
        assert ablation.params or ablation.without_columns
        for preset in ("quick", "full"):
            for arguments in conf.settings(preset).values():
                assert flattened(ablation.params).items() <= flattened(arguments).items()

    def test_is_composed_as_it_is_read(self, name: str) -> None:
        composed = list[dict[str, Any]]()
        run_hydra(ROOT, ["dataset=spec_cpu2017", f"predictor={name}", "split=random"], composed.append)
        assert validated(PredictorConf, "composed", composed[0]["predictor"]).settings("full") == (
            read_predictor(CONF, name).settings("full")
        )


def with_ablation(folder: Path, name: str, content: Any) -> Path:
    conf = folder / "conf"
    shutil.copytree(CONF, conf)
    (conf / "experiment" / "mine.yaml").write_text(yaml.safe_dump({"ablations": {name: content}}))
    return conf


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("small", {"predictor": "ridgee"}, ["ablations.small.predictor", "did you mean 'ridge'"]),
        ("small", {"predictor": "ridge", "parms": {}}, ["ablations.small", "'parms'", "did you mean 'params'"]),
        ("small", [], ["ablations.small", "mapping"]),
        ("lightgbm", {"predictor": "ridge"}, ["ablations.lightgbm", "a name of its own"]),
        (ABLATIONS[0], {"predictor": "ridge"}, [ABLATIONS[0], "a name of its own"]),
    ],
)
def test_a_wrong_ablation_is_one_line(tmp_path: Path, name: str, content: Any, words: list[str]) -> None:
    conf = with_ablation(tmp_path, name, content)
    with pytest.raises(UserError) as raised:
        read_conf(conf, "predictor", "unknown")
    assert "\n" not in str(raised.value)
    assert all(word in str(raised.value) for word in words)


def test_an_ablation_overrides_both_presets_and_hides_further_columns(tmp_path: Path) -> None:
    content = {"predictor": "mlp", "params": {"epochs": 3}, "without_columns": ["a*"]}
    conf = read_predictor(with_ablation(tmp_path, "short", content), "short")
    assert {arguments["epochs"] for preset in ("quick", "full") for arguments in conf.settings(preset).values()} == {3}
    assert conf.without_columns == ["a*"]
    assert conf.tuned == {}


def test_an_ablation_that_no_file_of_the_experiments_declares_is_refused() -> None:
    content = {**merged("default"), "ablations": {"other": {"predictor": "ridge"}}}
    with pytest.raises(UserError, match=r"ablations\.other.*conf/experiment"):
        validate(content, CONF)

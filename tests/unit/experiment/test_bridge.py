"""Estimates of rows by the champion of another dataset: columns, unseen entities, the leakage check, updates."""

import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from champion_project import FEATURES, project

from perfcast import plugins
from perfcast.cli.main import main
from perfcast.config.dataset_conf import read_dataset
from perfcast.domains.servers.testing import spec_cpu2026
from perfcast.evaluation.leakage.artifacts import Artifacts, Control
from perfcast.evaluation.leakage.file_checks import check_bridge
from perfcast.experiment.bridge import estimate_rows
from perfcast.experiment.champion import fit_all_rows
from perfcast.experiment.experiment_check import check_experiment
from perfcast.experiment.uncertainty_fit import fit_uncertainty
from perfcast.inference.champion import build_features, load_champion, save_champion
from perfcast.predictors.linear import Ridge
from perfcast.schema.table import BRIDGE
from perfcast.utils.errors import UserError
from perfcast.utils.io import write_json

REPOSITORY = Path(__file__).parents[3]
CONF = REPOSITORY / "conf"
SEEN, UNSEEN = "spec_cpu2026", "spec_cpu2026_unseen_2017"


@cache
def folder_of_dump():
    folder = project().results / "raw" / "spec_cpu2026"
    folder.mkdir()
    spec_cpu2026.write(folder, rows=120, seed=1)
    return folder


@cache
def standard(dataset):
    declared = read_dataset(CONF, dataset)
    raw = {"spec_cpu2026": folder_of_dump(), "cpu_catalog": project().raw["cpu_catalog"]}
    return plugins.load_function(declared.target, dataset)(raw, declared.options).table


@cache
def estimated(dataset, rows=None):
    table = standard(dataset)
    return estimate_rows(CONF, replace(table, frame=table.frame.iloc[:rows].reset_index(drop=True)), project().folder)


def test_rows_get_the_estimate_of_the_other_champion_with_its_interval_and_published_results():
    table, frame = standard(SEEN), estimated(SEEN).frame
    assert frame["result_id"].tolist() == table.frame["result_id"].tolist()
    known = frame["cpu2017_estimate"].notna()
    assert known.mean() > 0.9
    assert table.frame.loc[known, "family"].notna().all()
    assert (frame["cpu2017_low"] < frame["cpu2017_estimate"])[known].all()
    assert (frame["cpu2017_estimate"] < frame["cpu2017_high"])[known].all()
    # generated scores of both suites follow one formula
    error = np.log(frame["cpu2017_estimate"] / table.frame["base_score"]).abs()
    assert error.median() < 0.2
    np.testing.assert_allclose(frame["log_cpu2017_estimate"], np.log(frame["cpu2017_estimate"]), rtol=1e-9)
    measured = project().standard.frame.groupby(["cpu_model", "chips", "suite"])["base_score"].median()
    for row in np.flatnonzero(frame["cpu2017_published"].notna())[:5]:
        machine = table.frame.iloc[row]
        suite = machine["suite"].replace("2026", "2017")
        assert frame["cpu2017_published"][row] == measured[machine["cpu_model"], machine["chips"], suite]
    joined = table.join(replace(estimated(SEEN), frame=frame.sample(frac=1, random_state=0)))
    assert joined.frame["cpu2017_estimate"].equals(frame["cpu2017_estimate"])


def test_an_unseen_entity_is_estimated_by_a_predictor_without_its_results():
    seen, unseen = (estimated(name, 12).frame for name in (SEEN, UNSEEN))
    known = seen["cpu2017_known"] > 0
    assert known.any()
    assert (unseen["cpu2017_known"] == 0)[unseen["cpu2017_estimate"].notna()].all()
    assert unseen["cpu2017_published"].isna().all()
    assert (seen["cpu2017_estimate"] != unseen["cpu2017_estimate"])[known].all()
    width = [np.log(frame["cpu2017_high"] / frame["cpu2017_low"])[known].median() for frame in (seen, unseen)]
    assert width[0] < width[1]


def test_the_leakage_check_finds_an_estimator_that_knows_the_entity_or_the_dataset():
    def check(bridge):
        table = standard(SEEN).join(replace(estimated(SEEN), facts={BRIDGE: bridge}))
        return check_bridge(Artifacts(table, (), {}, (), frozenset(), Control("", lambda seed: Ridge(), 1), 0))

    facts = estimated(SEEN).facts[BRIDGE]
    assert check(facts).findings == ()
    assert check(facts).numbers["rows_of_known_entities"] > 0
    for changed, text in (
        ({"without": "cpu_model"}, "rows are estimated by a predictor fitted on their cpu_model"),
        ({"tasks": ["CINT2026rate"]}, "fitted on results of CINT2026rate"),
    ):
        (finding,) = check({**facts, **changed}).findings
        assert text in finding


def test_an_experiment_must_have_the_dataset_of_the_bridge():
    params = yaml.safe_load((REPOSITORY / "params.yaml").read_text())
    params |= yaml.safe_load((CONF / "experiment" / "cpu2026.yaml").read_text())
    del params["results"]
    check_experiment(params, REPOSITORY)
    with pytest.raises(UserError, match="must have spec_cpu2017, whose champion estimates the rows of spec_cpu2026"):
        check_experiment({**params, "datasets": ["spec_cpu2026"], "splits": ["unseen_cpu"]}, REPOSITORY)


def test_a_later_dump_is_learned_by_a_champion_on_a_bridge(tmp_path, capsys):
    results, table = tmp_path / "results", standard(SEEN)
    shutil.copytree(project().folder, results / "champion" / "spec_cpu2017")
    shutil.copytree(project().raw["cpu_catalog"], results / "raw" / "cpu_catalog")
    write_json(results / "raw" / "cpu_catalog" / "manifest.json", {"status": "present"})
    features = build_features(SEEN, table.frame, table.columns, FEATURES).join(estimated(SEEN))
    predictor, _ = fit_all_rows(features, {"params": lambda seed: Ridge()}, 0, None)
    calibrated = fit_uncertainty(features, lambda seed: Ridge(), 0, None, 2)
    about = {"dataset": SEEN, "predictor": "ridge", "preset": "quick", "features": list(FEATURES)}
    about |= {"bridge": read_dataset(CONF, SEEN).bridge.model_dump()}
    (results / "champion" / SEEN).mkdir()
    raw = {"cpu_catalog": project().raw["cpu_catalog"]}
    folder = results / "champion" / SEEN
    files = {"standard": table, "table": features, "raw": raw, "base": project().folder}
    save_champion(folder, predictor, calibrated, about=about, **files)
    header, *lines = (folder_of_dump() / spec_cpu2026.FILE).read_text().splitlines()
    later = [
        line.replace("May-2026", "Aug-2026").replace("Jun-2026", "Aug-2026").replace("20260410-000", "20260710-009")
        for line in lines[50:60]
    ]
    dump = tmp_path / "dump.csv"
    for without, code, text in ((1, 2, "must have every earlier result, but 1 of"), (0, 0, "new results: 10 (")):
        dump.write_text("\n".join([header, *lines[45 + without :], *lines[:45], *later, ""]))
        assert main(["update", "--dataset", SEEN, "--results", str(results), "--from", str(dump)]) == code
        assert text in "".join(capsys.readouterr())
    assert load_champion(folder).results_until == "2026-08"

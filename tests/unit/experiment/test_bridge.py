"""Estimates of rows by the champion of another dataset: columns, unseen entities, the leakage check, updates."""

import csv
import io
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from champion_project import FEATURES, project
from loopback import Loopback, Page

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
from perfcast.experiment.update import PREDICTIONS
from perfcast.inference.champion import build_features
from perfcast.inference.champion_files import load_champion, save_champion
from perfcast.predictors.linear import Ridge
from perfcast.schema.table import BRIDGE
from perfcast.schema.table_files import read_parquet
from perfcast.utils.errors import UserError

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
    raw = {"spec_cpu2026": folder_of_dump()}
    return plugins.load_function(declared.target, dataset)(raw, declared.options).table


@cache
def standard_rejections():
    """Return the reason and the number of every rejected result of the generated dump."""
    raw = {"spec_cpu2026": folder_of_dump()}
    rejected = plugins.load_function(read_dataset(CONF, SEEN).target, SEEN)(raw, {}).rejected
    return [(reason, detail[-5:]) for reason, detail in zip(rejected["reason"], rejected["detail"], strict=True)]


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


@pytest.fixture
def results(tmp_path):
    """Results with a champion on a bridge."""
    results, table = tmp_path / "results", standard(SEEN)
    shutil.copytree(project().folder, results / "champion" / "spec_cpu2017")
    features = build_features(SEEN, table.frame, table.columns, FEATURES).join(estimated(SEEN))
    predictor = fit_all_rows(features, lambda seed: Ridge(), 0, None)
    calibrated = fit_uncertainty(features, lambda seed: Ridge(), 0, None, 2)
    about = {"dataset": SEEN, "predictor": "ridge", "preset": "quick", "features": list(FEATURES)}
    about |= {"bridge": read_dataset(CONF, SEEN).bridge.model_dump()}
    (results / "champion" / SEEN).mkdir()
    files = {"standard": table, "table": features, "raw": {}, "base": project().folder}
    save_champion(results / "champion" / SEEN, predictor, calibrated, about=about, **files)
    return results


@cache
def june():
    """Return the header and the rows of the generated dump."""
    header, *rows = csv.reader((folder_of_dump() / spec_cpu2026.FILE).read_text().splitlines())
    return [name.strip() for name in header], rows


def repeat(row, number, factor=1.0, month="Aug-2026", **changed):
    """Return a row of the dump again, under another number, published later, with a score higher by a factor."""
    cells = dict(zip(june()[0], row, strict=True))
    link = f"/cpu2026/results/res2026q3/cpu2026-20260710-{number:05d}.html"
    later = {"Published": month, "Updated": month, "Disclosures": link, "Peak Result": "0"}
    score = f"{float(cells['Base Result']) * factor:.3f}"
    return [*{**cells, **later, "Base Result": score, **changed}.values()]


def update(results, rows, capsys, *words):
    """Update with a dump of these rows; return the status and what was printed."""
    dump = results.parent / "dump.csv"
    with dump.open("w", newline="") as file:
        csv.writer(file).writerows([june()[0], *rows])
    capsys.readouterr()
    code = main(["update", "--dataset", SEEN, "--results", str(results), "--from", str(dump), *words])
    return code, "".join(capsys.readouterr())


def test_a_later_dump_is_learned_by_a_champion_on_a_bridge(results, capsys):
    rows = june()[1]
    later = [repeat(row, 900 + number) for number, row in enumerate(rows[50:60])]
    code, text = update(results, [*rows[46:], *rows[:45], *later], capsys)
    assert (code, "must have every earlier result, but 1 of" in text) == (2, True)
    changed = repeat(rows[45], 46, 1.05, "May-2026")
    changed[june()[0].index("Disclosures")] = link = rows[45][june()[0].index("Disclosures")]
    code, text = update(results, [*rows[:45], changed, *rows[46:], *later], capsys)
    assert code == 2
    assert f"0 of {len(standard(SEEN).frame)} are gone and 1 have another score, as {Path(link).stem}" in text
    assert not (results / "dumps").exists()
    code, text = update(results, [*rows[45:], *rows[:45], *later], capsys)
    assert (code, "new results: 10 (" in text) == (0, True)
    assert load_champion(results / "champion" / SEEN).results_until == "2026-08"


def test_the_official_address_gives_a_dump_of_another_layout(results, tmp_path, monkeypatch, capsys):
    """It has energy columns, a column of its own, another order, and one name more than fields."""
    header, rows = june()
    rows = [*rows, repeat(rows[50], 900)]
    order = np.random.default_rng(0).permutation(len(header) - 1).tolist()
    names = [*(header[place] for place in order), "Energy Peak Result", "Energy Base Result", "Remarks", "Disclosure"]
    text = io.StringIO()
    csv.writer(text).writerow([*names, "Disclosures"])
    energy = {int(number) for name, number in standard_rejections() if name == "energy_measured"}
    for number, row in enumerate(rows, start=1):
        last = ["0", "2.5" if number in energy else "0", "", f'<A HREF="{row[-1]}">HTML</A>']
        csv.writer(text).writerow([*(f"{row[place]} " for place in order), *last])
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Loopback() as server:
        server.pages["/dump"] = Page(text.getvalue().encode(), announces_length=False)
        for kind in ("dataset", "source"):
            (tmp_path / "conf" / kind).mkdir(parents=True)
            conf = (CONF / kind / f"{SEEN}.yaml").read_text()
            official = "https://www.spec.org/cgi-bin/osgresults?conf=cpu2026;op=dump;format=csvdump"
            (tmp_path / "conf" / kind / f"{SEEN}.yaml").write_text(conf.replace(official, server.url("/dump")))
        words = ["--dataset", SEEN, "--results", str(results), "--project", str(tmp_path)]
        assert main(["update", *words]) == 0
    output = capsys.readouterr().out
    assert "new results: 1 (" in output
    assert "forecasts of 2026-06, results to 2026-08: 1 results" in output


def test_answers_of_a_champion_on_a_bridge_move_and_its_forecasts_are_scored(results, capsys):
    header, rows = june()
    known = [row for row in rows if "EPYC 9965" in row[header.index("Processor")]]
    later = [repeat(row, 800 + number, 2.0) for number, row in enumerate(known)]
    other = {"Compiler": "C/C++/Fortran: Version 9.1 of Zorch", "Hardware Vendor": "Zorch Systems", "Memory": "bananas"}
    rated = next(row for row in known if row[header.index("Benchmark")].endswith("rate"))
    new = [repeat(known[0], 900, Processor="AMD EPYC 9845"), repeat(known[0], 901, **other)]
    new += [repeat(known[0], 902, Processor="Zorch Chip Z9"), repeat(rated, 903, System="Box (1-copy)")]
    code, text = update(results, [*later, *rows, *new], capsys, "--yes")
    assert code == 0, text
    read, count = len(rows) + len(later) + 4, len(standard(SEEN).frame) + len(later) + 3
    assert f"rows: {read} read = {count} kept + 0 merged + {read - count} rejected" in text
    assert "one_copy: 1 (cpu2026-20260710-00903)" in text
    assert "unknown processors: 2 (quantum core x1, zorch chip z9)" in text
    assert "new cpu models: 2 (epyc 9845, zorch chip z9)" in text
    assert "new in hw_vendor: 1 (Zorch Systems)" in text
    assert "without compiler_vendor: 1 (cpu2026-20260710-00901)" in text
    moved = text.partition("moved by more than their interval:")[2]
    assert "epyc 9965, SPEC" in moved
    (folder,) = (results / "dumps" / SEEN).glob("*/")
    predictions = read_parquet(folder / PREDICTIONS).set_index("row")
    rows_of_later = [f"cpu2026-20260710-{800 + number:05d}" for number in range(len(later))]
    half = predictions.loc[rows_of_later, "estimate"] / predictions.loc[rows_of_later, "measured"]
    assert half.between(0.35, 0.75).all(), "forecasts are those of before"
    assert predictions.loc[rows_of_later, "known"].all()
    assert not predictions.at["cpu2026-20260710-00900", "known"]
    assert "cpu2026-20260710-00903" in (folder / "rejected.csv").read_text()
    assert "## Forecasts of 2026-06, results to 2026-08" in (folder.parent / "forecasts.md").read_text()

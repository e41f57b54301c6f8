"""Published values beside the metrics of the run."""

import pytest

from perfcast.evaluation import evaluate
from perfcast.report.error_tables import number, published_tables
from perfcast.testing.generated_results import PUBLISHED, fake_table, write_in_domain, write_runs


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    table = fake_table(rows=400, seed=0)
    runs = write_runs(table, tmp_path_factory.mktemp("runs"), seed=1)
    in_domain = write_in_domain(table, tmp_path_factory.mktemp("in_domain"), seed=1)
    published = [{**entry, "predictor": "forest"} for entry in PUBLISHED]
    return evaluate(runs, table, resamples=20, seed=0, published=published, in_domain=in_domain)


def test_published_table_compares_with_same_method_leader_and_best(evaluation):
    tables = published_tables(evaluation, "network")
    assert [table.splits[0] for table in tables] == [entry["split"] for entry in PUBLISHED]
    assert [table.citations for table in tables] == [[entry["citation"]] for entry in PUBLISHED]
    for table, entry in zip(tables, PUBLISHED, strict=True):
        (metric,) = set(entry) & {"mape", "spearman"}
        assert set(table.splits) == set(evaluation.ranked_splits)
        assert {line.task for line in table.lines} == set(entry[metric])
        for line in table.lines:
            assert line.same.key == evaluation.value(table.splits[0], "forest", line.task, metric)["value"]
            for split, (led, best) in zip(table.splits, line.splits, strict=True):
                every = [evaluation.value(split, name, line.task, metric)["value"] for name in evaluation.predictors]
                assert best.key == (max(every) if metric == "spearman" else min(every))
                assert led.key == evaluation.value(split, "network", line.task, metric)["value"]
    first = tables[0].lines[0]
    assert (first.metric, first.published, first.same.text) == ("MAPE\u00a0%", "4.00", number(first.same.key))
    assert first.same.note.startswith("forest; ")
    assert tables[1].lines[0].published == "0.950"


def test_published_table_marks_missing_methods_and_runs(evaluation):
    alone = evaluation.with_tables(published=evaluation.tables["published"].assign(predictor=""))
    assert {line.same.text for line in published_tables(alone, "network")[0].lines} == {"–"}
    elsewhere = evaluation.with_tables(published=evaluation.tables["published"].assign(split="shuffled"))
    assert published_tables(elsewhere, "network") == []

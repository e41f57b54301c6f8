"""Published values beside the metrics of the run."""

import pytest
from generated_results import PUBLISHED, fake_table, write_in_domain, write_runs

from perfcast.evaluation import evaluate
from perfcast.report.error_tables import published_tables
from perfcast.report.text_tables import number, split_heading


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    table = fake_table(rows=400, seed=0)
    runs = write_runs(table, tmp_path_factory.mktemp("runs"), seed=1)
    in_domain = write_in_domain(table, tmp_path_factory.mktemp("in_domain"), seed=1)
    published = [{**entry, "predictor": "forest"} for entry in PUBLISHED]
    return evaluate(runs, table, resamples=20, seed=0, published=published, in_domain=in_domain)


def test_published_table_compares_with_same_method_leader_and_best(evaluation):
    tables = published_tables(evaluation, "network")
    for table, entry in zip(tables, PUBLISHED, strict=True):
        (metric,) = set(entry) & {"mape", "spearman"}
        splits = [entry["split"], *(split for split in evaluation.ranked_splits if split != entry["split"])]
        assert table.headings[5:] == list(map(split_heading, splits))
        assert table.caption == f"Published: {entry['citation']}"
        assert {line[1] for line in table.lines} == set(entry[metric])
        for _, task, _, _, same, *cells in table.lines:
            assert same.key == evaluation.value(splits[0], "forest", task, metric)["value"]
            for split, cell in zip(splits, cells, strict=True):
                values = {name: evaluation.value(split, name, task, metric)["value"] for name in evaluation.predictors}
                assert cell.key == values["network"]
                best = (max if metric == "spearman" else min)(values.values())
                note = f"best: {number(best) if metric == 'mape' else f'{best:.3f}'}, "
                assert cell.notes[-1].startswith(note) == (note[6:-2] != cell.text)
    _, _, metric, published, same, *_ = tables[0].lines[0]
    assert (metric, published, same.text) == ("MAPE\u00a0%", "4.00", number(same.key))
    assert same.notes[0].startswith("forest; ")
    assert tables[1].lines[0][3] == "0.950"


def test_published_table_marks_missing_methods_and_runs(evaluation):
    alone = evaluation.with_tables(published=evaluation.tables["published"].assign(predictor=""))
    assert {line[4].text for line in published_tables(alone, "network")[0].lines} == {"–"}
    elsewhere = evaluation.with_tables(published=evaluation.tables["published"].assign(split="shuffled"))
    assert published_tables(elsewhere, "network") == []

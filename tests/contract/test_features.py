"""Every feature module, on the standard table of every dataset that names it, made of generated sources."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from factory import decode_texts

from perfcast import plugins
from perfcast.config.conf_files import known, read_conf
from perfcast.schema.table import Kind, Role, Tag, build_table, out_of_bounds, select
from perfcast.schema.table_files import read_table, write_table

CONF = Path(__file__).parents[2] / "conf"
DATASETS = {name: read_conf(CONF, "dataset", name) for name in known(CONF, "dataset")}
PAIRS = [(dataset, module) for dataset, conf in DATASETS.items() for module in conf["features"]]
ROWS = 200


@pytest.fixture(scope="session")
def standard(tmp_path_factory):
    @cache
    def build(dataset):
        conf, raw = DATASETS[dataset], {}
        for source in [*conf["sources"].get("required", []), *conf["sources"].get("optional", [])]:
            raw[source] = tmp_path_factory.mktemp(source)
            plugins.load("testing", source).write(raw[source], rows=ROWS, seed=0)
        return plugins.load_function(conf["_target_"], dataset)(raw, conf.get("options", {})).table

    return build


@pytest.fixture(scope="session")
def derived(standard):
    """Derive in the dataset's own order up to and with a module; return the tables before and after it."""

    @cache
    def derive(dataset, module):
        names = DATASETS[dataset]["features"]
        place = names.index(module)
        before = derive(dataset, names[place - 1])[1] if place else standard(dataset)
        return before, plugins.load("features", module).derive(before)

    return derive


def test_every_module_is_used_by_a_dataset():
    assert {module for _, module in PAIRS} == set(plugins.names("features"))


@pytest.mark.parametrize(("dataset", "module"), PAIRS)
def test_appends_declared_finite_columns(dataset, module, derived, tmp_path):
    before, after = derived(dataset, module)
    known = len(before.columns)
    assert after.columns[:known] == before.columns
    pd.testing.assert_frame_equal(after.frame[before.frame.columns], before.frame)
    added = after.columns[known:]
    assert added
    for column in added:
        assert column.role is Role.FEATURE or (column.role is Role.PROVENANCE and Tag.SLICE in column.tags)
        assert column.group
        assert column.meaning
    numerical = [column.name for column in select(added, kind=Kind.NUMERICAL)]
    assert not np.isinf(after.frame[numerical].to_numpy()).any()
    assert not out_of_bounds(after)[numerical].any(axis=None)
    assert [name for name in after.frame[[c.name for c in added]] if after.frame[name].isna().all()] == []
    write_table(after, tmp_path / "table.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "table.parquet").frame, decode_texts(after).frame)


@pytest.mark.parametrize(("dataset", "module"), PAIRS)
def test_never_reads_a_result_or_what_came_after_it(dataset, module, derived):
    before, after = derived(dataset, module)
    required = plugins.load("features", module).REQUIRES
    by_name = {column.name: column for column in before.columns}
    for name in required:
        assert by_name[name].role is not Role.TARGET
        assert Tag.TIME not in by_name[name].tags
        assert "updated" not in name
    assert not any(word in name for name in required for word in ("score", "peak", "energy"))
    read = [column for column in before.columns if column.name in required]
    alone = plugins.load("features", module).derive(build_table(dataset, before.frame, read))
    for column in alone.columns[len(read) :]:
        pd.testing.assert_series_equal(alone.frame[column.name], after.frame[column.name])


@pytest.mark.parametrize(("dataset", "module"), PAIRS)
def test_a_row_is_derived_from_itself_alone(dataset, module, derived):
    before, after = derived(dataset, module)
    rows = before.frame.iloc[[7, 3]]
    few = plugins.load("features", module).derive(build_table(dataset, rows, before.columns))
    pd.testing.assert_frame_equal(few.frame, after.frame.iloc[[7, 3]].reset_index(drop=True))


@pytest.mark.parametrize(("dataset", "module"), PAIRS)
def test_an_empty_table_is_no_special_case(dataset, module, derived):
    before, after = derived(dataset, module)
    empty = plugins.load("features", module).derive(build_table(dataset, before.frame.iloc[:0], before.columns))
    assert empty.columns == after.columns
    assert len(empty.frame) == 0


@pytest.mark.parametrize(("dataset", "module"), PAIRS)
def test_a_lacking_column_is_an_error_of_the_configuration(dataset, module, derived):
    before, _ = derived(dataset, module)
    for name in plugins.load("features", module).REQUIRES:
        lacking = [column for column in before.columns if column.name != name]
        with pytest.raises(ValueError, match=name):
            plugins.load("features", module).derive(build_table(dataset, before.frame, lacking))

"""Contract of every dataset and of its feature modules, on generated sources. The tests name none of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from factory import decode_texts

from perfcast import plugins
from perfcast.config.conf_files import conf_files, known, own_csv, read_conf, validated
from perfcast.config.dataset_conf import DatasetConf
from perfcast.data.standardized import REJECTED_COLUMNS, Standardized, write_standardized
from perfcast.evaluation import AVERAGE
from perfcast.schema.sequences import is_sequence
from perfcast.schema.table import Kind, Role, Table, Tag, build_table, out_of_bounds, select
from perfcast.schema.table_files import read_table, write_table
from perfcast.sources.packed import packed_name, write_packed

CONF = Path(__file__).parents[2] / "conf"
ROWS, SEED = 300, 7
NAMES = sorted(conf_files(CONF, "dataset"))


@cache
def conf(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = read_conf(CONF, "dataset", name)
    return loaded


def build_function(name: str) -> Callable[..., Standardized]:
    return plugins.load_function(conf(name)["_target_"], name)  # type: ignore[no-any-return]


def list_sources(name: str, *, optional: bool = True) -> list[str]:
    sources = conf(name)["sources"]
    return [*sources["required"], *(sources.get("optional", []) if optional else [])]


def write_sources(names: list[str], folder: Path, rows: int) -> dict[str, Path]:
    """Write generated files of sources, and return their folders."""
    raw = {}
    for source in names:
        raw[source] = folder / source
        raw[source].mkdir()
        if csv := own_csv(CONF, source):
            shutil.copy(CONF.parent / "data" / "embedded" / csv, raw[source])
        else:
            plugins.load("testing", source).write(raw[source], rows=rows, seed=SEED)
    return raw


def build_from(name: str, raw: dict[str, Path]) -> Standardized:
    return build_function(name)(raw, conf(name).get("options") or {})


def build(name: str, *, optional: bool = True) -> Standardized:
    """Build a dataset from generated files of its sources in a temporary folder."""
    with TemporaryDirectory() as folder:
        return build_from(name, write_sources(list_sources(name, optional=optional), Path(folder), ROWS))


@cache
def built(name: str) -> Standardized:
    return build(name)


@cache
def built_without_optional(name: str) -> Standardized:
    """Return a second build: files are generated again."""
    return build(name, optional=False)


def built_again(name: str) -> Standardized:
    """Return a second build with all sources."""
    return build(name) if conf(name)["sources"].get("optional") else built_without_optional(name)


@pytest.fixture(params=NAMES)
def dataset(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_conf_names_dataset_sources_features_and_splits(dataset: str) -> None:
    settings = conf(dataset)
    assert settings["name"] == dataset
    assert settings["title"]
    assert set(settings["features"]) <= set(plugins.names("features"))
    assert set(settings["sources"]["required"]) <= set(known(CONF, "source"))
    checked = validated(DatasetConf, dataset, settings)
    tasks = set(built(dataset).table.frame[built(dataset).table.column_of(Tag.TASK)]) if checked.published else set()
    for errors in checked.published:
        assert errors.split in settings["splits"]
        assert {task for by_task in errors.values.values() for task in by_task} <= {*tasks, AVERAGE}
        assert errors.citation


def test_build_accounts_for_every_row(dataset: str) -> None:
    result = built(dataset)
    assert len(result.table.frame) > 0
    assert result.rows_in == len(result.table.frame) + result.rows_merged + len(result.rejected)
    assert all(rows >= 0 for rows in result.merged.values())


def test_rejections_have_position_and_reason(dataset: str) -> None:
    rejected = built(dataset).rejected
    assert list(rejected.columns) == REJECTED_COLUMNS
    assert rejected["reason"].str.fullmatch("[a-z0-9_]+").all()
    assert (rejected["line"].astype(int) >= 1).all()
    assert not rejected[["source", "file"]].isna().any(axis=None)


def test_frame_has_the_declared_columns_and_types(dataset: str) -> None:
    table = decode_texts(built(dataset).table)
    assert table.dataset == dataset
    assert list(table.frame.columns) == [column.name for column in table.columns]
    types = {Kind.NUMERICAL: "float64", Kind.DATE: "datetime64[us]", Kind.CATEGORICAL: "str", Kind.TEXT: "str"}
    plain = [column for column in table.columns if column.kind is not Kind.SEQUENCE]
    assert {column.name: str(table.frame[column.name].dtype) for column in plain} == {
        column.name: types[column.kind] for column in plain
    }
    sequences = table.select(kind=Kind.SEQUENCE)
    assert all(is_sequence(table.frame[name].dtype) for name in sequences)
    assert len({str(table.frame[name].dtype) for name in sequences}) <= 1, "sequences differ in length"
    assert table.frame.index.equals(pd.RangeIndex(len(table.frame)))


def test_columns_have_required_tags(dataset: str) -> None:
    table = built(dataset).table
    row = table.column_of(Tag.ROW)
    assert table.frame[row].is_unique
    assert table.frame[row].notna().all()
    assert table.frame[table.column_of(Tag.TASK)].notna().all()
    targets = table.select(role=Role.TARGET)
    assert targets
    assert table.frame[targets].notna().any(axis=1).all()
    assert set(table.select(kind=Kind.NUMERICAL)) >= {*targets, *table.select(tag=Tag.SCALING)}
    for tag in (Tag.ENTITY, Tag.BLOCK):
        assert table.frame[table.select(tag=tag)].notna().all(axis=None)


def test_no_target_or_provenance_is_a_feature(dataset: str) -> None:
    table = built(dataset).table
    features = set(table.select(role=Role.FEATURE))
    assert features
    assert features.isdisjoint(table.select(role=Role.TARGET))
    assert features.isdisjoint(table.select(tag=Tag.TIME))


def test_numbers_lie_within_their_bounds(dataset: str) -> None:
    bad = out_of_bounds(built(dataset).table).sum()
    assert bad[bad > 0].to_dict() == {}


def test_every_column_has_group_and_meaning(dataset: str) -> None:
    assert [column.name for column in built(dataset).table.columns if not (column.meaning and column.group)] == []


def test_table_survives_round_trip(dataset: str, tmp_path: Path) -> None:
    table = built(dataset).table
    write_table(table, tmp_path / "table.parquet")
    again = read_table(tmp_path / "table.parquet")
    assert (again.dataset, again.columns, again.facts) == (table.dataset, table.columns, table.facts)
    pd.testing.assert_frame_equal(again.frame, decode_texts(table).frame)


def test_two_builds_give_equal_bytes(dataset: str, tmp_path: Path) -> None:
    first, second = built(dataset), built_again(dataset)
    write_table(first.table, tmp_path / "one.parquet")
    write_table(second.table, tmp_path / "other.parquet")
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "other.parquet").read_bytes()
    pd.testing.assert_frame_equal(first.rejected, second.rejected)
    assert first.quality == second.quality


def test_no_absolute_path_is_in_the_table(dataset: str) -> None:
    frame = built(dataset).table.frame
    texts = frame.select_dtypes(exclude=["number", "datetime"])
    hits = texts.apply(lambda column: column.astype("str").str.match(r"/|[A-Za-z]:\\").fillna(False).any())
    assert hits[hits].index.tolist() == []


def test_build_works_without_optional_sources(dataset: str) -> None:
    result = built_without_optional(dataset)
    assert len(result.table.frame) == len(built(dataset).table.frame)
    assert result.table.columns == built(dataset).table.columns


PACKS = {
    source: pack for source in conf_files(CONF, "source") if (pack := read_conf(CONF, "source", source).get("packed"))
}
READ = [(source, dataset) for dataset in NAMES for source in list_sources(dataset) if source in PACKS]


def test_every_packed_source_is_read_by_a_dataset() -> None:
    assert {source for source, _ in READ} == set(PACKS)


@pytest.mark.parametrize(("source", "dataset"), READ)
def test_the_packed_table_gives_what_the_official_files_give(source: str, dataset: str, tmp_path: Path) -> None:
    official = write_sources(list_sources(dataset), tmp_path, 100)
    records = plugins.load_function(PACKS[source], source)(official[source]).records
    write_packed(records, tmp_path / "packed" / packed_name(source))
    standard = {"official": official, "packed": {**official, source: tmp_path / "packed"}}
    for form, raw in standard.items():
        places = [tmp_path / form / name for name in ("table.parquet", "rejected.csv", "quality.json")]
        write_standardized(build_from(dataset, raw), *places)
    for name in ("table.parquet", "rejected.csv", "quality.json"):
        assert (tmp_path / "packed" / name).read_bytes() == (tmp_path / "official" / name).read_bytes()


PAIRS = [(dataset, module) for dataset in NAMES for module in conf(dataset)["features"]]


def derive(module: str, table: Table) -> Table:
    derived: Table = plugins.load("features", module).derive(table)
    return derived


@cache
def derived(dataset: str, module: str) -> tuple[Table, Table]:
    """Derive in the dataset's own order up to and with a module; return the tables before and after it."""
    names = conf(dataset)["features"]
    place = names.index(module)
    before = derived(dataset, names[place - 1])[1] if place else built(dataset).table
    return before, derive(module, before)


def test_every_module_is_used_by_a_dataset() -> None:
    assert {module for _, module in PAIRS} == set(plugins.names("features"))


@pytest.mark.parametrize(("dataset", "module"), PAIRS)
class TestFeatures:
    def test_appends_declared_finite_columns(self, dataset: str, module: str, tmp_path: Path) -> None:
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
        if module == conf(dataset)["features"][-1]:
            write_table(after, tmp_path / "table.parquet")
            pd.testing.assert_frame_equal(read_table(tmp_path / "table.parquet").frame, decode_texts(after).frame)

    def test_never_reads_a_result_or_what_came_after_it(self, dataset: str, module: str) -> None:
        before, after = derived(dataset, module)
        required = plugins.load("features", module).REQUIRES
        by_name = {column.name: column for column in before.columns}
        for name in required:
            assert by_name[name].role is not Role.TARGET
            assert Tag.TIME not in by_name[name].tags
            assert "updated" not in name
        assert not any(word in name for name in required for word in ("score", "peak", "energy"))
        read = [column for column in before.columns if column.name in required]
        alone = derive(module, build_table(dataset, before.frame, read))
        for column in alone.columns[len(read) :]:
            pd.testing.assert_series_equal(alone.frame[column.name], after.frame[column.name])

    def test_a_row_is_derived_from_itself_alone_and_no_row_is_no_special_case(self, dataset: str, module: str) -> None:
        before, after = derived(dataset, module)
        few = derive(module, build_table(dataset, before.frame.iloc[[7, 3]], before.columns))
        pd.testing.assert_frame_equal(few.frame, after.frame.iloc[[7, 3]].reset_index(drop=True))
        empty = derive(module, build_table(dataset, before.frame.iloc[:0], before.columns))
        assert empty.columns == after.columns
        assert len(empty.frame) == 0

    def test_a_lacking_column_is_an_error_of_the_configuration(self, dataset: str, module: str) -> None:
        before, _ = derived(dataset, module)
        for name in plugins.load("features", module).REQUIRES:
            lacking = [column for column in before.columns if column.name != name]
            with pytest.raises(ValueError, match=name):
                derive(module, build_table(dataset, before.frame.iloc[:5], lacking))

"""The processor catalog: order of tables, twins, traps, missing stays missing."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from perfcast.domains.servers.processors.catalog import (
    FACTS,
    Catalog,
    add_brand,
    find_twin_key,
    read_catalog,
    read_project_catalog,
)
from perfcast.domains.servers.testing import cpu_catalog
from perfcast.utils.errors import UserError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("catalog")
    cpu_catalog.write(path, rows=20, seed=0)
    return path


@pytest.fixture(scope="module")
def catalog(folder: Path) -> Catalog:
    return read_catalog(folder)


def test_tables_fill_gaps_in_order(catalog: Catalog) -> None:
    facts = catalog.lookup(
        ["xeon gold 6148", "epyc 7742", "xeon e-2388g", "xeon 6980p", "epyc 7543p", "xeon gold 6142m"]
    )
    tables = facts["table"].astype(object).where(facts["table"].notna(), None)
    assert tables.to_dict() == {
        "xeon gold 6148": "ark",
        "epyc 7742": "amd",
        "xeon e-2388g": "xeon",
        "xeon 6980p": "project",
        "epyc 7543p": "twin",
        "xeon gold 6142m": "xeon",
    }


def test_a_changed_file_is_read_again(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "intel-cpus.csv"
    text = (folder / file.name).read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    before = read_catalog(tmp_path)
    assert read_catalog(tmp_path) is before
    file.write_text(text.replace(",40 MB,", ",40 MB L2 Cache,"), encoding="utf-8")
    assert not read_catalog(tmp_path).facts.equals(before.facts)


def test_units(catalog: Catalog) -> None:
    part = catalog.lookup(["xeon gold 6148"]).iloc[0]
    assert (part["max_turbo_mhz"], part["base_mhz"], part["cores_per_chip"]) == (3600, 2400, 20)
    assert part["launch_quarter"] == pd.Timestamp(2017, 7, 1)
    assert part["process_node"] == "14 nm"


def test_a_cache_size_in_the_power_column_is_not_a_power(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "intel_xeon_processors_v1_8.csv").write_bytes((folder / "intel_xeon_processors_v1_8.csv").read_bytes())
    facts = read_catalog(tmp_path).lookup(["xeon platinum 8380h", "xeon gold 6148"])
    assert pd.isna(facts.loc["xeon platinum 8380h", "tdp_w"])
    assert facts.loc["xeon gold 6148", "tdp_w"] > 10


def test_the_cache_of_an_unnamed_level_is_the_third_one_since_2011(folder: Path, tmp_path: Path) -> None:
    text = (folder / "intel-cpus.csv").read_text(encoding="utf-8")
    assert ",40 MB," in text
    rows = {
        "since 2011": text,
        "in 2010": text.replace("Q3'17", "Q3'10"),
        "second level": text.replace(",40 MB,", ",40 MB L2 Cache,"),
        "third level in 2010": text.replace("Q3'17", "Q3'10").replace(",40 MB,", ",40 MB L3 Cache,"),
        "in KB": text.replace(",40 MB,", ",40 KB,"),
    }
    sizes = {}
    for name, content in rows.items():
        (tmp_path / "intel-cpus.csv").write_text(content, encoding="utf-8")
        sizes[name] = read_catalog(tmp_path).lookup(["xeon gold 6148"])["l3_mb_per_chip"].iloc[0]
    known = {name for name, size in sizes.items() if size == 40}
    assert known == {"since 2011", "third level in 2010"}, sizes


def test_one_socket_twin_scales_to_one_socket(catalog: Catalog) -> None:
    assert catalog.lookup(["epyc 7543p"])["max_sockets"].tolist() == [1]


@pytest.mark.parametrize(
    ("key", "twin"),
    [
        ("xeon gold 6134m", "xeon gold 6134"),
        ("xeon platinum 8280m", "xeon platinum 8280"),
        ("xeon gold 6438m", None),
        ("xeon platinum 8352m", None),
        ("epyc 7643p", "epyc 7643"),
        ("epyc 8534pn", None),
    ],
)
def test_only_two_kinds_of_parts_have_twins(key: str, twin: str | None) -> None:
    assert find_twin_key(key) == twin


def test_missing_stays_missing() -> None:
    facts = read_project_catalog().lookup(["no such part"])
    assert facts[list(FACTS)].isna().all(axis=None)
    assert facts["table"].isna().all()


def test_a_renamed_column_is_named(folder: Path, tmp_path: Path) -> None:
    text = (folder / "intel-cpus.csv").read_text(encoding="utf-8")
    (tmp_path / "intel-cpus.csv").write_text(text.replace("MaxTDP", "TDP"), encoding="utf-8")
    with pytest.raises(UserError, match=r"'MaxTDP', but"):
        read_catalog(tmp_path)


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"intel-cpus\.csv"):
        read_catalog(tmp_path)


def test_the_projects_table_comes_last_and_has_twins_too(catalog: Catalog) -> None:
    assert read_project_catalog().lookup(["epyc 9335p"])[["max_turbo_mhz", "table"]].to_numpy().tolist() == [
        [4400, "twin"]
    ]
    facts = pd.DataFrame(catalog.facts.loc[["xeon gold 6148"]])
    assert facts["max_turbo_mhz"].item() == 3600


def test_a_model_without_clock_has_its_twins_clock() -> None:
    facts = pd.DataFrame(index=pd.Index(["xeon gold 6142m", "xeon gold 6142"]), columns=list(FACTS), dtype=object)
    facts.loc["xeon gold 6142m", "tdp_w"] = 150.0
    facts.loc["xeon gold 6142", ["tdp_w", "max_turbo_mhz"]] = (999.0, 3700.0)
    facts = Catalog(facts, {"xeon": frozenset(facts.index)}).lookup(["xeon gold 6142m"]).iloc[0]
    assert (facts["tdp_w"], facts["max_turbo_mhz"], facts["table"]) == (150.0, 3700.0, "xeon")


def test_the_projects_table_is_plausible() -> None:
    facts = read_project_catalog().facts
    assert facts["tdp_w"].dropna().between(30, 600).all() and facts["max_turbo_mhz"].dropna().between(2000, 6000).all()
    assert facts.index.is_unique


def test_facts_of_a_model_count_only_after_its_launch() -> None:
    catalog = read_project_catalog()
    day = pd.Timestamp("2024-10-10")
    assert catalog.lookup(["epyc 9755"], day)["tdp_w"].isna().all()
    assert catalog.lookup(["epyc 9755"], day + pd.Timedelta(days=1))["tdp_w"].tolist() == [500]
    # of a launch quarter, the last day counts
    assert catalog.facts.loc["epyc 8534p", "known_from"] == pd.Timestamp("2023-09-30")


@pytest.mark.parametrize(
    ("name", "line", "branded"),
    [
        ("6276", "AMD Opteron™ 6200 Series Processor", "Opteron 6276"),
        ("965", "AMD Phenom™ II X4 Black", "Phenom II X4 965"),
        ("AMD EPYC™ 9654", "AMD EPYC™ 9004 Series", "AMD EPYC™ 9654"),
        ("A10-9700", "AMD A-Series", "A10-9700"),
    ],
)
def test_a_bare_number_gets_the_brand_of_its_product_line(name: str, line: str, branded: str) -> None:
    assert add_brand(name, line) == branded

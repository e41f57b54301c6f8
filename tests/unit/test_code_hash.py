"""A stage's code digest covers what it imports, and nothing else."""

import pytest

from perfcast import code_hash


@pytest.fixture
def package(tmp_path, monkeypatch):
    root = tmp_path / "perfcast"
    (root / "features").mkdir(parents=True)
    (root / "__init__.py").write_text("")
    (root / "features" / "__init__.py").write_text("")
    (root / "a.py").write_text("from perfcast.b import thing\nimport json\n")
    (root / "b.py").write_text("def thing():\n    from perfcast.features import c\n    return c\n")
    (root / "features" / "c.py").write_text("x = 1\n")
    (root / "features" / "table.csv").write_text("k,v\n")
    (root / "other.py").write_text("y = 2\n")
    monkeypatch.setattr(code_hash, "_ROOT", root)
    monkeypatch.setattr(code_hash, "_folders", lambda: {"perfcast": root})
    code_hash._parse.cache_clear()
    yield root
    code_hash._parse.cache_clear()


def test_closure_follows_imports_inside_functions(package):
    assert code_hash.closure("perfcast.a") == {
        "perfcast.a", "perfcast.b", "perfcast.features", "perfcast.features.c",
    }  # fmt: skip


@pytest.mark.parametrize("edited", ["a.py", "b.py", "features/c.py", "features/table.csv"])
def test_an_edit_inside_changes_the_digest_and_the_revert_restores_it(package, edited):
    before = code_hash.code_digest("perfcast.a")
    text = (package / edited).read_text()
    (package / edited).write_text(text + "\nmore = 1\n")
    code_hash._parse.cache_clear()
    assert code_hash.code_digest("perfcast.a") != before
    (package / edited).write_text(text)
    code_hash._parse.cache_clear()
    assert code_hash.code_digest("perfcast.a") == before


def test_an_edit_outside_does_not(package):
    before = code_hash.code_digest("perfcast.a")
    (package / "other.py").write_text("y = 3\n")
    code_hash._parse.cache_clear()
    assert code_hash.code_digest("perfcast.a") == before


def test_comments_docstrings_and_formatting_do_not_count(package):
    before = code_hash.code_digest("perfcast.a")
    (package / "b.py").write_text(
        '"""About b."""\n# why\ndef thing():\n    """Import c."""\n'
        "\n    from perfcast.features import (c)\n    return c\n"
    )
    (package / "features" / "c.py").write_text('x = 1\n"""About x."""\n')
    code_hash._parse.cache_clear()
    assert code_hash.code_digest("perfcast.a") == before
    (package / "features" / "c.py").write_text('x = "About x."\n')
    code_hash._parse.cache_clear()
    assert code_hash.code_digest("perfcast.a") != before


def test_the_package_itself_is_hashed():
    assert "perfcast.sources.ingestion" in code_hash.closure("perfcast.cli.pipeline:ingest")


def test_a_data_file_in_a_folder_without_modules_changes_the_digest(package):
    (package / "features" / "templates").mkdir()
    script = package / "features" / "templates" / "page.js"
    script.write_text("let a = 1;")
    before = code_hash.code_digest("perfcast.a")
    script.write_text("let a = 2;")
    assert code_hash.code_digest("perfcast.a") != before

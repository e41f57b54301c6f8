"""A stage's code digest covers what it imports, and nothing else."""

import pytest

from perfcast import code_hash


def forget_code():
    """Look at the files again, as the next process does."""
    for function in (code_hash.module_path, code_hash._parse, code_hash._stored):
        function.cache_clear()


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
    forget_code()
    yield root
    forget_code()


def test_closure_follows_imports_inside_functions(package):
    assert code_hash.closure("perfcast.a") == {
        "perfcast.a", "perfcast.b", "perfcast.features", "perfcast.features.c",
    }  # fmt: skip


def digest():
    forget_code()
    return code_hash.code_digest("perfcast.a")


def test_an_edit_of_what_is_imported_changes_the_digest_and_its_revert_restores_it(package):
    (package / "features" / "templates").mkdir()
    (package / "features" / "templates" / "page.js").write_text("let a = 1;")
    before = digest()
    for name in ("a.py", "b.py", "features/c.py", "features/table.csv", "features/templates/page.js", "other.py"):
        text = (package / name).read_text()
        (package / name).write_text(text + "\nmore = 1\n")
        assert (digest() == before) == (name == "other.py"), name
        (package / name).write_text(text)
        assert digest() == before


def test_comments_docstrings_and_formatting_do_not_count(package):
    before = code_hash.code_digest("perfcast.a")
    (package / "b.py").write_text(
        '"""About b."""\n# why\ndef thing():\n    """Import c."""\n'
        "\n    from perfcast.features import (c)\n    return c\n"
    )
    (package / "features" / "c.py").write_text('x = 1\n"""About x."""\n')
    forget_code()
    assert code_hash.code_digest("perfcast.a") == before
    (package / "features" / "c.py").write_text('x = "About x."\n')
    forget_code()
    assert code_hash.code_digest("perfcast.a") != before


def test_what_did_not_change_is_parsed_once_on_a_machine(package, monkeypatch):
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    (package / "__pycache__").mkdir()
    before = digest()
    parsed = []
    parse = code_hash._parse_code
    monkeypatch.setattr(code_hash, "_parse_code", lambda path, name: (parsed.append(path.name), parse(path, name))[1])
    assert digest() == before
    assert parsed == []
    (package / "b.py").write_text("from perfcast.features import c\n")
    assert digest() != before
    assert parsed == ["b.py"]


def test_damaged_or_unwritable_records_cost_time_alone(package, monkeypatch):
    before = digest()  # no folder of bytecode
    (package / "__pycache__").mkdir()
    stored = code_hash._stored_file(package)
    stored.write_text("{")
    assert digest() == before
    stored.unlink()
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    assert digest() == before
    assert not stored.exists()

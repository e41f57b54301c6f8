"""Missing sources are looked for again."""

import json

from perfcast.cli.main import main


def test_missing_sources_are_looked_for_again(tmp_path, capsys):
    for name, status in (("here", "present"), ("gone", "missing")):
        (tmp_path / "raw" / name).mkdir(parents=True)
        (tmp_path / "raw" / name / "manifest.json").write_text(json.dumps({"status": status}))
    assert main(["pipeline", "forget", "--results", str(tmp_path)]) == 0
    assert [path.parent.name for path in tmp_path.glob("raw/*/manifest.json")] == ["here"]
    assert "gone" in capsys.readouterr().err

"""Files that ship with the project: small, described, and without a name or address of the machine they come from."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "data" / "embedded"
DESCRIPTIONS = sorted(FOLDER.glob("*.json"))
MAX_BYTES = 8 * 2**20


@pytest.mark.parametrize("path", DESCRIPTIONS, ids=lambda path: path.stem)
def test_a_measurement_is_small_and_its_machine_has_no_name(path):
    assert len(DESCRIPTIONS) >= 2
    (table,) = [entry for entry in FOLDER.glob(f"{path.stem}.*") if entry.suffix != ".json"]
    assert table.stat().st_size <= MAX_BYTES
    text = path.read_text()
    content = json.loads(text)
    assert content["cores"] >= 1
    assert not {"host", "hostname", "address", "user"} & {key.lower() for key in content}
    assert not re.search(r"\b\d+\.\d+\.\d+\.\d+\b", text)
    assert path.stem in (FOLDER / "measured.md").read_text()

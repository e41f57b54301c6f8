"""Generated detail files: shape and defects of the real ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.domains.servers.testing import spec_cpu2017_detail as fake
from perfcast.utils.io import sha256

NAMES = ["input_FP_rate.csv", "input_FP_speed.csv", "input_Int_rate.csv", "input_Int_speed.csv"]


def test_write_is_seeded(tmp_path: Path) -> None:
    for folder, seed in (("one", 1), ("same", 1), ("other", 2)):
        fake.write(tmp_path / folder, rows=30, seed=seed)
    digests = [[sha256(tmp_path / folder / name) for name in NAMES] for folder in ("one", "same", "other")]
    assert digests[0] == digests[1]
    assert not set(digests[0]) & set(digests[2])


def test_write_gives_results_with_known_defects(tmp_path: Path) -> None:
    fake.write(tmp_path, rows=400, seed=0)
    for name in NAMES:
        frame = pd.read_csv(tmp_path / name, dtype=str, keep_default_na=False)
        assert len(frame) == 400
        assert frame["file"].is_unique
        assert frame["file"].str.fullmatch(r"cpu2017-\d{8}-\d{5}\.csv").all()
        assert (frame["sockets"] == "").any()
        times = [column for column in frame if column.startswith("t_")]
        assert times
        for time in times:
            copies = frame["threads_or_copies"].astype(float) if "rate" in name else 1.0
            reference = frame[time.removeprefix("t_")].astype(float) * frame[time].astype(float) / copies
            assert np.allclose(reference, reference.iloc[0], rtol=1e-3)
        system = frame.columns[: frame.columns.get_loc("file")]
        assert frame.duplicated(list(system)).any()

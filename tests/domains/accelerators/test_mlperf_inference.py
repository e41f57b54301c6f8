"""Standardization of benchmark results: every rule on generated files, and units that a check finds."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfcast.data.standardized import Standardized, check_accounting
from perfcast.domains.accelerators.catalog import (
    find_accelerator,
    read_accelerators,
)
from perfcast.domains.accelerators.datasets.mlperf_inference import (
    TOKENS,
    build,
    check_units,
)
from perfcast.domains.accelerators.sources.mlperf_inference import ARCHIVE, SOURCE
from perfcast.domains.accelerators.testing.mlperf_inference import write
from perfcast.utils.errors import UserError


def entry(**changes: Any) -> dict[str, Any]:
    common = {
        "Availability": "available",
        "Division": "closed",
        "Model": "resnet50",
        "Organization": "Acorn",
        "Platform": "P",
        "Result": 1000.0,
        "Scenario": "Offline",
        "SystemName": "S (8x H100-SXM-80GB, TensorRT)",
        "Units": "Samples/s",
        "accelerator_model_name": "NVIDIA H100-SXM-80GB",
        "accelerators_per_node": 8,
        "framework": "TensorRT 9.0, CUDA 12",
        "host_processor_core_count": 64,
        "host_processor_model_name": "EPYC",
        "host_processors_per_node": 2,
        "inferred": 0,
        "number_of_nodes": 1,
        "uid": "u",
        "version": "v4.0",
    }
    return {**common, **changes}


def built(folder: Path, *entries: dict[str, Any]) -> Standardized:
    """Standardize an archive of one file."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        content = json.dumps(entries).encode()
        member = tarfile.TarInfo("a/cm-result.json")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    (folder / ARCHIVE).write_bytes(gzip.compress(buffer.getvalue()))
    result = build({SOURCE: folder}, {})
    check_accounting(result)
    return result


def test_every_row_is_kept_merged_or_rejected_with_its_reason(
    tmp_path: Path,
) -> None:
    write(tmp_path, rows=300, seed=3)
    result = build({SOURCE: tmp_path}, {})
    check_accounting(result)
    assert result.merged["written_twice"] == 6
    assert result.merged["power_entry"] == 6
    reasons = [
        "inferred",
        "latency_scenario",
        "not_a_number",
        "slice_of_gpu",
        "unknown_accelerator",
    ]
    assert sorted(set(result.rejected["reason"])) == reasons
    assert sorted(set(result.table.frame["round"])) == [
        "v2.0",
        "v2.1",
        "v3.0",
        "v3.1",
        "v4.0",
        "v4.1",
        "v5.0",
        "v5.1",
    ]


def test_throughput_is_per_accelerator_and_in_tokens(tmp_path: Path) -> None:
    frame = built(
        tmp_path,
        entry(),
        entry(uid="g", Model="gptj-99"),
        entry(
            uid="l",
            Model="llama2-70b-99.9",
            Scenario="Server",
            Units="Queries/s",
            Result=80.0,
        ),
        entry(uid="o", Model="llama2-70b-99.9", Result=20000.0),
    ).table.frame.set_index("task")["throughput"]
    assert frame["resnet/Offline"] == 125.0
    assert frame["gptj/Offline"] == pytest.approx(125.0 * TOKENS["gptj"])
    assert frame["llama2-70b/Server"] == pytest.approx(10.0 * TOKENS["llama2-70b"])
    assert frame["llama2-70b/Offline"] == 2500.0


def test_a_run_under_two_accuracies_is_one_row_and_a_different_one_stays(
    tmp_path: Path,
) -> None:
    same = built(
        tmp_path,
        entry(Model="gptj-99"),
        entry(uid="s", Model="gptj-99.9", Result=1000.5),
    )
    assert same.table.frame["accuracy"].tolist() == [99.9]
    other = built(
        tmp_path,
        entry(Model="gptj-99"),
        entry(uid="s", Model="gptj-99.9", Result=800.0),
    )
    assert len(other.table.frame) == 2


def test_power_of_a_second_entry_joins_its_run(tmp_path: Path) -> None:
    power = entry(uid="w", Result=None, Units="Watts", Result_Power=5000.0)
    result = built(tmp_path, entry(), power)
    assert result.table.frame["watts"].tolist() == [5000.0]
    assert result.merged["power_entry"] == 1


def test_processors_count_their_sockets_and_one_node_is_one(tmp_path: Path) -> None:
    frame = built(
        tmp_path,
        entry(
            accelerator_model_name="N/A",
            accelerators_per_node=0,
            host_processor_model_name="INTEL(R) XEON(R) PLATINUM 8592+",
            SystemName="1-node-2S-EMR-PyTorch",
            number_of_nodes=2,
        ),
    ).table.frame
    assert frame["accelerator"].tolist() == ["Xeon Platinum 8592+"]
    assert frame["count"].tolist() == [2.0]


def test_facts_after_the_round_and_outliers_of_server_are_not_judged(
    tmp_path: Path,
) -> None:
    early = entry(uid="e", accelerator_model_name="NVIDIA GB300", Platform="Q")
    low = entry(uid="s", Scenario="Server", Units="Queries/s", Result=100.0)
    frame = built(tmp_path, entry(), early, low).table.frame.set_index("result_id")
    assert frame["not_judged"].to_dict() == {
        "v4.0/u": 0.0,
        "v4.0/e": 1.0,
        "v4.0/s": 1.0,
    }


def test_a_check_finds_a_wrong_unit(tmp_path: Path) -> None:
    rows = [
        entry(
            uid=f"{version}{place}",
            version=version,
            Platform=f"P{place}",
            Model="gptj-99.9",
            Result=value,
        )
        for version, value in (("v4.0", 100.0), ("v4.1", 100.0 * TOKENS["gptj"]))
        for place in range(4)
    ]
    good = built(tmp_path, *rows)
    assert check_units(good.table.frame) == []
    planted = good.table.frame.copy()
    planted.loc[planted["round"] == "v4.1", "throughput"] /= TOKENS["gptj"]
    (problem,) = check_units(planted)
    assert "gptj/Offline" in problem and "v4.1" in problem
    assert good.quality["wrong_units"] == []


@pytest.mark.parametrize("content", [b"", gzip.compress(b"x" * 2000)], ids=["nothing", "noise"])
def test_a_broken_archive_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ARCHIVE).write_bytes(content)
    with pytest.raises(UserError) as caught:
        build({SOURCE: tmp_path}, {})
    assert "\n" not in str(caught.value)


def test_facts_are_dated_and_physical_and_found_in_any_spelling() -> None:
    assert find_accelerator("nvidia h100-sxm-80gb") == "H100 SXM"
    assert find_accelerator("AMD Instinct MI355X") == "MI355X"
    table = read_accelerators()
    assert table.index.is_unique
    assert table["known_from"].str.fullmatch(r"\d{4}-\d\d-\d\d").all()
    eight, half = (table[name].to_numpy() for name in ("fp8_tflops", "bf16_tflops"))
    assert not np.any(eight < 0.99 * half)

"""Datasets help_*: torch files, quarantine, the authors' split, and derived features."""

from pathlib import Path

import numpy as np
import pytest
import torch

from perfcast import plugins, splits
from perfcast.config.conf_files import read_conf
from perfcast.config.dataset_conf import read_dataset
from perfcast.domains.nas.datasets.search_spaces import (
    CELL_EDGES,
    encode_cells,
    read_torch,
)
from perfcast.domains.nas.features import cell_graph, inverted_residuals, mobile_stages
from perfcast.domains.nas.sources.help import (
    ARCHITECTURES,
    REFERENCES,
    latency_file,
    list_devices,
)
from perfcast.utils.errors import UserError


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folder = tmp_path_factory.mktemp("help")
    plugins.load("testing", "help").write(folder, rows=300, seed=3)
    return {"help": folder}


def build(name, raw):
    options = read_conf(Path("conf"), "dataset", name)["options"]
    return plugins.load_function(read_dataset(Path("conf"), name).target, name)(raw, options)


class TestRows:
    def test_read_torch_reads_the_declared_files_of_plain_values_alone(self, tmp_path):
        content = {"arch": [{"ks": [3, 5], "r": np.int64(-204)}], "name": "x"}
        torch.save(content, tmp_path / "file.pt")
        assert read_torch(tmp_path / "file.pt") == content
        for value in (np.float64(1.5), np.array([1, 2])):
            torch.save([value], tmp_path / "file.pt")
            with pytest.raises(UserError, match="plain values only"):
                read_torch(tmp_path / "file.pt")
        conf = read_conf(Path("conf"), "source", "help")
        declared = [entry["name"] for entry in conf["files"]]
        files = []
        for space, architectures in ARCHITECTURES.items():
            files += [f"{space}/{architectures}", f"{space}/{REFERENCES}"]
            files += [latency_file(space, device) for device in list_devices(space)]
        assert sorted(declared) == sorted(files)

    def test_build_quarantines_near_zero_latencies_and_keeps_file_and_line(self, raw):
        built = build("help_nasbench201", raw)
        reasons = built.rejected.groupby(["file", "reason"]).size()
        assert reasons[("nasbench201/latency/raspi4.pt", "near_zero_latency")] == 3
        assert reasons[("nasbench201/latency/pixel3.pt", "near_zero_latency")] == 3
        assert reasons[("nasbench201/latency/1080ti_1.pt", "not_a_positive_number")] == 1
        assert len(reasons) == 3
        built = build("help_fbnet", raw).table.frame
        row = built[built["device"] == "raspi4"].iloc[17]
        assert read_torch(raw["help"] / row["source_file"])[int(row["source_line"]) - 1] == row["latency_ms"]
        assert row["result_id"] == "raspi4/00017"
        assert row["architecture"] == "fbnet-00017"

    def test_device_names_and_cells(self):
        devices = list_devices("nasbench201")
        facts = [devices[name][fact] for name in ("titan_rtx_256", "essential_ph_1") for fact in ("model", "batch")]
        assert facts == ["Titan RTX", "256", "Essential PH-1", ""], "the 1 of the phone belongs to its model"
        text = "|none~0|+|nor_conv_3x3~0|skip_connect~1|+|avg_pool_3x3~0|nor_conv_1x1~1|none~2|"
        other = text.replace("none~2", "skip_connect~2")
        frame = encode_cells({other: 1, text: 0})
        assert frame["op_2_3"].tolist() == ["none", "skip_connect"]
        operations = [
            "none",
            "nor_conv_3x3",
            "skip_connect",
            "avg_pool_3x3",
            "nor_conv_1x1",
            "none",
        ]
        assert frame[list(CELL_EDGES)].iloc[0].tolist() == operations
        with pytest.raises(UserError, match="six known operations"):
            encode_cells({text.replace("none~2", "magic~2"): 0})


class TestSplits:
    def test_published_split_equals_the_authors_split(self, raw):
        table = build("help_nasbench201", raw).table
        used = {device: facts["nasbench201"] for device, facts in list_devices("nasbench201").items()}
        frame = table.frame.assign(part=splits.make("published", table, 0)["fold_0"])
        references = set(frame["architecture"][frame["reference"] == 1])
        assert len(references) == 10
        for device, rows in frame.groupby("device"):
            parts = set(rows["part"])
            trained = set(rows["architecture"][rows["part"] == "train"])
            if used[device] in ("test", "validation"):
                assert trained <= references and ("test" in parts) == (used[device] == "test")
            else:
                assert parts == ({"train", "unused"} if used[device] == "train" else {"unused"})
        tested = frame[frame["part"] == "test"]
        queries = frame[(frame["device"] == "fpga") & (frame["source_line"] > 48)]["latency_ms"]
        latency = tested.loc[tested["device"] == "fpga", "latency_ms"]
        assert queries.min() < latency.min() < latency.max() < queries.max(), "fastest and slowest are trimmed"
        assert not set(tested["architecture"]) & set(frame["architecture"][frame["part"].isin(["train", "validation"])])


class TestFeatures:
    def test_describe_gives_costs_dead_operations_and_the_longest_path(self):
        for operation, mflop, parameters in (
            ("nor_conv_3x3", 220.119, 1.531546e6),
            ("none", 7.783, 0.073306e6),
        ):
            cell = cell_graph.describe((operation,) * 6)
            assert cell["mflop"] == pytest.approx(mflop, abs=0.01)
            assert cell["kparameters"] * 1e3 == pytest.approx(parameters, rel=1e-6)
        operations = (
            "nor_conv_3x3",
            "none",
            "none",
            "avg_pool_3x3",
            "none",
            "nor_conv_1x1",
        )
        cell = cell_graph.describe(operations)
        assert (
            cell["n_conv3"],
            cell["live_conv3"],
            cell["live_conv1"],
            cell["live_pool"],
        ) == (1, 0, 0, 1)
        assert (
            cell["connected"],
            cell["additions"],
            cell["depth_conv"],
            cell["depth_operations"],
        ) == (1, 0, 0, 1)
        assert (cell["live_op_0_1"], cell["live_op_0_3"]) == ("dead", "pool")
        operations = (
            "nor_conv_3x3",
            "skip_connect",
            "nor_conv_1x1",
            "skip_connect",
            "none",
            "nor_conv_3x3",
        )
        cell = cell_graph.describe(operations)
        assert (
            cell["depth_conv"],
            cell["depth_conv3"],
            cell["additions"],
        ) == (3, 2, 2)
        assert cell_graph.describe(("none",) * 6)["connected"] == 0

    def test_costs_of_blocks_and_layers(self, raw):
        network = ["skip"] * 22
        assert {cost.pointwise for stage in inverted_residuals.fbnet_costs(tuple(network)) for cost in stage} == {0.0}
        network[2] = "k5_e6"  # the second layer of the second stage: 24 channels, 32 px
        stages = inverted_residuals.fbnet_costs(tuple(network))
        cost = stages[1][1]
        assert cost.pointwise == pytest.approx(2 * 6 * 24 * 24 * 32**2 / 1e6)
        assert cost.depthwise == pytest.approx(25 * 6 * 24 * 32**2 / 1e6)
        network[2] = "k5_e1_g2"
        assert inverted_residuals.fbnet_costs(tuple(network))[1][1].pointwise == pytest.approx(24 * 24 * 32**2 / 1e6)
        network = (224.0, *(["k3_e6", "k3_e6", "absent", "absent"] * 5))
        stages = mobile_stages.layer_costs(network)
        assert [len(stage) for stage in stages] == [2] * 5
        assert stages[0][0].pointwise == pytest.approx((16 * 96 * 112**2 + 96 * 24 * 56**2) / 1e6)
        half = mobile_stages.layer_costs((112.0, *network[1:]))
        assert half[3][1].pointwise == pytest.approx(stages[3][1].pointwise / 4)
        operations = inverted_residuals.derive(build("help_fbnet", raw).table).frame.groupby("architecture")["mflop"]
        assert (operations.nunique(dropna=False) == 1).all() and operations.first().notna().all()

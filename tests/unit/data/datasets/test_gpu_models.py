"""Dataset gpu_models: graphs of operations, sums of kernels, rows, quarantine, and what the sums may learn from."""

import json

import numpy as np
import pandas as pd
import pytest

from perfcast.data.datasets.gpu_models import kernel_times, model_runs
from perfcast.data.datasets.gpu_models.operation_graphs import KINDS, list_kernels
from perfcast.data.sources import neusight as source
from perfcast.testing.gpperf import write_archive
from perfcast.testing.neusight import write
from perfcast.utils.errors import UserError

RUN = "gpt_made_up-inf-128-1"
L4_FACTS = {"SingleFLOPs": 20000, "Mem_Bw": 250, "Num_Sm": 60, "L2Cache": 48, "Freq": 2000, "Dev_Mem": 24}
FIRST, LAST = "transformer_h_0_ln_1", "add_15"
GRAPH = [
    ("size", "[['MEM', ((1,), (1,))]]", "[['MEM', ((1,),)]]", "[]"),
    ("embedding", "[['MEM', ((2, 8), (2, 8, 64))]]", "[]", "[]"),
    (FIRST, "[['VECln', (16, 64)]]", "[]", "[['VECadd', [1, 64]], ['VECadd', [1, 64]]]"),
    ("addmm", "[['Linear', (16, 64, 192)]]", "[['Linear', (16, 192, 64)], ['Linear', (192, 16, 64)]]", "[]"),
    ("matmul", "[['BMM', (8, 8, 16, 32)]]", "[]", "[]"),
    ("softmax", "[['VECsoftmax', (64, 8)]]", "[]", "[]"),
    (LAST, "[['VECadd', (16, 64)]]", "[]", "[]"),
    ("head", "[['Linear', (16, 64, 192)], ['Linear', (0, 64, 192)]]", "[]", "[]"),
]


def graph(rows=GRAPH):
    return pd.DataFrame(rows, columns=["Name", *source.PHASES])


def counts(kernels):
    names = kernels[["kind", "op", "batch", "m", "n", "k", "width"]].astype(object)
    keys = names.where(names.notna(), None).itertuples(index=False, name=None)
    return dict(zip(keys, kernels["count"], strict=True))


def test_a_layer_of_the_graph_counts_as_often_as_it_runs():
    assert counts(list_kernels(graph(), 3, "any")) == {
        # 16 + 1024 elements are read or written: half of them in, half out
        ("copy", "copy", 1.0, None, None, None, 520.0): 1,
        ("layer_norm", "ln", 16.0, None, None, None, 64.0): 3,
        ("element_wise", "add", 1.0, None, None, None, 64.0): 6,
        ("element_wise", "add", 16.0, None, None, None, 64.0): 3,
        ("softmax", "softmax", 64.0, None, None, None, 8.0): 3,
        # rows, inner dimension, columns: 16 x 64 by 64 x 192, in three layers and in the head
        ("linear", "linear", 1.0, 16.0, 192.0, 64.0, None): 4,
        ("linear", "linear", 1.0, 16.0, 64.0, 192.0, None): 3,
        ("linear", "linear", 1.0, 192.0, 64.0, 16.0, None): 3,
        ("bmm", "bmm", 8.0, 8.0, 32.0, 16.0, None): 3,
    }


def test_a_graph_with_all_layers_counts_once():
    assert set(list_kernels(graph(), 0, "any")["count"]) == {1, 2}


@pytest.mark.parametrize(
    "rows",
    [
        [row for row in GRAPH if row[0] != LAST],
        [*GRAPH, GRAPH[2]],
        [GRAPH[6], *GRAPH[:6]],
    ],
)
def test_a_layer_without_its_ends_is_refused(rows):
    with pytest.raises(UserError, match=r"any\.csv of .* must have the first and the last operation of a layer once"):
        list_kernels(graph(rows), 3, "any")


@pytest.mark.parametrize(
    "text",
    [
        "['MEM'",
        "[['ALLREDUCE', (4,)]]",
        "[['BMM', (4, 4, 4)]]",
        "[['VECadd', (4, -4)]]",
        "[['VECadd', (4, 0.5)]]",
        "[['VECadd', (4, True)]]",
        "[['VECadd', 'MEM']]",
        "[7]",
        "{}7",
        "[['MEM', ()]]",
        "[" * 100_000,
    ],
)
def test_a_kernel_that_cannot_be_read_is_one_line(text):
    with pytest.raises(UserError, match=r"any\.csv of .* must have kernels with their sizes"):
        list_kernels(graph([("name", text, "[]", "[]")]), 0, "any")


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, rows=60, seed=1)
    return tmp_path


def contents_of(folder):
    path = folder / source.ARCHIVE
    runs = source.read_runs(path)
    single = runs[source.is_single_gpu_run(runs)]
    summary = {source.SUMMARY: runs.to_csv(index=False).encode()}
    return {**source.read_archive(path), **source.read_graphs(path, single), **summary}


def replace(folder, changes):
    write_archive(folder / source.ARCHIVE, {**contents_of(folder), **changes})


def summary(*changes):
    row = dict(zip(source.RUN_COLUMNS, ("gpt_made_up", "128", "1", "NVIDIA_L4", "inf", "", "50.5"), strict=True))
    return {source.SUMMARY: pd.DataFrame([{**row, **change} for change in changes]).to_csv(index=False).encode()}


def build(folder):
    built = model_runs.build({"neusight": folder}, {})
    assert built.rows_in == len(built.table.frame) + built.rows_merged + len(built.rejected)
    return built


def test_a_run_has_its_keys_and_the_sums_of_its_kernels(folder):
    layers = json.dumps({"num_layer": 3}).encode()
    replace(
        folder,
        {
            **summary({}, {"device": "Tesla_T4"}),
            source.graph_file(RUN): graph().to_csv(index=False).encode(),
            source.layers_file("NVIDIA_L4", RUN): layers,
            source.layers_file("Tesla_T4", RUN): layers,
            source.facts_file("NVIDIA L4"): json.dumps(L4_FACTS).encode(),
        },
    )
    new, known = build(folder).table.frame.to_dict("records")
    assert new["result_id"] == f"NVIDIA L4/{RUN}"
    assert (new["task"], new["model"], new["model_family"], new["run"]) == (
        *("inference", "gpt_made_up", "gpt"),
        "NVIDIA L4/gpt_made_up/inference",
    )
    assert (new["batch"], new["sequence_length"], new["latency"], new["source_line"]) == (1, 128, 50.5, 2)
    assert (new["measured_by"], new["published_subset"]) == ("new", "test")
    assert (known["measured_by"], known["published_subset"]) == ("known", "train")
    assert {kind: new[f"kernels_{kind}"] for kind in KINDS} == {
        **{"bmm": 3, "linear": 10, "element_wise": 9, "layer_norm": 3, "softmax": 3, "copy": 1},
    }
    linear = 2 * 16 * 64 * 192
    assert new["flops_linear"] == 10 * linear
    assert new["flops_bmm"] == 3 * 2 * 8 * 8 * 16 * 32
    moved = 4 * (16 * 64 + 64 * 192 + 16 * 192)
    assert new["bytes_linear"] == 10 * moved
    assert new["bytes_copy"] == 4 * 1040
    # every product here takes longer to load than to compute: 250 GB/s, 20 TFLOP/s
    assert new["part_linear"] == pytest.approx(10 * moved / 250e9 * 1e3)
    assert new["part_element_wise"] == pytest.approx(4 * 3 * (6 * 64 + 3 * 1024) / 250e9 * 1e3)
    slowdowns = [f"part_{kind}_slowdown" for kind in KINDS]
    assert np.isnan([new[name] for name in slowdowns]).all()
    assert all(known[name] > 1 for name in slowdowns)


def test_a_kind_that_a_model_lacks_is_zero(folder):
    replace(folder, {**summary({}), source.graph_file(RUN): graph(GRAPH[1:6]).to_csv(index=False).encode(),
                     source.layers_file("NVIDIA_L4", RUN): b'{"num_layer": 0}'})  # fmt: skip
    row = build(folder).table.frame.iloc[0]
    few = graph([("output", "[['Linear', (16, 64, 192)]]", "[]", "[]")]).to_csv(index=False).encode()
    assert row["kernels_softmax"] == 1
    replace(folder, {source.graph_file(RUN): few})
    row = build(folder).table.frame.iloc[0]
    assert (row["kernels_softmax"], row["part_softmax"], row["fitted_softmax"], row["kernels_linear"]) == (0, 0, 0, 1)


def test_a_repeated_run_is_merged_into_the_first(folder):
    replace(folder, summary({}, {"label_all_e2e_latency": "60"}))
    built = build(folder)
    assert (list(built.table.frame["latency"]), built.merged) == ([50.5], {"repeated_run": 1})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"option": "fusion"}, "fused"),
        ({"option": "dp4"}, "several_gpus"),
        ({"option": "tp4"}, "several_gpus"),
        ({"option": "pp4_1"}, "several_gpus"),
        ({"option": "other"}, "unknown_option"),
        ({"device": "AMD_made_up"}, "unknown_gpu"),
        ({"mode": "other"}, "unknown_mode"),
        ({"model_name": "other"}, "unknown_model"),
        ({"model_name": "gpt/../other"}, "no_graph"),
        ({"batch": "x"}, "not_a_number"),
        ({"batch": "1.5"}, "no_graph"),
        ({"label_all_e2e_latency": ""}, "not_a_number"),
        ({"label_all_e2e_latency": "0"}, "not_positive"),
    ],
)
def test_a_defective_row_is_rejected_with_its_reason(folder, change, reason):
    replace(folder, summary({}, change))
    rejected = build(folder).rejected
    assert list(zip(rejected["line"], rejected["reason"], strict=True)) == [(3, reason)]


def slowed(folder, gpu, factor):
    """Multiply the times of all training kernels of a GPU, or of all kernels of test."""
    changed = {}
    for name, (_, subset) in source.list_tables().items():
        frame = pd.read_csv(pd.io.common.BytesIO(source.read_archive(folder / source.ARCHIVE)[name]))
        rows = frame["Device"] == gpu if subset == "train" else np.full(len(frame), gpu == "test")
        changed[name] = frame.assign(Latency=frame["Latency"].where(~rows, frame["Latency"] * factor))
    return {name: frame.to_csv(index=False).encode() for name, frame in changed.items()}


def test_estimates_learn_from_training_kernels_of_other_gpus_alone(folder):
    before = build(folder).table.frame.set_index("result_id")
    fitted = [f"fitted_{kind}" for kind in KINDS]
    slowdowns = [f"part_{kind}_slowdown" for kind in KINDS]
    replace(folder, slowed(folder, "test", 3.0))
    pd.testing.assert_frame_equal(build(folder).table.frame.set_index("result_id"), before)
    replace(folder, slowed(folder, "Tesla T4", 3.0))
    after = build(folder).table.frame.set_index("result_id")
    of_itself = before["gpu"] == "Tesla T4"
    pd.testing.assert_frame_equal(after.loc[of_itself, fitted], before.loc[of_itself, fitted])
    assert (after.loc[~of_itself, "fitted_linear"] != before.loc[~of_itself, "fitted_linear"]).all()
    pd.testing.assert_frame_equal(after.loc[~of_itself, slowdowns], before.loc[~of_itself, slowdowns])
    np.testing.assert_allclose(after.loc[of_itself, slowdowns], 3 * before.loc[of_itself, slowdowns])


def test_the_columns_of_a_product_are_k_in_the_tables(folder):
    contents = source.read_archive(folder / source.ARCHIVE)
    facts = pd.DataFrame({"fp32_gflops": [1.0]}, index=["Tesla T4"])
    name = "scripts/asplos/data/dataset/train/collect/linear/p2.1.0/Tesla T4.csv"
    table = b"OPName,Latency,Device,B,M,N,K\nlinear,1.5,Tesla T4,1,10,20,30\nlinear,-1,Tesla T4,1,10,20,30\n"
    kernels = kernel_times.read_training_kernels({**contents, name: table}, facts)["linear"]
    (row,) = kernels[kernels["gpu"] == "Tesla T4"].to_dict("records")
    assert (row["m"], row["k"], row["n"], row["latency"], row["fp32_gflops"]) == (10, 20, 30, 1.5, 1)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (source.SUMMARY, b"model_name\nx\n", "summary.csv of neusight.tar.gz must have a column 'seqlen'"),
        (source.graph_file(RUN), b"Name,FwOps,BwOps\na,[],[]\n", f"{RUN}.csv of neusight.tar.gz must have a column"),
        (source.layers_file("NVIDIA_L4", RUN), b"[]", "must be a JSON object with num_layer"),
        (source.layers_file("NVIDIA_L4", RUN), b"{}", "must be a JSON object with num_layer"),
        (source.layers_file("NVIDIA_L4", RUN), b'{"num_layer": -1}', "must be a number from 0 to 1000"),
        (source.layers_file("NVIDIA_L4", RUN), b'{"num_layer": true}', "must be a number from 0 to 1000"),
    ],
)
def test_the_check_refuses_a_damaged_file(folder, name, content, message):
    replace(folder, {name: content})
    with pytest.raises(UserError, match=message):
        source.check(folder)


def test_the_check_names_a_graph_that_is_absent(folder):
    whole = contents_of(folder)
    del whole[source.graph_file(RUN)]
    write_archive(folder / source.ARCHIVE, whole)
    with pytest.raises(UserError, match=rf"must have one file scripts/asplos/results/opgraph/{RUN}\.csv"):
        source.check(folder)


def test_the_check_accepts_the_generated_archive(folder):
    source.check(folder)

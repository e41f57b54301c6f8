"""Columns of the table of whole models."""

from __future__ import annotations

from perfcast.data.datasets.gpu_kernels.kernel_tables import GPU_FACTS
from perfcast.data.datasets.gpu_models.operation_graphs import KINDS
from perfcast.data.datasets.host.measured_tables import feature
from perfcast.schema.table import Column, Kind, Role, Tag

TASKS = {"inf": "inference", "train": "training"}
"""Mode in the files -> task."""


def _word(name: str, role: Role, group: str, meaning: str, *tags: Tag) -> Column:
    return Column(name, Kind.CATEGORICAL, role, group, meaning=meaning, tags=tags)


def _number(name: str, unit: str, meaning: str, role: Role = Role.FEATURE, *tags: Tag) -> Column:
    return Column(name, Kind.NUMERICAL, role, "kernels", unit, meaning, 0, None, tags)


COLUMNS = (
    _word("result_id", Role.KEY, "model", "GPU and run of the model", Tag.ROW),
    _word("task", Role.KEY, "model", "inference, or a training step: forward, backward and gradients", Tag.TASK),
    _word("model", Role.KEY, "model", "name of the model", Tag.IDENTITY),
    _word("model_family", Role.KEY, "model", "models of one kind of layers", Tag.SLICE),
    _word("gpu", Role.KEY, "gpu", "name of the GPU", Tag.ENTITY, Tag.IDENTITY, Tag.SLICE),
    _word("measured_by", Role.KEY, "gpu", "whether the authors' training kernels have the GPU: known, new", Tag.SLICE),
    _word("run", Role.KEY, "model", "model, task and GPU: its batches resemble each other", Tag.BLOCK),
    feature("batch", "model", "sequences of a batch", tags=(Tag.SCALING,)),
    feature("sequence_length", "model", "tokens of a sequence", tags=(Tag.SCALING,)),
    *(feature(name, "gpu", meaning, unit=unit, low=0) for name, (_, unit, meaning) in GPU_FACTS.items()),
    *(_number(f"kernels_{kind}", "", f"number of kernels: {meaning}") for kind, meaning in KINDS.items()),
    *(_number(f"flops_{kind}", "FLOP", f"operations: {meaning}") for kind, meaning in KINDS.items()),
    *(_number(f"bytes_{kind}", "B", f"bytes: {meaning}") for kind, meaning in KINDS.items()),
    *(
        _number(f"part_{kind}", "ms", f"at the speed of light: {meaning}", Role.FEATURE, Tag.COMPONENT, Tag.COST)
        for kind, meaning in KINDS.items()
    ),
    *(
        _number(f"fitted_{kind}", "ms", f"by a roofline of kernels of the other known GPUs: {meaning}")
        for kind, meaning in KINDS.items()
    ),
    *(
        _number(
            f"part_{kind}_slowdown",
            "",
            f"training kernels of the GPU / speed of light: {meaning}",
            Role.KEY,
            Tag.SLOWDOWN,
        )
        for kind, meaning in KINDS.items()
    ),
    Column("latency", Kind.NUMERICAL, Role.TARGET, "model", "ms", "time of a run or a step; lower is better", 0),
    _word("published_subset", Role.PROVENANCE, "gpu", "train: GPUs of the authors' training kernels; test: new GPUs"),
    _word("source_file", Role.PROVENANCE, "model", "file of the row"),
    Column("source_line", Kind.NUMERICAL, Role.PROVENANCE, "model", meaning="line of that file", low=1),
)

"""Layers told from a model's facts: operators nearly as fast as those of the real layers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.llm.accelerators.accelerator_catalog import MODEL_FACTS, read_gpus, read_models
from perfcast.domains.llm.accelerators.layer_estimates import estimate_layers
from perfcast.domains.llm.accelerators.step_operators import PEAKS, add_parts, light_of, list_operators


def deployments(families: list[str]) -> pd.DataFrame:
    """Return one deployment of each catalog model, under other names."""
    models, gpu = read_models(), read_gpus().loc["H200"]
    load = {"input_tokens": 1024.0, "output_tokens": 512.0, "running": 16.0, "concurrency": 16.0, "gpus": 8.0}
    layout = {"tensor_parallel": 8.0, "attention_data_parallel": 1.0, "moe_tensor_parallel": 8.0}
    frame = pd.DataFrame({"model_family": families, "gpu": "H200", "precision": "fp8"})
    facts = {name: models[name].to_numpy(dtype=float) for name in MODEL_FACTS}
    return frame.assign(
        **load, **layout, moe_expert_parallel=1.0, **facts, **{name: float(gpu[name]) for name in PEAKS}
    )


def parts(families: list[str]) -> dict[str, np.ndarray]:
    frame = deployments(families)
    operators = list_operators(frame)
    return add_parts(operators, light_of(operators), frame)


def test_estimated_layers_have_about_the_times_of_the_real_ones():
    names = list(read_models().index)
    known, estimated = parts(names), parts([f"like {name}" for name in names])
    steps = [
        sum(times[part] for part in ("products", "experts", "attention", "exchange")) for times in (known, estimated)
    ]
    ratio = pd.Series(steps[1] / steps[0], names)
    # Gemma's one matrix for embedding and prediction, which no fact tells, makes the estimates 5 % too small
    assert ratio.between(0.93, 1.05).all(), ratio
    np.testing.assert_allclose(estimated["prompt"], known["prompt"], rtol=0.05)


def test_a_dense_model_is_told_exactly():
    shape = estimate_layers(read_models()).loc["llama70"]
    assert (shape["heads"], shape["kv_heads"], shape["key_dim"], shape["dense_layers"]) == (64, 8, 128, 80)
    assert shape["ffn_hidden"] == pytest.approx(28672, rel=0.002)
    assert shape["cache_rank"] == shape["expert_hidden"] == 0


def test_a_missing_fact_leaves_the_layers_missing():
    models = read_models().loc[["llama70", "gptoss"]].astype({"hidden": float})
    models.loc["llama70", "hidden"] = np.nan
    shapes = estimate_layers(models)
    assert shapes.loc["llama70"].isna().all() and shapes.loc["gptoss"].notna().all()

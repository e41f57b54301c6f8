"""Analytical models with group attention, and with four learners, on their residual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from generated_servers import COLUMNS, compute_scores, daily_dates, generate_servers
from torch import nn

import perfcast
from perfcast.features.encoding.tokens import TokenEncoder
from perfcast.nn.token_batch import TokenBatch
from perfcast.predictors.neural.group_pooling import GroupPoolingPredictor
from perfcast.predictors.predictor import Predictor, load_predictor

SMALL = {"d_token": 8, "d_block": 16, "epochs": 4}


def hybrid_attention(network: Mapping[str, object], **options: Any) -> Predictor:
    return perfcast.estimator("hybrid_attention", learners={"attention": {**SMALL, **network}}, **options)


def hybrid_ensemble(estimators: int, steps: int, leave_out: Sequence[str] = (), **options: Any) -> Predictor:
    boosting = {"n_estimators": estimators}
    learners = {"attention": SMALL, "boosting": boosting, "boosting_median": boosting}
    learners["gaussian_process"] = {"length_scale_steps": steps}
    return perfcast.estimator("hybrid_ensemble", learners={**learners, **dict.fromkeys(leave_out)}, **options)


def interacting_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """Return scores with an effect that no analytical model has: an interaction of clock and sockets."""
    odd = (frame["base_mhz"] == 2400.0) ^ (frame["chips"] == 2)
    return compute_scores(frame).mul(np.where(odd, 0.9, 1.1), axis=0)


@pytest.mark.parametrize(
    "predictor",
    [
        hybrid_attention({}),
        hybrid_ensemble(50, 20),
    ],
)
def test_learners_reduce_the_error_of_the_analytical_models(predictor: Predictor, tmp_path: Path) -> None:
    train = generate_servers(800)
    y = interacting_scores(train)
    validation = np.arange(len(train)) >= 700
    predictor.fit(train, y, columns=COLUMNS, validation=validation, when=daily_dates(len(train), "2022-12-31"))
    test = generate_servers(300, seed=5)
    models = predictor.structure_
    structure = np.sqrt(models["analytical"].predict(test) * models["analytical_time"].predict(test))
    truth = interacting_scores(test)
    errors = [np.abs(logs / truth - 1).to_numpy().mean() for logs in (structure, predictor.predict(test))]
    assert errors[1] < errors[0] / 2
    predictor.save(tmp_path)
    pd.testing.assert_frame_equal(load_predictor(tmp_path).predict(test), predictor.predict(test))
    assert len(predictor.history_) >= SMALL["epochs"]
    assert predictor.attention(test).inter.sum(axis=1).to_numpy() == pytest.approx(1.0, abs=1e-5)


def build_network() -> tuple[nn.Module, TokenBatch]:
    frame = generate_servers(64)
    frame.loc[::5, "mem_gbps_total"] = np.nan
    encoder = TokenEncoder().fit(frame, COLUMNS)
    torch.manual_seed(0)
    network = GroupPoolingPredictor(d_token=8, d_block=16).build_network(encoder.spec, 2)
    nn.init.normal_(network.head[-1].weight)
    return network.eval(), TokenBatch.from_tokens(encoder.transform(frame), np.zeros((64, 2)))


def test_every_parameter_has_a_gradient() -> None:
    network, rows = build_network()
    network(rows).pow(2).sum().backward()
    assert [name for name, p in network.named_parameters() if p.grad is None or p.grad.abs().max() == 0] == []


def test_groups_pool_their_columns_and_attend_to_the_others() -> None:
    network, rows = build_network()
    pooled: list[torch.Tensor] = []
    related: list[torch.Tensor] = []

    def record(_: nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        pooled.append(inputs[0])
        related.append(output)

    network.inter[0].register_forward_hook(record)
    first = torch.zeros(rows.numbers.shape[1])
    first[0] = 1.0
    with torch.inference_mode():
        network(rows)
        network(TokenBatch(**{**vars(rows), "numbers": rows.numbers + first}))
    moved = [(a - b).abs().amax(dim=(0, 2)) > 1e-6 for a, b in (pooled, related)]
    assert moved[0].sum() == 1
    assert moved[1].all()


def test_attention_weights_sum_to_one() -> None:
    train = generate_servers(200)
    predictor = GroupPoolingPredictor(d_token=8, d_block=16, epochs=2).fit(
        train, compute_scores(train), columns=COLUMNS
    )
    attention = predictor.attention(train)
    assert set(attention.intra) == {"processor", "workload"}
    for frame in (*attention.intra.values(), attention.inter):
        np.testing.assert_allclose(frame.sum(axis=1), 1.0, atol=1e-5)
    assert "base_mhz" in attention.intra["processor"].columns


def test_ablation_parameters_remove_components() -> None:
    train = generate_servers(300)
    y, validation = compute_scores(train), np.arange(300) >= 250
    gains = {"announced_gains": False}
    plain = hybrid_attention(
        {"grouped": False},
        structure={"analytical": gains, "analytical_time": gains},
        weights_by={"backtests": False},
    ).fit(train, y, columns=COLUMNS, validation=validation)
    assert plain.structure_["analytical"].terms_.clock_gains == {}
    assert set(plain.weights_["any"].values()) == {1.0}
    assert list(plain.attention(train).intra) == ["all"]
    separate = GroupPoolingPredictor(d_token=8, d_block=16, epochs=1, n_blocks=0).fit(train, y, columns=COLUMNS)
    assert (separate.attention(train).inter.to_numpy() == np.eye(2)).all()


@pytest.mark.parametrize(
    ("left_out", "learners"),
    [
        (["attention"], ["boosting", "boosting_median", "gaussian_process"]),
        (["boosting", "boosting_median"], ["attention", "gaussian_process"]),
        (["gaussian_process"], ["attention", "boosting", "boosting_median"]),
    ],
)
def test_learner_can_be_left_out(left_out: list[str], learners: list[str], tmp_path: Path) -> None:
    train = generate_servers(300)
    predictor = hybrid_ensemble(5, 2, left_out, weights_by={"backtests": False})
    predictor.fit(train, compute_scores(train), columns=COLUMNS)
    assert sorted(predictor.weights_["any"]) == learners
    predictor.save(tmp_path)
    pd.testing.assert_frame_equal(load_predictor(tmp_path).predict(train), predictor.predict(train))
    # Callers read attention maps and learning curves only where hasattr reports them.
    assert [hasattr(predictor, name) for name in ("attention", "history_")] == 2 * ["attention" not in left_out]


def test_columns_left_out_are_not_read() -> None:
    train = generate_servers(300)
    predictor = hybrid_attention({})
    predictor.without_columns = ("mem_*", "compiler_*")
    predictor.fit(train, compute_scores(train), columns=COLUMNS)
    test = train.drop(columns=["mem_gbps_total", "compiler_version", "compiler_vendor"])
    assert np.isfinite(predictor.predict(test)).all(axis=None)

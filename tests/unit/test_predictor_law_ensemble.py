"""The laws with group attention, and with four learners, on their residual."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from law_machines import COLUMNS, dates, machines, scores
from torch import nn

from perfcast.features.encoding.tokens import TokenEncoder
from perfcast.nn.token_batch import TokenBatch
from perfcast.predictors.hybrid.server_hybrids import HybridAttentionPredictor, HybridEnsemblePredictor
from perfcast.predictors.neural.group_pooling import GroupPoolingPredictor
from perfcast.predictors.predictor import load_predictor
from perfcast.training.devices import TrainerConfig

SMALL = {"width": 8, "group_width": 16, "epochs": 4}


def surprising(frame: pd.DataFrame) -> pd.DataFrame:
    """Return scores with something that no law says: an interaction of clock and sockets."""
    odd = (frame["base_mhz"] == 2400.0) ^ (frame["chips"] == 2)
    return scores(frame).mul(np.where(odd, 0.9, 1.1), axis=0)


@pytest.mark.parametrize(
    "predictor", [HybridAttentionPredictor(**SMALL), HybridEnsemblePredictor(**SMALL, rounds=50, relevance_steps=20)]
)
def test_learners_take_up_what_the_laws_leave(predictor: HybridAttentionPredictor, tmp_path: Path) -> None:
    train = machines(1500)
    y = surprising(train)
    validation = np.arange(len(train)) >= 1300
    predictor.fit(train, y, columns=COLUMNS, validation=validation, when=dates(len(train), "2022-12-31"))
    asked = machines(300, seed=5)
    laws = np.sqrt(predictor.laws_["analytical"].predict(asked) * predictor.laws_["analytical_time"].predict(asked))
    wanted = surprising(asked)
    errors = [np.abs(forecast / wanted - 1).to_numpy().mean() for forecast in (laws, predictor.predict(asked))]
    assert errors[1] < errors[0] / 2
    predictor.save(tmp_path)
    pd.testing.assert_frame_equal(load_predictor(tmp_path).predict(asked), predictor.predict(asked))
    assert len(predictor.history_) >= SMALL["epochs"]
    assert predictor.attention(asked).inter.sum(axis=1).to_numpy() == pytest.approx(1.0, abs=1e-5)


def test_the_machine_reaches_the_network() -> None:
    predictor = HybridEnsemblePredictor()
    predictor.trainer_config = TrainerConfig("gpu", 1)
    learner = predictor._learners()["attention"]
    assert isinstance(learner, GroupPoolingPredictor) and learner.trainer_config == predictor.trainer_config


def network() -> tuple[nn.Module, TokenBatch]:
    frame = machines(64)
    frame.loc[::5, "mem_gbps_total"] = np.nan
    encoder = TokenEncoder().fit(frame, COLUMNS)
    torch.manual_seed(0)
    made = GroupPoolingPredictor(d_token=8, d_block=16).build_network(encoder.spec, 2)
    nn.init.normal_(made.head[-1].weight)
    return made.eval(), TokenBatch.from_tokens(encoder.transform(frame), np.zeros((64, 2)))


def test_every_parameter_of_the_network_is_on_the_path_to_the_forecast() -> None:
    made, rows = network()
    made(rows).pow(2).sum().backward()
    assert [name for name, p in made.named_parameters() if p.grad is None or p.grad.abs().max() == 0] == []


def test_a_group_reads_its_own_columns_and_hears_of_the_others() -> None:
    made, rows = network()
    pooled: list[torch.Tensor] = []
    related: list[torch.Tensor] = []

    def keep(_: nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        pooled.append(inputs[0])
        related.append(output)

    made.inter[0].register_forward_hook(keep)
    first = torch.zeros(rows.numbers.shape[1])
    first[0] = 1.0
    with torch.inference_mode():
        made(rows)
        made(TokenBatch(**{**vars(rows), "numbers": rows.numbers + first}))
    moved = [(a - b).abs().amax(dim=(0, 2)) > 1e-6 for a, b in (pooled, related)]
    assert moved[0].sum() == 1
    assert moved[1].all()


def test_attention_says_how_a_group_was_read() -> None:
    train = machines(200)
    predictor = GroupPoolingPredictor(d_token=8, d_block=16, epochs=2).fit(train, scores(train), columns=COLUMNS)
    seen = predictor.attention(train)
    assert set(seen.intra) == {"processor", "workload"}
    for frame in (*seen.intra.values(), seen.inter):
        np.testing.assert_allclose(frame.sum(axis=1), 1.0, atol=1e-5)
    assert "base_mhz" in seen.intra["processor"].columns


def test_ablations_take_away_what_they_name() -> None:
    train = machines(300)
    y, validation = scores(train), np.arange(300) >= 250
    plain = HybridAttentionPredictor(**SMALL, announced=False, backtest_weights=False, grouped=False).fit(
        train, y, columns=COLUMNS, validation=validation
    )
    assert plain.laws_["analytical"].terms_.index == {}
    assert set(plain.weights_["any"].values()) == {1.0}
    assert list(plain.attention(train).intra) == ["all"]
    alone = GroupPoolingPredictor(d_token=8, d_block=16, epochs=1, n_blocks=0).fit(train, y, columns=COLUMNS)
    assert (alone.attention(train).inter.to_numpy() == np.eye(2)).all()


@pytest.mark.parametrize(
    ("left_out", "rest"),
    [
        ("network", ["boosted", "boosted_median", "process"]),
        ("boosting", ["attention", "process"]),
        ("process", ["attention", "boosted", "boosted_median"]),
    ],
)
def test_a_learner_can_be_left_out(left_out: str, rest: list[str], tmp_path: Path) -> None:
    train = machines(300)
    made = HybridEnsemblePredictor(**SMALL, rounds=5, relevance_steps=2, backtest_weights=False, **{left_out: False})
    made.fit(train, scores(train), columns=COLUMNS)
    assert sorted(made.weights_["any"]) == rest
    made.save(tmp_path)
    pd.testing.assert_frame_equal(load_predictor(tmp_path).predict(train), made.predict(train))
    # who asks for maps and learning curves asks whether there are any
    assert [hasattr(made, name) for name in ("attention", "history_")] == 2 * [left_out != "network"]


def test_columns_left_out_are_not_asked_for() -> None:
    train = machines(300)
    predictor = HybridAttentionPredictor(**SMALL)
    predictor.without_columns = ("mem_*", "compiler_*")
    predictor.fit(train, scores(train), columns=COLUMNS)
    asked = train.drop(columns=["mem_gbps_total", "compiler_version", "compiler_vendor"])
    assert np.isfinite(predictor.predict(asked)).all(axis=None)

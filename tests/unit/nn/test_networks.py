"""Networks of the neural predictors: every column and every weight counts, products of columns are learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from token_rows import COLUMNS, encoded, frame, targets, untrained

from perfcast.predictors.neural.attention import NCPP, FTTransformer, MaC
from perfcast.predictors.neural.mlp import MLP, MLPPLR, ResNet
from perfcast.predictors.neural.recurrent import GRU, LSTM
from perfcast.predictors.neural.tabm import TabM

SIZES: dict[str, Any] = {"batch_size": 64, "min_steps": 0, "mask_rate": 0.0}
FLAT = {**SIZES, "d_embedding": 4, "d_block": 16}
TOKENS = {**SIZES, "d_token": 8, "n_frequencies": 2}
NETWORKS = {
    "mlp": MLP(**FLAT, dropout=0.0),
    "mlp_plr": MLPPLR(**FLAT, dropout=0.0),
    "resnet": ResNet(**FLAT, d_hidden=24, hidden_dropout=0.0, residual_dropout=0.0),
    "tabm": TabM(**FLAT, k=4, dropout=0.0),
    "ft_transformer": FTTransformer(**SIZES, d_token=16, d_ffn=12, n_blocks=3, dropout=0.0),
    "ncpp": NCPP(**TOKENS, d_bottleneck=4, d_block=16, n_intra_blocks=2, n_blocks=3, dropout=0.0),
    "mac": MaC(**TOKENS, d_state=3, d_bottleneck=4, d_block=16, dropout=0.0),
    "lstm": LSTM(**TOKENS, hidden_size=16, num_layers=2, dropout=0.0),
    "gru": GRU(**TOKENS, hidden_size=16, num_layers=2, dropout=0.0),
}
EACH = pytest.mark.parametrize("name", NETWORKS)


@EACH
def test_every_parameter_is_on_the_path_to_the_prediction(name: str) -> None:
    made, rows = untrained(NETWORKS[name])
    made(rows).pow(2).sum().backward()
    used = {key for key, p in made.named_parameters() if p.grad is not None and p.grad.abs().max() > 0}
    assert {key for key, p in made.named_parameters() if p.numel()} - used == set()


@EACH
@pytest.mark.parametrize("column", [column.name for column in COLUMNS])
def test_every_column_affects_the_prediction(name: str, column: str) -> None:
    made, rows = untrained(NETWORKS[name])
    changed = encoded(frame().assign(**{column: frame()[column].to_numpy()[::-1]}))
    with torch.inference_mode():
        assert (made(changed) - made(rows)).abs().max() > 1e-3


@EACH
def test_what_depends_on_two_columns_is_learned(name: str) -> None:
    X = frame(256)
    # no straight line per suite: the family turns the effect of the memory round
    sign = np.where(X["family"] == "Alpha", 1.0, -1.0)
    y = pd.Series(np.exp(sign * 2 * (X["memory"].fillna(1.5) - 1.5)), name="score")
    predictor = type(NETWORKS[name])(**{**NETWORKS[name].get_params(), "epochs": 40, "learning_rate": 1e-2})
    predicted = predictor.fit(X, y, columns=COLUMNS).predict(X)["score"]
    assert np.abs(np.log(predicted / y)).mean() < 0.3 * np.abs(np.log(y)).mean()


def test_ft_transformer_reads_only_cls() -> None:
    made, rows = untrained(NETWORKS["ft_transformer"])
    entered: list[torch.Tensor] = []
    made.backbone.register_forward_hook(lambda _, inputs, output: entered.append(inputs[0]))
    with torch.inference_mode():
        prediction = made(rows)
        (tokens,) = entered
        assert tokens.shape == (64, 1 + 5, 16)
        torch.testing.assert_close(tokens[:, 0], made.cls[0].expand(64, -1))
        # [CLS] comes first, and attention does not depend on the order of the others
        torch.testing.assert_close(made.backbone(tokens[:, [0, 5, 3, 1, 2, 4]]), prediction)


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_a_sequence_is_the_first_token_then_the_columns_by_group_and_name(name: str) -> None:
    made, rows = untrained(NETWORKS[name])
    assert type(made.recurrent).__name__.lower() == name
    seen: list[torch.Tensor] = []
    made.recurrent.register_forward_hook(lambda _, inputs, output: seen.append(inputs[0]))
    with torch.inference_mode():
        made(rows)
        # the first of the numbers is memory's, and the second step
        made(encoded(frame().assign(memory=frame()["memory"] + 0.1)))
    assert seen[0].shape == (1 + 5, 64, 8)
    assert ((seen[0] - seen[1]).abs().amax(dim=(1, 2)) > 0).tolist() == [False, True, False, False, False, False]


def test_a_flat_network_reads_a_constant_then_numbers_then_what_is_missing() -> None:
    made, rows = untrained(NETWORKS["resnet"])
    flat = made.flatten(rows)
    assert (flat[:, 0] == 1).all()
    torch.testing.assert_close(flat[:, 1:7], torch.cat([rows.numbers, rows.missing], dim=1))
    assert flat.shape[1] == 1 + 3 + 3 + 2 * 4 == sum(made.sizes)


def test_a_training_batch_of_one_row_takes_the_running_statistics() -> None:
    made, rows = untrained(NETWORKS["resnet"])
    made.train()(rows)
    means = [norm.running_mean.clone() for norm in made.norms]
    with torch.inference_mode():
        expected = made.eval()(rows.take(slice(0, 1)))
        torch.testing.assert_close(made.train()(rows.take(slice(0, 1))), expected)
    assert all(torch.equal(norm.running_mean, mean) for norm, mean in zip(made.norms, means, strict=True))
    X = frame(65)
    predicted = ResNet(**{**FLAT, "batch_size": 32}, epochs=20).fit(X, targets(X), columns=COLUMNS).predict(X)["score"]
    assert np.abs(np.log(predicted / targets(X))).mean() < 0.2


def test_tabm_returns_members_in_training_and_their_mean_afterwards() -> None:
    made, rows = untrained(NETWORKS["tabm"])
    members = made.train()(rows)
    assert members.shape == (64, 4, 2)
    assert members.std(dim=1).mean() > 1e-3
    torch.testing.assert_close(made.eval()(rows), members.mean(dim=1))


def test_tabm_scales_a_column_once_per_member() -> None:
    made, _ = untrained(NETWORKS["tabm"])
    factors = made.backbone.blocks[0][0].r
    parts = factors.split(made.sizes, dim=1)
    # a constant, three numbers, their absence; then three embedded numbers and two categories
    assert [part.shape[1] for part in parts] == [1] * 7 + [4] * 5
    assert all((part == part[:, :1]).all() for part in parts)
    assert len(factors.unique()) == 4 * 12

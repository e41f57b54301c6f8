"""Neural predictors: steps of a training, the corrected defects of the published network, groups read once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from factory import tiny_table
from torch import nn

from perfcast.features.encoding.tokens import TokenEncoder
from perfcast.nn.embedding import TokenBatch, distinct_rows
from perfcast.nn.group_attention import AttentionBlock, GroupAttentionNetwork, GroupPoolingNetwork
from perfcast.predictors.neural.attention import NCPP
from perfcast.predictors.neural.group_pooling import GroupPoolingPredictor
from perfcast.predictors.neural.mlp import MLP
from perfcast.schema.table import Column, Kind, Role, Tag

CORES_AND_SUITE = (
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
)
COLUMNS = (
    *CORES_AND_SUITE,
    Column("mhz", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("family", Kind.CATEGORICAL, Role.FEATURE, "processor"),
    Column("memory", Kind.NUMERICAL, Role.FEATURE, "memory"),
    Column("dimm", Kind.TEXT, Role.FEATURE, "memory"),
    Column("constant", Kind.NUMERICAL, Role.FEATURE, "memory"),
)
SMALL: dict[str, Any] = {"d_block": 16, "batch_size": 32, "min_steps": 0}
VALID = np.arange(128) >= 96


def rows(seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    cores = np.exp(rng.uniform(0, np.log(32), 128))
    suite = rng.choice(["rate", "speed"], 128)
    score = np.where(suite == "rate", 5 * cores, 100 * cores**0.2)
    return pd.DataFrame({"cores": cores, "suite": suite}), pd.Series(score, name="score")


def mlp(X: pd.DataFrame, y: pd.Series, validation: np.ndarray | None = None, **changes: Any) -> MLP:
    sizes = {**SMALL, "d_embedding": 4, "n_blocks": 1, "epochs": 4}
    return MLP(**{**sizes, **changes}).fit(X, y, columns=CORES_AND_SUITE, validation=validation)


def error(predictor: MLP, X: pd.DataFrame, y: pd.Series) -> float:
    return float(np.abs(np.log(predictor.predict(X)["score"] / y)).mean())


def test_history_has_the_curves_of_both_steps_or_of_the_only_one() -> None:
    X, y = rows()
    history = pd.DataFrame(mlp(X, y, VALID).history_)
    assert list(history["epoch"]) == [1, 2, 3, 4]
    assert history[["train_loss", "validation_loss", "validation_error", "learning_rate"]].notna().all(axis=None)
    assert history["refit_loss"].notna().sum() == history["validation_error"].argmin() + 1
    for validation, changes in ((None, {}), (VALID, {"early_stopping": False})):
        predictor = mlp(X, y, validation, **changes)
        history = pd.DataFrame(predictor.history_)
        assert len(history) == 4
        assert history["refit_loss"].notna().all() and history["validation_loss"].isna().all()


def test_refit_learns_from_the_validation_rows_too() -> None:
    X, y = rows()
    # Validation rows alone hold the second suite: only a refit can know its level.
    X = X.assign(suite=np.where(VALID, "speed", "rate"))
    y = pd.Series(np.where(VALID, 1000.0, 1.0) * X["cores"], name="score")
    with_refit, without = (error(mlp(X, y, VALID, refit=refit), X[VALID], y[VALID]) for refit in (True, False))
    assert with_refit < 1.0
    assert without > 2.0


def test_weights_do_not_see_validation_targets() -> None:
    X, y = rows()
    other = y.where(~VALID, y * 7)
    first, second = (mlp(X, given, VALID, refit=False, epochs=1, linear_skip=False) for given in (y, other))
    pd.testing.assert_frame_equal(first.predict(X), second.predict(X))


def test_linear_skip_goes_on_beyond_the_largest_machine_and_an_unknown_task_takes_the_line_of_all() -> None:
    X, y = rows()
    beyond = rows(seed=1)[0].assign(cores=128.0)
    truth = pd.Series(np.where(beyond["suite"] == "rate", 5 * 128.0, 100 * 128.0**0.2))
    with_skip, without = (mlp(X, y, linear_skip=choice, epochs=20) for choice in (True, False))
    assert error(with_skip, beyond, truth) < 0.05
    assert error(without, beyond, truth) > 2 * error(with_skip, beyond, truth)
    assert 1 < with_skip.predict(X.assign(suite="other"))["score"].median() < 1000
    assert not mlp(X, y, random_state=0).predict(X).equals(mlp(X, y, random_state=1).predict(X))


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "cores": rng.choice([4.0, 8.0, 16.0, 32.0], 64),
            "mhz": rng.uniform(2000, 3000, 64),
            "family": rng.choice(["Alpha", "Beta"], 64),
            "memory": np.where(rng.random(64) < 0.2, np.nan, rng.uniform(1, 2, 64)),
            "dimm": rng.choice(["M393-A", "M393-B", "HMA-1"], 64),
            "constant": 1.0,
            "suite": rng.choice(["rate", "speed"], 64),
        }
    )


def ncpp(**changes: Any) -> NCPP:
    return NCPP(**{**SMALL, "d_token": 8, "d_bottleneck": 4, "n_frequencies": 2, "epochs": 2, **changes})


def test_feed_forward_has_a_hidden_layer_and_bends() -> None:
    feed = AttentionBlock(8, 2, [3], 0.0).ffn
    assert [layer.out_features for layer in feed if isinstance(layer, nn.Linear)] == [16, 8]
    x = torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        assert (feed(x) + feed(-x) - 2 * feed(torch.zeros(8))).abs().max() > 1e-3


def test_scores_are_scaled_by_the_root_of_the_depth() -> None:
    torch.manual_seed(0)
    block, tokens = AttentionBlock(16, 2, [5], 0.0), torch.randn(3, 5, 16)
    with torch.inference_mode():
        query, key, value = block.project(block.norm(tokens)).chunk(3, dim=-1)
        query, key, value = (part.view(3, 5, 2, 8).transpose(1, 2) for part in (query, key, value))
        shares = torch.softmax(query @ key.transpose(-1, -2) / 8**0.5, dim=-1)
        mixed = (shares @ value).transpose(1, 2).reshape(3, 5, 16)
        expected = tokens + block.merge(mixed)
        expected = expected + block.ffn(block.ffn_norm(expected))
        torch.testing.assert_close(block(tokens), expected)


def test_intra_attention_keeps_groups_apart_and_inter_attention_lets_them_hear_of_each_other() -> None:
    torch.manual_seed(0)
    block, tokens = AttentionBlock(8, 2, [3, 4], 0.0), torch.randn(2, 7, 8)
    changed = tokens.clone()
    changed[:, 3:] += 1.0
    with torch.inference_mode():
        difference = (block(tokens) - block(changed)).abs().amax(dim=(0, 2))
    assert (difference > 0).tolist() == [False] * 3 + [True] * 4
    encoder = TokenEncoder().fit(frame(), COLUMNS)
    made: GroupAttentionNetwork = ncpp().build_network(encoder.spec, 2).eval()
    given = TokenBatch.from_tokens(encoder.transform(frame()), np.zeros((64, 2)))
    seen: list[torch.Tensor] = []
    made.inter[0].register_forward_hook(lambda _, inputs, output: seen.append(output))
    with torch.inference_mode():
        made(given)
        made(replace(given, numbers=given.numbers + torch.tensor([[1.0, 0.0, 0.0]])))
    # The first number is memory's; the vector of every other group moves with it.
    assert ((seen[0] - seen[1]).abs().amax(dim=(0, 2)) > 1e-5).all()


def questions() -> pd.DataFrame:
    """Machines of which some share a processor, some all but it, and some are the same, in no order."""
    drawn = tiny_table(160).frame.sample(frac=1.0, random_state=1)
    return pd.concat([drawn.iloc[:40], drawn.iloc[:20], drawn.iloc[40:50]], ignore_index=True)


def test_groups_are_read_once_from_their_own_columns_and_give_the_networks_own_predictions() -> None:
    table = tiny_table(160)
    X = table.frame[[each.name for each in table.columns if each.role is not Role.TARGET]]
    predictor = GroupPoolingPredictor(d_token=8, d_block=16, epochs=1, min_steps=0)
    network = predictor.fit(X, table.frame[["score"]], columns=table.columns).network_
    assert isinstance(network, GroupPoolingNetwork)
    assert 0 in network.number_sizes and 0 in network.category_sizes, "groups without numbers, and without names"
    given = predictor.encode_inputs(questions())
    with torch.inference_mode():
        torch.testing.assert_close(predictor._predict_scaled(given), network(given))
        for group in range(len(predictor.encoder_.groups)):
            others = torch.ones_like(given.numbers, dtype=torch.bool)
            others[:, network.columns(group)[0]] = False
            spoiled = replace(given, numbers=torch.where(others, 9.0, given.numbers))
            assert torch.equal(network.read_group(group, spoiled), network.read_group(group, given))
            assert not others.any() or not torch.equal(network(spoiled), network(given))


def test_distinct_rows_give_every_row_back_and_differ_in_one_missing_value() -> None:
    X = questions()
    encoder = TokenEncoder().fit(X, tiny_table(8).columns)
    everything = slice(None)
    given = TokenBatch.from_tokens(encoder.transform(X), np.zeros((len(X), 1)))
    first, place = distinct_rows(given, everything, everything)
    assert len(first) == 50
    for array in (given.numbers, given.missing, given.codes, given.strings):
        assert torch.equal(array[first][place], array)
    twice = X.iloc[[0, 0]].assign(cores=[X["cores"][0], np.nan])
    given = TokenBatch.from_tokens(encoder.transform(twice), np.zeros((2, 1)))
    assert len(distinct_rows(given, everything, everything)[0]) == 2

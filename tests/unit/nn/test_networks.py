"""Networks and their layers: every column and weight counts, products are learned, embeddings, the selective scan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from perfcast.features.encoding.tokens import TokenEncoder
from perfcast.nn import mamba as mamba_module
from perfcast.nn.embedding import UNIT_BIN, NumberEmbedding, TokenBatch, quantile_bins
from perfcast.nn.mamba import CausalConvolution, MambaBlock, selective_scan
from perfcast.predictors.neural.attention import NCPP, FTTransformer, MaC
from perfcast.predictors.neural.mlp import MLP
from perfcast.predictors.neural.neural_predictor import NeuralPredictor
from perfcast.predictors.neural.tabm import TabM, TabMPLE
from perfcast.schema.table import Column, Kind, Role, Tag

COLUMNS = (
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("mhz", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("memory", Kind.NUMERICAL, Role.FEATURE, "memory"),
    Column("family", Kind.CATEGORICAL, Role.FEATURE, "processor"),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
)
SIZES: dict[str, Any] = {"batch_size": 64, "min_steps": 0, "mask_rate": 0.0}
FLAT = {**SIZES, "d_embedding": 4, "d_block": 16}
TOKENS = {**SIZES, "d_token": 8, "n_frequencies": 2}
NETWORKS = {
    "mlp": MLP(**FLAT, dropout=0.0),
    "tabm": TabM(**FLAT, k=4, dropout=0.0),
    "ft_transformer": FTTransformer(**SIZES, d_token=16, d_ffn=12, n_blocks=3, dropout=0.0),
    "ncpp": NCPP(**TOKENS, d_bottleneck=4, d_block=16, n_intra_blocks=2, n_blocks=3, dropout=0.0),
    "mac": MaC(**TOKENS, d_state=3, d_bottleneck=4, d_block=16, dropout=0.0),
}
EACH = pytest.mark.parametrize("name", NETWORKS)


def frame(rows: int = 64) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "cores": rng.choice([4.0, 8.0, 16.0, 32.0], rows),
            "mhz": rng.uniform(2000, 3000, rows),
            "memory": np.where(rng.random(rows) < 0.2, np.nan, rng.uniform(1, 2, rows)),
            "family": rng.choice(["Alpha", "Beta"], rows),
            "suite": rng.choice(["rate", "speed"], rows),
        }
    )


def encoded(X: pd.DataFrame) -> TokenBatch:
    """Rows as networks read them."""
    return TokenBatch.from_tokens(TokenEncoder().fit(frame(), COLUMNS).transform(X), np.zeros((len(X), 2)))


def untrained(predictor: NeuralPredictor) -> tuple[Any, TokenBatch]:
    """An untrained network of a predictor, none of whose parameters is zero, and 64 rows for it."""
    torch.manual_seed(0)
    made = predictor.build_network(TokenEncoder().fit(frame(), COLUMNS).spec, 2)
    for parameter in made.parameters():
        if not parameter.any():
            nn.init.normal_(parameter.data)
    return made.eval(), encoded(frame())


@EACH
def test_every_parameter_and_every_column_affects_the_prediction(name: str) -> None:
    made, rows = untrained(NETWORKS[name])
    predicted = made(rows)
    predicted.pow(2).sum().backward()
    unused = [key for key, p in made.named_parameters() if p.numel() and (p.grad is None or not p.grad.any())]
    assert unused == []
    with torch.inference_mode():
        for column in frame():
            changed = encoded(frame().assign(**{column: frame()[column].to_numpy()[::-1]}))
            assert (made(changed) - predicted).abs().max() > 1e-3, column


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


def test_tabm_has_members_in_training_their_mean_afterwards_and_scales_a_column_once_per_member() -> None:
    made, rows = untrained(NETWORKS["tabm"])
    members = made.train()(rows)
    assert members.shape == (64, 4, 2)
    assert members.std(dim=1).mean() > 1e-3
    torch.testing.assert_close(made.eval()(rows), members.mean(dim=1))
    factors = made.backbone.blocks[0][0].r
    parts = factors.split(made.sizes, dim=1)
    # a constant, three numbers, their absence; then three embedded numbers and two categories
    assert [part.shape[1] for part in parts] == [1] * 7 + [4] * 5
    assert all((part == part[:, :1]).all() for part in parts)
    assert len(factors.unique()) == 4 * 12


def number_rows(values: torch.Tensor) -> TokenBatch:
    nothing, count = torch.zeros(len(values), 0, dtype=torch.int64), len(values)
    return TokenBatch(values, torch.zeros_like(values), nothing, nothing, torch.zeros(1, 1), torch.zeros(count, 1))


def test_steps_inside_the_range_and_tables_without_numbers_are_learned() -> None:
    small: dict[str, Any] = {**SIZES, "d_embedding": 4, "d_block": 32, "batch_size": 16, "learning_rate": 2e-2}
    x = np.random.default_rng(0).uniform(0, 1, 256)
    X, y = pd.DataFrame({"x": x}), pd.Series(np.where((x > 0.3) & (x < 0.6), 10.0, 1.0), name="score")
    predicted = TabMPLE(**small, epochs=15, dropout=0.0).fit(X, y).predict(X)
    assert np.abs(np.log(predicted / y)).mean() < 0.25
    X = frame()[["family", "suite"]]
    y = pd.Series(np.where(X["family"] == "Alpha", 2.0, 5.0) * np.where(X["suite"] == "rate", 1.0, 7.0), name="score")
    predicted = TabMPLE(**small, epochs=15).fit(X, y, columns=COLUMNS[3:]).predict(X)["score"]
    assert np.abs(np.log(predicted / y)).mean() < 0.1


@pytest.mark.parametrize("frequencies", [0, 5])
def test_a_number_continues_as_a_straight_line_beyond_the_waves_of_three_deviations(frequencies: int) -> None:
    torch.manual_seed(0)
    made = NumberEmbedding(3, 4, n_frequencies=frequencies, frequency_init_scale=0.5)
    start, step, double, edge, middle, far = (made(number_rows(torch.full((1, 3), float(x)))) for x in range(6))
    torch.testing.assert_close(far - middle, middle - edge)
    assert torch.allclose(double - step, step - start, atol=1e-6) == (not frequencies)


def test_some_columns_are_embedded_as_in_the_whole_table_and_a_missing_number_has_a_vector() -> None:
    torch.manual_seed(0)
    made, batch = NumberEmbedding(3, 4, n_frequencies=5, frequency_init_scale=0.5), number_rows(torch.randn(6, 3))
    known = made(batch)
    torch.testing.assert_close(made(batch, slice(1, 3)), known[:, 1:3])
    assert made(batch, slice(3, 3)).shape == NumberEmbedding(0, 4, 5, 0.5)(number_rows(torch.zeros(6, 0))).shape
    made.missing.data[:] = 7.0
    batch.missing[:] = 1.0
    torch.testing.assert_close(made(batch), known + 7.0)


@pytest.mark.parametrize(
    ("values", "edges"),
    [
        ([np.nan, *range(1, 9)], [1.0, 4.5, 8.0]),
        ([2.0] * 4, UNIT_BIN),
        ([np.nan] * 4, UNIT_BIN),
        ([1.0, np.nan, np.nan, 2.0], UNIT_BIN),
    ],
)
def test_bins_are_quantiles_of_the_known_values_and_one_without_a_range(values: list[float], edges: Any) -> None:
    column = np.array(values, dtype=np.float32).reshape(-1, 1)
    missing = np.isnan(column).astype(np.float32)
    assert quantile_bins(np.nan_to_num(column), missing, 2 if len(values) > 4 else 4) == [pytest.approx(list(edges))]


def scan_inputs(rows: int, steps: int) -> list[torch.Tensor]:
    """x, dt, a, b, c for the scan, of four channels and three states."""
    made = torch.Generator().manual_seed(0)
    x, b, c = (torch.randn(rows, steps, size, generator=made, dtype=torch.float64) for size in (4, 3, 3))
    dt = torch.rand(rows, steps, 4, generator=made, dtype=torch.float64)
    a = -4.0 * torch.rand(4, 3, generator=made, dtype=torch.float64)
    return [tensor.requires_grad_() for tensor in (x, dt, a, b, c)]


def reference_scan(
    x: torch.Tensor, dt: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor
) -> torch.Tensor:
    """Return y by the recurrence as it is written, differentiated by torch: the reference."""
    state = x.new_zeros(x.shape[0], x.shape[2], a.shape[1])
    outputs = []
    for t in range(x.shape[1]):
        decay = torch.exp(dt[:, t, :, None] * a)
        state = decay * state + (dt[:, t] * x[:, t])[:, :, None] * b[:, t, None, :]
        outputs.append((state * c[:, t, None, :]).sum(dim=-1))
    return torch.stack(outputs, dim=1)


@pytest.mark.parametrize(("chunk_rows", "steps"), [(1, 9), (4, 9), (11, 9), (20, 9), (4, 1)])
def test_fast_scan_and_its_derivatives_are_those_of_the_reference(
    chunk_rows: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensors = scan_inputs(11, steps)
    monkeypatch.setattr(mamba_module, "_CHUNK_VALUES", chunk_rows * steps * 4 * 3)
    weights = torch.randn(11, steps, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    fast, reference = selective_scan(*tensors), reference_scan(*tensors)
    torch.testing.assert_close(fast, reference, rtol=1e-12, atol=1e-12)
    got = torch.autograd.grad((fast * weights).sum(), tensors)
    expected = torch.autograd.grad((reference * weights).sum(), tensors)
    for left, right in zip(got, expected, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-11, atol=1e-11)


def test_fast_scan_in_single_precision_is_near_the_reference_in_double() -> None:
    tensors = scan_inputs(5, 114)
    single = selective_scan(*(tensor.float() for tensor in tensors))
    torch.testing.assert_close(single.double(), reference_scan(*tensors), rtol=1e-4, atol=1e-4)


def test_mamba_is_causal_by_a_depthwise_convolution_and_a_state_that_remembers() -> None:
    torch.manual_seed(0)
    layer, x = CausalConvolution(6, 4), torch.randn(2, 7, 6)
    kernel = layer.weight.t().unsqueeze(1)
    expected = nn.functional.conv1d(nn.functional.pad(x.transpose(1, 2), (3, 0)), kernel, layer.bias, groups=6)
    torch.testing.assert_close(layer(x), expected.transpose(1, 2))
    block, tokens = MambaBlock(8, 3), torch.randn(2, 12, 8)
    changed = tokens.clone()
    changed[:, 5] += 1.0
    with torch.inference_mode():
        difference = (block(tokens) - block(changed)).abs().amax(dim=(0, 2))
    assert (difference > 0).tolist() == [False] * 5 + [True] * 7
    # the optimizer decays what has two dimensions or more
    made, _ = untrained(NETWORKS["mac"])
    assert all(p.ndim == 1 for name, p in made.named_parameters() if name.endswith(("log_rate", "through")))

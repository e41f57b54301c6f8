from __future__ import annotations

import os
import signal
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from perfcast.features.encoding.tokens import Tokens
from perfcast.nn.embedding import TokenBatch
from perfcast.predictors.neural.neural_predictor import TargetScale
from perfcast.training import loop as loop_module
from perfcast.training.lightning_modules import Regression, masked_huber, train
from perfcast.training.loop import BatchLoader, TrainerConfig, TrainingConfig, reproducible
from perfcast.utils.errors import UserError


def some_rows(count: int, seed: int = 0) -> TokenBatch:
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(count, 3)).astype(np.float32)
    nothing = np.zeros((count, 0), dtype=np.int64)
    tokens = Tokens(numbers, np.zeros_like(numbers), nothing, nothing, np.zeros((1, 1), dtype=np.int64))
    return TokenBatch.from_tokens(tokens, numbers @ np.array([[1.0], [-2.0], [0.5]]))


class Line(nn.Module):
    """Network with noise or without, and with weights that no row uses."""

    def __init__(self, noise: float = 0.1) -> None:
        super().__init__()
        self.layer, self.unused = nn.Linear(3, 1), nn.Linear(2, 2)
        self.noise = nn.Dropout(noise)

    def forward(self, rows: TokenBatch) -> torch.Tensor:
        return self.layer(self.noise(rows.numbers))


CONFIG = TrainingConfig(mask_rate=0.0, epochs=5, min_steps=0, batch_size=16, learning_rate=0.05)


def seeded(
    rows: TokenBatch, validation: TokenBatch | None, config: TrainingConfig = CONFIG, seed: int = 0, **options: Any
) -> tuple[Line, Regression]:
    """Train a line with its own random numbers."""
    with reproducible(seed):
        network = Line()
        return network, train(network, rows, validation, config, seed, trainer_config=TrainerConfig(**options))


def read(loader: BatchLoader) -> torch.Tensor:
    return torch.cat([batch.numbers for batch in loader])


def test_a_batch_loader_yields_every_row_once_in_order_or_as_its_seed_says() -> None:
    rows = some_rows(37)
    batches, again = BatchLoader(rows, 8, shuffle_seed=1), BatchLoader(rows, 8, shuffle_seed=1)
    first = read(batches)
    assert len(batches) == 5
    assert sorted(map(tuple, first.tolist())) == sorted(map(tuple, rows.numbers.tolist()))
    assert torch.equal(first, read(again)) and not torch.equal(first, read(batches))
    assert torch.equal(read(BatchLoader(rows, 8)), rows.numbers)
    moved = rows.to(torch.device("meta"))
    assert {tensor.device.type for tensor in vars(moved).values()} == {"meta"}


class TestSeveralDevices:
    @pytest.mark.parametrize("seed", [1, None])
    @pytest.mark.parametrize("processes", [2, 3, 7])
    def test_shares_of_a_batch_add_up(self, monkeypatch: pytest.MonkeyPatch, processes: int, seed: int | None) -> None:
        rows = some_rows(37)
        whole = [batch.numbers for batch in BatchLoader(rows, 8, seed)]
        shares = []
        for rank in range(processes):
            monkeypatch.setattr(loop_module, "rank_and_size", lambda rank=rank: (rank, processes))
            shares.append([batch.numbers for batch in BatchLoader(rows, 8, seed, shared=True)])
            assert len(shares[-1]) == len(whole)
            assert len(next(iter(BatchLoader(rows, 8, seed)))) == 8
        for number, batch in enumerate(whole):
            together = torch.cat([share[number] for share in shares])
            assert sorted(together.tolist()) == sorted(batch.tolist())

    def test_two_processes_train_as_one(self) -> None:
        """Rows with missing targets, an odd last batch, a patience that ends, and weights without gradients."""
        rows, validation = some_rows(103), some_rows(30, seed=1)
        rows.targets[::3] = torch.nan
        odd = {"weight_decay": 0.01, "huber_delta": 0.5, "batch_size": 17, "learning_rate": 0.5}
        config = replace(CONFIG, epochs=15, patience=2, **odd)
        ended = []
        for trainer_config in (TrainerConfig(), TrainerConfig(devices=2, strategy="ddp")):
            with reproducible(0):
                network = Line(noise=0.0)
                trained = train(network, rows, validation, config, 0, trainer_config=trainer_config)
            ended.append((network, trained))
        (alone, its), (together, theirs) = ended
        assert not together.training
        assert theirs.best_epoch == its.best_epoch < len(its.history) == len(theirs.history) < 15
        for name, weight in alone.state_dict().items():
            torch.testing.assert_close(together.state_dict()[name], weight, rtol=1e-3, atol=1e-4)
        for mine, other in zip(its.history, theirs.history, strict=True):
            assert other == pytest.approx(mine, rel=1e-3)

    def test_trainer_conf_errors_and_missing_devices_get_one_line(self) -> None:
        cases: dict[str, dict[str, Any]] = {
            "devices in conf/trainer must be a whole number from 1.*got 0": {"devices": 0},
            "strategy in conf/trainer must be one of auto, ddp.*got fsdp": {"strategy": "fsdp"},
        }
        if not torch.cuda.is_available():
            cases["conf/trainer must name devices"] = {"accelerator": "gpu"}
        for words, options in cases.items():
            with pytest.raises(UserError, match=words) as raised:
                seeded(some_rows(8), None, **options)
            assert "\n" not in str(raised.value)


class TestLoss:
    def test_masked_huber_is_huber(self) -> None:
        predicted, target = torch.tensor([[0.1], [3.0]]), torch.tensor([[0.0], [0.0]])
        assert masked_huber(predicted, target, 0.5).item() == pytest.approx((0.1**2 / 2 + 0.5 * (3 - 0.25)) / 2)

    @pytest.mark.parametrize(
        ("target", "expected", "gradient"), [([0.0, np.nan], 0.5, [[1.0, 0.0]]), ([np.nan, np.nan], 0.0, [[0.0, 0.0]])]
    )
    def test_masked_huber_skips_missing_targets(self, target: Any, expected: float, gradient: Any) -> None:
        predicted = torch.tensor([[1.0, 7.0]], requires_grad=True)
        loss = masked_huber(predicted, torch.tensor([target]), 10.0)
        loss.backward()
        assert loss.item() == pytest.approx(expected)
        assert predicted.grad is not None and predicted.grad.tolist() == gradient

    def test_masked_huber_has_a_loss_per_member(self) -> None:
        target = torch.tensor([[0.0, float("nan")], [1.0, 2.0]])
        members = torch.randn(2, 3, 2, generator=torch.Generator().manual_seed(0)) * 3
        alone = torch.stack([masked_huber(members[:, member], target, 0.5) for member in range(3)])
        together = masked_huber(members, target, 0.5)
        torch.testing.assert_close(together, alone.mean())
        assert together > masked_huber(members.mean(dim=1), target, 0.5) + 0.1


def test_target_scale_standardizes_each_task_restores_and_pools_for_an_unknown_one() -> None:
    tasks = np.array(["a", "a", "b", "b"], dtype=object)
    logs = np.array([[1.0, np.nan], [3.0, np.nan], [10.0, 5.0], [30.0, 7.0]])
    scale = TargetScale.fit(tasks, logs)
    values = scale.standardize(tasks, logs)
    np.testing.assert_allclose(values, [[-1, np.nan], [1, np.nan], [-1, -1], [1, 1]])
    np.testing.assert_allclose(scale.restore(tasks, values), logs)
    restored = scale.restore(np.array(["new", "a"], dtype=object), np.zeros((2, 2)))
    np.testing.assert_allclose(restored, [[11.0, 6.0], [2.0, 6.0]])
    equal = TargetScale.fit(tasks, np.full((4, 1), 2.0)).standardize(tasks, np.full((4, 1), 2.5))
    assert equal.ravel().tolist() == [0.5] * 4


class TestTrain:
    def test_training_learns_and_restores_the_best_weights(self) -> None:
        validation = some_rows(50, seed=1)
        config = replace(CONFIG, epochs=8, learning_rate=0.5)
        network, trained = seeded(some_rows(200), validation, config)
        history = trained.history
        assert [entry["epoch"] for entry in history] == list(range(1, 9))
        names = {"train_loss", "validation_loss", "validation_error", "learning_rate"}
        assert all(names <= set(entry) for entry in history)
        assert not network.training
        errors = [entry["validation_error"] for entry in history]
        with torch.inference_mode():
            error = (network(validation) - validation.targets).abs().mean().item()
        assert trained.best_epoch == 1 + int(np.argmin(errors))
        assert error == pytest.approx(min(errors), rel=1e-5)
        _, slow = seeded(some_rows(200), validation)
        assert slow.history[-1]["validation_loss"] < slow.history[0]["validation_loss"] / 2

    def test_training_stops_early(self) -> None:
        wrong = some_rows(50, seed=1)
        opposite = TokenBatch(**{**vars(wrong), "targets": -10 * wrong.targets})
        _, trained = seeded(some_rows(200), opposite, replace(CONFIG, epochs=50, learning_rate=0.5, patience=3))
        assert len(trained.history) == trained.best_epoch + 3 < 50

    def test_training_is_seeded_and_restores_global_state(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        threads = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            torch.manual_seed(5)
            expected = torch.rand(1)
            torch.manual_seed(5)
            first, second = (seeded(some_rows(64), None, seed=3)[0].layer.weight for _ in range(2))
            assert torch.equal(first, second)
            with reproducible(0):
                assert torch.get_num_threads() == 1
            assert torch.equal(torch.rand(1), expected)
            assert torch.get_num_threads() == 2
        finally:
            torch.set_num_threads(threads)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("finished", "validation"), [(False, some_rows(50, seed=1)), (False, None), (True, some_rows(50, seed=1))]
    )
    def test_a_killed_training_continues_with_the_same_bits(
        self, tmp_path: Path, finished: bool, validation: TokenBatch | None
    ) -> None:
        config = replace(CONFIG, epochs=9, learning_rate=0.5, patience=2)

        def trained(folder: str = "", last_epoch: int = -1) -> tuple[Line, Regression, list[int]]:
            def end_epoch(self: Regression) -> None:
                epochs.append(self.current_epoch)
                if self.current_epoch == last_epoch:
                    os.kill(os.getpid(), signal.SIGKILL)
                on_epoch_end(self)

            epochs: list[int] = []
            on_epoch_end = Regression.on_train_epoch_end
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Regression, "on_train_epoch_end", end_epoch)
                return *seeded(some_rows(100), validation, config, default_root_dir=folder), epochs

        expected, uninterrupted, _ = trained()
        kill = len(uninterrupted.history) if finished else 2
        process = get_context("fork").Process(target=trained, args=(str(tmp_path), kill))
        process.start()
        process.join()
        assert process.exitcode == (0 if finished else -signal.SIGKILL)
        network, continued, epochs = trained(str(tmp_path))
        assert epochs == list(range(kill, len(uninterrupted.history)))
        assert continued.history == uninterrupted.history
        assert continued.best_epoch == uninterrupted.best_epoch
        for name, weight in expected.state_dict().items():
            assert torch.equal(network.state_dict()[name], weight)
        assert len(list(tmp_path.iterdir())) == 1

    def test_a_checkpoint_of_other_rows_is_not_used(self, tmp_path: Path) -> None:
        for seed in (0, 1):
            _, trained = seeded(some_rows(64, seed), None, default_root_dir=str(tmp_path))
            assert len(trained.history) == 5
        assert len(list(tmp_path.glob("*.ckpt"))) == 2

    def test_a_small_table_has_min_steps_and_an_epoch_at_most_its_steps_of_other_rows_every_time(self) -> None:
        config = TrainingConfig(epochs=3, min_steps=100, batch_size=16)
        assert [config.count_epochs(rows) for rows in (8, 160, 100_000)] == [100, 10, 3]
        config = replace(CONFIG, epochs=2, min_steps=12, steps_per_epoch=3)
        assert config.count_epochs(1000) == 4
        loader = BatchLoader(some_rows(100), 16, 0, limit=3)
        first, second = read(loader), read(loader)
        assert len(loader) == 3
        assert len(first) == len(second) == 48
        assert sorted(first.flatten().tolist()) != sorted(second.flatten().tolist())
        assert len(seeded(some_rows(100), None, config)[1].history) == 4

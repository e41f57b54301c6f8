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
from perfcast.nn.token_batch import TokenBatch
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
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.noise = nn.Dropout(0.1)

    def forward(self, rows: TokenBatch) -> torch.Tensor:
        return self.layer(self.noise(rows.numbers))


class Quiet(nn.Module):
    """Network without noise, with weights that no row uses."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.unused = nn.Linear(3, 1), nn.Linear(2, 2)

    def forward(self, rows: TokenBatch) -> torch.Tensor:
        return self.layer(rows.numbers)


CONFIG = TrainingConfig(mask_rate=0.0, epochs=5, min_steps=0, batch_size=16, learning_rate=0.05)


class TestBatches:
    def test_batch_loader_yields_every_row_once(self) -> None:
        rows = some_rows(37)
        batches = BatchLoader(rows, 8, shuffle_seed=1)
        seen = torch.cat([batch.numbers for batch in batches])
        assert len(batches) == 5
        assert sorted(map(tuple, seen.tolist())) == sorted(map(tuple, rows.numbers.tolist()))

    def test_batch_loader_is_seeded(self) -> None:
        rows = some_rows(37)
        batches, again = BatchLoader(rows, 8, shuffle_seed=1), BatchLoader(rows, 8, shuffle_seed=1)
        first = torch.cat([batch.numbers for batch in batches])
        assert torch.equal(first, torch.cat([batch.numbers for batch in again]))
        assert not torch.equal(first, torch.cat([batch.numbers for batch in batches]))

    def test_batch_loader_without_a_seed_keeps_the_order(self) -> None:
        rows = some_rows(37)
        assert torch.equal(torch.cat([batch.numbers for batch in BatchLoader(rows, 8)]), rows.numbers)


class TestRows:
    def test_batch_moves_every_tensor_to_the_device(self) -> None:
        moved = some_rows(3).to(torch.device("meta"))
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
        config = TrainingConfig(
            mask_rate=0.0,
            weight_decay=0.01,
            huber_delta=0.5,
            epochs=40,
            min_steps=0,
            batch_size=17,
            learning_rate=0.5,
            patience=3,
        )
        ended = []
        for trainer_config in (TrainerConfig(), TrainerConfig(devices=2, strategy="ddp")):
            with reproducible(0):
                network = Quiet()
                trained = train(network, rows, validation, config, 0, trainer_config=trainer_config)
            ended.append((network, trained))
        (alone, its), (together, theirs) = ended
        assert not together.training
        assert theirs.best_epoch == its.best_epoch < len(its.history) == len(theirs.history) < 40
        for name, weight in alone.state_dict().items():
            torch.testing.assert_close(together.state_dict()[name], weight, rtol=1e-3, atol=1e-4)
        for mine, other in zip(its.history, theirs.history, strict=True):
            assert other == pytest.approx(mine, rel=1e-3)

    @pytest.mark.parametrize(
        ("values", "words"),
        [
            ({"devices": 0}, "devices in conf/trainer must be a whole number from 1.*got 0"),
            ({"strategy": "fsdp"}, "strategy in conf/trainer must be one of auto, ddp.*got fsdp"),
        ],
    )
    def test_trainer_conf_errors_get_one_line(self, values: dict[str, Any], words: str) -> None:
        with pytest.raises(UserError, match=words):
            TrainerConfig(**values)

    @pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
    def test_missing_devices_get_one_line(self) -> None:
        with pytest.raises(UserError, match="conf/trainer must name devices") as raised:
            train(Line(), some_rows(8), None, CONFIG, 0, trainer_config=TrainerConfig("gpu", 1))
        assert "\n" not in str(raised.value)


class TestLoss:
    def test_masked_huber_is_huber(self) -> None:
        predicted, target = torch.tensor([[0.1], [3.0]]), torch.tensor([[0.0], [0.0]])
        assert masked_huber(predicted, target, 0.5).item() == pytest.approx((0.1**2 / 2 + 0.5 * (3 - 0.25)) / 2)

    def test_masked_huber_skips_missing_targets(self) -> None:
        predicted = torch.tensor([[1.0, 7.0]], requires_grad=True)
        loss = masked_huber(predicted, torch.tensor([[0.0, float("nan")]]), 10.0)
        loss.backward()
        assert loss.item() == pytest.approx(0.5)
        assert predicted.grad is not None
        assert predicted.grad.tolist() == [[1.0, 0.0]]

    def test_masked_huber_of_missing_targets_is_zero(self) -> None:
        predicted = torch.ones(2, 1, requires_grad=True)
        loss = masked_huber(predicted, torch.full((2, 1), float("nan")), 1.0)
        loss.backward()
        assert loss.item() == 0.0
        assert predicted.grad is not None
        assert predicted.grad.tolist() == [[0.0], [0.0]]

    def test_masked_huber_has_a_loss_per_member(self) -> None:
        target = torch.tensor([[0.0, float("nan")], [1.0, 2.0]])
        members = torch.randn(2, 3, 2, generator=torch.Generator().manual_seed(0)) * 3
        alone = torch.stack([masked_huber(members[:, member], target, 0.5) for member in range(3)])
        together = masked_huber(members, target, 0.5)
        torch.testing.assert_close(together, alone.mean())
        assert together > masked_huber(members.mean(dim=1), target, 0.5) + 0.1


class TestTargetScale:
    tasks = np.array(["a", "a", "b", "b"], dtype=object)
    logs = np.array([[1.0, np.nan], [3.0, np.nan], [10.0, 5.0], [30.0, 7.0]])

    def test_target_scale_standardizes_each_task(self) -> None:
        values = TargetScale.fit(self.tasks, self.logs).standardize(self.tasks, self.logs)
        np.testing.assert_allclose(values[:, 0], [-1, 1, -1, 1])
        np.testing.assert_allclose(values[2:, 1], [-1, 1])
        assert np.isnan(values[:2, 1]).all()

    def test_target_scale_restores(self) -> None:
        scale = TargetScale.fit(self.tasks, self.logs)
        np.testing.assert_allclose(scale.restore(self.tasks, scale.standardize(self.tasks, self.logs)), self.logs)

    def test_target_scale_of_an_unknown_task_is_pooled(self) -> None:
        scale = TargetScale.fit(self.tasks, self.logs)
        restored = scale.restore(np.array(["new", "a"], dtype=object), np.zeros((2, 2)))
        np.testing.assert_allclose(restored, [[11.0, 6.0], [2.0, 6.0]])

    def test_target_scale_of_equal_targets_is_one(self) -> None:
        scale = TargetScale.fit(self.tasks, np.full((4, 1), 2.0))
        assert scale.standardize(self.tasks, np.full((4, 1), 2.5)).ravel().tolist() == [0.5] * 4


class TestTrain:
    def test_training_learns_and_reports_every_epoch(self) -> None:
        with reproducible(0):
            network = Line()
            trained = train(network, some_rows(200), some_rows(50, seed=1), CONFIG, 0)
        assert [entry["epoch"] for entry in trained.history] == [1, 2, 3, 4, 5]
        assert all(
            {"train_loss", "validation_loss", "validation_error", "learning_rate"} <= set(e) for e in trained.history
        )
        assert trained.history[-1]["validation_loss"] < trained.history[0]["validation_loss"] / 2
        assert not network.training

    def test_training_restores_the_best_weights(self) -> None:
        validation = some_rows(50, seed=1)
        config = TrainingConfig(epochs=8, min_steps=0, batch_size=16, learning_rate=0.5)
        with reproducible(0):
            network = Line()
            trained = train(network, some_rows(200), validation, config, 0)
        errors = [entry["validation_error"] for entry in trained.history]
        with torch.inference_mode():
            error = (network(validation) - validation.targets).abs().mean().item()
        assert trained.best_epoch == 1 + int(np.argmin(errors))
        assert error == pytest.approx(min(errors), rel=1e-5)

    def test_training_stops_early(self) -> None:
        wrong = some_rows(50, seed=1)
        opposite = TokenBatch(**{**vars(wrong), "targets": -10 * wrong.targets})
        config = TrainingConfig(epochs=50, min_steps=0, batch_size=16, learning_rate=0.5, patience=3)
        with reproducible(0):
            trained = train(Line(), some_rows(200), opposite, config, 0)
        assert len(trained.history) == trained.best_epoch + 3 < 50

    def test_training_is_seeded(self) -> None:
        weights = []
        for _ in range(2):
            with reproducible(3):
                network = Line()
                train(network, some_rows(100), None, CONFIG, 3)
            weights.append(network.layer.weight)
        assert torch.equal(*weights)

    def test_training_restores_global_state(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        threads = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            torch.manual_seed(5)
            expected = torch.rand(1)
            torch.manual_seed(5)
            with reproducible(0):
                train(Line(), some_rows(64), some_rows(16), CONFIG, 0)
                assert torch.get_num_threads() == 1
            assert torch.equal(torch.rand(1), expected)
            assert torch.get_num_threads() == 2
        finally:
            torch.set_num_threads(threads)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.reliability("a training is killed, and continues with the bits of one that was not")
    @pytest.mark.parametrize("validation", [some_rows(50, seed=1), None], ids=["stops early", "all epochs"])
    @pytest.mark.parametrize("finished", [False, True])
    def test_a_killed_training_continues_with_the_same_bits(
        self, tmp_path: Path, finished: bool, validation: TokenBatch | None
    ) -> None:
        config = TrainingConfig(epochs=12, min_steps=0, batch_size=16, learning_rate=0.5, patience=3)

        def trained(folder: str = "", last_epoch: int = 0) -> tuple[Line, Regression, list[int]]:
            def end_epoch(self: Regression) -> None:
                epochs.append(self.current_epoch)
                if self.current_epoch == last_epoch:
                    os.kill(os.getpid(), signal.SIGKILL)
                on_epoch_end(self)

            epochs: list[int] = []
            on_epoch_end = Regression.on_train_epoch_end
            with reproducible(0), pytest.MonkeyPatch.context() as patch:
                patch.setattr(Regression, "on_train_epoch_end", end_epoch)
                network = Line()
                options = TrainerConfig(default_root_dir=folder)
                return network, train(network, some_rows(200), validation, config, 0, trainer_config=options), epochs

        expected, uninterrupted, _ = trained(last_epoch=-1)
        kill = len(uninterrupted.history) if finished else 4
        process = get_context("fork").Process(target=trained, args=(str(tmp_path), kill))
        process.start()
        process.join()
        assert process.exitcode == (0 if finished else -signal.SIGKILL)
        network, continued, epochs = trained(str(tmp_path), last_epoch=-1)
        assert epochs == list(range(kill, len(uninterrupted.history)))
        assert continued.history == uninterrupted.history
        assert continued.best_epoch == uninterrupted.best_epoch
        for name, weight in expected.state_dict().items():
            assert torch.equal(network.state_dict()[name], weight)
        assert len(list(tmp_path.iterdir())) == 1

    def test_a_checkpoint_of_other_rows_is_not_used(self, tmp_path: Path) -> None:
        for seed in (0, 1):
            with reproducible(0):
                options = TrainerConfig(default_root_dir=str(tmp_path))
                assert len(train(Line(), some_rows(64, seed), None, CONFIG, 0, trainer_config=options).history) == 5
        assert len(list(tmp_path.glob("*.ckpt"))) == 2

    def test_training_of_a_small_table_has_min_steps(self) -> None:
        config = TrainingConfig(epochs=3, min_steps=100, batch_size=16)
        assert config.count_epochs(8) == 100
        assert config.count_epochs(160) == 10
        assert config.count_epochs(100_000) == 3

    def test_an_epoch_has_at_most_its_steps_and_other_rows_every_time(self) -> None:
        config = replace(CONFIG, epochs=2, min_steps=12, steps_per_epoch=3)
        assert config.count_epochs(1000) == 4
        loader = BatchLoader(some_rows(100), 16, 0, limit=3)
        first, second = (torch.cat([batch.numbers for batch in loader]) for _ in range(2))
        assert len(loader) == 3
        assert len(first) == len(second) == 48
        assert sorted(first.flatten().tolist()) != sorted(second.flatten().tolist())
        with reproducible(0):
            assert len(train(Line(), some_rows(100), None, config, 0).history) == 4

"""Boosted trees on the share of alone itself, or on what the victim's work now over that alone leaves unexplained."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.domains.interference.features.alone_ratios import WORK
from perfcast.domains.interference.predictors.share_laws import MIN_SHARE
from perfcast.features.encoding.columns import number_matrix
from perfcast.predictors.boosting.lightgbm import LightgbmPredictor
from perfcast.predictors.task_rows import task_labels
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state


@dataclass(kw_only=True, eq=False, repr=False)
class ResourceSharesTreesPredictor(LightgbmPredictor):
    """share of alone = LightGBM, fitted by the least absolute error of the share.

    Others fit logarithms, where a share of 2 % that is predicted as 4 % counts as much as one of 50 % that is predicted
    as 100 %. Degradation counts in points. On the validation rows of two splits it was better than trees on the
    difference from the schedstat share, than those on their ratio, and than those weighted by the share.
    """

    n_estimators: int = 300
    early_stopping_rounds: int = 0
    learning_rate: float = 0.05
    min_child_samples: int = 30
    colsample_bytree: float = 0.2
    objective: str = "regression_l1"

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        self._fit_shares(X, np.exp(log_y), validation)

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(np.log(np.maximum(self._predict_shares(X), MIN_SHARE)))

    def _fit_shares(self, X: pd.DataFrame, shares: np.ndarray, validation: np.ndarray) -> None:
        super()._fit(X, shares, validation)

    def _predict_shares(self, X: pd.DataFrame) -> np.ndarray:
        return super()._predict(X)


@dataclass(kw_only=True, eq=False, repr=False)
class WorkOfAloneTreesPredictor(ResourceSharesTreesPredictor):
    """share of alone = work now / work alone + LightGBM, by the least absolute error of the share.

    Work is calls that read and write, or processor time (`alone_ratios`). By the utilization law the throughput is the
    processor time over the demand of one operation, so the trees learn what neighbors do to the demand. A task whose
    shares are farther from that ratio than from their median, as those of a tail latency, has trees alone. So has a row
    without the ratio, and a table without the column.
    Source: Denning and Buzen, 1978, The Operational Analysis of Queueing Network Models, ACM Computing Surveys 10(3).
    """

    colsample_bytree: float = 0.5

    based_: dict[str, list[str]] = field(init=False)
    """Tasks whose trees start from the ratio, by target."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        shares = np.exp(log_y)
        work = self._work(X)
        tasks = task_labels(X, self.columns_)
        self.based_ = {}
        for index, target in enumerate(self.targets_):
            self.based_[target] = []
            for task in np.unique(tasks.astype(str)):
                rows = tasks == task
                if _explains(work[rows], shares[rows, index]):
                    self.based_[target].append(str(task))
        self._fit_shares(X, shares - self._base(work, tasks), validation)

    def _predict_shares(self, X: pd.DataFrame) -> np.ndarray:
        base = self._base(self._work(X), task_labels(X, self.columns_))
        return np.asarray(super()._predict_shares(X) + base)

    def _work(self, X: pd.DataFrame) -> np.ndarray:
        """Return the work now over that alone, NaN where it is not known. Shapes: (n,)."""
        columns = [column for column in self.columns_ if column.name == WORK]
        if not columns:
            return np.full(len(X), np.nan)
        return number_matrix(X, columns)[:, 0]

    def _base(self, work: np.ndarray, tasks: np.ndarray) -> np.ndarray:
        """Return where the trees start. Shapes: (n,), (n,) -> (n, targets)."""
        ratio = np.nan_to_num(work)
        bases = [np.where(np.isin(tasks, self.based_[target]), ratio, 0.0) for target in self.targets_]
        return np.stack(bases, axis=1)

    def _save(self, folder: Path) -> None:
        super()._save(folder)
        write_json(folder / "based.json", {"based": self.based_})

    def _load(self, folder: Path) -> None:
        super()._load(folder)
        self.based_ = {target: list(tasks) for target, tasks in read_state(folder / "based.json")["based"].items()}


def _explains(work: np.ndarray, shares: np.ndarray) -> bool:
    """Return whether the ratio is closer to the shares than their median is."""
    has_both = np.isfinite(work) & np.isfinite(shares)
    if not has_both.any():
        return False
    work = work[has_both]
    shares = shares[has_both]
    around_median = np.abs(shares - np.median(shares)).mean()
    around_work = np.abs(work - shares).mean()
    return bool(around_work < around_median)

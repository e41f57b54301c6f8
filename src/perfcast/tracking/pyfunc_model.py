"""A saved predictor or a champion as an MLflow pyfunc model, logged as code and data, never as a pickle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlflow
import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import BAD_REQUEST
from mlflow.pyfunc import PythonModel, PythonModelContext

from perfcast.utils.errors import UserError


class LoggedModel(PythonModel):
    """Predict from a table: one with the features and keys of the training table or, for a champion, one of machines.

    A machine is a row, described by any columns that `perfcast predict` reads.
    """

    answer: Callable[[pd.DataFrame], Any]

    def load_context(self, context: PythonModelContext) -> None:
        """Read what was logged from its folder."""
        (kind, folder) = next(iter(context.artifacts.items()))
        if kind == "predictor":
            from perfcast.predictors.predictor import load_predictor

            self.answer = load_predictor(folder).predict
            return
        from perfcast.inference import Suites, load_champion, predict_machines, read_machines
        from perfcast.inference.options import make_options

        suites = Suites(load_champion(folder))
        options = make_options(neighbors=0, explain=False)
        self.answer = lambda table: predict_machines(read_machines(table), suites, options).to_frame()

    def predict(
        self, context: PythonModelContext, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> pd.DataFrame:
        """Return one estimate per row and target, for machines with interval and trust, or why one is refused."""
        try:
            answer: pd.DataFrame = self.answer(model_input)
        except UserError as error:  # a server answers MLflow's exceptions in one line, others with their traceback
            raise MlflowException(str(error), error_code=BAD_REQUEST) from None
        return answer


mlflow.models.set_model(LoggedModel())

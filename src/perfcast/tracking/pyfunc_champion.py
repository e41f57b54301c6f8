"""A champion as an MLflow pyfunc model of described machines, logged as data, never as a pickle."""

from __future__ import annotations

from typing import Any

import mlflow
import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import BAD_REQUEST
from mlflow.pyfunc import PythonModel, PythonModelContext

from perfcast.inference import Champion, load_champion, read_machines
from perfcast.inference.predict import make_options, predict_batch
from perfcast.utils.errors import UserError


class ChampionModel(PythonModel):
    """Predict machines, one a row, described by any columns that `perfcast predict` reads."""

    champion: Champion

    def load_context(self, context: PythonModelContext) -> None:
        """Read the champion from the logged folder."""
        self.champion = load_champion(context.artifacts["champion"])

    def predict(
        self, context: PythonModelContext, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> pd.DataFrame:
        """Return one row per machine, task and target: estimate, interval and trust, or why it is refused."""
        try:
            options = make_options(neighbors=0, explain=False)
            return predict_batch(read_machines(model_input), self.champion, options).to_frame()
        except UserError as error:  # a server answers MLflow's exceptions in one line, others with their traceback
            raise MlflowException(str(error), error_code=BAD_REQUEST) from None


mlflow.models.set_model(ChampionModel())

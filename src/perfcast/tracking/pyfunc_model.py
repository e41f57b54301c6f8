"""A saved predictor as an MLflow pyfunc model, logged as code and data, never as a pickle."""

from __future__ import annotations

from typing import Any

import mlflow
import pandas as pd
from mlflow.pyfunc import PythonModel, PythonModelContext

from perfcast.predictors.predictor import Predictor, load_predictor


class PredictorModel(PythonModel):
    """Predict from a table with the features and keys of the training table; an empty cell is a missing value."""

    predictor: Predictor

    def load_context(self, context: PythonModelContext) -> None:
        """Read the predictor from the logged folder."""
        self.predictor = load_predictor(context.artifacts["predictor"])

    def predict(
        self, context: PythonModelContext, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> pd.DataFrame:
        """Return one estimate per row and target."""
        predicted: pd.DataFrame = self.predictor.predict(model_input)
        return predicted


mlflow.models.set_model(PredictorModel())

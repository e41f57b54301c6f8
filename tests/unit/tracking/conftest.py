"""Stores of these tests have tables that MLflow made once; processes that a test starts make their own."""

from __future__ import annotations

import pytest
from mlflow.store.db import utils
from mlflow_tables import remember_tables


@pytest.fixture(autouse=True, scope="session")
def tables_made_once(tmp_path_factory):
    """Let MLflow make its tables once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utils, "_initialize_tables", utils._initialize_tables)  # undone at the end
        remember_tables(tmp_path_factory.mktemp("tables") / "mlflow.db")
        yield

"""Optional packages: the extra of `pip install 'perfcast[...]'` that brings each module."""

from __future__ import annotations

from perfcast.utils.errors import UserError

_MODULES = {
    "serve": "fastapi prometheus_client starlette uvicorn",
    "train": "psutil pytorch_lightning rtdl_num_embeddings rtdl_revisiting_models sklearn tabm torch xgboost",
    "pipeline": "dvc dvc_data filelock hydra jinja2 markupsafe mlflow omegaconf openpyxl optuna pooch pydantic "
    "requests snakemake sqlalchemy urllib3",
    "plot": "matplotlib",
    "postgresql": "psycopg2",
}
EXTRAS = {module: extra for extra, modules in _MODULES.items() for module in modules.split()}
"""Extra by the top-level module that it brings; `serve` and `pipeline` both bring pydantic."""


def explain_missing_module(error: ImportError, what: str, extra: str = "") -> UserError | None:
    """Return the error of an absent optional package as a `UserError`, or None for any other module.

    Args: `what` needs the package, such as a command; `extra` replaces that of the module where several bring it.
    """
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        return None
    remedy = f"pip install 'perfcast[{extra or EXTRAS[module]}]'"
    return UserError(f"{what} needs the packages of an extra", f"{module} is not installed", remedy)

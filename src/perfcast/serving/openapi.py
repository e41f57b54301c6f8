"""What OpenAPI says of routes that read their requests themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from perfcast.serving import models
from perfcast.serving.questions import OPTIONS


def parameter(name: str, meaning: str, kind: str) -> dict[str, Any]:
    """Return an option of the query."""
    return {"name": name, "in": "query", "required": False, "description": meaning, "schema": {"type": kind}}


def asked_of_machines(options: Sequence[str]) -> dict[str, Any]:
    """Say in OpenAPI what a request about machines has: the handlers read it themselves, for errors in our words."""
    machine, machines = ({"$ref": f"#/components/schemas/{name}"} for name in ("Machine", "Machines"))
    body = {"oneOf": [machine, machines, {"type": "array", "items": machine}]}
    return {
        "parameters": [parameter(name, *OPTIONS[name]) for name in options],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
    }


def responses(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """Return what a request about machines is answered with."""
    meanings = {
        400: "No JSON, or none of a machine.",
        408: "The body did not come in time.",
        413: "Too many bytes or machines.",
        415: "Another content type than JSON.",
        422: "A machine or an option that cannot be.",
        503: "Busy, or not answered in time.",
    }
    refused: dict[int | str, dict[str, Any]] = {
        status: {"model": models.Problem, "description": text} for status, text in meanings.items()
    }
    return {200: {"model": model, "description": "The answer"}, **refused}


def describe_models(app: FastAPI) -> None:
    """Add the models of requests to what FastAPI says of the routes."""
    plain: Callable[[], dict[str, Any]] = app.openapi

    def described() -> dict[str, Any]:
        found = plain()
        known: dict[str, Any] = found["components"]["schemas"]
        for model in (models.Machine, models.Machines):
            known.setdefault(model.__name__, models.schema(model, known))
        return found

    app.openapi = described  # type: ignore[method-assign]

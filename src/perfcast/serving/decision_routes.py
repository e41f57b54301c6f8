"""Routes of decisions: each runs in the worker thread of the predictions, within the limits of the server."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import Any

from fastapi import APIRouter

from perfcast.inference.champion import Champion
from perfcast.serving.batching import RequestBatcher
from perfcast.serving.decision_models import DECISIONS, DecisionRequest
from perfcast.serving.request_limits import JsonRoute, RefusedRequest, RequestLimits
from perfcast.utils.errors import UserError

_FIELDS = {"target": "targets", "task": "tasks", "no-assume": "assume"}
"""Options of the commands whose fields in a request have another name."""


def create_decision_router(
    champion: Champion, limits: RequestLimits, batcher: RequestBatcher, refusals: dict[int | str, dict[str, Any]]
) -> APIRouter:
    """Return the routes of `DECISIONS`."""
    router = APIRouter(route_class=JsonRoute, responses=refusals)
    for name in DECISIONS:
        _add_route(router, name, partial(_decide, champion, limits, batcher))
    return router


def _add_route(router: APIRouter, name: str, decide: Any) -> None:
    model, response, summary = DECISIONS[name]

    async def post_decision(body: Any) -> dict[str, Any]:
        answer: dict[str, Any] = await decide(body)
        return answer

    # FastAPI reads the model of the body from the annotation
    post_decision.__annotations__["body"] = model
    router.post(f"/{name}", summary=summary, response_model=response, operation_id=name)(post_decision)


async def _decide(
    champion: Champion, limits: RequestLimits, batcher: RequestBatcher, body: DecisionRequest
) -> dict[str, Any]:
    try:
        async with asyncio.timeout(limits.seconds):
            answer = await batcher.call(partial(body.answer, champion, limits))
    except TimeoutError:
        requirement = f"a request must end within {limits.seconds:g} s"
        raise RefusedRequest(503, requirement, "this one took longer", "send fewer machines, or try again") from None
    except UserError as error:
        raise UserError(*map(_name_fields, (error.requirement, error.fact, error.remedy))) from None
    return answer.to_dict()


def _name_fields(text: str) -> str:
    """Return a message with fields of the request in place of options of a command."""
    return re.sub(r"--([a-z][a-z-]*)", lambda match: _FIELDS.get(match[1], match[1].replace("-", "_")), text)

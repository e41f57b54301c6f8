"""Tools of the Model Context Protocol: the operations of a champion, with the models of the HTTP API; all only read."""

from __future__ import annotations

import inspect
import json
from typing import Any

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from pydantic import RootModel, TypeAdapter, ValidationError

from perfcast import __version__
from perfcast.api import Predictions, PublishedScores
from perfcast.inference.champion_pair import list_champions
from perfcast.inference.prediction import ESTIMATE, Answer
from perfcast.serving.api_models import (
    DECISIONS,
    DecisionRequest,
    MeasuredRequest,
    PublishedRequest,
    add_operations,
    describe_errors,
)
from perfcast.serving.request_limits import DEFAULT_LIMITS, RefusedRequest, RequestLimits, Served
from perfcast.utils.errors import UserError, unknown_name

_PUBLISHED = dict[str, PublishedScores]
TOOLS: dict[str, tuple[type[DecisionRequest], Any, str]] = {
    "predict": (MeasuredRequest, Predictions, "Predict the benchmark results of machines"),
    "published": (PublishedRequest, _PUBLISHED, "Look up the published results of one machine, by task"),
    **{name: DECISIONS[name] for name in ("compare", "rank", "size", "similar")},
}
"""Tools with the models of their requests and answers, and their summaries."""


def create_server(loaded: Served, limits: RequestLimits = DEFAULT_LIMITS) -> Server[Any]:
    """Return the server of a loaded champion, or of a pair. A request that cannot be answered gets one line, marked as
    an error.
    """
    champion = add_operations(loaded)
    one_at_a_time = anyio.CapacityLimiter(1)  # models are not thread-safe
    fields = ", ".join(dict.fromkeys(field.name for field in list_champions(champion)[0].fields.fields.values()))
    machine = f"A machine is an object of fields with values, such as {fields}; unknown ones are left out."
    tools = [
        Tool(
            name=name,
            description=f"{summary}. {machine} Numbers are {ESTIMATE}. {inspect.getdoc(answer) or ''}",
            input_schema=request.model_json_schema(),
            output_schema=TypeAdapter(answer).json_schema(mode="serialization"),
            annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
        )
        for name, (request, answer, summary) in TOOLS.items()
    ]

    def answer(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if name not in TOOLS:
            raise unknown_name("tools", name[:60], TOOLS)
        if len(json.dumps(arguments)) > limits.body:
            raise UserError(f"a request can have at most {limits.body} bytes", "it has more", "send fewer machines")
        request = TOOLS[name][0].model_validate(arguments)
        made = request.answer(request.choose(champion), limits)
        return made.to_dict() if isinstance(made, Answer) else RootModel[_PUBLISHED](made).model_dump()

    async def list_tools(context: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        try:
            made = await anyio.to_thread.run_sync(answer, params.name, params.arguments or {}, limiter=one_at_a_time)
        except (UserError, RefusedRequest, ValidationError) as error:
            text = getattr(error, "detail", str(error))
            if isinstance(error, ValidationError):
                text = describe_errors([{**each, "loc": ("body", *each["loc"])} for each in error.errors()])[1]
            return CallToolResult(content=[TextContent(text=text)], is_error=True)
        text = json.dumps(made, ensure_ascii=False, allow_nan=False)
        return CallToolResult(content=[TextContent(text=text)], structured_content=made)

    return Server(
        "perfcast", version=__version__, instructions=machine, on_list_tools=list_tools, on_call_tool=call_tool
    )


def serve(server: Server[Any]) -> None:
    """Answer the requests of standard input until it ends."""

    async def run() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(run)

"""Tools of the Model Context Protocol: the operations of a champion, with the models of the HTTP API; all only read."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    JSONRPCError,
    JSONRPCRequest,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from pydantic import RootModel, TypeAdapter, ValidationError

from perfcast import __version__
from perfcast.api import Predictions, PublishedScores
from perfcast.inference.prediction import ESTIMATE, Answer
from perfcast.inference.suites import Suites
from perfcast.serving.api_models import (
    DECISIONS,
    DecisionRequest,
    MeasuredRequest,
    PublishedRequest,
    add_operations,
    describe_errors,
)
from perfcast.serving.request_limits import DEFAULT_LIMITS, RefusedRequest, RequestLimits
from perfcast.utils.errors import UserError, unknown_name

_PUBLISHED = dict[str, PublishedScores]
TOOLS: dict[str, tuple[type[DecisionRequest], Any, str]] = {
    "predict": (MeasuredRequest, Predictions, "Predict the benchmark results of machines"),
    "published": (PublishedRequest, _PUBLISHED, "Look up the published results of one machine, by task"),
    **{name: DECISIONS[name] for name in ("compare", "rank", "size", "match", "similar")},
}
"""Tools with the models of their requests and answers, and their summaries."""


def create_server(loaded: Suites, limits: RequestLimits = DEFAULT_LIMITS) -> Server[Any]:
    """Return the server of loaded champions. A request that cannot be answered gets one line, marked as an error."""
    suites = add_operations(loaded)
    one_at_a_time = anyio.CapacityLimiter(1)  # models are not thread-safe
    fields = ", ".join(dict.fromkeys(field.name for field in suites.first.fields.fields.values()))
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
        try:
            size = len(json.dumps(arguments, allow_nan=False))
        except ValueError:
            raise UserError("numbers of a request must be finite", "one is not", "leave it out") from None
        if size > limits.body:
            raise UserError(f"a request can have at most {limits.body} bytes", "it has more", "send fewer machines")
        request = TOOLS[name][0].model_validate(arguments)
        made = request.answer(request.choose(suites), limits)
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


_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600
"""Codes of JSON-RPC for a line that is no JSON, and one that is no message."""


def serve(server: Server[Any], limits: RequestLimits = DEFAULT_LIMITS) -> None:
    """Answer the requests of standard input until it ends and the last of them has its answer.

    A line that is no message, or is longer than requests may be, gets an error of JSON-RPC.
    """

    async def run() -> None:
        lines: Any = _read_lines(_LINE_LENGTHS * limits.body)
        async with stdio_server(stdin=lines) as (read, write), anyio.create_task_group() as tasks:
            messages = anyio.create_memory_object_stream[SessionMessage | Exception]()
            answers = anyio.create_memory_object_stream[SessionMessage]()
            waiting = set[Any]()  # ids of the requests without an answer
            tasks.start_soon(_pass_answers, answers[1], write, waiting)
            tasks.start_soon(_pass_messages, read, messages[0], write, waiting)
            async with answers[0]:
                await server.run(messages[1], answers[0], server.create_initialization_options())

    anyio.run(run)


_LINE_LENGTHS = 2
"""Longest line, as a multiple of the largest request: escaped letters take more bytes than they count."""


async def _read_lines(most: int) -> AsyncIterator[str]:
    """Yield the lines of standard input; of a longer one the beginning, which is no JSON."""
    while line := await anyio.to_thread.run_sync(sys.stdin.buffer.readline, most, abandon_on_cancel=True):
        yield line.decode("utf-8", errors="replace")
        while line and not line.endswith(b"\n"):
            line = await anyio.to_thread.run_sync(sys.stdin.buffer.readline, most, abandon_on_cancel=True)


async def _pass_messages(read: Any, messages: Any, write: Any, waiting: set[Any]) -> None:
    """Pass messages to the server and answer what is none; close the server's stream after the last answer."""
    async with messages:
        async for message in read:
            if isinstance(message, Exception):
                await write.send(SessionMessage(_describe_line(message)))
                continue
            if isinstance(message.message, JSONRPCRequest):
                waiting.add(message.message.id)
            await messages.send(message)
        while waiting:
            await anyio.sleep(_POLL)


async def _pass_answers(answers: Any, write: Any, waiting: set[Any]) -> None:
    async with write, answers:
        async for answer in answers:
            await write.send(answer)
            waiting.discard(getattr(answer.message, "id", None))


_POLL = 0.05
"""Seconds between two looks at the requests that wait."""


def _describe_line(error: Exception) -> JSONRPCError:
    """Return the answer to a line that is no message."""
    is_json = not (isinstance(error, ValidationError) and error.errors()[0]["type"] == "json_invalid")
    code, text = (_INVALID_REQUEST, "a message of JSON-RPC 2.0") if is_json else (_PARSE_ERROR, "one line of JSON")
    return JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=f"a request must be {text}"))

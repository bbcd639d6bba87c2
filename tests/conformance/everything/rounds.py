"""Tools of the stateless era, whose call ends with what they ask, and comes again with the answers."""

from __future__ import annotations

from collections.abc import Mapping

import mcp.types as t

from .answers import Context, Tool, ToolAnswer, Tools, form, result

Asked = Mapping[str, t.InputRequest]

_NAME: Asked = {"user_name": form("What is your name?", name={"type": "string"})}
_CONFIRM: Asked = {"confirm": form("Please confirm", ok={"type": "boolean"})}
_ROOTS: Asked = {"client_roots": t.ListRootsRequest()}


def _model(prompt: str, tokens: int) -> t.CreateMessageRequest:
    message = t.SamplingMessage(role="user", content=t.TextContent(text=prompt))
    return t.CreateMessageRequest(params=t.CreateMessageRequestParams(messages=[message], max_tokens=tokens))


_CAPITAL: Asked = {"capital_question": _model("What is the capital of France?", 100)}
_ALL: Asked = {**_NAME, "greeting": _model("Generate a greeting", 50), **_ROOTS}


def _once(asked: Asked, state: str | None = None) -> Tool:
    """One that asks, and has all that it wants when every answer and the state have come back."""

    async def answer(_ctx: Context, params: t.CallToolRequestParams) -> ToolAnswer:
        answers = params.input_responses or {}
        if asked.keys() <= answers.keys() and params.request_state == state:
            return result(f"state-ok: {', '.join(f'{key} is {value}' for key, value in answers.items())}")
        return _ask(asked, state)

    return answer


async def _three_rounds(_ctx: Context, params: t.CallToolRequestParams) -> ToolAnswer:
    answers, state = params.input_responses or {}, params.request_state
    if state == "round 2" and "step2" in answers:
        return result(f"The answer: {answers['step2']}")
    if state == "round 1" and "step1" in answers:
        return _ask({"step2": form("Step 2: What is your favorite color?", color={"type": "string"})}, "round 2")
    return _ask({"step1": form("Step 1: What is your name?", name={"type": "string"})}, "round 1")


async def _as_declared(ctx: Context, _params: t.CallToolRequestParams) -> ToolAnswer:
    declared = ctx.session.client_capabilities
    asked: dict[str, t.InputRequest] = {}
    if declared is not None and declared.sampling is not None:
        asked["sample"] = _model("Say hello", 50)
    if declared is not None and declared.elicitation is not None:
        asked.update(_NAME)
    return _ask(asked, "as declared")


def _ask(asked: Asked, state: str | None) -> t.InputRequiredResult:
    return t.InputRequiredResult(input_requests=dict(asked), request_state=state)


ROUNDS: Tools = {
    "test_input_required_result_elicitation": _once(_NAME),
    "test_input_required_result_sampling": _once(_CAPITAL),
    "test_input_required_result_list_roots": _once(_ROOTS),
    "test_input_required_result_request_state": _once(_CONFIRM, "a nonce"),
    "test_input_required_result_multiple_inputs": _once(_ALL, "all of them"),
    "test_input_required_result_multi_round": _three_rounds,
    "test_input_required_result_tampered_state": _once(_CONFIRM, "untouched"),
    "test_input_required_result_capabilities": _as_declared,
}

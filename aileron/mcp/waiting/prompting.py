"""Answers one C{prompts/get}. If arguments are missing and the client shows forms, requests them from the person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp.types as t
from attrs import evolve
from mcp.shared.exceptions import MCPError

from aileron.base.json import JSON
from aileron.client import DaemonError, SessionEnvironment
from aileron.mcp._forms import Answers, Continuation, Form
from aileron.mcp._notifier import Context
from aileron.mcp._texts import ToolResult
from aileron.mcp._tools import ITools
from aileron.mcp.offering.prompts import PROMPTS, list_choices, render_prompt

from .clients import Beats, identify_client
from .elicitation import MOST_FORMS, elicit_form, merge_answers, request_form
from .profiles import Client

MOST_CHOICES = 100
"""The most choices that a form lists. If there are more, the person types the value."""


class Prompting:
    """Handles MCP requests for prompts, and first asks the client's person for arguments that are missing."""

    def __init__(self, offers: ITools, session: SessionEnvironment, beats: Beats) -> None:
        self._offers = offers
        self._session = session
        self._beats = beats

    async def answer(self, ctx: Context, params: t.GetPromptRequestParams) -> t.GetPromptResult | t.InputRequiredResult:
        """Answer C{prompts/get} with the prompt, or with a form for missing arguments if the client shows forms.

        :raises MCPError: if the prompt, or an action or run that its arguments name, does not exist, or the daemon did
            not respond.
        """
        try:
            return await self._answer(ctx, params, identify_client(ctx, self._session))
        except DaemonError as error:
            raise MCPError(t.INTERNAL_ERROR, str(error)) from None

    async def _answer(
        self, ctx: Context, params: t.GetPromptRequestParams, client: Client
    ) -> t.GetPromptResult | t.InputRequiredResult:
        so_far = merge_answers(Continuation.of(params.request_state, str), params.input_responses)
        given = _with(params.arguments, None if isinstance(so_far, ToolResult) else so_far.answers)
        form = await self._find_lacking(params.name, given) if client.shows_forms else None
        if form is None or isinstance(so_far, ToolResult) or so_far.forms >= MOST_FORMS:
            return await render_prompt(params.name, given, self._offers)
        if client.modern:
            return request_form(form, evolve(so_far, answers=so_far.answers or {}))
        answers = await elicit_form(ctx, form, client.patience_seconds, self._beats)
        return await render_prompt(
            params.name, _with(given, None if isinstance(answers, ToolResult) else answers), self._offers
        )

    async def _find_lacking(self, name: str, given: Mapping[str, str]) -> Form | None:
        """Return a form for the missing arguments of a prompt, or None if none is missing or there is no such prompt.

        :raises DaemonError: if the daemon did not return the values to choose from.
        """
        asked = next((each for each in PROMPTS if each.name == name), None)
        lacking = [each for each in (asked and asked.arguments) or () if each.required and not given.get(each.name)]
        if asked is None or not lacking:
            return None
        properties = {each.name: await self._property(each) for each in lacking}
        return Form(str(asked.title), properties, tuple(properties))

    async def _property(self, argument: t.PromptArgument) -> dict[str, JSON]:
        there = await list_choices(argument.name, self._offers)
        titles: list[Any] = [{"const": value, "title": title} for value, title in there.items()]
        more: dict[str, JSON] = {"oneOf": titles} if 0 < len(titles) <= MOST_CHOICES else {}
        return {"type": "string", "description": argument.description or "", **more}


def _with(given: Mapping[str, str] | None, answers: Answers | None) -> dict[str, str]:
    """Return the given arguments, completed with the person's answers."""
    result = {name: value for name, value in (answers or {}).items() if isinstance(value, str)}
    return {**result, **(given or {})}

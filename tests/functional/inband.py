"""Clients of in-band mode: the official SDKs, in the three protocols, streamed and not."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from tests.functional.gatewayed import GatewayedTestCase
from tests.functional.llm import ScriptedLLM
from tests.functional.operated import AgentSession
from tests.functional.script import Turn
from tests.functional.sdks import Api, Sdk

WEATHER = "weather"
HELLO: Sequence[Any] = ({"role": "user", "content": "hello"},)
_PLACE = {
    "type": "object",
    "properties": {"place": {"type": "string"}},
    "required": ["place"],
    "additionalProperties": False,
}


@attrs.frozen
class Said:
    """One reply, as an SDK understood it.

    :ivar text: all of it.
    :ivar calls: of the client's own tools: id and name of each.
    :ivar history: what the client sends next time in the reply's place.
    """

    text: str
    calls: tuple[tuple[str, str], ...]
    history: Sequence[Any]


@attrs.frozen
class Client:
    """One way of asking.

    :ivar protocol: C{chat}, C{responses} or C{messages}.
    :ivar streams: by the SDK's own helper for streams.
    """

    protocol: str
    streams: bool

    @property
    def provider(self) -> str:
        """Whose SDK."""
        return "anthropic" if self.protocol == "messages" else "openai"

    def tools(self) -> list[dict[str, Any]]:
        """The client's own tool."""
        function = {"name": WEATHER, "description": "d", "parameters": _PLACE, "strict": True}
        if self.protocol == "chat":
            return [{"type": "function", "function": function}]
        if self.protocol == "responses":
            return [{"type": "function", **function}]
        return [{"name": WEATHER, "description": "d", "input_schema": _PLACE}]

    def ask(self, api: Api, history: Sequence[Any], own: Sequence[Any] | None = None) -> Said:
        """Have the model go on with a conversation.

        :param own: the client's own tools; L{None}: the one for the weather.
        """
        given = {"model": "m", "tools": self.tools() if own is None else list(own)}
        ways = {"chat": self._chat, "responses": self._responses, "messages": self._messages}
        return ways[self.protocol](api.client, list(history), given)

    def asking(self, history: Sequence[Any] = HELLO) -> Callable[[Api], Said]:
        """The same, as a function of the client's API."""
        return lambda api: self.ask(api, history)

    def results(self, said: Said, text: str) -> list[Any]:
        """The client's results of its own calls, for the history."""
        ids = [each for each, _ in said.calls]
        if self.protocol == "chat":
            return [{"role": "tool", "tool_call_id": each, "content": text} for each in ids]
        if self.protocol == "responses":
            return [{"type": "function_call_output", "call_id": each, "output": text} for each in ids]
        blocks = [{"type": "tool_result", "tool_use_id": each, "content": text} for each in ids]
        return [{"role": "user", "content": blocks}]

    def _chat(self, client: Any, history: list[Any], given: Mapping[str, Any]) -> Said:
        if self.streams:
            with client.chat.completions.stream(messages=history, **given) as stream:
                message = stream.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(messages=history, **given).choices[0].message
        calls = tuple((each.id, each.function.name) for each in message.tool_calls or ())
        sent = {
            "role": "assistant",
            "content": message.content,
            **({"tool_calls": [_plain_call(each) for each in message.tool_calls]} if calls else {}),
        }
        return Said(message.content or "", calls, [sent])

    def _responses(self, client: Any, history: list[Any], given: Mapping[str, Any]) -> Said:
        if self.streams:
            with client.responses.stream(input=history, **given) as stream:
                response = stream.get_final_response()
        else:
            response = client.responses.create(input=history, **given)
        calls = tuple((each.call_id, each.name) for each in response.output if each.type == "function_call")
        sent = [each.model_dump(mode="json", exclude_none=True) for each in response.output]
        for each in sent:
            each.pop("parsed_arguments", None)
        return Said(response.output_text, calls, sent)

    def _messages(self, client: Any, history: list[Any], given: Mapping[str, Any]) -> Said:
        given = {"max_tokens": 100, **given}
        if self.streams:
            with client.messages.stream(messages=history, **given) as stream:
                message = stream.get_final_message()
        else:
            message = client.messages.create(messages=history, **given)
        calls = tuple((each.id, each.name) for each in message.content if each.type == "tool_use")
        text = "".join(each.text for each in message.content if each.type == "text")
        blocks = [each.model_dump(mode="json", exclude_none=True) for each in message.content]
        return Said(text, calls, [{"role": "assistant", "content": blocks}])


def _plain_call(call: Any) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": "function", "function": function}


CLIENTS = tuple(
    Client(protocol, streams) for protocol in ("chat", "responses", "messages") for streams in (True, False)
)


@attrs.frozen
class InBandSession(AgentSession):
    """A session with an in-band key."""

    in_band_key: str = attrs.field(default="", repr=False)


class InBandTestCase(GatewayedTestCase):
    """A user with two actions, a scripted model behind the gateway, and programs that know of neither."""

    async def begin(self, turns: Sequence[Turn]) -> ScriptedLLM:
        """A daemon with an open vault and both actions, and what the model will say."""
        llm = self.llm({"m": turns})
        self.use_upstream(llm)
        await self.furnish()
        return llm

    async def in_band(self) -> InBandSession:
        """Open a session with an in-band key."""
        found = self.home.discovery()
        body = {"agent": "program", "working_dir": str(self.home.project), "in_band": True}
        opened = (await self.web.ask("POST", f"{found['url']}/v1/sessions", found["launch_key"], body)).body
        return InBandSession(opened["id"], opened["token"], opened["gateway_key"], opened["in_band_key"])

    def sdk(self, session: InBandSession, client: Client, **headers: str) -> Sdk:
        """The SDK of a client's provider, at the one address that it is told."""
        url = f"{self.home.discovery()['url']}/s/{session.in_band_key}/inband/{client.provider}"
        return Sdk(client.provider, url, headers)

    async def ask(
        self,
        session: InBandSession,
        client: Client,
        history: Sequence[Any] = HELLO,
        *,
        wait: int | None = None,
        own: Sequence[Any] | None = None,
    ) -> Said:
        """What the SDK makes of the reply.

        :param wait: how long a call may wait for a person, in seconds.
        :param own: the client's own tools, as of L{Client.ask}.
        """
        headers = {} if wait is None else {"Prefer": f"wait={wait}"}
        return await self.sdk(session, client, **headers).use(lambda api: client.ask(api, history, own))


def each_client(*turns: Turn) -> Iterator[Turn]:
    """The same turns for each client."""
    for _ in CLIENTS:
        yield from turns

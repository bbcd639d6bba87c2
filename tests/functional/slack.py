"""A local service that stands for Slack's web API, misbehaves as told, and counts what really happened."""

import base64
import json
import urllib.parse
import uuid
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Literal

import attrs
from twisted.internet.defer import Deferred
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from tests.functional.loopback import LoopbackSite, abort, headers_of, json_of
from tests.functional.reactor import IKitReactor

CHANNELS = {"general": "C0001", "engineering": "C0002", **{f"team-{each}": f"C010{each}" for each in range(5)}}


@attrs.frozen(kw_only=True)
class Behaviour:
    """How one request is treated.

    :ivar applied: whether the effect happens all the same.
    :ivar error: Slack's word for a refusal, sent with ``ok: false``.
    :ivar held: whether the answer waits for L{Workspace.release}.
    :ivar echo: whether the answer repeats the credential of the request.
    :ivar ending: ``answer`` it, ``hang`` without an answer, or ``drop`` the connection instead of one.
    """

    applied: bool = True
    status: int = HTTPStatus.OK
    error: str | None = None
    headers: Mapping[str, str] = attrs.Factory(dict)
    held: bool = False
    echo: bool = False
    ending: Literal["answer", "hang", "drop"] = "answer"


def refusal(error: str) -> Behaviour:
    """Slack understands and refuses, such as with ``channel_not_found``."""
    return Behaviour(applied=False, error=error)


def echo(status: int = HTTPStatus.OK, *, applied: bool = True) -> Behaviour:
    """Slack's answer, good or bad, repeats the credential in the usual forms, in body and headers."""
    return Behaviour(applied=applied, status=status, error=None if applied else "internal_error", echo=True)


def hang(*, applied: bool) -> Behaviour:
    """No answer ever comes."""
    return Behaviour(applied=applied, ending="hang")


def drop(*, applied: bool) -> Behaviour:
    """The connection is reset in place of an answer."""
    return Behaviour(applied=applied, ending="drop")


@attrs.frozen
class SlackRequest:
    """One request as it came in.

    :ivar headers: by lower-case name.
    :ivar body: what was posted, or the query of a GET.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


@attrs.frozen
class Message:
    """A message that stands in a channel: the effect of a post."""

    channel: str
    text: str
    client_msg_id: str | None
    ts: str


@attrs.define
class Workspace:
    """What the service knows: the token, the channels, the messages, and every request so far.

    :ivar next: behaviours of the coming posts and tests of the token, spent in order; afterwards all goes well.
    :ivar hides: whether nobody may read what stands in a channel.
    :ivar release: fires when answers that are held are to go out.
    :ivar others: further tokens that are accepted.
    """

    token: str
    requests: list[SlackRequest] = attrs.Factory(list)
    messages: list[Message] = attrs.Factory(list)
    next: list[Behaviour] = attrs.Factory(list)
    hides: bool = False
    release: "Deferred[None]" = attrs.Factory(Deferred)
    others: set[str] = attrs.Factory(set)

    def posts(self) -> int:
        """How many posts came in, whatever became of them."""
        return sum(request.path == "/api/chat.postMessage" for request in self.requests)

    def answer(self, request: SlackRequest) -> tuple[Behaviour, dict[str, Any]]:
        """Record a request, do what it asks, and say how to answer it."""
        self.requests.append(request)
        if (error := self._denied(request)) is not None:
            return refusal(error), {"ok": False, "error": error}
        match request.method, request.path:
            case "POST", "/api/chat.postMessage":
                return self._post(request)
            case "GET", "/api/auth.test":
                behaviour = self.next.pop(0) if self.next else Behaviour()
                return behaviour, {"ok": True, "user": "aileron", "team": "Kit", "url": "https://kit.slack.com/"}
            case "GET", "/api/conversations.list":
                return Behaviour(), self._list()
            case "GET", "/api/conversations.history" if not self.hides:
                return Behaviour(), self._history(request)
            case "GET", "/api/conversations.history":
                return refusal("missing_scope"), {"ok": False, "error": "missing_scope"}
        return Behaviour(status=HTTPStatus.NOT_FOUND), {"ok": False, "error": "unknown_method"}

    def _denied(self, request: SlackRequest) -> str | None:
        given = request.headers.get("authorization")
        if given is None:
            return "not_authed"
        return None if given in {f"Bearer {token}" for token in (self.token, *self.others)} else "invalid_auth"

    def _post(self, request: SlackRequest) -> tuple[Behaviour, dict[str, Any]]:
        behaviour = self.next.pop(0) if self.next else Behaviour()
        behaviour, body = self._posted(behaviour, request)
        return _echoing(behaviour, body, request) if behaviour.echo else (behaviour, body)

    def _posted(self, behaviour: Behaviour, request: SlackRequest) -> tuple[Behaviour, dict[str, Any]]:
        channel = _channel(request.body.get("channel"))
        if channel is None and behaviour.applied:
            behaviour = refusal("channel_not_found")
        if not behaviour.applied or channel is None:
            return behaviour, {"ok": False, "error": behaviour.error}
        message = self._add(channel, request.body)
        if behaviour.error is not None:
            return behaviour, {"ok": False, "error": behaviour.error}
        return behaviour, {"ok": True, "channel": channel, "ts": message.ts, "message": {"text": message.text}}

    def _add(self, channel: str, body: Mapping[str, Any]) -> Message:
        ts = f"1700000000.{len(self.messages) + 1:06}"
        message = Message(channel, str(body.get("text", "")), body.get("client_msg_id"), ts)
        self.messages.append(message)
        return message

    def _list(self) -> dict[str, Any]:
        channels = [{"id": key, "name": name, "is_channel": True} for name, key in CHANNELS.items()]
        return {"ok": True, "channels": channels, "response_metadata": {"next_cursor": ""}}

    def _history(self, request: SlackRequest) -> dict[str, Any]:
        channel = _channel(request.body.get("channel"))
        there = [attrs.asdict(message) for message in self.messages if message.channel == channel]
        return {"ok": True, "messages": there[::-1], "has_more": False}


class _ApiResource(Resource):
    """Every path of the API."""

    isLeaf = True

    def __init__(self, reactor: IKitReactor, workspace: Workspace) -> None:
        Resource.__init__(self)
        self._reactor = reactor
        self._workspace = workspace

    def render(self, request: Request) -> int:
        """Answer as the workspace says, now, once it is released, or never."""
        behaviour, body = self._workspace.answer(_decoded(request))
        if behaviour.held:
            self._workspace.release.addCallback(lambda _: _end(request, behaviour, body))
            return NOT_DONE_YET
        later = self._reactor.callLater(0, _end, request, behaviour, body)
        request.notifyFinish().addErrback(lambda _: later.cancel() if later.active() else None)
        return NOT_DONE_YET


@attrs.define
class FakeSlack:
    """The running service; `workspace` tells what it saw."""

    workspace: Workspace
    _site: LoopbackSite

    @classmethod
    def listen(cls, reactor: IKitReactor, token: str | None = None, port: int = 0) -> "FakeSlack":
        """Start to listen.

        :param token: the only one that is accepted; by default a fresh one.
        :param port: 0: one that the system chooses.
        """
        workspace = Workspace(token or f"xoxb-{uuid.uuid4().hex}")
        return cls(workspace, LoopbackSite.listen(reactor, _ApiResource(reactor, workspace), port))

    @property
    def url(self) -> str:
        """The address without ``/api``."""
        return self._site.url

    @property
    def port(self) -> int:
        """The port of that address."""
        return int(self.url.rpartition(":")[2])

    async def stop(self) -> None:
        """Close the port and every connection, hanging ones too."""
        await self._site.stop()


def _echoing(behaviour: Behaviour, body: dict[str, Any], request: SlackRequest) -> tuple[Behaviour, dict[str, Any]]:
    """The same, with the credential wherever an answer has words."""
    given = request.headers["authorization"]
    coded = base64.b64encode(given.encode()).decode()
    said = f"{given} {given.encode().hex()} {urllib.parse.quote(given)} {coded} {json.dumps(given)}"
    words = {name: f"{body.get(name, '')} {said}" for name in ("error" if "error" in body else "ts", "warning")}
    return attrs.evolve(behaviour, headers={**behaviour.headers, "X-Request-Was": given}), {**body, **words}


def _channel(given: object) -> str | None:
    """A channel's id from its name, with or without ``#``, or from the id itself."""
    name = str(given).removeprefix("#")
    return CHANNELS.get(name) or (name if name in CHANNELS.values() else None)


def _decoded(request: Request) -> SlackRequest:
    query = {name.decode(): values[0].decode() for name, values in request.args.items()}
    body = json_of(request)
    return SlackRequest(
        request.method.decode(), request.path.decode(), headers_of(request), query if body is None else body
    )


def _end(request: Request, behaviour: Behaviour, body: Mapping[str, Any]) -> None:
    match behaviour.ending:
        case "drop":
            abort(request)
        case "answer":
            request.setResponseCode(behaviour.status)
            for name, value in behaviour.headers.items():
                request.setHeader(name, value)
            request.setHeader("content-type", "application/json; charset=utf-8")
            request.write(json.dumps(body).encode())
            request.finish()
        case "hang":
            return

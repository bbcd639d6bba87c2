"""One request to the daemon: sent, waited for with a deadline, read up to a cap, understood or raised."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

from attrs import field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectError, ConnectingCancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent

from aileron.addresses import read_origin, read_url
from aileron.values import JSON, Fault, writer

from ._body import TooLong, Whole, read_body
from ._faults import AnswerNotUnderstood, DaemonError, DaemonFault, DaemonUnreachable
from ._line import NotSecured
from ._news import News

MAX_BODY_BYTES = 32 * 1024 * 1024
DEADLINE_SECONDS = 15.0
_MOST_KNOWN = 64
_OF_A_FRONT = frozenset((502, 503, 504))
"""What servers that pass requests on say for themselves."""

_written = writer(sort_keys=False, allow_nan=True)


@lru_cache(maxsize=64)
def _segment(text: str) -> str:
    return quote(text, safe="")


@frozen
class Answer:
    """A successful answer.

    :ivar body: its JSON object; empty where there was no body.
    """

    status: int
    body: Mapping[str, Any]


def _bare(url: str) -> str:
    scheme, colon, rest = url.partition(":")
    return scheme.lower() + colon + rest.rstrip("/")


@frozen
class Wire:
    """One credential at one site of the daemon.

    :ivar agent: what reaches the site.
    :ivar base_url: the site's, without a path.
    :ivar token: sent as bearer, shown nowhere.
    :ivar streams: what reaches the site for an answer that does not end; L{None}: the same.
    """

    agent: IAgent
    base_url: str = field(converter=_bare)
    token: str | None = field(repr=False)
    clock: IReactorTime
    streams: IAgent | None = None
    _known: dict[tuple[object, ...], Headers] = field(factory=dict, init=False, repr=False, eq=False)

    @base_url.validator
    def _web_address(self, _attribute: object, value: str) -> None:
        try:
            url = read_url(value)
        except ValueError:
            url = None
        if url is None or (url.user_info, url.query, url.fragment) != (None, None, None):
            raise ValueError("the daemon's address must be an http URL without credentials")

    @token.validator
    def _visible_ascii(self, _attribute: object, value: str | None) -> None:
        if value is not None and not all("!" <= letter <= "~" for letter in value):
            raise ValueError("the daemon's token must be visible ASCII")

    async def ask(
        self,
        method: str,
        *path: str,
        query: Mapping[str, str | int | float | None] | None = None,
        body: Mapping[str, JSON] | None = None,
        headers: Mapping[str, str] | None = None,
        wait_seconds: float = 0.0,
    ) -> Answer:
        """Send one request and understand its answer.

        Cancelling ends the connection, which ends the daemon's wait and nothing else.

        :param path: segments, not yet encoded.
        :param query: what is L{None} is left out.
        :param wait_seconds: how long the daemon was asked to hold the answer back; the deadline grows by it.
        :raises DaemonUnreachable: no answer within the deadline.
        :raises DaemonFault: the daemon's error envelope came.
        :raises AnswerNotUnderstood: anything else came.
        """
        seconds = DEADLINE_SECONDS + wait_seconds
        # What JSON cannot say is left to the daemon to refuse, in its own words.
        content = None if body is None else _written(body).encode("ascii")
        given = self._headers(headers or {}, typed=body is not None)
        asking = Deferred.fromCoroutine(self._exchange(method, self._url(path, query or {}), given, content))
        return await asking.addTimeout(seconds, self.clock, lambda _result, _seconds: self._late(seconds))

    async def follow(self, *path: str, heard: Callable[[], None]) -> None:
        """Ask for a stream of events, and return when it is over; cancelling ends it.

        :param heard: called for each event.
        :raises DaemonUnreachable: it could not be asked for.
        :raises DaemonFault: the daemon refuses.
        :raises AnswerNotUnderstood: anything else came.
        """
        news = News(self.clock, heard)
        asking = (self.streams or self.agent).request(
            b"GET", self._url(path, {}).encode(), self._headers({}, typed=False)
        )
        try:
            response = await asking.addTimeout(DEADLINE_SECONDS, self.clock)
            if response.code != 200:
                understand(response.code, await read_body(response, MAX_BODY_BYTES))
        except DaemonError:
            raise
        except Exception as error:  # noqa: BLE001 - the transport's own exceptions have no common base
            raise self._lost(error) from None
        response.deliverBody(news)
        await news.ended

    def _url(self, path: tuple[str, ...], query: Mapping[str, str | int | float | None]) -> str:
        given = {key: value for key, value in query.items() if value is not None}
        text = f"{self.base_url}/{'/'.join(map(_segment, path))}"
        return f"{text}?{urlencode(given)}" if given else text

    def _headers(self, more: Mapping[str, str], *, typed: bool) -> Headers:
        """The same object for the same request, since one is asked again and again; nobody changes it."""
        key = (typed, *more.items())
        if key not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = self._made(more, typed=typed)
        return self._known[key]

    def _made(self, more: Mapping[str, str], *, typed: bool) -> Headers:
        given = {"Host": read_origin(self.base_url).authority, "Accept": "application/json", **more}
        if self.token is not None:
            given["Authorization"] = f"Bearer {self.token}"
        if typed:
            given["Content-Type"] = "application/json"
        return Headers({name: [value] for name, value in given.items()})

    def _late(self, seconds: float) -> Failure:
        return Failure(DaemonUnreachable(f"The Aileron daemon did not answer within {seconds:g} s.", sent=True))

    async def _exchange(self, method: str, url: str, headers: Headers, content: bytes | None) -> Answer:
        producer = None if content is None else Whole(content)
        try:
            response = await self.agent.request(method.encode(), url.encode(), headers, producer)
            answered = await read_body(response, MAX_BODY_BYTES)
        except TooLong:
            raise AnswerNotUnderstood("The daemon's answer is too long.", response.code) from None
        except Exception as error:  # noqa: BLE001 - the transport's own exceptions have no common base
            raise self._lost(error) from None
        return understand(response.code, answered)

    def _lost(self, error: Exception) -> Exception:
        if _cancelled(error):
            return CancelledError()
        why = _why_untrusted(error) if self.base_url.startswith("https:") else None
        if why is not None:
            return DaemonUnreachable(
                f"What answers at {self.base_url} could not prove that it is called so: {why}. Nothing was sent to it.",
                misdirected=True,
            )
        if isinstance(error, (ConnectError, NotSecured)):
            return DaemonUnreachable(f"No Aileron daemon answers at {self.base_url}.")
        return DaemonUnreachable("The connection to the Aileron daemon was cut off.", sent=True)


def _why_untrusted(error: Exception) -> str | None:
    from ._trust import why_untrusted

    return why_untrusted(error)


def _cancelled(error: Exception) -> bool:
    reasons = [reason.value for reason in getattr(error, "reasons", ())]
    return any(isinstance(reason, (CancelledError, ConnectingCancelledError)) for reason in [error, *reasons])


def understand(status: int, content: bytes) -> Answer:
    """The answer in C{content}.

    :raises DaemonFault: it is an error envelope.
    :raises DaemonUnreachable: it is of what stands before the daemon, which it does not reach.
    :raises AnswerNotUnderstood: it is neither that nor a successful JSON object.
    """
    try:
        body = json.loads(content) if content else {}
    except (ValueError, RecursionError):
        body = None
    if isinstance(body, dict) and 200 <= status < 300:
        return Answer(status, body)
    raise (_envelope(status, body) if status >= 400 else None) or _stranger(status)


def _envelope(status: int, body: Any) -> DaemonFault | None:
    """The daemon's refusal, if it is one."""
    try:
        envelope: Any = body["error"]
        fault = Fault.from_json(envelope)
    except (KeyError, TypeError, AttributeError):
        return None
    return DaemonFault(fault.message, status, fault, _text(envelope.get("run_id")), _text(envelope.get("audit_id")))


def _stranger(status: int) -> DaemonError:
    """Who else answers thus."""
    if status in _OF_A_FRONT:
        # It does not say whether it had sent the request on, and where the daemon is restarted it often had.
        return DaemonUnreachable(f"What stands before the Aileron daemon does not reach it (HTTP {status}).", sent=True)
    return AnswerNotUnderstood(f"What answered is not an Aileron daemon (HTTP {status}).", status)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None

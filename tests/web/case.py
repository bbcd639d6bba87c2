"""The pages over memory, a browser that has logged in, and an HTML reader that is stricter than a browser."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from html.parser import HTMLParser
from typing import Any, cast

from attrs import define, evolve, field, frozen
from treq.testing import StubTreq
from twisted.internet.defer import Deferred, fail, maybeDeferred
from twisted.web.resource import IResource
from zope.interface import implementer

from aileron.base.json import JSON, utc
from aileron.features import RunningFeatures
from aileron.features.notices.running import RunningNotices
from aileron.features.notices.values import ChannelState, INotifier, NoticeSettings
from aileron.model.audit import Actor, Event
from aileron.model.interfaces.store import ISessions
from aileron.model.queries import AuditQuery, Page, RunQuery
from aileron.model.reviews import (
    Preview,
    PreviewField,
    PreviewStatus,
    ReviewedBinding,
    ReviewedPreview,
    ReviewedRequest,
    ReviewedStep,
)
from aileron.model.runs import Approval, Call, Run
from aileron.model.sessions import Session, SessionEnding, SessionTally
from aileron.testing import ScriptedRunner, SigningBrowser, example_session, scripted_offer
from aileron.web import pages
from tests.api.case import NOW, ApiCase, running
from tests.features.notices.case import browser_at

COOKIE, POLL = b"aileron_life", "X-Aileron-Poll"
ADDRESS = "http://localhost:7001"


@frozen
class Heard:
    """An answer.

    :ivar cookies: the C{Set-Cookie} lines, each whole.
    """

    status: int
    text: str
    headers: Mapping[str, str]
    cookies: tuple[str, ...]

    @property
    def told(self) -> Any:
        """What the shell tells its script."""
        return json.loads(next(attributes["data-told"] for tag, attributes in read(self.text).tags if tag == "html"))


@define
class ReviewedRunner(ScriptedRunner):
    """A scripted runner whose approvals show what a test says.

    :ivar reviews: by run id, what stands in place of the approval's own fields.
    :ivar watched: what was asked for.
    :ivar cursor: where it says that the next page of approvals begins.
    """

    reviews: dict[str, dict[str, Any]] = field(factory=dict)
    watched: list[object] = field(factory=list)
    cursor: str | None = None

    async def approval(self, run_id: str, *, only_read: bool = False) -> Approval:
        self.watched.append(run_id)
        return evolve(await super().approval(run_id, only_read=only_read), **self.reviews.get(run_id, {}))

    async def approvals(self, query: RunQuery, *, only_read: bool = False) -> Page[Approval]:
        self.watched.append(query)
        found = await super().approvals(query, only_read=only_read)
        return Page(tuple(evolve(each, **self.reviews.get(each.run.id, {})) for each in found.items), self.cursor)


@implementer(ISessions)
@define
class KnownSessions:
    """Sessions that a test has put there, whatever they claim.

    :ivar asked: the ids that were looked up.
    """

    known: dict[str, Session] = field(factory=dict)
    asked: list[str] = field(factory=list)

    async def open(
        self,
        session: Session,
        token_digest: bytes,
        gateway_digest: bytes,
        events: Sequence[Event],
        in_band_digest: bytes | None = None,
    ) -> None:
        self.known[session.id] = session

    async def by_token(self, token_digest: bytes) -> Session | None:
        return None

    async def by_gateway_key(self, gateway_digest: bytes) -> Session | None:
        return None

    async def by_in_band_key(self, in_band_digest: bytes) -> Session | None:
        return None

    def known_gateway_key(self, gateway_digest: bytes) -> Session | None:
        return None

    async def tally(self, _session_id: str) -> SessionTally:
        return SessionTally(calls=7)

    async def end(
        self, session_id: str, exit_code: int | None, events: Sequence[Event], ending: SessionEnding | None = None
    ) -> Session:
        return self.known.pop(session_id)

    async def get(self, session_id: str) -> Session | None:
        self.asked.append(session_id)
        return self.known.get(session_id)

    async def list(
        self, live_only: bool, limit: int, cursor: str | None, without_ended: str | None = None
    ) -> Page[Session]:
        listed = (each for each in self.known.values() if each.live or each.agent != without_ended)
        return Page(tuple(listed)[:limit])


@implementer(INotifier)
@define
class OneChannel:
    """A notifier with one channel.

    :ivar words: its name, and its last problem.
    """

    words: str

    def channels(self) -> tuple[ChannelState, ...]:
        return (ChannelState(self.words, "webhook", sent=3, problem=self.words),)

    async def test(self) -> tuple[ChannelState, ...]:
        return self.channels()


def notifying(words: str) -> RunningFeatures:
    """Return notifications with one channel, as a daemon has started them."""
    return running(RunningNotices(NoticeSettings(), OneChannel(words), browser_at()))


class WebCase(ApiCase):
    """Pages, and a browser session of theirs."""

    runner: ReviewedRunner

    def setUp(self) -> None:
        """Build everything anew."""
        super().setUp()
        self.beside, self.fails = 0, cast(Exception | None, None)
        self.runner = ReviewedRunner(self.clock)
        self.runner.offer(scripted_offer())
        self.sessions = KnownSessions()
        self.build(self.runner, sessions=self.sessions)
        self.browser, self.session = self.operators.open_browser()

    def build(self, runner: Any = None, **changes: Any) -> None:
        """Have the pages made anew as well."""
        super().build(runner, **changes)
        vars(self).pop("resource", None)

    @cached_property
    def resource(self) -> IResource:
        """The pages, made when a test first uses them."""
        return pages(self.built, self.in_thread)

    def recorded(self) -> list[tuple[str, Actor, Mapping[str, JSON]]]:
        """Type, actor and payload of the events on record, oldest first."""
        page = self.successResultOf(Deferred.fromCoroutine(self.store.audit.list(AuditQuery())))
        events = [record.event for record in reversed(page.items)]
        return [(event.type, event.actor, event.payload) for event in events]

    def in_thread(self, work: Callable[[], bytes]) -> Deferred[bytes]:
        """Call it here and now, and count that another thread would have.

        Where C{fails} is set, it fails so instead.
        """
        self.beside += 1
        return maybeDeferred(work) if self.fails is None else fail(self.fails)

    def get(self, path: str, browser: SigningBrowser | None = None, method: str = "GET", **headers: Any) -> Heard:
        """Ask for a path, as this browser or as nobody."""
        signed = {} if browser is None else browser.headers(COOKIE.decode(), method, path)
        return self.heard(method, path, headers={**signed, **headers})

    def fragment(self, path: str) -> Heard:
        """Ask for a fragment as the logged-in page does."""
        return self.get(f"/fragments{path}", self.browser)

    def hand_over(self, query: str = "", **form: str) -> Heard:
        """Post the hand-over's form."""
        return self.heard("POST", f"/handover{query}", data=form)

    def heard(self, method: str, path: str, **request: Any) -> Heard:
        """One exchange with a whole twisted.web, without a socket or memory of cookies."""
        client: Any = StubTreq(self.resource)
        response = self.successResultOf(client.request(method, ADDRESS + path, **request))
        text = self.successResultOf(response.content()).decode("utf-8", "replace")
        raw = {name.decode().lower(): values for name, values in response.headers.getAllRawHeaders()}
        cookies = tuple(line.decode() for line in raw.get("set-cookie", ()))
        return Heard(response.code, text, {name: values[0].decode() for name, values in raw.items()}, cookies)

    def agent(self, session_id: str = "session-1", **claims: Any) -> Session:
        """An agent's session that claims this."""
        session = evolve(example_session(session_id, utc(NOW)), **claims)
        self.sessions.known[session_id] = session
        return session

    def ask(self, text: str = "Dark mode", session: Session | None = None, **shown: Any) -> Run:
        """A gated run that waits.

        :param shown: fields of its approval that are shown in place of its own.
        """
        actor = Actor("human", "operator") if session is None else Actor("agent", session.id)
        call = Call("ship-update", {"text": text}, actor, session)
        run = self.successResultOf(Deferred.fromCoroutine(self.runner.submit(call)))
        self.runner.reviews[run.id] = shown
        return run


def planned(request: ReviewedRequest | None, **more: Any) -> ReviewedStep:
    """One step of a review."""
    usual = ReviewedStep(
        id="post",
        connector="local://test/scripted",
        version="1.0.0",
        content_hash="sha256:content",
        operation="post",
        base_url="https://example.org",
        binding=None,
        request=request,
    )
    return evolve(usual, **more)


def sent(body: JSON = None, **more: Any) -> ReviewedRequest:
    """The request of a step."""
    usual = ReviewedRequest(
        connector="local://test/scripted",
        operation="post",
        effect="write",
        method="POST",
        url="https://example.org/api/post",
        headers=(("Content-Type", "application/json"),),
        body=body,
        credential_header="Authorization",
    )
    return evolve(usual, **more)


def bound(account: str, name: str = "api_key/slack/default") -> ReviewedBinding:
    """The binding of a step."""
    return ReviewedBinding(name, "api_key", "builtin://slack", 1, None, account)


def previewed(*lines: PreviewField, lacking: str | None = None, **shown: Any) -> ReviewedPreview:
    """The preview of a review."""
    preview = Preview(**{"status": PreviewStatus.SHOWN, "fields": lines, **shown})
    return ReviewedPreview("builtin://slack", "get", preview, planned(None), lacking)


@define
class Reading(HTMLParser):
    """Every tag with its attributes, and all text."""

    tags: list[tuple[str, dict[str, str]]] = field(factory=list)
    words: list[str] = field(factory=list)

    def __attrs_pre_init__(self) -> None:
        """Begin."""
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.append((tag, {name: value or "" for name, value in attributes}))

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.words.append(data)

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self.words)

    @property
    def shape(self) -> list[tuple[str, tuple[str, ...]]]:
        """The tags in order, each with the names of its attributes."""
        return [(tag, tuple(sorted(attributes))) for tag, attributes in self.tags]


def read(text: str) -> Reading:
    """What C{text} is as HTML."""
    reading = Reading()
    reading.feed(text)
    reading.close()
    return reading

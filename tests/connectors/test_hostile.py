"""Every operation of every connector that comes with the package, against services that do what they should not."""

from __future__ import annotations

import base64
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any
from urllib.parse import quote

from attrs import evolve, frozen
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from aileron.base.addresses import read_origin
from aileron.base.converter import to_json
from aileron.base.json import JSON, canonical
from aileron.connectors import HttpConnector
from aileron.connectors._template import ReferenceScope, render
from aileron.connectors.kinds.http._spec import HttpOperation
from aileron.model.connectors import READ, Outcome
from aileron.runner.outcomes import Meaning, RetryPolicy, classify
from tests.connectors.certificate import Certificate
from tests.connectors.service import Service, answer
from tests.connectors.test_builtin import BUILTIN, NAMES
from tests.connectors.test_builtin import spec as read_spec
from tests.extent import Turns

spec = cache(read_spec)
PUBLIC, KEY = "93.184.216.34", "fixture"
SECRET = "canary:k3y/+x=42~longer-than-most"
ENCODED = (SECRET, quote(SECRET, safe=""), base64.b64encode(SECRET.encode()).decode(), SECRET.encode().hex())


@frozen
class Call:
    """One operation with what a recorded fixture gives it.

    :ivar base_url: where its connector is.
    :ivar recorded: the fixture's answer.
    :ivar more: the answers of further pages.
    :ivar output: what comes of that.
    """

    name: str
    operation: HttpOperation
    base_url: str
    inputs: Mapping[str, JSON]
    recorded: Mapping[str, Any]
    more: Sequence[Mapping[str, Any]]
    output: JSON

    @property
    def is_read(self) -> bool:
        """Whether it has no effect."""
        return self.operation.operation.effect == READ

    def body(self, change: Callable[[JSON], JSON] = lambda value: value) -> bytes:
        """The recorded body, its JSON changed."""
        if "json" in self.recorded:
            return canonical(change(render(self.recorded["json"], ReferenceScope(self.inputs, KEY))))  # type: ignore[arg-type]
        return str(change(self.recorded.get("text", ""))).encode()

    def reply(self, body: bytes, status: int | None = None, headers: Mapping[str, str] | None = None) -> bytes:
        """An answer on the wire."""
        given = {**self.recorded.get("headers", {}), **(headers or {})}
        wanted = self.recorded["status"] if status is None else status
        return answer(b"" if self.operation.method == "HEAD" else body, wanted, given)


@cache
def calls(name: str) -> Sequence[Call]:
    """One call of each operation of a connector, as the first fixture that succeeds has it."""
    return tuple(_calls(name))


def _calls(name: str) -> Iterator[Call]:
    about = spec(name)
    fixtures = tomllib.loads((BUILTIN / f"{name}.fixtures.toml").read_text("utf-8"))
    template = about.description.template
    usual = about.description.base_url if template is None else template.example
    for operation, each in about.operations.items():
        first = next(one for one in fixtures["operations"][operation] if "outcome" not in one)
        base_url = str(fixtures.get("base_url") or usual)
        yield Call(
            operation,
            each,
            base_url,
            first.get("inputs", {}),
            first["answer"],
            first.get("more_answers", ()),
            first.get("output"),
        )


def infected(value: JSON) -> JSON:
    """The same with the secret in each text, in a form that changes from one to the next."""
    forms = iter(range(1_000_000))

    def change(part: JSON) -> JSON:
        if isinstance(part, str):
            return f"a {ENCODED[next(forms) % len(ENCODED)]} z"
        if isinstance(part, Mapping):
            return {key: change(each) for key, each in part.items()}
        return [change(each) for each in part] if isinstance(part, list) else part

    return change(value)


def _pass(seconds: float, service: Service) -> None:
    service.advance(seconds)


class HostileCase(SynchronousTestCase):
    """A service that is reached by TLS at the connector's own host, and everything that is logged meanwhile."""

    def setUp(self) -> None:
        self.logged: list[str] = []
        self.turns = Turns(self.id())

        @implementer(ILogObserver)
        def observe(event: LogEvent) -> None:
            self.logged.append(repr(event))

        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)

    def each(self) -> Iterator[tuple[str, Call]]:
        """Every call of every connector."""
        for name in NAMES:
            for call in calls(name):
                yield name, call

    def send(
        self, name: str, call: Call, reply: bytes | None, after: Callable[[Service], object] | None = None
    ) -> Outcome:
        """What comes of one call whose service answers so, and does C{after} then."""
        connector, service = self.connected(name, call)
        request = connector.prepare(call.name, call.inputs, call.base_url, KEY)
        further = [evolve(call, recorded=each) for each in call.more]
        service.replies += [reply, *(each.reply(each.body()) for each in further), *[answer(b"", 500)] * 100]
        need = connector.describe().credential
        sending = service.start(
            connector,
            call.name,
            call.inputs,
            base_url=call.base_url,
            key=KEY,
            secret=None if need is None else SECRET.encode(),
            seconds=400,
        )
        if after is not None:
            after(service)
        outcome: Outcome = self.successResultOf(sending)
        self.sent, self.service = request, service
        self.assert_clean(f"{name}.{call.name}", outcome)
        return outcome

    def connected(self, name: str, call: Call) -> tuple[HttpConnector, Service]:
        """The connector, and its service."""
        about = spec(name)
        place = call.operation.place
        url = call.base_url if place is None else about.description.url_of(place, call.base_url)
        host = read_origin(url).host
        certificate = Certificate.made(host)
        service = Service(names={host: [PUBLIC]}, certificate=certificate, trusted=certificate)
        return service.connector(about), service

    def assert_clean(self, what: str, outcome: Outcome) -> None:
        """The secret is nowhere: not in what is handed on and recorded, and not in what is logged."""
        recorded = json.dumps([repr(outcome), None if outcome.fault is None else to_json(outcome.fault)])
        for text in (recorded, *self.logged):
            for form in ENCODED:
                self.assertNotIn(form, text, what)

    def assert_truthful(self, name: str, call: Call, outcome: Outcome, *, sent: bool = True) -> None:
        """A read has failed, a write may have happened, and nothing but what may be repeated is sent again."""
        what, meaning = f"{name}.{call.name}", classify(outcome, call.operation.operation.effect)
        self.assertEqual(outcome.sent, sent, what)
        self.assertIs(meaning, Meaning.NOT_DONE if call.is_read or not sent else Meaning.IN_DOUBT, what)
        again = RetryPolicy(lambda: 0.0).delay(outcome, call.operation.operation.idempotent, 1, 60.0)
        if sent and not call.operation.operation.idempotent:
            self.assertIsNone(again, what)


class HostileTests(HostileCase):
    """One hostility after the other."""

    def test_recorded(self) -> None:
        """With nothing wrong each comes out as recorded, is sent once, and carries what is not shown."""
        for name, call in self.each():
            outcome = self.send(name, call, call.reply(call.body()))
            self.assertIsNone(outcome.fault, f"{name}.{call.name}: {outcome.fault}")
            self.assertEqual(outcome.output, call.output, f"{name}.{call.name}")
            raw = self.service.requests[-1]
            self.assertEqual(len(self.service.requests), 1 + len(call.more))
            if spec(name).description.credential is not None:
                self.assertTrue(any(form.encode() in raw for form in (*ENCODED, quote(SECRET, safe=":"))), name)
            for form in ENCODED:
                self.assertNotIn(form, repr(self.sent))

    def test_refused(self) -> None:
        """Where nobody listens, nothing was sent, and every call may be made again."""
        for name, call in self.each():
            connector, service = self.connected(name, call)
            service.refusing.add(PUBLIC)
            secret = None if connector.describe().credential is None else SECRET.encode()
            sending = service.start(connector, call.name, call.inputs, base_url=call.base_url, key=KEY, secret=secret)
            outcome: Outcome = self.successResultOf(sending)
            self.assert_truthful(name, call, outcome, sent=False)
            self.assertTrue(outcome.fault and outcome.fault.retriable)

    def test_reset(self) -> None:
        """A connection that breaks behind the request, within the head or within the body leaves a write in doubt."""
        for name, call in self.each():
            body = call.body() or b"{}"
            whole = answer(body, 200)
            head = whole[: len(whole) - len(body)]
            for cut in self.turns.of(None, b"HTTP/1.1 200 O", head, whole[:-1]):
                if call.operation.method == "HEAD" and cut not in (None, b"HTTP/1.1 200 O"):
                    continue  # whose answer ends with its head
                self.assert_truthful(name, call, self.send(name, call, cut, Service.reset))

    def test_silent(self) -> None:
        """A service that answers never, or in drops, is waited for until the time is over, and a write is in doubt."""
        for name, call in self.each():
            within = call.operation.operation.timeout_seconds + 1
            for drop in self.turns.of(None, b"HTTP/1.1 200 OK\r\nX-A: b"):
                self.assert_truthful(name, call, self.send(name, call, drop, partial(_pass, within)))

    def test_twice(self) -> None:
        """A second answer on the same connection is read by nobody."""
        for name, call in self.each():
            reply = call.reply(call.body())
            outcome = self.send(name, call, reply + answer(b'{"ok": false, "error": "late"}', 500))
            self.assertEqual((outcome.fault, outcome.output), (None, call.output), f"{name}.{call.name}")

    def test_redirected(self) -> None:
        """A redirect to another host, or to plain http, is not followed, and takes the credential nowhere.

        It leaves a write in doubt, unless the connector knows better.
        """
        for name, call in self.each():
            host = read_origin(call.base_url).host
            for status, target in self.turns.of(
                (302, "https://evil.example/steal"),
                (307, f"http://{host}/"),
                (308, "//evil.example"),
            ):
                outcome = self.send(name, call, call.reply(b"", status, {"Location": target}))
                if status in call.operation.refused:
                    self.assertTrue(outcome.classified)
                else:
                    self.assert_truthful(name, call, outcome)
                self.assertEqual((len(self.service.requests), len(self.service.connected)), (1, 1))

    def test_broken_down(self) -> None:
        """An error of the service that says nothing leaves a write in doubt, unless the connector knows better."""
        for name, call in self.each():
            for status in self.turns.of(500, 502, 408):
                outcome = self.send(name, call, call.reply(b"<h1>oops</h1>", status))
                if status in call.operation.refused:
                    self.assertTrue(outcome.classified)
                else:
                    self.assert_truthful(name, call, outcome)

    def test_too_large(self) -> None:
        """An answer beyond the limit is not read, and a write is in doubt."""
        for name, call in self.each():
            if call.operation.method == "HEAD":
                continue
            most = call.operation.max_response_bytes
            head = answer(b"", 200, {"Content-Length": str(most + 1)})
            outcome = self.send(name, call, head + b"x" * 64)
            self.assert_truthful(name, call, outcome)

    def test_echoed(self) -> None:
        """Whatever a service writes back of the credential, wherever, is handed on by nobody, recorded nor logged."""
        told = {"error": SECRET, "message": ENCODED[1], "ok": False, "detail": [ENCODED[2]]}
        words = json.dumps(told).encode()
        xml = f"<Error><Code>{SECRET}</Code><Message>{ENCODED[1]}</Message></Error>".encode()
        for name, call in self.each():
            shown = {f"X-Echo-{number}": form for number, form in enumerate(ENCODED)}
            seen = self.send(name, call, call.reply(call.body(infected), None, shown))
            self.assertEqual(seen.sent, True)
            statuses = [(status, words) for status in (400, 401, 403, 429, 500, 302)]
            for status, said in self.turns.of(*statuses, (403, xml)):
                self.send(name, call, call.reply(said, status, {"Retry-After": SECRET}))

"""The contract of every kind of credential, and one use of it in a test's hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from attrs import define, evolve, field
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors._headers import header_value
from aileron.credentials import KINDS, CredentialKind, CredentialUse, TokenAnswer, TokenRequest
from aileron.model.connectors import Request
from aileron.model.vault import Authorization, CredentialStatus, Scope
from aileron.testing._case import MixedIn

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
REQUEST = Request(
    connector="local://me/tracker",
    operation="create",
    effect="write",
    idempotent=False,
    method="POST",
    url="https://api.example/items?a=1",
    headers=(("Content-Type", "application/json"),),
    body=b'{"title":"x"}',
)

Answer = TokenAnswer | Exception | Deferred[TokenAnswer]


@define(eq=False)
class Held:
    """What is kept of one credential, and the token endpoint that it asks.

    :ivar answers: of the endpoint, spent in order.
    :ivar asked: what it was asked, in order.
    :ivar history: all that was kept, in order.
    """

    kept: bytes
    scope: Scope
    answers: list[Answer] = field(factory=list)
    asked: list[TokenRequest] = field(factory=list)
    history: list[bytes] = field(factory=list)
    now: datetime = NOW

    def use(self) -> CredentialUse:
        """One use, now."""
        return CredentialUse(self.scope, self.kept, self._keep, lambda: self.now, self._exchange)

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)

    def _keep(self, renewed: bytes) -> None:
        self.kept = renewed
        self.history.append(renewed)

    async def _exchange(self, asked: TokenRequest) -> TokenAnswer:
        self.asked.append(asked)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, TokenAnswer) else await answer


def scope_of(kind: CredentialKind, **settings: str) -> Scope:
    """The scope of a connector that says no more than it must."""
    return Scope(("api.example:443",), "https://api.example", kind.header or "X-Key", kind.format, settings)


class KindCase(SynchronousTestCase):
    """A kind, and one credential of it.

    :ivar name: the kind's.
    :ivar good: what is kept of a credential that can be used at once.
    :ivar settings: of its connector.
    """

    name: ClassVar[str]
    good: ClassVar[bytes]
    settings: ClassVar[dict[str, str]] = {}

    def setUp(self) -> None:
        self.kind = KINDS[self.name]
        self.held = Held(self.good, scope_of(self.kind, **self.settings))

    def authorizing(self, request: Request = REQUEST) -> Deferred[Authorization]:
        """Begin to authorize a request."""
        return Deferred.fromCoroutine(self.kind.authorize(self.held.use(), request))

    def authorized(self, request: Request = REQUEST) -> Authorization:
        """What a request is sent with, at once."""
        return self.successResultOf(self.authorizing(request))

    def status(self) -> CredentialStatus:
        """Whether it can be used."""
        return self.kind.state(self.held.kept, self.held.now).status


class KindContract(MixedIn):
    """Mix into a L{KindCase}.

    :ivar bad: what cannot be kept.
    :ivar sent_secrets: what is secret of C{good} and travels to the service, or could be told from what does.
    """

    bad: ClassVar[Sequence[bytes]]
    sent_secrets: ClassVar[Sequence[str]]
    good: ClassVar[bytes]
    held: Held
    kind: CredentialKind

    def authorized(self, request: Request = REQUEST) -> Authorization:
        """What a request is sent with."""
        raise NotImplementedError

    def status(self) -> CredentialStatus:
        """Whether it can be used."""
        raise NotImplementedError

    def test_found_by_name(self) -> None:
        """It is registered under the name that it has."""
        self.assertIs(KINDS[self.kind.name], self.kind)

    def test_kept(self) -> None:
        """What is good can be kept, and used at once, and using it keeps nothing else."""
        self.kind.check(self.good)
        self.authorized()
        self.assertEqual((self.held.history, self.held.asked), ([], []))
        self.assertIn(self.status(), {CredentialStatus.READY, CredentialStatus.EXPIRES})

    def test_sample(self) -> None:
        """What a proof binds can be kept, and is used with its secret at once, without asking anybody."""
        secret = "canary:k3y/+x=42~"
        kept = self.kind.make_sample(secret)
        if kept is None:
            return
        self.kind.check(kept)
        self.held.kept = kept
        self.assertIn(secret, self.authorized().secrets)
        self.assertEqual((self.held.history, self.held.asked), ([], []))

    def test_not_kept(self) -> None:
        """What is no such credential is refused, and not repeated."""
        for kept in self.bad:
            with self.assertRaises(ValueError) as raised:
                self.kind.check(kept)
            told = f"{raised.exception} {raised.exception.__cause__} {raised.exception.__context__}"
            self.assertNotIn("canary", told if type(raised.exception) is ValueError else str(raised.exception))

    def test_sent(self) -> None:
        """What is sent can stand in a header, and all that is secret in it is named, and shows in no repr."""
        sent = self.authorized()
        for _, value in sent.headers:
            self.assertEqual(header_value(value), value)
        for secret in self.sent_secrets:
            self.assertIn(secret, sent.secrets)
        shown = repr((sent, self.held.use(), self.kind, evolve(REQUEST)))
        for secret in sent.secrets:
            self.assertNotIn(secret, shown)

    def test_ready(self) -> None:
        """Where nothing is due, it is ready as it is."""
        for _ in range(2):
            self.assertIsNone(self.successResultOf(Deferred.fromCoroutine(self.kind.make_ready(self.held.use()))))
        self.assertEqual((self.held.history, self.held.asked), ([], []))

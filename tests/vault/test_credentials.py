"""What is kept of a credential may change as it is used, and what is sent follows from it."""

from __future__ import annotations

from typing import ClassVar, cast

from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred

from aileron.credentials import DEFAULT_KIND, KINDS, CredentialKind, CredentialUse
from aileron.model.errors import BindingFailed, InvalidRequest
from aileron.testing import example_scope, new_binding, opened

from .case import OpenCase


class _Renewing(CredentialKind):
    """Is renewed at each use, as soon as the test says so, and keeps how often."""

    name: ClassVar[str] = "renewing"
    format: ClassVar[str] = "{key}"

    def __init__(self) -> None:
        self.waiting: list[Deferred[None]] = []

    def check(self, kept: bytes) -> None:
        """A number."""
        int(kept)

    def make_sample(self, secret: str) -> None:
        """None is proved."""

    async def reveal(self, use: CredentialUse) -> bytes:
        """The number that is kept from now on."""
        renewed: Deferred[None] = Deferred()
        self.waiting.append(renewed)
        await renewed
        use.keep(b"%d" % (int(use.kept) + 1))
        return b"token-" + use.kept


class RenewedTests(OpenCase):
    """A kind that runs out."""

    def setUp(self) -> None:
        """A binding of it."""
        super().setUp()
        self.kind = _Renewing()
        kinds = cast(dict[str, CredentialKind], KINDS)
        kinds[self.kind.name] = self.kind
        self.addCleanup(kinds.pop, self.kind.name)
        self.made = self.set_up(evolve(new_binding(secret=b"1"), kind=self.kind.name))

    def reveal(self) -> Deferred[bytes]:
        """Begin to open it."""
        return Deferred.fromCoroutine(self.vault.credential(self.made, example_scope()).reveal())

    def test_kept(self) -> None:
        """What was renewed is kept, in another life too, and it is the same binding in the same revision."""
        revealed = self.reveal()
        self.assertNoResult(revealed)
        self.kind.waiting.pop().callback(None)
        self.assertEqual(self.successResultOf(revealed), b"token-2")
        again = self.unlocked()
        self.assertEqual(again.list(), (self.made,))
        renewed = Deferred.fromCoroutine(again.credential(self.made, example_scope()).reveal())
        self.kind.waiting.pop().callback(None)
        self.assertEqual(self.successResultOf(renewed), b"token-3")

    def test_one_at_a_time(self) -> None:
        """Who comes while it is renewed waits, and then gets what came of it."""
        first, second = self.reveal(), self.reveal()
        self.assertEqual(len(self.kind.waiting), 1)
        self.kind.waiting.pop().callback(None)
        self.assertEqual(self.successResultOf(first), b"token-2")
        self.assertNoResult(second)
        self.kind.waiting.pop().callback(None)
        self.assertEqual(self.successResultOf(second), b"token-3")

    def test_failed(self) -> None:
        """A renewal that fails keeps what was there, and the next may try."""
        failing, waiting = self.reveal(), self.reveal()
        self.kind.waiting.pop().errback(BindingFailed("The service refused."))
        self.failureResultOf(failing, BindingFailed)
        self.kind.waiting.pop().callback(None)
        self.assertEqual(self.successResultOf(waiting), b"token-2")

    def test_revoked_meanwhile(self) -> None:
        """What was revoked while it was renewed is not kept again, and goes nowhere."""
        revealed = self.reveal()
        self.successResultOf(Deferred.fromCoroutine(self.vault.revoke(self.made.name)))
        self.kind.waiting.pop().callback(None)
        self.failureResultOf(revealed, BindingFailed)
        self.assertEqual(self.vault.list(), ())

    def test_cancelled(self) -> None:
        """Who gives up ends the wait alone: the renewal goes on, and what comes of it is kept."""
        revealed, waiting = self.reveal(), self.reveal()
        revealed.cancel()
        self.failureResultOf(revealed, CancelledError)
        self.kind.waiting.pop().callback(None)
        self.kind.waiting.pop().callback(None)
        self.assertEqual(self.successResultOf(waiting), b"token-3")

    def test_replaced_meanwhile(self) -> None:
        """What a person put there while it was renewed stays."""
        revealed = self.reveal()
        self.successResultOf(Deferred.fromCoroutine(self.vault.replace(self.made.name, b"7")))
        self.kind.waiting.pop().callback(None)
        self.failureResultOf(revealed, BindingFailed)
        again = self.reveal()
        self.kind.waiting.pop().callback(None)
        self.assertEqual(self.successResultOf(again), b"token-8")

    def test_unfit(self) -> None:
        """What the kind would not keep, and a kind that there is not, is refused before the vault is written."""
        for kind, secret in ((self.kind.name, b"x"), ("unknown", b"1")):
            unfit = evolve(new_binding("you", secret=secret), kind=kind)
            self.failureResultOf(Deferred.fromCoroutine(self.vault.set_up(unfit)), InvalidRequest)


class ApiKeyTests(OpenCase):
    """The kind that most are."""

    def test_as_it_is(self) -> None:
        """It is sent as it is kept, and using it writes nothing."""
        made = self.set_up(new_binding())
        before = self.path.read_bytes()
        self.assertEqual(opened(self, self.vault.credential(made, example_scope())), new_binding().secret)
        self.assertEqual((self.path.read_bytes(), made.kind), (before, DEFAULT_KIND))

"""A credential of a vault that several daemons share is renewed by one of them, and used by all."""

from __future__ import annotations

import json
from pathlib import Path

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.credentials import TokenAnswer, TokenRequest
from aileron.model.errors import NetworkError
from aileron.model.vault import Authorization
from aileron.testing import MemoryTurns, example_scope, new_binding
from aileron.vault import Renewals, Vault

from .case import VaultCase
from .test_renewed import REQUEST, document
from .test_shared import MemoryCopy


class RotatingService:
    """A token endpoint that accepts each refresh token once.

    :ivar asked: the requests whose answer is not given yet.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, Deferred[TokenAnswer]]] = []
        self.number = 1
        self.refused = 0

    async def exchange(self, asked: TokenRequest) -> TokenAnswer:
        answer: Deferred[TokenAnswer] = Deferred()
        self.asked.append((asked.body or b"", answer))
        return await answer

    def answer(self) -> None:
        """Answer the oldest request."""
        body, answer = self.asked.pop(0)
        if f"refresh_token=canary-refresh-{self.number}".encode() not in body:
            self.refused += 1
            answer.callback(TokenAnswer(400, b'{"error": "invalid_grant"}'))
            return
        self.number += 1
        token = {
            "access_token": f"canary-{self.number}",
            "refresh_token": f"canary-refresh-{self.number}",
            "expires_in": 3600,
        }
        answer.callback(TokenAnswer(200, json.dumps(token).encode()))


class RenewalTests(VaultCase):
    """Two daemons with a credential that must be renewed before its first use."""

    def setUp(self) -> None:
        super().setUp()
        self.copy, self.turns, self.service = MemoryCopy(), MemoryTurns(), RotatingService()
        first = self.unlocked()
        binding = evolve(new_binding(secret=document()), kind="oauth2")
        self.made = self.successResultOf(Deferred.fromCoroutine(first.set_up(binding)))
        self.one = self.shared(self.path, self.turns)
        second = Path(self.mktemp())
        second.write_bytes(self.path.read_bytes())
        self.other_turns = self.turns.of("other")
        self.other = self.shared(second, self.other_turns)

    def shared(self, path: Path, turns: MemoryTurns) -> Vault:
        vault = Vault(path, self.clock, lambda: True, self.key(), Renewals(self.service.exchange))
        vault.share(self.copy, turns)
        return vault

    def start(self, vault: Vault) -> Deferred[Authorization]:
        return Deferred.fromCoroutine(vault.credential(self.made, example_scope()).authorize(REQUEST))

    def sent(self, started: Deferred[Authorization]) -> str:
        ((_, value),) = self.successResultOf(started).headers
        return value

    def test_once(self) -> None:
        """Of two daemons that need it at the same moment, one renews it, and both use what it got."""
        started = [self.start(vault) for vault in (self.one, self.other)]
        self.assertEqual(len(self.service.asked), 1)
        self.service.answer()
        self.clock.advance(0.5)
        self.assertEqual([self.sent(each) for each in started], ["Bearer canary-2", "Bearer canary-2"])
        self.assertEqual((self.service.number, self.service.refused, self.service.asked), (2, 0, []))
        self.assertEqual(self.turns.holders, {})

    def test_loser(self) -> None:
        """A daemon that did not hear that it was renewed finds that when it has the turn, and asks for nothing."""
        started = self.start(self.one)
        self.service.answer()
        self.sent(started)
        self.assertEqual(self.sent(self.start(self.other)), "Bearer canary-2")
        self.assertEqual(self.service.asked, [])

    def test_refused(self) -> None:
        """A refusal of a token that another daemon has replaced spends nothing, and the next token is sent."""
        for vault in (self.one, self.other):
            started = self.start(vault)
            if self.service.asked:
                self.service.answer()
            self.sent(started)
        sent = self.successResultOf(self.start(self.other))
        self.clock.advance(3600)
        renewing = self.start(self.one)
        credential = self.other.credential(self.made, example_scope())
        refused = Deferred.fromCoroutine(credential.refused(sent))
        self.assertNoResult(refused)
        self.service.answer()
        self.sent(renewing)
        self.clock.advance(0.5)
        self.assertTrue(self.successResultOf(refused))
        self.assertEqual(self.sent(self.start(self.other)), "Bearer canary-3")
        self.assertEqual((self.service.refused, self.service.asked), (0, []))

    def test_gone(self) -> None:
        """If the daemon that renews it is gone, another does once the turn is over; what it sends is what is stored."""
        self.start(self.one).addErrback(lambda _: None)
        self.service.asked.clear()
        started = self.start(self.other)
        self.clock.advance(0.5)
        self.assertNoResult(started)
        self.turns.holders.clear()
        self.clock.advance(0.5)
        self.service.answer()
        self.assertEqual(self.sent(started), "Bearer canary-2")

    def test_never(self) -> None:
        """A daemon does not wait for ever, and an expired token is not used."""
        self.start(self.one).addErrback(lambda _: None)
        started = self.start(self.other)
        self.clock.pump([0.5] * 91)
        self.failureResultOf(started, NetworkError)
        self.assertEqual(len(self.service.asked), 1)

    def test_stood_still(self) -> None:
        """A daemon that stood still for longer than its turn sends nothing."""
        self.turns.is_over = True
        self.failureResultOf(self.start(self.one), NetworkError)
        self.assertEqual((self.service.asked, self.turns.holders), ([], {}))

    def test_away(self) -> None:
        """While the database is away nothing is renewed; a token that has not expired is used."""
        started = self.start(self.one)
        self.service.answer()
        self.sent(started)
        self.turns.away = True
        self.clock.advance(3590)
        self.assertEqual(self.sent(self.start(self.one)), "Bearer canary-2")
        self.clock.advance(10)
        self.failureResultOf(self.start(self.one), NetworkError)
        self.assertEqual(self.service.asked, [])
        self.turns.away = False
        started = self.start(self.one)
        self.service.answer()
        self.assertEqual(self.sent(started), "Bearer canary-3")

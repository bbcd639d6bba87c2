"""Addresses that apprise knows, in a thread by hand."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from unittest import SkipTest

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.python.reflect import requireModule
from twisted.trial.unittest import SynchronousTestCase

from aileron.notices import Undelivered
from aileron.notices._channels import AppriseThread, notify, open_secret
from aileron.testing import MemoryBindings, MemoryVault
from aileron.values import ChannelSettings, Message, NewBinding

from .case import message

CHANNEL = ChannelSettings("phone")
ADDRESS = b"ntfys://ntfy.invalid/canary-topic"


class AppriseTests(SynchronousTestCase):
    def setUp(self) -> None:
        """A channel with an address."""
        self.vault = MemoryVault()
        bindings = MemoryBindings(self.vault)
        bindings.add(NewBinding("api_key", "notice", "phone", CHANNEL.fqn, ADDRESS, scope=CHANNEL.scope()))
        self.threads: list[tuple[str, Message, Deferred[str | None]]] = []
        self.channel = AppriseThread(partial(open_secret, bindings, CHANNEL), self.in_thread)

    def in_thread(self, work: Callable[..., object], address: str, told: Message) -> Deferred[str | None]:
        """Note what would be called there."""
        answer: Deferred[str | None] = Deferred()
        self.threads.append((address, told, answer))
        return answer

    def deliver(self) -> Deferred[None]:
        """Tell it."""
        return Deferred.fromCoroutine(self.channel.deliver(message()))

    def test_told(self) -> None:
        """The address comes from the vault, for this message alone, and shows in no repr."""
        done = self.deliver()
        ((address, told, answer),) = self.threads
        self.assertEqual((address, told.id), (ADDRESS.decode(), "message-1"))
        answer.callback(None)
        self.successResultOf(done)
        self.assertNotIn("canary", repr(self.channel))

    def test_failed(self) -> None:
        """What the service refuses is said in our words, and so is what the library raises."""
        done = self.deliver()
        self.threads[0][2].callback("The service did not take it.")
        self.assertEqual(self.failureResultOf(done, Undelivered).value.problem, "The service did not take it.")
        done = self.deliver()
        self.threads[1][2].errback(Failure(ValueError("canary")))
        self.assertEqual(self.failureResultOf(done, Undelivered).value.problem, "It failed (ValueError).")

    def test_one_thread(self) -> None:
        """While a thread hangs there is no second, also when nobody waits for the first any more."""
        done = self.deliver()
        done.cancel()
        self.failureResultOf(done)
        self.failureResultOf(self.deliver(), Undelivered)
        self.assertEqual(len(self.threads), 1)
        self.threads[0][2].callback(None)
        self.deliver()
        self.assertEqual(len(self.threads), 2)

    def test_locked(self) -> None:
        """With the vault its address is locked: nothing is sent."""
        self.vault.lock()
        self.assertIn("locked", self.failureResultOf(self.deliver(), Undelivered).value.problem)
        self.assertEqual(self.threads, [])


class Ear(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.heard.append(record)


class LibraryTests(SynchronousTestCase):
    """The library itself."""

    def setUp(self) -> None:
        """Nothing is tried where it is not installed."""
        if requireModule("apprise") is None:
            raise SkipTest("apprise is not installed")

    def test_no_address(self) -> None:
        """What is no address is said without being repeated, and nothing of it is logged."""
        root, ear = logging.getLogger(), Ear()
        root.addHandler(ear)
        self.addCleanup(root.removeHandler, ear)
        for address in ("canary", "canary://canary/canary"):
            self.assertEqual(notify(address, message()), "What is bound to it is no address that apprise knows.")
        self.assertEqual(ear.heard, [])

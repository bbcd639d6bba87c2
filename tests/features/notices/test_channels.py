"""The channels: the desktop's own program without a process, apprise in a thread by hand, and webhooks."""

from __future__ import annotations

import hmac
import json
import logging
import os
import re
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import SkipTest

from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure
from twisted.python.reflect import requireModule
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.notices._channels import AppriseThread, find_command, notify, notify_desktop, open_secret
from aileron.features.notices._delivery import Undelivered
from aileron.features.notices._webhook import post_message
from aileron.features.notices.values import ChannelSettings, Message
from aileron.model.vault import NewBinding
from aileron.testing import MemoryBindings, MemoryVault
from tests.connectors.certificate import Certificate
from tests.machine import Machine

from .case import message
from .wired import Server

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
        self.threads[0][2].callback("The service did not accept the message.")
        self.assertEqual(
            self.failureResultOf(done, Undelivered).value.problem, "The service did not accept the message."
        )
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
            self.assertEqual(notify(address, message()), "Its secret is not an address that apprise supports.")
        self.assertEqual(ear.heard, [])


ENVIRON = {
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1000/bus",
    "XDG_RUNTIME_DIR": "/run/user/1000",
    "HOME": "/home/user",
    "HTTPS_PROXY": "http://user:canary@proxy",
    "AILERON_HOME": "/home/user/.aileron",
}


class DesktopTests(SynchronousTestCase):
    def setUp(self) -> None:
        """A desktop."""
        self.machine = Machine()
        self.command: Path | None = Path("/usr/bin/notify-send")

    def deliver(self, **more: Any) -> Deferred[None]:
        """Tell it."""
        return Deferred.fromCoroutine(notify_desktop(self.command, ENVIRON, self.machine, message(**more)))

    def test_told(self) -> None:
        """The program gets title, lines and page, and of the environment what leads to the desktop."""
        done = self.deliver(title="-Title", lines=("One & <b>two</b>",))
        self.assertNoResult(done)
        ((executable, argv, environ, _),) = self.machine.spawned
        self.assertEqual((executable, argv[0]), ("/usr/bin/notify-send", b"/usr/bin/notify-send"))
        self.assertEqual(argv[-3:-1], [b"--", b"-Title"])
        self.assertEqual(argv[-1], b"One &amp; &lt;b&gt;two&lt;/b&gt;\nhttp://localhost:7001/approvals/run-1")
        self.assertEqual(set(environ), {"DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "HOME"})
        self.machine.exit(0)
        self.successResultOf(done)

    def test_desk(self) -> None:
        """A notification on this machine leads to the desk's pages, also if there is a public name."""
        self.deliver(url="https://phone.example.org/approvals/run-1", desk_url="http://localhost:7001/approvals/run-1")
        ((_, argv, _, _),) = self.machine.spawned
        self.assertTrue(argv[-1].endswith(b"\nhttp://localhost:7001/approvals/run-1"), argv[-1])

    def test_shown(self) -> None:
        """No name makes markup, a line or no text by C's escapes; contents, which every user can read, are not told."""
        for given, shown in (
            ({"lines": (r"By \074b\076x, \n, \377 and \u202e",)}, r"By \\074b\\076x, \\n, \\377 and \\u202e"),
            ({"contents": ("ship-update: canary",)}, "One line."),
            ({"urgent": True}, "One line."),
        ):
            self.deliver(**given)
            _, argv, *_ = self.machine.spawned[-1]
            self.assertEqual(argv[-1].decode().partition("\n")[0], shown)
            self.assertEqual(b"--urgency=critical" in argv, "urgent" in given)
        self.assertNotIn("canary", str(self.machine.spawned))

    def test_failed(self) -> None:
        """A desktop that is not there, and a program that cannot be started or does not exist, is said."""
        done = self.deliver()
        self.machine.exit(1)
        self.failureResultOf(done, Undelivered)
        self.machine.broken = OSError(12, "Cannot allocate memory")
        self.assertIn("Cannot allocate", self.failureResultOf(self.deliver(), Undelivered).value.problem)
        self.command = None
        failed = self.failureResultOf(self.deliver(), Undelivered).value
        self.assertEqual((failed.again, "libnotify-bin" in failed.problem), (False, True))

    def test_hangs(self) -> None:
        """One that hangs is killed when it is given up, and its late end changes nothing."""
        done = self.deliver()
        done.cancel()
        self.failureResultOf(done)
        self.assertEqual(self.machine.signalled, ["KILL"])
        self.machine.exit(0)

    def test_found(self) -> None:
        """The program is looked for in a few fixed places and nowhere else, unless another was configured."""
        program, other = Path(self.mktemp()).absolute(), Path(self.mktemp()).absolute()
        for each in (program, other):
            each.write_text("#!/bin/sh\n")
        self.assertIsNone(find_command(None, (program,)))
        program.chmod(0o755)
        self.assertEqual(find_command(None, (other, program)), program)
        self.assertIsNone(find_command(other, (program,)))


URL = "http://127.0.0.1:8800/hook"
KEY = b"canary-key"
OFFICE = ChannelSettings("office", URL, signed=True)


class WebhookTests(SynchronousTestCase):
    def setUp(self) -> None:
        """A place to listen, and a vault with a key."""
        self.reactor = MemoryReactorClock()
        self.reactor.advance(1_700_000_000)
        self.vault = MemoryVault()
        self.bindings = MemoryBindings(self.vault)

    def deliver(self, open_key: Callable[[], Awaitable[bytes]] | None = None, url: str = URL) -> Deferred[None]:
        """Send one message."""
        return Deferred.fromCoroutine(post_message(url, self.reactor, open_key, message(contents=("to: me",))))

    def bind(self, url: str = URL) -> None:
        """Keep the key."""
        channel = ChannelSettings("office", url, signed=True)
        self.bindings.add(NewBinding("api_key", "notice", "office", channel.fqn, KEY, scope=channel.scope()))

    def test_posted(self) -> None:
        """The message is posted as JSON, named so that a second copy can be told, and without a signature."""
        done = self.deliver()
        server = Server.accept(self.reactor)
        self.assertTrue(server.head.startswith("POST /hook HTTP/1.1\r\n"))
        self.assertIn("\r\nAileron-Delivery: message-1", server.head)
        self.assertNotIn("Signature", server.head)
        body = json.loads(server.body)
        self.assertEqual((body["id"], body["count"], body["notices"][0]["run_id"]), ("message-1", 1, "run-1"))
        self.assertEqual(body["text"], "One line.\nto: me")
        self.assertNoResult(done)
        server.answer(b"HTTP/1.1 204 No Content\r\n\r\n")
        self.successResultOf(done)

    def test_signed(self) -> None:
        """With a key the body and the moment are signed, and the key itself does not travel."""
        self.bind()
        self.deliver(partial(open_secret, self.bindings, OFFICE))
        server = Server.accept(self.reactor)
        found = re.search(r"^Aileron-Signature: t=(\d+),v1=([0-9a-f]{64})\r?$", server.head, re.MULTILINE)
        assert found is not None
        expected = hmac.digest(KEY, found[1].encode() + b"." + server.body, sha256).hex()
        self.assertEqual((found[1], found[2]), ("1700000000", expected))
        self.assertNotIn(KEY, server.taken)

    def test_no_key(self) -> None:
        """Without its key, with the vault locked, or with a key for another address, nothing is sent at all."""
        open_key = partial(open_secret, self.bindings, OFFICE)
        self.assertIn("aileron notification add office", self.failureResultOf(self.deliver(open_key)).value.problem)
        self.bind("http://127.0.0.1:8800/else")
        self.assertIn("another address", self.failureResultOf(self.deliver(open_key)).value.problem)
        self.vault.lock()
        failed = self.failureResultOf(self.deliver(open_key), Undelivered)
        self.assertIn("locked", failed.value.problem)
        self.assertFalse(failed.value.again)
        self.assertEqual(self.reactor.tcpClients, [])

    def test_refused(self) -> None:
        """A refusal is none of ours to repeat, a fault of the server's is; a redirection is not followed."""
        for status, again in ((b"404 No", False), (b"429 Soon", True), (b"503 No", True)):
            done = self.deliver()
            Server.accept(self.reactor).answer(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
            failed = self.failureResultOf(done, Undelivered).value
            self.assertEqual((failed.again, failed.problem), (again, f"It answered {int(status[:3])}."))
        done = self.deliver()
        Server.accept(self.reactor).answer(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n")
        self.failureResultOf(done, Undelivered)
        self.assertEqual(self.reactor.tcpClients, [])

    def test_untrusted(self) -> None:
        """A server for which nobody vouches whom this system trusts is told nothing, whatever the environment says."""
        certificate = Certificate.made("localhost")
        bundle = Path(self.mktemp())
        bundle.write_bytes(certificate.pem)
        self.patch(os, "environ", {**os.environ, "SSL_CERT_FILE": str(bundle)})
        done = self.deliver(url="https://localhost:8800/hook")
        server = Server.accept(self.reactor, certificate)
        self.assertIn("certificate verify failed", str(self.failureResultOf(done).value))
        self.assertEqual(server.taken, b"")

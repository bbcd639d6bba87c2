"""The security key as a key source: what the person is asked in the terminal, and what then opens the vault."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import attrs
from attrs import evolve
from twisted.internet.task import Clock
from zope.interface import implementer

from aileron.base.json import utc
from aileron.cli import context
from aileron.cli.context import CliContext, Conversation
from aileron.cli.vault import unlocking
from aileron.cli.vault.unattended import UnattendedUnlock
from aileron.features.key_sources.security_key import TOUCH_SECONDS, SecurityKeySource, TouchWait
from aileron.model.errors import InvalidRequest, VaultDamaged
from aileron.model.interfaces.vault import IKeySource
from aileron.model.vault import KeySource, KeySourceKind, SecurityKey
from aileron.testing import KeySourceContract
from aileron.vault import DataKey, Vault, keys
from aileron.vault._format import decode, encode
from aileron.vault._sealing import authenticated
from tests.cli.daemon import KEY, PASSPHRASE, CommandCase

from .software_key import SoftwareKey, take_out, wait_for_cancel, walk_away

PATH = "/v1/vault/key-sources"
CANARY_PIN = "canary-pin-4711"


@cache
def _vault() -> bytes:
    """The file of an empty vault whose data key is the one of the daemon in memory."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "secrets.json"
        keys.create(path, PASSPHRASE, lambda count: b"k" * count).wipe()
        return path.read_bytes()


@attrs.define
class ScriptedTerminal:
    """A terminal.

    :ivar secrets: what the person types where nothing is shown, in order.
    :ivar presses: whether the person presses Enter instead of a touch.
    :ivar pause: called each time the command looks whether something was typed.
    :ivar shown: everything that was shown.
    """

    secrets: list[str] = attrs.field(factory=list)
    presses: bool = False
    pause: Callable[[], None] = lambda: None
    shown: str = ""

    def say(self, text: str) -> None:
        self.shown += text

    def put(self, prompt: str) -> None:
        self.shown += prompt

    def answered(self) -> str | None:
        self.pause()
        return "" if self.presses else None

    def ask_secret(self, prompt: str) -> str:
        self.shown += prompt
        return self.secrets.pop(0)


class SecurityKeyCase(CommandCase):
    """A home with a vault, its daemon, a terminal and the security keys that are plugged in.

    :ivar present: whether a person is at the terminal.
    """

    def setUp(self) -> None:
        super().setUp()
        self.home.secrets.write_bytes(_vault())
        self.home.secrets.chmod(0o600)
        self.vault = Vault(self.home.secrets, Clock(), lambda: True, DataKey(KEY))
        self.terminal = ScriptedTerminal()
        self.plugged: list[SoftwareKey] = []
        self.present = True
        self.clock = Clock()
        self.site.answer("POST", PATH, self._add)

    def cli_context(self) -> CliContext:
        @contextmanager
        def terminal() -> Iterator[Conversation]:
            yield self.terminal

        return evolve(
            super().cli_context(),
            terminal=terminal,
            security_keys=self.list_keys,
            interactive=lambda: self.present,
            seconds=self.clock.seconds,
        )

    def list_keys(self) -> Iterable[Any]:
        """Return the keys that are plugged in."""
        return list(self.plugged)

    def _add(self, body: Any) -> Any:
        source = self.vault.key_sources.add(body["entry"], body["proof"])
        return {"id": source.id}

    def plug(self, key: SoftwareKey, *, presses: bool = False) -> SoftwareKey:
        """Plug in this key alone. The person has typed nothing yet."""
        self.plugged = [key]
        self.terminal = ScriptedTerminal([] if key.pin is None else [key.pin] * 2, presses)
        return key

    def add(self, key: SoftwareKey, name: str = "blue", code: int = 0) -> str:
        """Add a key by the command, and return what it printed."""
        self.plug(key)
        found, out, err = self.as_operator("vault", "key-source", "add", name, "--security-key")
        self.assertEqual(found, code, err)
        return out + err

    def unlocked(self, *presses: str) -> DataKey | None:
        """Return the key that C{vault unlock} gets without a passphrase, or None if it asks for the passphrase."""
        self.typed = [PASSPHRASE, *presses]
        self.errors = StringIO()
        with redirect_stderr(self.errors):
            key = unlocking.attended_key(self.cli_context(), None)
        self.assertEqual(key._secret, KEY)
        return None if not self.typed else key

    def opens(self) -> bool:
        """Return whether the key that is plugged in opens the vault."""
        return self.unlocked() is not None

    def why(self) -> str:
        """Return why the key that is plugged in did not open the vault."""
        self.assertFalse(self.opens())
        return self.errors.getvalue()


class AddTests(SecurityKeyCase):
    """C{aileron vault key-source add --security-key}."""

    def setUp(self) -> None:
        super().setUp()
        self.serve("local")

    def test_whole(self) -> None:
        """A key that was added opens the vault by a touch; what the terminal shows says what for, and no secret."""
        key = SoftwareKey()
        printed = self.add(key, "blue")
        self.assertEqual(key.touches, 2)
        self.assertIn("has no PIN", printed)
        self.assertIn(f"to add it to the vault {self.home.secrets}", self.terminal.shown)
        (source,) = self.vault.key_sources.list()
        self.assertEqual((source.kind, source.name), (KeySourceKind.SECURITY_KEY, "blue"))
        (entry,) = json.loads(self.home.secrets.read_text())["key_sources"]
        self.assertEqual(entry["security_key"].keys(), {"credential_id", "salt", "verified"})
        self.plug(key)
        self.assertTrue(self.opens())
        self.assertEqual(key.touches, 3)
        self.assertIn(f"to unlock the vault {self.home.secrets}", self.terminal.shown)
        self.assertTrue(key.closed)

    def test_pin(self) -> None:
        """A key with a PIN is asked for it in the terminal, at each use; nothing shows or stores the PIN."""
        key = SoftwareKey(pin=CANARY_PIN)
        printed = self.add(key)
        self.assertNotIn("has no PIN", printed)
        stored = self.home.secrets.read_text()
        self.plug(key)
        self.assertTrue(self.opens())
        self.assertEqual(self.terminal.secrets, [CANARY_PIN])
        sent = "".join(str(each.body) for each in self.site.asked)
        self.assertNotIn(CANARY_PIN, printed + stored + self.terminal.shown + sent)

    def test_fingerprint(self) -> None:
        """A key that reads fingerprints is touched for each proof, and asks for no PIN."""
        for tokens in (True, False):
            key = SoftwareKey(fingerprint=True, tokens=tokens)
            self.assertNotIn("has no PIN", self.add(key, str(tokens)))
            self.plug(key)
            self.assertTrue(self.opens())
            self.assertNotIn("PIN of", self.terminal.shown)

    def test_wrong_pin(self) -> None:
        """A wrong PIN may be typed again; no PIN stops; after three the key takes none, and nothing was added."""
        key = SoftwareKey(pin="1234")
        self.add(key)
        self.plug(key)
        self.terminal.secrets[:] = ["0000", "1234"]
        self.assertTrue(self.opens())
        self.assertIn("locks itself after 7 more", self.terminal.shown)
        self.terminal.secrets[:] = [""]
        self.assertFalse(self.opens())
        self.plug(key)
        self.terminal.secrets[:] = ["0000"] * 3
        self.assertIn("Take the security key out", self.why())

    def test_refused(self) -> None:
        """No key, two, one without secrets, one that is there already, and one that is not touched add nothing."""
        known = SoftwareKey()
        self.add(known)
        for plugged, told in (
            ([], "No security key is plugged in"),
            ([SoftwareKey(), SoftwareKey()], "2 security keys"),
            ([SoftwareKey(extensions=())], "no hmac-secret"),
            ([known], "already"),
            ([SoftwareKey(finger=walk_away)], "not touched in time"),
            ([SoftwareKey(finger=take_out)], "taken out"),
        ):
            self.plugged = plugged
            code, _, err = self.as_operator("vault", "key-source", "add", "other", "--security-key")
            self.assertEqual(code, 1)
            self.assertIn(told, err)
            self.assertIn("Nothing was added.", err)
            self.assertEqual(len(self.vault.key_sources.list()), 1)

    def test_stopped(self) -> None:
        """Enter instead of a touch adds nothing."""
        self.plug(SoftwareKey(finger=wait_for_cancel), presses=True)
        code, _, err = self.as_operator("vault", "key-source", "add", "blue", "--security-key")
        self.assertEqual((code, "Nothing was added." in err), (1, True))
        self.assertEqual(self.vault.key_sources.list(), ())

    def test_usage(self) -> None:
        """One of the two kinds has to be named."""
        for options in ((), ("--security-key", "--output", "new")):
            code, _, err = self.as_operator("vault", "key-source", "add", "blue", *options)
            self.assertEqual(code, 2, err)
        self.typed = []

    def test_no_library(self) -> None:
        """Without the library the command says how to install it; other processes are kept out before it looks."""
        hardened: list[bool] = []
        self.patch(context, "harden", lambda: hardened.append(True))
        for name in ("fido2", "fido2.hid"):
            self._hide(name)
        self.list_keys = CliContext({}).security_keys  # type: ignore[method-assign]
        code, _, err = self.as_operator("vault", "key-source", "add", "blue", "--security-key")
        self.assertEqual(code, 1)
        self.assertIn("pip install fido2", err)
        self.assertIn("Nothing was added.", err)
        self.assertEqual(hardened, [True])

    def _hide(self, name: str) -> None:
        """Have an import of this module fail until the test is over."""
        self.addCleanup(sys.modules.__setitem__, name, sys.modules[name])
        sys.modules[name] = cast("Any", None)


class UnlockTests(SecurityKeyCase):
    """The vault is unlocked by a key, or else by the passphrase."""

    def setUp(self) -> None:
        super().setUp()
        self.serve("local")
        self.blue, self.red = SoftwareKey(), SoftwareKey(pin="1234")

    def test_off(self) -> None:
        """Until a key is added, none is asked, and the terminal shows nothing."""
        key = self.plug(SoftwareKey())
        self.assertFalse(self.opens())
        self.assertEqual((key.touches, self.terminal.shown, self.errors.getvalue()), (0, "", ""))

    def test_two(self) -> None:
        """Of two keys each opens the vault, one without a PIN and one with its own."""
        self.add(self.blue, "blue")
        self.add(self.red, "red")
        for key in (self.blue, self.red):
            self.plug(key)
            self.assertTrue(self.opens())

    def test_removed(self) -> None:
        """A key that was removed opens nothing, also where another one is left."""
        self.add(self.blue, "blue")
        self.add(self.red, "red")
        self.vault.key_sources.remove(self.vault.key_sources.list()[0].id)
        self.plug(self.blue)
        self.assertIn("not one that unlocks", self.why())
        self.plug(self.red)
        self.assertTrue(self.opens())

    def test_failures(self) -> None:
        """Each failure is told, and the passphrase is asked for."""
        self.add(self.blue)
        for plugged, told in (
            ([], "No security key is plugged in"),
            ([SoftwareKey()], "not one that unlocks"),
            ([self.blue, SoftwareKey()], "2 security keys"),
            ([SoftwareKey(extensions=())], "no hmac-secret"),
            ([evolve(self.blue, finger=walk_away)], "not touched in time"),
            ([evolve(self.blue, finger=take_out)], "taken out"),
        ):
            self.plugged = plugged
            self.assertIn(told, self.why())

    def test_enter(self) -> None:
        """Enter instead of a touch asks for the passphrase, and is no failure."""
        self.add(self.blue)
        self.plug(evolve(self.blue, finger=wait_for_cancel), presses=True)
        self.assertEqual(self.why(), "")

    def test_time_is_over(self) -> None:
        """The wait for a touch ends by our own clock too."""
        self.add(self.blue)
        key = self.plug(evolve(self.blue, finger=wait_for_cancel))
        self.terminal.pause = lambda: self.clock.advance(1)
        self.assertIn("not touched in time", self.why())
        self.assertEqual((key.touches, self.clock.seconds()), (self.blue.touches, TOUCH_SECONDS))

    def test_no_terminal(self) -> None:
        """Without a terminal no touch is asked for: a program that unlocks in the background makes no key blink."""
        self.add(self.blue)
        key = self.plug(self.blue)
        before, self.present = key.touches, False
        self.assertFalse(self.opens())
        self.assertEqual((key.touches, self.terminal.shown), (before, ""))

    def any_key(self) -> DataKey | None:
        """What C{daemon start} unlocks with."""
        cli = self.cli_context()
        return unlocking.any_key(cli, None, None, UnattendedUnlock(cli))

    def test_given_passphrase(self) -> None:
        """A passphrase that was given comes first, at C{vault unlock} and at C{daemon start}."""
        self.add(self.blue)
        key = self.plug(self.blue)
        before = key.touches
        self.environ["AILERON_VAULT_PASSPHRASE"] = PASSPHRASE
        for take in (self.any_key, lambda: unlocking.unlocking_key(self.cli_context(), None, None)):
            self.typed = [PASSPHRASE]
            take()
            self.assertEqual((self.typed, key.touches), ([], before))
        del self.environ["AILERON_VAULT_PASSPHRASE"]
        self.typed = [PASSPHRASE]
        found = self.any_key()
        assert found is not None
        self.assertEqual((found._secret, self.typed, key.touches), (KEY, [PASSPHRASE], before + 1))

    def test_another_passphrase(self) -> None:
        """A change of the passphrase keeps the key, without a touch."""
        self.add(self.blue)
        before = self.blue.touches
        new = keys.change_passphrase(self.home.secrets, PASSPHRASE, "Another battery staple 43")
        self.assertEqual(self.blue.touches, before)
        self.plug(self.blue)
        secret = SecurityKeySource(self.cli_context()).read()
        found = keys.open_by_source(self.home.secrets, [_Given(secret)])
        assert found is not None
        self.assertEqual(found._secret, new._secret)

    def test_altered(self) -> None:
        """A wrap whose credential, salt, verification, name or seal was altered, or that came from elsewhere, opens
        nothing, even if the file's MAC is right.
        """
        self.add(self.blue, "blue")
        other = SoftwareKey()
        self.add(other, "other")
        document = decode(self.home.secrets.read_bytes())
        one, two = document.key_sources
        known = one.source.security_key
        assert known is not None
        source = one.source
        for wrong in (
            evolve(one, sealed=two.sealed),
            evolve(one, ephemeral=two.ephemeral),
            evolve(one, source=evolve(source, name="renamed")),
            evolve(one, source=evolve(source, security_key=evolve(known, salt=bytes(32)))),
            evolve(one, source=evolve(source, security_key=evolve(known, verified=True))),
            evolve(one, source=evolve(source, public_key=two.source.public_key)),
        ):
            changed = evolve(document, key_sources=(wrong, two))
            self.home.secrets.write_bytes(encode(authenticated(changed, DataKey(KEY))))
            self.plug(self.blue)
            source_key = SecurityKeySource(self.cli_context())
            self.assertRaises(VaultDamaged, keys.open_by_source, self.home.secrets, [source_key])
            self.assertFalse(self.opens())

    def test_other_vault(self) -> None:
        """The same credential, salt and key have another private key in another vault."""
        known, output = SecurityKey(b"c", bytes(32), verified=False), bytes(range(32))
        made = keys.make_security_key_source(self.home.secrets, DataKey(KEY), "n", utc(0), known, output)
        self.vault.key_sources.add(*made)
        (here,) = keys.find_security_keys(self.home.secrets)
        self.assertEqual(len(here.private_key(output)), 32)
        self.assertRaises(VaultDamaged, evolve(here, vault="other").private_key, output)
        self.assertRaises(VaultDamaged, here.private_key, bytes(32))
        self.assertRaises(ValueError, here.private_key, output[:31])

    def test_malformed(self) -> None:
        """A kind without its parts, or parts of another length, are no key source."""
        known = SecurityKey(b"c", bytes(32), verified=False)
        made = KeySource("S", KeySourceKind.SECURITY_KEY, "n", "ab", utc(0), known)
        self.assertRaises(ValueError, evolve, made, security_key=None)
        self.assertRaises(ValueError, evolve, made, kind=KeySourceKind.SYSTEMD)
        for changed in ({"credential_id": b""}, {"credential_id": bytes(1024)}, {"salt": bytes(31)}):
            self.assertRaises(ValueError, evolve, known, **changed)


@implementer(IKeySource)
@attrs.frozen
class _Given:
    secret: bytes | None

    def read(self) -> bytes | None:
        return self.secret


class SourceTests(KeySourceContract, SecurityKeyCase):
    """The contract of key sources, kept by a security key."""

    def setUp(self) -> None:
        super().setUp()
        self.serve("local")
        self.key_plugged = SoftwareKey()
        self.add(self.key_plugged)

    def make_source(self) -> IKeySource:
        self.plug(self.key_plugged)
        return SecurityKeySource(self.cli_context())

    def make_absent(self) -> IKeySource:
        self.plug(evolve(self.key_plugged, finger=wait_for_cancel), presses=True)
        return SecurityKeySource(self.cli_context())

    def make_refused(self) -> IKeySource:
        self.plugged = []
        return SecurityKeySource(self.cli_context())


class WaitTests(CommandCase):
    """The wait for one touch."""

    def test_set(self) -> None:
        """It is set after its time, by Enter, or when the terminal was closed, and stays so."""
        clock = Clock()
        lines: list[str | None] = [None]
        wait = TouchWait(clock.seconds, lambda: lines[0])
        self.assertFalse(wait.is_set() or wait.wait(0))
        clock.advance(TOUCH_SECONDS)
        self.assertTrue(wait.is_set() and wait.wait(0))
        self.assertFalse(wait.skipped)

        def closed() -> str | None:
            raise InvalidRequest("The terminal was closed.")

        for answered in (lambda: "", closed):
            wait = TouchWait(clock.seconds, answered)
            self.assertTrue(wait.is_set() and wait.is_set() and wait.skipped)

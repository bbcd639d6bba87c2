"""A vault file for tests, made once: stretching a passphrase takes a quarter of a second."""

from __future__ import annotations

import errno
import json
import os
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import utc
from aileron.model.audit import LockedPeriod
from aileron.model.authority import Passkey, PasskeyRule, Predicate, PredicateKind
from aileron.model.errors import VaultDamaged
from aileron.model.trust import TrustKind
from aileron.model.vault import Binding, NewBinding, Scope
from aileron.testing import (
    example_caps,
    example_grant,
    example_pauses,
    example_scope,
    new_binding,
    opened,
    trusted_word,
)
from aileron.vault import DataKey, Vault, binding_of, keys
from aileron.vault._format import decode, encode
from aileron.vault._sealing import authenticated, seal_entry

PASSPHRASE, NEW_PASSPHRASE = "Canary battery staple 42", "Another battery staple 43"
NOON = utc(1_700_000_000)


@cache
def _template() -> tuple[bytes, bytes]:
    """An empty vault's bytes, and its data key."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "secrets.json"
        key = keys.create(path, PASSPHRASE)
        return path.read_bytes(), bytes(key._secret)


def keep_addresses(path: Path, key: DataKey, *urls: str) -> list[Binding]:
    """Have a vault keep bindings to these URLs, as an earlier release may have, each with the secret C{canary}."""
    document = decode(path.read_bytes())
    new = evolve(new_binding(), scope=example_scope())
    sound = binding_of(new, NOON, 1)
    kept = [
        evolve(sound, name=f"api_key/slack/at-{at}", identity=f"at-{at}", base_url=url, revision=10 + at)
        for at, url in enumerate(urls)
    ]
    for each in kept:
        document = document.with_entry(seal_entry(document, key, each, b"canary"))
    path.write_bytes(encode(authenticated(document, key)))
    return kept


class VaultCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(1_700_000_000)
        self.path = Path(self.mktemp())
        content, secret = _template()
        self.path.write_bytes(content)
        self.secret = secret

    def key(self) -> DataKey:
        return DataKey(self.secret)

    def unlocked(self) -> Vault:
        return Vault(self.path, self.clock, lambda: True, self.key())

    def locked(self) -> Vault:
        return Vault(self.path, self.clock, lambda: True)

    def content(self) -> Any:
        return json.loads(self.path.read_bytes())

    def rewrite(self, content: Any) -> None:
        """What another process might do: replace the file."""
        self.put_back(json.dumps(content).encode())

    def put_back(self, data: bytes) -> None:
        """The same, with bytes that were once seen."""
        other = self.path.with_suffix(".other")
        other.write_bytes(data)
        other.rename(self.path)

    def rewrite_with_key(self, content: Any) -> None:
        """What only the holder of the data key could do: replace the file and put it under the MAC."""
        self.put_back(encode(authenticated(decode(json.dumps(content).encode()), self.key())))

    def fill_disk(self) -> None:
        """Let every write fail from now on."""

        def full(_descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        self.patch(os, "fsync", full)


class OpenCase(VaultCase):
    """With an unlocked vault."""

    def setUp(self) -> None:
        super().setUp()
        self.vault = self.unlocked()

    def lock(self) -> None:
        self.vault.lock()

    def break_disk(self) -> None:
        self.fill_disk()

    def set_up(self, new: NewBinding) -> Binding:
        return self.successResultOf(Deferred.fromCoroutine(self.vault.set_up(new)))

    def rebind(self, name: str, scope: Scope) -> Binding:
        return self.successResultOf(Deferred.fromCoroutine(self.vault.rebind(name, scope)))

    def refused(self, vault: Vault) -> None:
        """Check that every use of C{vault} is refused because of its file, and that its file stays as it is."""
        before = self.path.read_bytes()
        binding = Binding("api_key/slack/me", "api_key", "slack", "me", "builtin://slack", NOON)
        for use in (
            vault.list,
            lambda: vault.put([trusted_word("another")]),
            lambda: vault.remove(TrustKind.ACTION, "another"),
            vault.void,
            lambda: vault.sign({}),
            vault.verifier,
            vault.revision,
            vault.sealed,
            lambda: vault.seal(1, "head"),
            lambda: vault.spent(b"mark"),
            lambda: vault.spend(b"mark", NOON, 1, "head"),
            lambda: vault.grants.use("grant-1", 1, "head"),
        ):
            self.assertRaises(VaultDamaged, use)
        for change in (
            vault.set_up(new_binding("x")),
            vault.revoke("x"),
            vault.rebind("x", example_scope()),
            vault.credential(binding, example_scope()).reveal(),
        ):
            self.failureResultOf(Deferred.fromCoroutine(change), VaultDamaged)
        self.assertEqual(self.path.read_bytes(), before)


class FullCase(OpenCase):
    """With a vault that has something of everything.

    :ivar given: what it was given, and only its key can verify.
    """

    def setUp(self) -> None:
        super().setUp()
        self.made = self.set_up(evolve(new_binding(), base_url="https://slack.com", account="T1"))
        off = evolve(trusted_word(), enabled=False, changed_at=NOON + timedelta(microseconds=1))
        words = (off, trusted_word("config.yaml", TrustKind.CONFIG))
        key = Passkey("AAAA", "Mine", b"key", NOON)
        passkeys = (key, evolve(key, id="BBBB", site="aileron.localhost"))
        rule = PasskeyRule(False, ("post",))
        predicates = (Predicate("text", PredicateKind.ONE_OF, [1, 1.0, True, "x", None, {"a": [2.0]}]),)
        self.vault.put(words)
        self.vault.keep_pauses(example_pauses())
        self.vault.keep_caps(example_caps())
        self.vault.keep_passkeys(passkeys, rule)
        self.vault.grants.put(example_grant(predicates=predicates))
        used = repr((self.vault.grants.use("grant-1", 1, "head-1"),))
        public = self.vault.record_keys.make_key()
        self.vault.record_keys.put_locked_periods((LockedPeriod("one", b"1" * 32),))
        self.vault.spend(b"mark", NOON + timedelta(hours=1), 7, "head-7")
        self.given = (words, used, example_pauses(), example_caps(), passkeys, rule, public)

    def verified(self, vault: Vault) -> tuple[Any, ...]:
        """What C{vault} says that only its key can verify; the values of a grant with their types."""
        return (
            *(vault.trusted(), repr(vault.grants.all()), vault.pauses(), vault.caps()),
            *(vault.passkeys(), vault.passkey_rule(), vault.record_keys.public_key()),
        )

    def kept(self, vault: Vault) -> tuple[Any, ...]:
        """All that an open vault says, with the secret of its binding."""
        secret = opened(self, vault.credential(self.made, example_scope()))
        used = (vault.spent(b"mark"), vault.sealed(), vault.record_keys.locked_periods())
        return (vault.list(), secret, *used, *self.verified(vault))

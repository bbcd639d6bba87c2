"""The tests that every implementation of L{ITrust} and L{IControl} must pass."""

from __future__ import annotations

from datetime import timedelta
from threading import Thread

import attrs
from zope.interface.verify import verifyObject

from aileron.base.json import JSON
from aileron.model.errors import Conflict, StoreUnavailable, VaultLocked
from aileron.model.interfaces.authority import IControl, ITrust
from aileron.model.trust import Mark, Trusted, TrustKind

from ._case import VaultCase
from ._examples import NOON

_DIGEST = "sha256:" + "a" * 64
_STATEMENT: dict[str, JSON] = {"tag": "test.v1", "run": "run-1", "approved": True}
_UNTIL = NOON + timedelta(hours=1)


def trusted_word(name: str = "ship-update", kind: TrustKind = TrustKind.ACTION, digest: str = _DIGEST) -> Trusted:
    """Return the operator's trust in one file, as an example."""
    return Trusted(kind, name, digest, NOON, "operator-1")


class TrustContract(VaultCase):
    """Tests of L{ITrust}.  Mix into a test case whose L{make_trust} returns the empty trust of an unlocked vault."""

    def make_trust(self) -> ITrust:
        """Return an L{ITrust} that trusts no file yet."""
        raise NotImplementedError

    def test_provides(self) -> None:
        """The implementation provides L{ITrust}."""
        self.assertTrue(verifyObject(ITrust, self.make_trust()))

    def test_nothing(self) -> None:
        """Without an entry nothing is trusted."""
        trust = self.make_trust()
        self.assertEqual((trust.trusted(), trust.find(TrustKind.ACTION, "ship-update")), ((), None))

    def test_put(self) -> None:
        """Trusted files are found by kind and name, and listed in that order."""
        trust = self.make_trust()
        words = [
            trusted_word("b"),
            trusted_word("local://me/x", TrustKind.CONNECTOR),
            trusted_word("config.yaml", TrustKind.CONFIG),
            trusted_word("a"),
        ]
        trust.put(words)
        self.assertEqual(trust.trusted(), (words[3], words[0], words[2], words[1]))
        self.assertEqual(trust.find(TrustKind.ACTION, "a"), words[3])
        self.assertIsNone(trust.find(TrustKind.CONNECTOR, "a"))

    def test_replaced(self) -> None:
        """A new entry of a trusted file replaces the earlier one with its kind and name, and no other."""
        trust = self.make_trust()
        trust.put([trusted_word("a"), trusted_word("b")])
        off = attrs.evolve(trusted_word("a"), enabled=False, changed_by="operator-2", changed_at=_UNTIL)
        trust.put([off])
        self.assertEqual(trust.trusted(), (off, trusted_word("b")))

    def test_remove(self) -> None:
        """A file whose entry was removed is not trusted. Removing is idempotent."""
        trust = self.make_trust()
        trust.put([trusted_word("a"), trusted_word("b")])
        trust.remove(TrustKind.ACTION, "a")
        trust.remove(TrustKind.ACTION, "a")
        self.assertEqual(trust.trusted(), (trusted_word("b"),))

    def test_void(self) -> None:
        """The entries of all trusted files can be removed at once."""
        trust = self.make_trust()
        trust.put([trusted_word("a"), trusted_word("b")])
        trust.void()
        self.assertEqual(trust.trusted(), ())

    def test_generation(self) -> None:
        """The generation grows with each change, and only then."""
        trust = self.make_trust()
        seen = [trust.generation()]
        trust.put([trusted_word("a")])
        seen.append(trust.generation())
        trust.put([trusted_word("a", digest="sha256:" + "b" * 64)])
        seen.append(trust.generation())
        trust.remove(TrustKind.ACTION, "a")
        seen.append(trust.generation())
        self.assertEqual(seen, sorted(set(seen)))
        trust.remove(TrustKind.ACTION, "a")
        trust.find(TrustKind.ACTION, "a")
        self.assertEqual(trust.generation(), seen[-1])

    def test_locked(self) -> None:
        """While the vault is locked, verified entries of trusted files can be read, and changes are refused."""
        trust = self.make_trust()
        trust.put([trusted_word()])
        self.lock()
        self.assertRaises(VaultLocked, trust.put, [trusted_word("other")])
        self.assertRaises(VaultLocked, trust.remove, TrustKind.ACTION, "ship-update")
        self.assertRaises(VaultLocked, trust.void)
        self.assertEqual(trust.trusted(), (trusted_word(),))
        self.assertEqual(trust.find(TrustKind.ACTION, "ship-update"), trusted_word())

    def test_full_disk(self) -> None:
        """If a write fails, the entries of trusted files are unchanged."""
        trust = self.make_trust()
        trust.put([trusted_word()])
        generation = trust.generation()
        self.break_disk()
        self.assertRaises(StoreUnavailable, trust.put, [trusted_word("other")])
        self.assertRaises(StoreUnavailable, trust.remove, TrustKind.ACTION, "ship-update")
        self.assertRaises(StoreUnavailable, trust.void)
        self.assertEqual((trust.trusted(), trust.generation()), ((trusted_word(),), generation))


class ControlContract(VaultCase):
    """Tests of L{IControl}, the vault's key that signs decisions.

    Mix into a test case whose L{make_control} returns the unused control key of an unlocked vault.
    """

    def make_control(self) -> IControl:
        """Return the control key of an unlocked vault, which signs decisions."""
        raise NotImplementedError

    def make_other(self) -> IControl:
        """Return a control key of another vault than L{make_control}'s."""
        raise NotImplementedError

    def test_provides(self) -> None:
        """The implementation provides L{IControl}."""
        self.assertTrue(verifyObject(IControl, self.make_control()))

    def test_sound(self) -> None:
        """A signed statement is valid, in any thread and with the members of its JSON in any order."""
        control = self.make_control()
        mark, verify = control.sign(_STATEMENT), control.verifier()
        found: list[Mark] = []
        thread = Thread(target=lambda: found.append(verify(dict(reversed(_STATEMENT.items())), mark)))
        thread.start()
        thread.join()
        self.assertEqual(found, [Mark.SOUND])

    def test_false(self) -> None:
        """A mark (the vault's signature of a statement) is not valid if either was altered, or if it is missing."""
        control = self.make_control()
        mark, verify = control.sign(_STATEMENT), control.verifier()
        self.assertIs(verify({**_STATEMENT, "approved": 1}, mark), Mark.FALSE)
        self.assertIs(verify({**_STATEMENT, "more": None}, mark), Mark.FALSE)
        for other in (None, b"", mark[:-1], mark + b"x", mark[:-1] + bytes([mark[-1] ^ 1])):
            self.assertIs(verify(_STATEMENT, other), Mark.FALSE)

    def test_total(self) -> None:
        """A statement without a canonical form, and a mark that is not bytes, are not valid. No exception is raised."""
        control = self.make_control()
        mark, verify = control.sign(_STATEMENT), control.verifier()
        endless: list[JSON] = []
        endless.append(endless)
        for wild in ({"n": 2**80}, {"n": float("nan")}, {"text": "\ud800"}, {"endless": endless}, {"o": object()}):
            self.assertIs(verify(wild, mark), Mark.FALSE)  # type: ignore[arg-type]
        for not_bytes in ("text", 7, object()):
            self.assertIs(verify(_STATEMENT, not_bytes), Mark.FALSE)  # type: ignore[arg-type]

    def test_earlier(self) -> None:
        """A mark (a signature by the vault) that names another key is reported as the mark of an earlier key."""
        control, other = self.make_control(), self.make_other()
        mark, verify = control.sign(_STATEMENT), control.verifier()
        self.assertIs(verify(_STATEMENT, other.sign(_STATEMENT)), Mark.EARLIER)
        self.assertIs(verify(_STATEMENT, bytes([mark[0] ^ 1]) + mark[1:]), Mark.EARLIER)

    def test_spend(self) -> None:
        """A decision can be used once. The end of the audit log is stored with the use."""
        control = self.make_control()
        self.assertEqual((control.sealed(), control.spent(b"mark")), (None, False))
        control.spend(b"mark", _UNTIL, 7, "head-7")
        self.assertEqual(
            (control.sealed(), control.spent(b"mark"), control.spent(b"other")), ((7, "head-7"), True, False)
        )
        self.assertRaises(Conflict, control.spend, b"mark", _UNTIL, 8, "head-8")
        self.assertEqual(control.sealed(), (7, "head-7"))
        control.spend(b"other", _UNTIL, 8, "head-8")
        self.assertEqual(
            (control.sealed(), control.spent(b"mark"), control.spent(b"other")), ((8, "head-8"), True, True)
        )

    def test_outdate(self) -> None:
        """The time until which a run's decisions are outdated is stored together with the end of the audit log.

        It never moves back.
        """
        control = self.make_control()
        self.assertIsNone(control.outdated("run-1"))
        control.outdate("run-1", _UNTIL, 7, "head-7")
        control.outdate("run-1", NOON, 8, "head-8")
        control.outdate("\ud800" * 9000, NOON, 9, "head-9")
        self.assertEqual((control.outdated("run-1"), control.outdated("run-2")), (_UNTIL, None))
        self.assertIsNone(control.forgotten())
        self.assertEqual(control.sealed(), (9, "head-9"))

    def test_seal(self) -> None:
        """A newly stored end of the audit log replaces the earlier one."""
        control = self.make_control()
        control.seal(3, "head-3")
        control.seal(5, "head-5")
        self.assertEqual(control.sealed(), (5, "head-5"))

    def test_revision(self) -> None:
        """Every write increments the vault's revision, and its id stays."""
        control = self.make_control()
        vault, first = control.revision()
        control.seal(3, "head-3")
        _, second = control.revision()
        control.spend(b"mark", _UNTIL, 4, "head-4")
        self.assertLess(first, second)
        self.assertEqual(control.revision()[0], vault)
        self.assertLess(second, control.revision()[1])

    def test_locked(self) -> None:
        """While the vault is locked, nothing can be signed, used, sealed or read."""
        control = self.make_control()
        mark, verify = control.sign(_STATEMENT), control.verifier()
        self.lock()
        for use in (
            lambda: control.sign(_STATEMENT),
            control.verifier,
            control.revision,
            control.sealed,
            lambda: control.seal(3, "head-3"),
            lambda: control.spent(mark),
            lambda: control.spend(mark, _UNTIL, 3, "head-3"),
            lambda: control.outdated("run-1"),
            control.forgotten,
            lambda: control.outdate("run-1", _UNTIL, 3, "head-3"),
        ):
            self.assertRaises(VaultLocked, use)
        self.assertIs(verify(_STATEMENT, mark), Mark.SOUND)

    def test_full_disk(self) -> None:
        """If a write fails, no decision counts as used and the sealed end of the log stays as it was."""
        control = self.make_control()
        control.seal(3, "head-3")
        revision = control.revision()
        self.break_disk()
        self.assertRaises(StoreUnavailable, control.spend, b"mark", _UNTIL, 4, "head-4")
        self.assertRaises(StoreUnavailable, control.seal, 4, "head-4")
        self.assertRaises(StoreUnavailable, control.outdate, "run-1", _UNTIL, 4, "head-4")
        self.assertIsNone(control.outdated("run-1"))
        self.assertEqual(
            (control.spent(b"mark"), control.sealed(), control.revision()), (False, (3, "head-3"), revision)
        )

"""A vault that several daemons share: each has its own file, which is a copy of what the database has."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from attrs import define, evolve, field
from twisted.internet.defer import Deferred

from aileron.model.errors import Conflict, StoreUnavailable, VaultDamaged
from aileron.model.people import Owner
from aileron.model.trust import TrustKind
from aileron.testing import MemoryTurns, example_caps, example_grant, example_pauses, new_binding, trusted_word
from aileron.vault import Vault, keys
from aileron.vault._vault_file import VaultChanged

from .case import NEW_PASSPHRASE, NOON, PASSPHRASE, VaultCase
from .test_key_sources import MemoryKeySource

_LATER = NOON + timedelta(days=1)


@define
class MemoryCopy:
    """The database: by vault, the revision, the authority and the document.

    :ivar away: whether it refuses.
    :ivar answers_lost: how many of the next writes are stored and yet fail.
    """

    rows: dict[str, tuple[int, str, bytes]] = field(factory=dict)
    away: bool = False
    answers_lost: int = 0

    def get(self, vault: str) -> bytes | None:
        if self.away:
            raise StoreUnavailable("away")
        return self.rows[vault][2] if vault in self.rows else None

    def put(self, vault: str, before: int | None, revision: int, authority: str, document: bytes) -> bool:
        if self.away:
            raise StoreUnavailable("away")
        if (self.rows[vault][0] if vault in self.rows else None) != before:
            return False
        self.rows[vault] = revision, authority, document
        if self.answers_lost:
            self.answers_lost -= 1
            raise StoreUnavailable("lost")
        return True


class SharedTests(VaultCase):
    """With two daemons, whose homes began as copies."""

    def setUp(self) -> None:
        super().setUp()
        self.copy = MemoryCopy()
        self.second_path = Path(self.mktemp())
        self.second_path.write_bytes(self.path.read_bytes())
        self.one, self.other = self.unlocked(), self.second()
        for each in (self.one, self.other):
            each.share(self.copy, MemoryTurns())

    def second(self) -> Vault:
        return Vault(self.second_path, self.clock, lambda: True, self.key())

    def test_seen(self) -> None:
        """What one changes the other knows once it looks: trust, grants, pauses, caps and bindings."""
        word, grant = trusted_word(), example_grant()
        self.one.put([word])
        self.one.grants.put(grant)
        self.one.keep_pauses(example_pauses())
        self.one.keep_caps(example_caps())
        self.successResultOf(Deferred.fromCoroutine(self.one.set_up(new_binding())))
        generations = self.other.generation(), self.other.bindings_generation()
        self.assertEqual(self.other.trusted(), ())
        self.assertTrue(self.other.refresh())
        self.assertFalse(self.other.refresh())
        self.assertEqual(self.other.trusted(), (word,))
        self.assertEqual(self.other.grants.all(), (grant,))
        self.assertEqual((self.other.pauses(), self.other.caps()), (self.one.pauses(), self.one.caps()))
        self.assertEqual(list(self.other.list()), list(self.one.list()))
        self.assertNotEqual((self.other.generation(), self.other.bindings_generation()), generations)
        self.assertEqual(self.second_path.read_bytes(), self.path.read_bytes())

    def test_merged(self) -> None:
        """Changes of different parts are both kept, without anybody looking before; of the same part, the later is
        refused, and succeeds when it is done again."""
        self.one.put([trusted_word()])
        self.other.keep_caps(example_caps())
        self.assertEqual((self.other.trusted(), self.other.caps()), (self.one.trusted(), example_caps()))
        self.one.put([trusted_word(kind=TrustKind.CONNECTOR)])
        self.one.keep_pauses(example_pauses())
        fewer = example_pauses()[:1]
        self.assertRaises(VaultChanged, self.other.keep_pauses, fewer)
        self.other.keep_pauses(fewer)
        self.one.refresh()
        self.assertEqual(self.one.pauses(), fewer)

    def test_merged_binding(self) -> None:
        """A binding that a daemon learns of while it writes something else is noticed, as one that it looked for."""
        before = self.other.bindings_generation()
        self.successResultOf(Deferred.fromCoroutine(self.one.set_up(new_binding())))
        self.other.keep_caps(example_caps())
        self.assertEqual(len(self.other.list()), 1)
        self.assertGreater(self.other.bindings_generation(), before)
        after = self.other.bindings_generation()
        self.other.keep_pauses(example_pauses())
        self.assertFalse(self.other.refresh())
        self.assertEqual(self.other.bindings_generation(), after)

    def test_people(self) -> None:
        """An account that one removes stays removed when the other writes something else, and so for a new one."""
        self.one.keep_people({"per_1": "a", "per_2": "b"})
        self.other.refresh()
        self.other.keep_caps(example_caps())
        self.one.keep_people({"per_2": "b"})
        self.assertEqual((self.one.people(), self.one.caps()), ({"per_2": "b"}, example_caps()))
        self.other.refresh()
        self.assertEqual(self.other.people(), {"per_2": "b"})
        self.assertEqual(
            [self.other.is_removed(Owner(account, "alice")) for account in ("per_1", "per_2")], [True, False]
        )

    def test_key_source(self) -> None:
        """A key source that is added at one daemon is in the file of the other, and opens it; so for its removal."""
        secret, settings = b"s" * 32, {"server": "hsm"}
        made = keys.make_derived_source(self.path, self.key(), "hsm", NOON, secret, settings)
        source = self.one.key_sources.add(*made)
        self.assertEqual(keys.find_derived_sources(self.second_path), ())
        self.other.refresh()
        (found,) = keys.find_derived_sources(self.second_path)
        opened = keys.open_by_source(self.second_path, [MemoryKeySource(found.private_key(secret))])
        assert opened is not None
        self.assertEqual((found.source, opened._secret), (source, self.secret))
        self.other.key_sources.remove(source.id)
        self.one.refresh()
        self.assertEqual(keys.find_derived_sources(self.path), ())

    def test_spent_once(self) -> None:
        """A decision is used on one daemon alone; different ones on both at once."""
        self.one.spend(b"a", _LATER, 5, "five")
        self.assertRaises(Conflict, self.other.spend, b"a", _LATER, 6, "six")
        self.other.spend(b"b", _LATER, 6, "six")
        self.one.spend(b"c", _LATER, 4, "four")
        self.assertEqual(self.one.sealed(), (6, "six"))
        self.other.refresh()
        self.assertTrue(all(each.spent(mark) for each in (self.one, self.other) for mark in (b"a", b"b", b"c")))

    def test_revoked(self) -> None:
        """A grant is revoked, or another one issued, though the other daemon has just used one."""
        self.one.grants.put(example_grant(uses=9))
        self.other.refresh()
        self.one.grants.use("grant-1", 7, "seven")
        self.other.grants.put(evolve(example_grant(), id="grant-2"))
        self.one.grants.use("grant-1", 8, "eight")
        self.assertIsNotNone(self.other.grants.revoke("grant-1", NOON).revoked_at)
        self.one.refresh()
        left = {grant.id: (grant.left, grant.revoked_at is None) for grant in self.one.grants.all()}
        self.assertEqual(left["grant-1"], (7, False))
        self.assertIn("grant-2", left)

    def test_sealed(self) -> None:
        """The sealed end of the log does not go back, if a daemon read it before another one sealed a later end."""
        self.one.grants.put(example_grant(uses=3))
        self.one.spend(b"a", _LATER, 9, "nine")
        self.other.refresh()
        self.other.spend(b"b", _LATER, 6, "six")
        self.other.grants.use("grant-1", 7, "seven")
        self.assertEqual(self.other.sealed(), (9, "nine"))
        self.other.seal(5, "five")  # after an older log was put back
        self.assertEqual(self.other.sealed(), (5, "five"))

    def test_withdrawn(self) -> None:
        """A withdrawal stays with its latest time, whoever comes last."""
        self.one.outdate("run", _LATER, 1, "one")
        self.other.outdate("run", NOON, 2, "two")
        self.one.refresh()
        self.assertEqual((self.one.outdated("run"), self.other.outdated("run")), (_LATER, _LATER))

    def test_uses(self) -> None:
        """The uses of a grant are counted together: of three, both daemons have three."""
        self.one.grants.put(example_grant(uses=3))
        self.other.refresh()
        self.one.grants.use("grant-1", 1, "one")
        self.other.grants.use("grant-1", 2, "two")
        self.one.grants.use("grant-1", 3, "three")
        self.assertRaises(Conflict, self.other.grants.use, "grant-1", 4, "four")

    def test_authority(self) -> None:
        """Its digest changes with what the operator decides, and not with a decision's use or a grant's."""
        before = self.one.authority()
        self.one.spend(b"a", _LATER, 5, "five")
        self.one.seal(6, "six")
        self.assertEqual(self.one.authority(), before)
        self.one.grants.put(example_grant(uses=3))
        granted = self.one.authority()
        self.assertNotEqual(granted, before)
        self.one.grants.use("grant-1", 7, "seven")
        self.assertEqual(self.one.authority(), granted)
        self.one.grants.revoke("grant-1", NOON)
        self.assertNotEqual(self.one.authority(), granted)
        vault, _ = before
        self.assertEqual(self.copy.rows[vault][1], self.one.authority()[1])

    def test_away(self) -> None:
        """While the database is away nothing is changed, and what is known stays in use."""
        self.one.put([trusted_word()])
        self.copy.away = True
        self.assertRaises(StoreUnavailable, self.one.spend, b"a", _LATER, 5, "five")
        self.assertRaises(StoreUnavailable, self.one.refresh)
        self.assertEqual((self.one.spent(b"a"), self.one.trusted()), (False, (trusted_word(),)))
        self.copy.away = False
        self.one.spend(b"a", _LATER, 5, "five")

    def test_answer_lost(self) -> None:
        """A write whose answer was lost is an error for its caller, and is known with the next one."""
        self.copy.answers_lost = 1
        self.assertRaises(StoreUnavailable, self.one.spend, b"a", _LATER, 5, "five")
        self.one.spend(b"b", _LATER, 6, "six")
        self.assertTrue(self.one.spent(b"a") and self.one.spent(b"b"))

    def test_altered(self) -> None:
        """A document that was altered in the database changes nothing here, and opens nothing elsewhere."""
        self.one.put([trusted_word()])
        vault, _ = self.one.authority()
        revision, authority, document = self.copy.rows[vault]
        altered = document.replace(f'"revision": {revision}'.encode(), f'"revision": {revision + 1}'.encode(), 1)
        self.copy.rows[vault] = revision + 1, authority, altered
        self.assertRaises(VaultDamaged, self.one.refresh)
        self.assertRaises(VaultDamaged, self.one.keep_caps, example_caps())
        self.assertRaises(VaultDamaged, self.second().share, self.copy, MemoryTurns())
        self.assertEqual(self.one.caps(), ())

    def test_older(self) -> None:
        """An older document in the database is refused while a daemon runs; at a start, the file's is put back."""
        vault, _ = self.one.authority()
        before = self.copy.rows[vault]
        self.one.put([trusted_word()])
        self.copy.rows[vault] = before
        self.assertRaises(VaultDamaged, self.one.refresh)
        self.assertEqual(self.one.trusted(), (trusted_word(),))
        again = self.unlocked()
        again.share(self.copy, MemoryTurns())
        self.assertEqual(again.trusted(), (trusted_word(),))
        self.other.refresh()
        self.assertEqual(self.other.trusted(), (trusted_word(),))

    def test_start(self) -> None:
        """A home that was away begins with what the others changed."""
        self.one.put([trusted_word()])
        again = self.second()
        self.assertEqual(again.trusted(), ())
        again.share(self.copy, MemoryTurns())
        self.assertEqual(again.trusted(), (trusted_word(),))
        self.assertEqual(self.second_path.read_bytes(), self.path.read_bytes())

    def test_independently(self) -> None:
        """Two homes that were changed while neither shared do not overwrite each other."""
        first, second = self.unlocked(), self.second()
        first.put([trusted_word()])
        second.keep_caps(example_caps())
        copy = MemoryCopy()
        first.share(copy, MemoryTurns())
        self.assertRaises(VaultDamaged, second.share, copy, MemoryTurns())

    def test_other_passphrase(self) -> None:
        """A passphrase that was changed in one home counts in the database; another home is refused until it has it."""
        key = keys.change_passphrase(self.path, PASSPHRASE, NEW_PASSPHRASE)
        Vault(self.path, self.clock, lambda: True, key).share(self.copy, MemoryTurns())
        self.assertRaises(VaultDamaged, self.other.refresh)
        self.assertRaises(VaultDamaged, self.second().share, self.copy, MemoryTurns())

    def test_locked(self) -> None:
        """A locked daemon looks for nothing, and shows what it knew."""
        self.one.put([trusted_word()])
        self.other.refresh()
        self.other.lock()
        self.one.keep_caps(example_caps())
        self.assertFalse(self.other.refresh())
        self.assertEqual((self.other.trusted(), self.other.caps()), ((trusted_word(),), ()))

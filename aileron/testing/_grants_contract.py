"""The tests that every implementation of L{IGrants} must pass."""

from __future__ import annotations

from datetime import datetime, timedelta

from twisted.internet.task import Clock
from zope.interface.verify import verifyObject

from aileron.base.json import utc
from aileron.model.authority import MOST_LIVE_GRANTS, GrantState, Predicate, PredicateKind
from aileron.model.errors import Conflict, NotFound, StoreUnavailable, VaultLocked
from aileron.model.interfaces.authority import IControl, IGrants

from ._case import VaultCase
from ._grants import example_grant


class GrantsContract(VaultCase):
    """Tests of L{IGrants}.

    Mix into a test case with a C{clock}. Its L{make_grants} returns the empty grants of an unlocked vault, and its
    L{make_control} the control key of that vault.
    """

    clock: Clock

    def make_grants(self) -> IGrants:
        """Return an empty L{IGrants}."""
        raise NotImplementedError

    def make_control(self) -> IControl:
        """Return the control key (which signs decisions) of the vault that stores these grants."""
        raise NotImplementedError

    def test_provides(self) -> None:
        """The implementation provides L{IGrants}."""
        self.assertTrue(verifyObject(IGrants, self.make_grants()))

    def test_put(self) -> None:
        """Stored grants are returned unchanged, oldest first, and unknown ones are None."""
        grants = self.make_grants()
        predicates = (Predicate("to", PredicateKind.DOMAIN, ["example.com"]), Predicate("n", PredicateKind.ANY))
        made = [example_grant("b", predicates=predicates, session_id="s"), example_grant("a")]
        for grant in made:
            grants.put(grant)
        self.assertEqual((grants.all(), grants.get("a"), grants.get("c")), (tuple(made), made[1], None))

    def test_twice(self) -> None:
        """A second grant with a used id is refused."""
        grants = self.make_grants()
        grants.put(example_grant())
        self.assertRaises(Conflict, grants.put, example_grant(uses=100))
        self.assertEqual(grants.all(), (example_grant(),))

    def test_use(self) -> None:
        """Each use is counted and stored with the end of the audit log. Uses beyond the limit are refused."""
        grants, control = self.make_grants(), self.make_control()
        grants.put(example_grant(uses=2))
        self.assertEqual(grants.use("grant-1", 7, "head-7").left, 1)
        used = grants.use("grant-1", 8, "head-8")
        self.assertEqual((used.left, used.state(self._now()), grants.get("grant-1")), (0, GrantState.USED_UP, used))
        self.assertRaises(Conflict, grants.use, "grant-1", 9, "head-9")
        self.assertEqual((control.sealed(), used.used_at), ((8, "head-8"), self._now()))

    def test_unknown(self) -> None:
        """An unknown grant can neither be used nor revoked."""
        grants = self.make_grants()
        self.assertRaises(NotFound, grants.use, "grant-1", 1, "head")
        self.assertRaises(NotFound, grants.revoke, "grant-1", self._now())

    def test_revoke(self) -> None:
        """A revoked grant cannot be used. Revoking again preserves the first time."""
        grants = self.make_grants()
        grants.put(example_grant())
        revoked = grants.revoke("grant-1", self._now())
        self.assertEqual(grants.revoke("grant-1", self._now() + timedelta(seconds=1)), revoked)
        self.assertIs(revoked.state(self._now()), GrantState.REVOKED)
        self.assertRaises(Conflict, grants.use, "grant-1", 1, "head")

    def test_over(self) -> None:
        """An expired grant cannot be used, from the exact time of expiry."""
        grants = self.make_grants()
        until = self._now() + timedelta(seconds=10)
        grants.put(example_grant(not_after=until))
        self.clock.advance(9)
        grants.use("grant-1", 1, "head")
        self.clock.advance(1)
        self.assertRaises(Conflict, grants.use, "grant-1", 2, "head")
        self.assertIs(grants.revoke("grant-1", until).state(until), GrantState.OVER)
        self.assertIs(grants.all()[0].state(until - timedelta(days=1)), GrantState.OVER)

    def test_most(self) -> None:
        """The number of live grants is limited, and a revoked one frees its place."""
        grants = self.make_grants()
        for number in range(MOST_LIVE_GRANTS):
            grants.put(example_grant(f"grant-{number}"))
        self.assertRaises(Conflict, grants.put, example_grant("more"))
        grants.revoke("grant-5", self._now())
        grants.put(example_grant("more"))
        self.assertEqual(len(grants.all()), MOST_LIVE_GRANTS + 1)

    def test_forgotten(self) -> None:
        """Grants that ended more than a week ago are deleted when one is added. Live ones are not."""
        grants = self.make_grants()
        late = self._now() + timedelta(days=60)
        for name in ("revoked", "used", "live"):
            grants.put(example_grant(name, uses=1, not_after=late))
        grants.put(example_grant("over"))
        grants.revoke("revoked", self._now())
        self.clock.advance(86400 * 4)
        grants.use("used", 1, "head")
        self.clock.advance(86400 * 4)
        grants.put(example_grant("new", not_after=late))
        self.assertEqual([grant.id for grant in grants.all()], ["used", "live", "new"])

    def test_void(self) -> None:
        """All grants can be removed at once."""
        grants = self.make_grants()
        grants.put(example_grant())
        grants.void()
        self.assertEqual(grants.all(), ())

    def test_locked(self) -> None:
        """While locked, verified grants can be read, and changes are refused."""
        grants = self.make_grants()
        grants.put(example_grant())
        self.lock()
        self.assertRaises(VaultLocked, grants.put, example_grant("other"))
        self.assertRaises(VaultLocked, grants.use, "grant-1", 1, "head")
        self.assertRaises(VaultLocked, grants.revoke, "grant-1", self._now())
        self.assertRaises(VaultLocked, grants.void)
        self.assertEqual((grants.all(), grants.get("grant-1")), ((example_grant(),), example_grant()))

    def test_full_disk(self) -> None:
        """If a write fails, the grants are unchanged."""
        grants = self.make_grants()
        grants.put(example_grant())
        self.break_disk()
        self.assertRaises(StoreUnavailable, grants.put, example_grant("other"))
        self.assertRaises(StoreUnavailable, grants.use, "grant-1", 1, "head")
        self.assertRaises(StoreUnavailable, grants.revoke, "grant-1", self._now())
        self.assertRaises(StoreUnavailable, grants.void)
        self.assertEqual(grants.all(), (example_grant(),))

    def _now(self) -> datetime:
        return utc(self.clock.seconds())

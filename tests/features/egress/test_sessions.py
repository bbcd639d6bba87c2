"""What sessions may reach, and who says so."""

from __future__ import annotations

from attrs import define
from twisted.internet.defer import Deferred

from aileron.base.json import utc
from aileron.features.egress._sessions import MOST_PENDING, Access, EgressRefused
from aileron.features.egress.values import EgressDecision, EgressHost, EgressState
from aileron.model.authority import Pause
from aileron.model.errors import Conflict, NotFound, StoreUnavailable, VaultLocked
from tests.features.egress.case import HOST, PROJECT, EgressCase
from tests.features.egress.opener import FakeOpener
from tests.runner.kit import OPERATOR

_PENDING, _ALLOWED, _DENIED = EgressState.PENDING, EgressState.ALLOWED, EgressState.DENIED


@define(eq=False)
class FakeTunnel:
    """A connection that remembers being cut."""

    host: str
    is_cut: bool = False

    def cut(self) -> None:
        """End it."""
        self.is_cut = True


class SessionsTests(EgressCase):
    """L{EgressSessions}."""

    def refused(self, access: Access, host: str = HOST) -> str:
        """Why a session may not connect to a host."""
        why: str = self.fails(self.sessions.admit(access, host), EgressRefused).why
        return why

    def listed(self, host: str = HOST) -> EgressHost:
        """The host as the operator sees it."""
        (found,) = [each for each in self.sessions.hosts() if each.host == host]
        return found

    def answer(self, decision: EgressDecision, host: str = HOST) -> EgressHost:
        """Decide about a host as it is shown."""
        shown = self.listed(host)
        return self.sync(self.sessions.decide(shown.id, decision, shown.state, OPERATOR))

    def test_words(self) -> None:
        """Hosts of a preset, and those that the launcher named, are connected to; each is on record, once."""
        access = self.opened("npm", "Registry.Example")
        for _ in range(2):
            self.assertFalse(self.sync(self.sessions.admit(access, HOST)))
        self.assertFalse(self.sync(self.sessions.admit(access, "registry.npmjs.org:443")))
        connected = {"project": PROJECT, "host": HOST, "basis": "Registry.Example"}
        self.assertEqual(
            self.records_of_egress()[:2],
            [
                ("egress.opened", {"allow": ["npm", "Registry.Example"], "project": PROJECT}),
                ("egress.admitted", connected),
            ],
        )
        self.assertEqual((len(self.records_of_egress()), self.listed().times, self.listed().state), (3, 2, _ALLOWED))

    def test_bad_words(self) -> None:
        """A word that is neither preset nor host lets nobody out."""
        session = self.session_in(PROJECT)
        for word in ("nmp", "a..example", "10.0.0.1", "[::1]:443", "a.example:0"):
            self.fails(self.sessions.open(session, (word,)), ValueError)
        self.assertEqual(self.records_of_egress(), [])

    def test_bound(self) -> None:
        """The hosts that were named first are a session's for good, also after the daemon was started again."""
        session = self.session_in(PROJECT)
        self.opened("npm", "registry.example")
        self.fails(self.sessions.open(session, ("npm", "registry.example", "evil.example")), Conflict)
        self.opened("registry.example", "npm")
        self.next_egress()
        self.fails(self.sessions.open(session, ("evil.example",)), Conflict)
        access = self.opened("npm", "registry.example")
        self.assertIn("waits for approval", self.refused(access, "evil.example:443"))

    def test_file(self) -> None:
        """What the project's file allows is connected to, also at a private address where the file says so."""
        self.put(self.entry("registry.example", more="private_network = true\n"))
        self.assertTrue(self.sync(self.sessions.admit(self.opened(), HOST)))
        self.assertEqual(self.listed().basis, "egress.toml")
        other = self.opened(session_id="session-2", project="/home/me/other")
        self.assertIn("waits for approval", self.refused(other))

    def test_untrusted_again(self) -> None:
        """A host that the file allowed waits again as soon as the file is not trusted any more."""
        self.put(self.entry("registry.example"))
        access = self.opened()
        self.sync(self.sessions.admit(access, HOST))
        self.put(self.entry("registry.example") + "\n", trusted=False)
        self.assertIn("waits for approval", self.refused(access))
        self.assertIs(self.listed().state, _PENDING)

    def test_refused(self) -> None:
        """A host that nothing allows is refused, waits for the operator, and is on record once, whatever the tries."""
        access = self.opened()
        for _ in range(3):
            self.assertIn("waits for approval", self.refused(access))
        refused = ("egress.refused", {"host": HOST, "project": PROJECT, "basis": ""})
        self.assertEqual(self.records_of_egress("egress.opened"), [refused])
        self.assertEqual((self.listed().state, self.listed().times), (_PENDING, 3))
        self.assertEqual([self.sessions.pending(each) for each in (None, "session-1", "session-2")], [1, 1, 0])

    def test_at_once(self) -> None:
        """Two connections to a new host at the same moment are one question."""
        access = self.opened()
        both = [Deferred.fromCoroutine(self.sessions.admit(access, HOST)) for _ in range(2)]
        for each in both:
            self.failureResultOf(each, EgressRefused)
        self.assertEqual(len(self.records_of_egress("egress.opened")), 1)

    def test_bounded(self) -> None:
        """More hosts than the operator would read are refused without being asked about."""
        access = self.opened()
        for number in range(MOST_PENDING):
            self.refused(access, f"h{number}.example:443")
        self.assertIn("too many hosts", self.refused(access))
        self.assertEqual((len(self.sessions.hosts()), self.sessions.pending()), (MOST_PENDING, MOST_PENDING))

    def test_allow(self) -> None:
        """Allowed for the session, a host is connected to by this session only, and never at a private address."""
        access, other = self.opened(), self.opened(session_id="session-2")
        self.refused(access)
        decided = self.answer(EgressDecision.SESSION)
        self.assertEqual((decided.state, decided.basis), (_ALLOWED, "allowed for this session"))
        self.assertFalse(self.sync(self.sessions.admit(access, HOST)))
        self.assertIn("waits for approval", self.refused(other))
        event = [each for each in self.events_of_egress() if each.type == "egress.allowed"]
        self.assertEqual([(each.actor, each.payload["decision"]) for each in event], [(OPERATOR, "session")])
        self.assertFalse(self.path.exists())

    def test_always(self) -> None:
        """Always allowed, a host is written into the trusted file, and connected to by every session of the project."""
        self.refused(self.opened())
        self.assertEqual(self.answer(EgressDecision.ALWAYS).basis, "egress.toml")
        self.assertIn(f'hosts = ["{HOST}"]', self.path.read_text())
        self.assertEqual(self.file.problems(), ())
        later = self.opened(session_id="session-2", project=f"{PROJECT}/part")
        self.assertFalse(self.sync(self.sessions.admit(later, HOST)))
        self.assertEqual(
            [each for each, _ in self.records_of_egress("egress.opened")][:2], ["egress.refused", "egress.allowed"]
        )

    def test_deny(self) -> None:
        """Denied, a host is not asked about again in this session, and what was open to it is cut."""
        access = self.opened("registry.example", "a.example")
        tunnels = FakeTunnel(HOST), FakeTunnel("a.example:443")
        access.tunnels.update(tunnels)
        for tunnel in tunnels:
            self.sync(self.sessions.admit(access, tunnel.host))
        self.assertIs(self.answer(EgressDecision.DENY).state, _DENIED)
        self.assertEqual([each.is_cut for each in tunnels], [True, False])
        self.assertIn("it was denied for this session", self.refused(access))
        self.answer(EgressDecision.SESSION)
        self.sync(self.sessions.admit(access, HOST))

    def test_compare_and_set(self) -> None:
        """A decision about a host that stands otherwise than it was shown changes nothing."""
        self.refused(self.opened())
        seen = self.listed()
        self.answer(EgressDecision.DENY)
        error = self.fails(self.sessions.decide(seen.id, EgressDecision.ALWAYS, seen.state, OPERATOR), Conflict)
        self.assertEqual(error.details, {"state": "denied"})
        self.assertEqual((self.listed().state, self.path.exists()), (_DENIED, False))
        self.fails(self.sessions.decide("nobody's", EgressDecision.DENY, _PENDING, OPERATOR), NotFound)

    def test_not_on_record(self) -> None:
        """What cannot be put on record does not happen: no connection, and no decision."""
        access = self.opened("registry.example")
        self.refused(access, "a.example:443")
        self.refuse()
        self.assertIn("audit log cannot be written", self.refused(access))
        shown = self.listed("a.example:443")
        decided = self.sessions.decide(shown.id, EgressDecision.SESSION, shown.state, OPERATOR)
        self.fails(decided, StoreUnavailable)
        self.relent()
        self.assertIs(self.listed("a.example:443").state, _PENDING)
        self.sync(self.sessions.admit(access, HOST))

    def test_locked(self) -> None:
        """While the vault is locked nothing is always allowed, and the file is as it was."""
        self.refused(self.opened())
        self.vault.lock()
        shown = self.listed()
        self.fails(self.sessions.decide(shown.id, EgressDecision.ALWAYS, shown.state, OPERATOR), VaultLocked)
        self.assertEqual((self.listed().state, self.path.exists()), (_PENDING, False))

    def test_paused(self) -> None:
        """While everything, or the session, is paused, no connection begins."""
        access = self.opened("registry.example")
        for session_id in (None, "session-1"):
            self.operator_limits.keep_pauses([Pause(utc(self.clock.seconds()), "operator-1", None, session_id)])
            self.assertIn("paused", self.refused(access))
        self.operator_limits.keep_pauses([Pause(utc(self.clock.seconds()), "operator-1", None, "session-2")])
        self.sync(self.sessions.admit(access, HOST))

    def test_tickets(self) -> None:
        """A ticket opens one connection, within seconds, while its session lasts; and there are not too many."""
        session = self.session_in(PROJECT)
        _, late = self.sync(self.sessions.open(session, ("npm",)))
        self.clock.advance(31)
        self.assertIsNone(self.sessions.redeem(late))
        _, of_ended = self.sync(self.sessions.open(session, ("npm",)))
        self.sessions.end("session-1")
        self.assertIsNone(self.sessions.redeem(of_ended))
        self.assertIsNone(self.sessions.redeem("guessed"))
        self.clock.advance(31)
        for _ in range(256):
            self.sync(self.sessions.open(session, ("npm",)))
        self.fails(self.sessions.open(session, ("npm",)), Conflict)

    def test_end(self) -> None:
        """A session that ends is cut off, and what passed is on record; its hosts are gone."""
        access = self.opened("registry.example")
        self.sync(self.sessions.admit(access, HOST))
        self.refused(access, "a.example:443")
        access.count(HOST, sent=10)
        access.count(HOST, received=2000)
        tunnel = FakeTunnel(HOST)
        access.tunnels.add(tunnel)
        for _ in range(2):
            self.sessions.end("session-1")
        self.sync(self.sessions.stop())
        passed = {"hosts": [{"host": HOST, "sent": 10, "received": 2000}]}
        self.assertEqual(self.records_of_egress()[-1], ("egress.ended", passed))
        self.assertEqual([each for each, _ in self.records_of_egress()].count("egress.ended"), 1)
        self.assertEqual((tunnel.is_cut, self.sessions.hosts()), (True, ()))
        self.assertIn("the session has ended", self.refused(access))

    def test_reported(self) -> None:
        """A connection that came to nothing is on record, once for each reason."""
        access = self.opened("registry.example")
        for why in ("is not TLS", "is not TLS", "names a.example"):
            self.sessions.report("egress.blocked", access, HOST, why)
        self.sync(self.sessions.stop())
        blocked = [payload["why"] for type_, payload in self.records_of_egress() if type_ == "egress.blocked"]
        self.assertEqual(blocked, ["is not TLS", "names a.example"])

    def test_confirmed(self) -> None:
        """That a session is connected is on record once, by what it is allowed."""
        access = self.opened("registry.example")
        self.sync(self.sessions.admit(access, HOST))
        for _ in range(2):
            self.sync(self.sessions.confirm(access, HOST))
        connected = ("egress.connected", {"project": PROJECT, "host": HOST, "basis": "registry.example"})
        self.assertEqual(self.records_of_egress("egress.opened", "egress.admitted"), [connected])

    def test_order(self) -> None:
        """Hosts that wait are shown first, then the newest."""
        access = self.opened("a.example", "b.example")
        for host in ("a.example:443", "c.example:443", "b.example:443"):
            self.clock.advance(1)
            Deferred.fromCoroutine(self.sessions.admit(access, host)).addErrback(lambda _: None)
        self.assertEqual([each.host[0] for each in self.sessions.hosts()], ["c", "b", "a"])


class OpenerTests(EgressCase):
    """Sessions some of whose hosts the daemon opens itself."""

    def setUp(self) -> None:
        """Have one host opened."""
        super().setUp()
        self.opener = FakeOpener(HOST)
        self.sessions.register_opener(self.opener)

    def open(self, *words: str) -> Access:
        """Return a session that is let out by these words, which may be none."""
        _, ticket = self.sync(self.sessions.open(self.session_in(PROJECT), words))
        redeemed = self.sessions.redeem(ticket)
        assert redeemed is not None
        return redeemed.access

    def refused(self, access: Access, host: str) -> str:
        """Return why a session may not connect to a host."""
        why: str = self.fails(self.sessions.admit(access, host), EgressRefused).why
        return why

    def test_no_words(self) -> None:
        """A session for which the daemon opens a host needs no other; then it reaches this one alone."""
        access = self.open()
        self.assertEqual(["session-1"], self.opener.recalled)
        self.assertFalse(self.sync(self.sessions.admit(access, HOST)))
        self.assertEqual("opened here", access.hosts[HOST].basis)
        self.assertIn("waits for approval", self.refused(access, "other.example:443"))
        self.fails(self.sessions.open(self.session_in(PROJECT), ("other.example",)), Conflict)

    def test_nothing_opened(self) -> None:
        """Without a word and without such a host nobody is let out."""
        self.opener.has_any = False
        self.fails(self.sessions.open(self.session_in(PROJECT), ()), ValueError)
        self.next_egress()
        self.fails(self.sessions.open(self.session_in(PROJECT), ()), ValueError)
        self.assertEqual([], self.records_of_egress())

    def test_first(self) -> None:
        """A host that is opened here is never connected to, although a word or the file allows it, privately too."""
        self.put(self.entry("registry.example", more="private_network = true\n"))
        access = self.open("registry.example")
        self.assertFalse(self.sync(self.sessions.admit(access, HOST)))
        self.assertEqual("opened here", access.hosts[HOST].basis)
        self.assertIs(self.opener, self.sessions.find_opener(access, HOST))
        self.assertIsNone(self.sessions.find_opener(access, "other.example:443"))

    def test_problem(self) -> None:
        """A host that its opener refuses is not reached, whatever word or decision allows it; that is recorded once."""
        self.opener.problem = "launch the agent again"
        access = self.open("registry.example", "other.example")
        for _ in range(2):
            self.assertEqual("launch the agent again", self.refused(access, HOST))
        self.assertFalse(self.sync(self.sessions.admit(access, "other.example:443")))
        failed = {"host": HOST, "project": PROJECT, "why": "launch the agent again"}
        self.assertEqual([("egress.failed", failed)], self.records_of_egress("egress.opened", "egress.admitted"))

    def test_off(self) -> None:
        """After a restart without its opener such a host is refused, although words and the operator allow it."""
        self.open("registry.example", "other.example")
        self.next_egress()
        access = self.open("registry.example", "other.example")
        self.assertIn("does not answer in the place of", self.refused(access, HOST))
        self.assertFalse(self.sync(self.sessions.admit(access, "other.example:443")))

    def test_off_many(self) -> None:
        """The same holds for all hosts that a pattern covers."""
        self.opener.opened = "*.example:443"
        self.open("registry.example", "other.example")
        self.next_egress()
        access = self.open("registry.example", "other.example")
        for host in (HOST, "other.example:443"):
            self.assertIn("does not answer in the place of", self.refused(access, host))

    def test_denied(self) -> None:
        """A pause and the operator's denial hold for it as for any host."""
        access = self.open()
        self.sync(self.sessions.admit(access, HOST))
        (shown,) = self.sessions.hosts()
        self.sync(self.sessions.decide(shown.id, EgressDecision.DENY, shown.state, OPERATOR))
        self.assertIn("denied", self.refused(access, HOST))
        self.sync(self.sessions.decide(shown.id, EgressDecision.SESSION, EgressState.DENIED, OPERATOR))
        self.sync(self.sessions.admit(access, HOST))
        self.operator_limits.keep_pauses([Pause(utc(self.clock.seconds()), "operator-1", None, "session-1")])
        self.assertIn("paused", self.refused(access, HOST))

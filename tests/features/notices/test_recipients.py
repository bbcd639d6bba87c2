"""Who is notified of a request: people who may decide it, of nothing but the number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import utc
from aileron.base.yaml_keys import NotConfig
from aileron.daemon._config import read_config
from aileron.features import FeatureSet
from aileron.features.notices import rules
from aileron.features.notices._composer import MessageComposer
from aileron.features.notices._notifier import GATHER_SECONDS, Notifier
from aileron.features.notices._recipients import Recipients
from aileron.features.notices.values import Message, NoticeSettings
from aileron.model.authority import PendingLimits
from aileron.model.errors import StoreUnavailable
from aileron.model.people import ApproverRule, Owner, PersonAccount, Role
from aileron.model.runs import Approval, Run, RunState, Vote
from aileron.testing import (
    MemoryVault,
    example_ask,
    example_event,
    example_run,
    example_transition,
    memory_store,
)

from .case import RULES, ScriptedChannel, message, notice

NOW = 1_700_000_100.0
PUBLIC = "https://aileron.example.org"
CANARY = "canary-argument"


class RecipientsCase(SynchronousTestCase):
    """Accounts, and requests of their agents."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(NOW)
        self.store = memory_store(self, self.clock)
        self.in_force: dict[str, str] = {}
        self.rule = ApproverRule()
        self.votes: tuple[Vote, ...] = ()
        self.public_urls = {PUBLIC}
        for name, role in (("alice", Role.APPROVER), ("bob", Role.APPROVER), ("vera", Role.VIEWER)):
            self.add(name, role)

    def do(self, work: Any) -> Any:
        """What an C{async def} returns, at once."""
        return self.successResultOf(Deferred.fromCoroutine(work))

    def add(self, name: str, role: Role) -> PersonAccount:
        """Add an account, in force."""
        account = PersonAccount(f"per_{name}", name, role, 1, utc(NOW))
        self.assertTrue(self.do(self.store.people.add(account, ())))
        self.in_force[account.id] = account.digest
        return account

    def ask(self, number: int, owner: str | None) -> Run:
        """A pending request of this account's agent, or of the operator's."""
        whose = None if owner is None else Owner(f"per_{owner}", owner)
        run = evolve(example_run(), id=f"run-{number}", owner=whose, arguments={"text": CANARY}, idempotency_key=None)
        asked = example_transition(run, RunState.PENDING, ask=example_ask())
        pending: Run = self.do(self.store.runs.receive(run, (asked,), PendingLimits()))[0]
        return pending

    async def approval(self, run_id: str, *, only_read: bool) -> Approval:
        """A request as the runner shows it, with the rule that applies."""
        self.assertTrue(only_read)
        found = await self.store.runs.approval(run_id)
        assert found is not None
        return evolve(found, approvers=self.rule, votes=self.votes)

    @property
    def recipients(self) -> Recipients:
        """What is tested."""
        return Recipients(
            people=self.store.people,
            decisions=cast("Any", self),
            list_in_force=lambda: self.in_force,
            public_urls=self.public_urls,
        )

    def address(self, person: str, numbers: Sequence[int] = (1, 2, 3)) -> Message | None:
        """What this person is told of these requests."""
        told = message(notices=tuple(notice(number=each, arguments=CANARY) for each in numbers), contents=(CANARY,))
        found: Message | None = self.do(self.recipients.address(person, told))
        return found

    def count(self) -> Mapping[str, int]:
        """How many requests each account is told of."""
        told = {name: self.address(name) for name in ("alice", "bob", "vera", "nobody")}
        return {name: each.more for name, each in told.items() if each is not None}


class AddressTests(RecipientsCase):
    """Which requests an account is told of."""

    def setUp(self) -> None:
        super().setUp()
        for number, owner in ((1, "alice"), (2, "bob"), (3, None)):
            self.ask(number, owner)

    def test_others(self) -> None:
        """Approvers are told of requests of their own agents and of the operator's; viewers of none."""
        self.assertEqual(self.count(), {"alice": 2, "bob": 2})

    def test_rule(self) -> None:
        """The rule of the action counts: who may not approve by it is not told."""
        self.rule = ApproverRule(by=(("bob",),))
        self.assertEqual(self.count(), {"bob": 3})
        self.rule = ApproverRule(not_requester=True)
        self.assertEqual(self.count(), {"alice": 1, "bob": 1})

    def test_approved(self) -> None:
        """Who has approved already, while others are needed too, is not told again."""
        self.rule = ApproverRule(count=2)
        account = self.do(self.store.people.all())[0].login
        self.votes = (Vote("run-1", account.account, "sha256:d", "alice.1", utc(NOW), utc(NOW), account=account),)
        self.assertEqual(self.count(), {"bob": 3})

    def test_gone(self) -> None:
        """An account that was removed, or whose row something else altered, is told of nothing."""
        del self.in_force["per_alice"]
        self.in_force["per_bob"] = "other"
        self.assertEqual(self.count(), {})

    def test_contents(self) -> None:
        """The message has the number and the address of the inbox, and nothing of the requests."""
        told = self.address("alice")
        assert told is not None
        self.assertNotIn(CANARY, repr(told))
        self.assertNotIn("ship", repr(told))
        self.assertEqual((told.title, told.url), ("Aileron: 2 requests are waiting for you", f"{PUBLIC}/approvals"))
        self.assertEqual((told.lines, told.contents, told.notices, told.subject), ((), (), (), ""))

    def test_other_notices(self) -> None:
        """Of what is no request for a decision, only the operator is told."""
        told = message(notices=(notice(rules.UNKNOWN), notice(rules.TAMPER)))
        self.assertIsNone(self.do(self.recipients.address("alice", told)))

    def test_nowhere(self) -> None:
        """Without a public name nobody can sign in, and nobody is told."""
        self.public_urls = set()
        self.assertEqual(self.count(), {})


class ChannelTests(RecipientsCase):
    """Channels of the operator and of people."""

    def setUp(self) -> None:
        super().setUp()
        self.channels = {name: ScriptedChannel(name) for name in ("ops", "alice", "bob")}

    def notify(self, address: Any) -> None:
        """Have a request of alice's agent noticed."""
        composer = MessageComposer(
            runs=self.store.runs,
            sessions=self.store.sessions,
            vault=MemoryVault(),
            clock=self.clock,
            ids=lambda: "m",
            operator_url=lambda: "http://localhost:7001",
            find_review=cast("Any", self.store.runs.approval),
        )
        people = {"ops": None, "alice": "alice", "bob": "bob"}
        notifier = Notifier(
            audit=self.store.audit,
            watermarks=self.store.watermarks,
            composer=composer,
            clock=self.clock,
            channels=[evolve(each.channel(), person=people[name]) for name, each in self.channels.items()],
            rules=RULES,
            address=address,
        )
        self.addCleanup(notifier.stop)
        self.do(notifier.start())
        self.ask(1, "alice")
        self.do(self.store.audit.append(example_event("approval.requested", "run-1")))
        self.clock.pump((1, GATHER_SECONDS, GATHER_SECONDS))

    def test_each(self) -> None:
        """The operator is told as before, the person the number, and somebody else nothing."""
        self.notify(self.recipients.address)
        told = {name: [each.title for each in channel.told] for name, channel in self.channels.items()}
        self.assertEqual((len(told["ops"]), told["bob"]), (1, []))
        self.assertEqual(told["alice"], ["Aileron: a request is waiting for you"])

    def test_unreadable(self) -> None:
        """If the accounts cannot be read, the operator is told all the same."""

        async def fail(person: str, told: Message) -> Message | None:
            raise StoreUnavailable("The database refuses.")

        self.notify(fail)
        self.assertEqual([len(each.told) for each in self.channels.values()], [1, 0, 0])


class SettingsTests(SynchronousTestCase):
    """C{notifications.people}."""

    def read(self, people: str) -> NoticeSettings:
        """The settings with these people, and two channels."""
        text = f"notifications: {{apprise: [phone, alice-mail], people: {people}}}"
        found: NoticeSettings = read_config(text, FeatureSet()).of_features["notifications"]
        return found

    def test_read(self) -> None:
        """Each channel belongs to one account, or to the operator."""
        self.assertEqual(self.read("{alice: [alice-mail]}").people, {"alice-mail": "alice"})

    def test_refused(self) -> None:
        """Unknown channels, channels of two accounts, and what is no name of an account are refused."""
        wrong = ("{alice: [mail]}", "{alice: [phone], bob: [phone]}", "{Alice: [phone]}", "{alice: phone}", "[phone]")
        for people in wrong:
            self.assertRaises(NotConfig, self.read, people)

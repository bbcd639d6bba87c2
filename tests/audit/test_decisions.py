"""Signed decisions in a record: whoever writes the record anew, chain and all, cannot sign for the person's keys."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from aileron.audit import GENESIS, Verification, payload_digest, seal
from aileron.base.converter import to_json
from aileron.base.json import JSON, compact, timestamp, utc
from aileron.base.signatures import write_base64url
from aileron.base.sshsig import read_armored
from aileron.client import TerminalKey
from aileron.model.audit import Actor, ChainLink, Event, Row, Verdict
from aileron.model.authority import NewGrant, Predicate, PredicateKind, decision_item
from aileron.model.runs import Decision
from aileron.model.signing import (
    NAMESPACE,
    KeyKind,
    SignedDecisions,
    challenge_of,
    read_statement,
    write_file,
    write_statement,
)
from aileron.testing import SoftwareAuthenticator, SoftwareSshKey, public_key_of

SESSION = "ops_1"
LIFE = "life"
PASSKEY = "key-1"
YES = Decision(True, "sha256:0", SESSION, "fine")


def rows_of(events: Sequence[Event], pruned: Sequence[int] = ()) -> list[Row]:
    """The rows of a record, sealed as a daemon does."""
    rows, head = list[Row](), GENESIS
    for number, event in enumerate(events, 1):
        text = compact(event.payload)
        link = ChainLink(number, event, payload_digest("salt", text))
        what = (event.id, event.type, timestamp(event.at), event.actor.type, event.actor.id)
        about = (event.run_id, event.session_id, event.action, event.connector, event.failure_class)
        own = seal(head, link)
        contents = (None, None) if number in pruned else ("salt", text)
        rows.append((number, *what, *about, link.payload_digest, head, own, *contents))
        head = own
    return rows


def event(type_: str, payload: Mapping[str, JSON], run: str | None = None, actor: Actor | None = None) -> Event:
    """One event of a person."""
    return Event("id", type_, utc(0), actor or Actor("human", SESSION), payload, run)


class RecordCase(SynchronousTestCase):
    """A login with a key, a passkey, and decisions of both."""

    key = TerminalKey.make(LIFE)
    person = SoftwareAuthenticator("http://localhost:1", id=b"key")

    def login(self, **key: JSON) -> Event:
        """A login, by default with the key."""
        told: dict[str, JSON] = {"kind": "terminal", "public_key": self.key.public_key}
        return event("operator.login", {"browser": False, "key": {**told, **key}})

    def added(self, **more: JSON) -> Event:
        """The passkey comes to count."""
        key: JSON = {"kind": "passkey", "public_key": public_key_of(self.person)}
        return event("operator.passkey_added", {"id": PASSKEY, "key": key, **more})

    def signed(self, *items: Mapping[str, JSON], key: TerminalKey | None = None) -> SignedDecisions:
        """The terminal's signature."""
        key = key or self.key
        told = key.sign(items or [decision_item("run-1", YES, None)], 0)
        return SignedDecisions(KeyKind.TERMINAL, key.public_key, str(told["statement"]), str(told["signature"]))

    def touched(self, *items: Mapping[str, JSON], person: SoftwareAuthenticator | None = None) -> SignedDecisions:
        """The passkey's answer."""
        person = person or self.person
        statement = write_statement(LIFE, "nonce", items or [decision_item("run-1", YES, None)])
        response: Any = person.get({"challenge": challenge_of(statement)})["response"]
        parts = [response[name] for name in ("signature", "clientDataJSON", "authenticatorData")]
        return SignedDecisions(KeyKind.PASSKEY, public_key_of(person), statement, parts[0], PASSKEY, *parts[1:])

    def decided(self, signed: SignedDecisions | None, run: str = "run-1", **changed: JSON) -> Event:
        """An approval with a signature."""
        told: dict[str, JSON] = {"digest": YES.digest, "reason": YES.reason}
        if signed is not None:
            told["signed"] = to_json(signed)
        return event("approval.approved", {**told, **changed}, run)

    def verdict(self, *events: Event, pruned: Sequence[int] = (), skip: int = 0) -> Verdict:
        """What a verification of these events says."""
        rows = rows_of(events, pruned)
        verification = Verification((), after=skip, previous=rows[skip - 1][13] if skip else GENESIS)
        verification.feed(rows[skip:])
        return verification.end()

    def faulty(self, why: str, *events: Event) -> None:
        """The last of these events is named, and said to be wrong so."""
        found = self.verdict(*events)
        assert found.broken is not None, why
        self.assertEqual((found.broken.kind, found.broken.sequence), ("decision", len(events)))
        self.assertIn(why, found.broken.why)
        self.assertFalse(found.sound)


class RecordTests(RecordCase):
    """What a record proves, and what it does not."""

    def test_sound(self) -> None:
        """Decisions of both keys are proved, of a list too, and counted."""
        items = [decision_item(f"run-{number}", YES, None) for number in range(3)]
        listed = self.touched(*items)
        found = self.verdict(
            self.login(),
            self.added(),
            self.decided(self.signed()),
            *(self.decided(listed, f"run-{number}") for number in range(3)),
        )
        self.assertEqual((found.broken, found.proved), (None, 4))

    def test_verdict(self) -> None:
        """A verdict, a reason or a time that was forged."""
        no = decision_item("run-1", evolve(YES, approved=False), None)
        for signed in (self.signed(no), self.touched(no)):
            self.faulty("something else was signed", self.login(), self.added(), self.decided(signed))
        self.faulty("something else", self.login(), self.decided(self.signed(), reason="other"))
        denied = evolve(self.decided(self.signed()), type="approval.denied")
        self.faulty("something else", self.login(), denied)

    def test_digest(self) -> None:
        """A digest that was changed."""
        self.faulty("something else was signed", self.login(), self.decided(self.signed(), digest="sha256:1"))

    def test_another_run(self) -> None:
        """A signature that was moved to another run."""
        self.faulty("another run", self.login(), self.decided(self.signed(), "run-2"))
        self.faulty("another run", self.login(), self.decided(self.signed(), "run-2", same_as="run-1"))

    def test_removed(self) -> None:
        """A signature that was removed; a decision by a login that nobody made."""
        self.faulty("missing", self.login(), self.decided(None))
        stranger = Actor("human", "ops_2")
        self.faulty("missing", self.login(), evolve(self.decided(None), actor=stranger))
        self.faulty("not enrolled", self.login(), evolve(self.decided(self.signed()), actor=stranger))

    def test_altered(self) -> None:
        """A signature of which any part was altered is none."""
        signed, touched = self.signed(), self.touched()
        other = write_base64url(b"x")
        unverified = self.touched(person=evolve(self.person, verifies=False))
        for changed in (
            evolve(signed, signature=other),
            evolve(signed, statement=signed.statement.replace("fine", "evil")),
            evolve(signed, kind=KeyKind.PASSKEY, passkey=PASSKEY),
            evolve(touched, client_data=other),
            evolve(touched, authenticator_data=other),
            evolve(touched, statement=signed.statement),
            unverified,
        ):
            self.faulty("not valid", self.login(), self.added(), self.decided(changed))
        whole = self.decided(signed)
        wilds: tuple[JSON, ...] = (1, {}, {"kind": "x"}, {**to_json(signed), "statement": 1}, "x", [])
        for wild in wilds:
            self.faulty("not valid", self.login(), evolve(whole, payload={**whole.payload, "signed": wild}))

    def test_unknown_key(self) -> None:
        """A key that was not enrolled, of another login, of another passkey, or of one that was removed."""
        stranger = TerminalKey.make(LIFE)
        self.faulty("not enrolled", self.login(), self.decided(self.signed(key=stranger)))
        other = evolve(self.person, key=SoftwareAuthenticator("x").key)
        self.faulty("not enrolled", self.login(), self.added(), self.decided(self.touched(person=other)))
        self.faulty("not enrolled", self.login(), self.decided(self.touched()))
        for type_ in ("operator.passkey_reset", "operator.passkey_removed"):
            gone = event(type_, {"ids": [PASSKEY]})
            self.faulty("not enrolled", self.login(), self.added(), gone, self.decided(self.touched()))

    def test_twice(self) -> None:
        """A signature that stands twice for one run."""
        signed = self.signed()
        self.faulty("used before", self.login(), self.decided(signed), self.decided(signed))

    def test_twin(self) -> None:
        """The denial of an identical request names the one that was signed."""
        no = decision_item("run-1", evolve(YES, approved=False), None)
        twin = evolve(self.decided(self.signed(no), "run-2", same_as="run-1", digest="x"), type="approval.denied")
        self.assertEqual(self.verdict(self.login(), twin).proved, 1)

    def test_before(self) -> None:
        """Decisions of earlier versions have no signature; none by a login without a key after one with a key."""
        before = Actor("human", "ops_0")
        old = event("operator.login", {"browser": False}, actor=before)
        bare_word = evolve(self.decided(None), actor=before)
        found = self.verdict(old, bare_word, self.login(), self.decided(self.signed()))
        self.assertEqual((found.broken, found.proved), (None, 1))
        self.faulty("missing", self.login(), old, bare_word)
        self.faulty("missing", old, bare_word, self.login(), bare_word)
        bare = event("operator.passkey_added", {"id": PASSKEY})
        other = evolve(self.person, key=SoftwareAuthenticator("x").key)
        self.assertEqual(self.verdict(bare, self.decided(self.touched())).proved, 1)
        self.faulty(
            "not enrolled",
            bare,
            self.decided(self.touched()),
            self.decided(self.touched(decision_item("run-2", YES, None), person=other), "run-2"),
        )

    def test_part(self) -> None:
        """In a part of a record, and where retention deleted a login, the enrolment is not known, and the rest is."""
        whole = (self.login(), self.added(), self.decided(self.signed()), self.decided(self.touched()))
        self.assertEqual(self.verdict(*whole, skip=2).proved, 2)
        pruned = event("audit.pruned", {"up_to": 2}, actor=Actor("service", "daemon"))
        self.assertEqual(self.verdict(*whole, pruned, pruned=(1, 2)).proved, 2)
        self.assertIsNone(self.verdict(self.login(), self.decided(None), pruned, pruned=(1,)).broken)
        forged = self.decided(self.signed(), "run-2")
        self.assertIsNotNone(self.verdict(*whole, forged, skip=2).broken)

    def test_actor(self) -> None:
        """Only a grant approves without a person: no service does in its own name."""
        self.faulty("missing", self.login(), evolve(self.decided(None), actor=Actor("service", "daemon")))
        self.faulty("missing", self.login(), self.decided(None, grant="1"))

    def test_earlier(self) -> None:
        """A start that is earlier than was signed is noticed; a later one is the time to undo."""
        later = decision_item("run-1", evolve(YES, not_before=utc(60)), None)
        for seconds in (60, 90):
            decided = self.decided(self.signed(later), not_before=timestamp(utc(seconds)))
            self.assertEqual(self.verdict(self.login(), decided).proved, 1)
        wilds: tuple[JSON, ...] = (timestamp(utc(59)), None, "soon", 1)
        for wild in wilds:
            self.faulty("later start", self.login(), self.decided(self.signed(later), not_before=wild))

    def test_other_key_later(self) -> None:
        """A login that is recorded again with another key is noticed; one with its own key is not."""
        raised = evolve(self.login(), type="operator.login_raised")
        self.assertEqual(self.verdict(self.login(), raised, self.decided(self.signed())).proved, 1)
        self.faulty("another key", self.login(), self.login(public_key=TerminalKey.make(LIFE).public_key))
        self.faulty("another key", self.login(), evolve(raised, payload={}))

    def test_removed_in_part(self) -> None:
        """A removed passkey proves nothing also where its enrolment is in an earlier part."""
        gone = event("operator.passkey_removed", {"ids": [PASSKEY]})
        rows = (self.login(), self.added(), gone, self.decided(self.touched()))
        broken = self.verdict(*rows, skip=2).broken
        assert broken is not None
        self.assertIn("not enrolled", broken.why)
        self.faulty("not listed", self.login(), event("operator.passkey_reset", {"ids": 1}))

    def test_ambiguous(self) -> None:
        """Contents with a member twice, which readers read differently, are a fault."""
        whole = self.decided(self.signed())
        text = compact(whole.payload).replace('"reason":"fine"', '"reason":"evil","reason":"fine"')
        written = compact
        self.patch(sys.modules[__name__], "compact", lambda payload: text if "reason" in payload else written(payload))
        self.faulty("cannot be read in one way", self.login(), whole)

    def test_read(self) -> None:
        """What is signed names the daemon's life."""
        self.assertEqual(read_statement(self.signed().statement).instance, LIFE)


class GrantTests(RecordCase):
    """Grants, and what they approved."""

    wish = NewGrant((Predicate("to", PredicateKind.DOMAIN, ["Example.com"]),), 5, utc(3600))

    def issued(self, signed: SignedDecisions | None = None, **changed: JSON) -> Event:
        """A grant that a person signed with an approval."""
        signed = signed or self.signed(decision_item("run-1", YES, self.wish))
        predicates: JSON = [{"argument": "to", "kind": "domain", "given": ["example.com"]}]
        told: dict[str, JSON] = {"grant": "1", "run": "run-1", "predicates": predicates, "uses": 5, "session": "s"}
        more: dict[str, JSON] = {"not_after": timestamp(utc(3600)), "exact": {}, "bound": {}, "signed": to_json(signed)}
        return event("grant.issued", {**told, **more, **changed})

    def used(self, grant: str = "1") -> Event:
        """An approval by a grant."""
        return evolve(self.decided(None, "run-2", grant=grant), actor=Actor("service", f"grant:{grant}"))

    def test_signed(self) -> None:
        """A grant is proved by the signature of the approval that it came with, and needs none for its uses."""
        signed = self.signed(decision_item("run-1", YES, self.wish))
        found = self.verdict(self.login(), self.issued(signed), self.decided(signed), self.used())
        self.assertEqual((found.broken, found.proved), (None, 1))

    def test_unsigned(self) -> None:
        """A grant without a signature is noticed, unless an earlier version issued it."""
        issued = self.issued()
        old = evolve(issued, payload={**issued.payload, "signed": None})
        self.faulty("missing", self.login(), old)
        self.assertIsNone(self.verdict(old, self.login(), self.used()).broken)

    def test_wider(self) -> None:
        """A grant of which more was recorded than was signed, or that was signed with no approval, is noticed."""
        wider: JSON = [{"argument": "to", "kind": "domain", "given": ["example.com", "evil.com"]}]
        wilds: tuple[dict[str, Any], ...] = (
            {"uses": 6},
            {"uses": True},
            {"not_after": timestamp(utc(3601))},
            {"session": None},
            {"predicates": wider},
            {"predicates": []},
            {"run": "run-2"},
            {"predicates": 1},
        )
        for changed in wilds:
            self.faulty("another grant", self.login(), self.issued(**changed))
        self.faulty("another grant", self.login(), self.issued(self.signed()))
        denied = decision_item("run-1", evolve(YES, approved=False), self.wish)
        self.faulty("another grant", self.login(), self.issued(self.signed(denied)))
        stranger = self.signed(decision_item("run-1", YES, self.wish), key=TerminalKey.make(LIFE))
        self.faulty("not enrolled", self.login(), self.issued(stranger))
        issued = self.issued()
        self.faulty("used before", self.login(), issued, issued)

    def test_unknown(self) -> None:
        """A grant that nobody issued approves nothing, except where retention deleted what was issued."""
        self.faulty("not issued", self.login(), self.used())
        self.faulty("not issued", self.login(), self.issued(), self.used("2"))
        pruned = event("audit.pruned", {"up_to": 2}, actor=Actor("service", "daemon"))
        self.assertIsNone(self.verdict(self.login(), self.issued(), pruned, self.used(), pruned=(1, 2)).broken)


SSH_KEY = "key_1"
READ = "Delete a branch\n"


class SshTests(RecordCase):
    """Decisions that an SSH key signed elsewhere."""

    ssh_key = SoftwareSshKey()

    def enrolled(self) -> Event:
        """The key comes to count."""
        key: JSON = {"kind": "ssh", "public_key": self.ssh_key.public_key}
        return event("operator.approver_added", {"id": SSH_KEY, "name": "mine", "key": key})

    def removed(self) -> Event:
        """The key counts no more."""
        return event("operator.approver_removed", {"id": SSH_KEY, "name": "mine"})

    def imported(self, key: SoftwareSshKey | None = None, **changed: Any) -> Event:
        """A decision that was imported."""
        key = key or self.ssh_key
        statement = write_statement(LIFE, "nonce", [decision_item("run-1", YES, None)])
        blob = read_armored(key.sign(write_file(READ, statement), NAMESPACE))
        signed = SignedDecisions(KeyKind.SSH, key.public_key, statement, write_base64url(blob), text=READ)
        return evolve(self.decided(evolve(signed, **changed)), actor=Actor("human", SSH_KEY))

    def test_sound(self) -> None:
        """A decision of an enrolled key is proved, with the text that was read."""
        found = self.verdict(self.enrolled(), self.imported())
        self.assertEqual((found.broken, found.proved), (None, 1))

    def test_text(self) -> None:
        """A text that was changed afterwards is noticed."""
        self.faulty("its signature is not valid", self.enrolled(), self.imported(text="Something else\n"))
        self.faulty("its signature is not valid", self.enrolled(), self.imported(text=None))

    def test_unknown_key(self) -> None:
        """A key that nobody enrolled proves nothing, whatever the record says it is."""
        self.faulty("was not enrolled", self.imported())
        self.faulty("was not enrolled", self.enrolled(), self.imported(SoftwareSshKey()))
        stranger = SoftwareSshKey()
        self.faulty("not valid", self.enrolled(), self.imported(stranger, public_key=self.ssh_key.public_key))

    def test_removed_key(self) -> None:
        """A key that was removed before proves nothing; one that was removed later does."""
        self.faulty("was not enrolled", self.enrolled(), self.removed(), self.imported())
        found = self.verdict(self.enrolled(), self.imported(), self.removed())
        self.assertEqual((found.broken, found.proved), (None, 1))

    def test_missing(self) -> None:
        """The signature of such a decision cannot be gone."""
        gone = evolve(self.decided(None), actor=Actor("human", SSH_KEY))
        self.faulty("its signature is missing", self.enrolled(), gone)

    def test_part(self) -> None:
        """In a part of the record, or where its contents were deleted, the key may have been enrolled before."""
        self.assertIsNone(self.verdict(self.enrolled(), self.imported(), skip=1).broken)
        broken = self.verdict(self.enrolled(), self.imported(), pruned=(1,)).broken
        assert broken is not None
        self.assertEqual((broken.kind, broken.sequence), ("removed", 1))


class VoteTests(RecordCase):
    """Approvals by several people: each is proved by the key of the person's login."""

    def vote(self, name: str, run: str = "run-1", digest: str = YES.digest) -> list[Event]:
        """The login of an account, and its approval, which is one of several."""
        key, actor = TerminalKey.make(LIFE), Actor("human", f"{name}.ab")
        login = event("operator.login", {"key": {"kind": "browser", "public_key": key.public_key}}, actor=actor)
        signed = self.signed(decision_item(run, evolve(YES, digest=digest), None), key=key)
        told: dict[str, JSON] = {"digest": digest, "reason": YES.reason, "decision_digest": f"vote of {name}"}
        return [login, event("approval.voted", {**told, "signed": to_json(signed)}, run, actor)]

    def last(self, *names: str, needed: int = 2) -> list[Event]:
        """The operator's approval, which counts those of these people."""
        votes: JSON = [f"vote of {name}" for name in names]
        return [self.login(), self.decided(self.signed(), votes=votes, needed=needed)]

    def test_sound(self) -> None:
        """Every approval is proved and counted."""
        found = self.verdict(*self.vote("ada"), *self.vote("bob"), *self.last("ada", "bob", needed=3))
        self.assertEqual((found.broken, found.proved), (None, 3))

    def test_unknown(self) -> None:
        """An approval that is counted and nobody gave, or that is for another run or something else."""
        self.faulty("was not given", *self.vote("ada"), *self.last("bob"))
        self.faulty("was not given", *self.vote("ada", run="run-2"), *self.last("ada"))
        self.faulty("was not given", *self.vote("ada", digest="sha256:1"), *self.last("ada"))

    def test_same_person(self) -> None:
        """One person who is counted twice, also the one whose approval was the last; too few, or no number."""
        self.faulty("fewer people", *self.vote("ada"), *self.last("ada", "ada", needed=3))
        self.faulty("fewer people", *self.vote("ada"), *self.last("ada", needed=3))
        self.faulty("fewer people", *self.vote("ada"), self.login(), self.decided(self.signed(), votes=["vote of ada"]))

    def test_forced(self) -> None:
        """A forced approval was signed as one; another approval is not shown as forced, nor this as another."""
        forced = self.signed(decision_item("run-1", evolve(YES, forced=True), None))
        self.assertIsNone(self.verdict(self.login(), self.decided(forced, forced=True)).broken)
        self.faulty("something else was signed", self.login(), self.decided(forced))
        self.faulty("something else was signed", self.login(), self.decided(self.signed(), forced=True))
        login, vote = self.vote("ada")
        self.faulty("something else was signed", login, evolve(vote, payload={**vote.payload, "forced": True}))

    def test_unsigned(self) -> None:
        """An approval of one of several without its signature, or with that of a key that nobody enrolled."""
        login, vote = self.vote("ada")
        told = {name: value for name, value in vote.payload.items() if name != "signed"}
        self.faulty("missing", login, evolve(vote, payload=told))
        self.faulty("not enrolled", self.login(), vote)

    def test_pruned(self) -> None:
        """Where the contents of an approval were deleted, the last one is judged by the others."""
        events = [*self.vote("ada"), *self.last("ada")]
        pruned = event("audit.pruned", {"up_to": 2}, actor=Actor("service", "daemon"))
        self.assertIsNone(self.verdict(*events, pruned, pruned=(1, 2)).broken)
        self.assertIsNone(self.verdict(*events, skip=2).broken)
        other = [*self.vote("ada"), *self.vote("bob", run="run-2"), *self.last("bob")]
        broken = self.verdict(*other, skip=2).broken
        self.assertIn("was not given", "" if broken is None else broken.why)

"""A thousand hostile strings, in place of every word that any fragment gets from the rooms behind it: none acts."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import chain, cycle, product, repeat
from typing import Any

from attrs import define, evolve, field, fields
from twisted.internet.defer import Deferred

from aileron.base.json import JSON, utc
from aileron.features import FeatureSet
from aileron.features.people._accounts import Accounts
from aileron.features.people._attempts import SignInAttempts
from aileron.features.people._confirming import Confirming
from aileron.features.people._passkeys import AccountPasskeys
from aileron.features.people.running import RunningPeople
from aileron.model.audit import Actor, Event
from aileron.model.authority import NewGrant, PasskeyRule, Predicate, PredicateKind
from aileron.model.faults import Fault
from aileron.model.people import PersonAccount, Role
from aileron.model.reviews import Cut, PreviewFault, PreviewField, PreviewStatus, Review, ReviewedArgument
from aileron.model.runs import Change, Decision, RunState
from aileron.model.trust import TrustKind
from aileron.testing import MemoryPeopleBook, SoftwareAuthenticator
from aileron.vault import Nonces, RelyingParty
from aileron.web import pages
from aileron.web._table import fragments
from tests.api.case import NOW, running
from tests.extent import is_all, place_among
from tests.features.gateway.running import relaying
from tests.features.people.case import derive_fast
from tests.hostile import MANY, hostile_strings

from .case import ADDRESS, Heard, Reading, WebCase, bound, notifying, planned, previewed, sent
from .hostility import Misled, Words

_OUR_OWN = frozenset(
    {
        *(
            "operators",
            "access_log",
            "launch_key_digest",
            "local_key_digest",
            "metrics_token_digest",
            "instance",
            "version",
            "started_at",
            "cookie_prefix",
        ),
        *("clock", "ids", "randomness", "review_url", "process_behind", "relayed", "clients", "long_turns"),
        *("forget_places", "leases", "waits"),
    }
)
"""The dependencies that say nothing foreign: who is logged in, where that is put on record, and what a site is."""

ACTION = """+++
name = "ship-update"
version = "1.0.0"

[[requires.connectors]]
name = "builtin://slack"
version = "1.0.0"
capabilities = ["post_message"]

[[inputs]]
name = "text"
type = "string"
label = "What"
description = "What to say"
default = "x"

[[execute]]
id = "post"
connector = "builtin://slack"
op = "post_message"
inputs = { channel = "#general", text = "${args.text}" }
+++
Says something.
"""

_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_ADDRESSES = ("action", "data", "formaction", "href", "poster", "src", "srcdoc", "style", "xlink:href")
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
_ROUNDS = 1_500
_QUERIES = {"/prompts": "?rule=*"}
"""What must be asked for, so that a page shows what others wrote."""


@define
class Whole(Reading):
    """All that a parser finds: how often each tag begins with which attributes, and ends; comments, declarations."""

    found: Counter[object] = field(factory=Counter)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Count it."""
        Reading.handle_starttag(self, tag, attributes)
        self.found[tag, tuple(sorted(name for name, _ in attributes))] += 1

    def handle_endtag(self, tag: str) -> None:
        """Count it."""
        self.found["/" + tag] += 1

    def handle_comment(self, data: str) -> None:
        """Count it."""
        self.found["comment"] += 1

    def handle_decl(self, decl: str) -> None:
        """Count it."""
        self.found["declaration"] += 1

    def handle_pi(self, data: str) -> None:
        """Count it."""
        self.found["instruction"] += 1

    def unknown_decl(self, data: str) -> None:
        """Count it."""
        self.found["section"] += 1


def whole(text: str) -> Whole:
    """What C{text} is."""
    reading = Whole()
    reading.feed(text)
    reading.close()
    return reading


class HostileCase(WebCase):
    """Something of everything to show."""

    def setUp(self) -> None:
        """Have something of everything to show."""
        super().setUp()
        self.build(features=running(*notifying("x").running, relaying(), self.inhabited()))
        self.runs = list(self.furnish())
        self.known: Mapping[str, Sequence[str]] = {
            "run_id": self.runs,
            "session_id": ["session-1"],
            "audit_id": ["record-1"],
            "name": ["ship-update"],
        }
        self.action_files.write("ship-update", ACTION, None)
        asked: dict[str, JSON] = {"whole": True, **dict.fromkeys(("ask", "agent", "tool", "text", "directory"), "x")}
        events: Sequence[tuple[str, Mapping[str, JSON]]] = (("x", {"x": "x"}), ("ask.requested", asked))
        for number, (kind, payload) in enumerate(events, 1):
            event = Event(f"record-{number}", kind, utc(NOW), Actor("human", "x"), payload, *["x"] * 4)
            self.successResultOf(Deferred.fromCoroutine(self.store.audit.append(event)))

    def furnish(self) -> Iterator[str]:
        """Runs in every state that shows more than others, and files to read; the ids of the runs."""
        agent, session = self.agent(), {"session": self.agent()}
        line = PreviewField("x", "x", missing=False, multiline=False)
        preview = previewed(
            evolve(line, cut=Cut(7, "x")), status=PreviewStatus.UNAVAILABLE, fault=PreviewFault("x", "x")
        )
        step = planned(sent("x", headers=(("x", "x"),)), binding=bound("x"))
        review = Review(arguments=(ReviewedArgument("text", "x", "x"),), steps=(step, planned(None)), preview=preview)
        changes = (Change("/fields/0/value", "changed", "x", {"x": ["x"]}),)
        yield self.ask("x", agent, review=review, stale="x", changes=changes).id
        yield self.ask("x", review=Review(unread={"steps": ["x"]})).id
        for state in (RunState.DENIED, RunState.FAILED, RunState.UNKNOWN, RunState.COMPLETED, RunState.APPROVED):
            run = self.ask("x", **session)
            decided = {"approved": state is not RunState.DENIED, "decided_at": utc(NOW), "decided_by": "x"}
            self.runner.finish(
                run.id,
                state,
                reason="x",
                result={"x": "x"},
                fault=Fault("network_error", "x"),
                start_after=utc(NOW) + timedelta(hours=1),
            )
            self.runner.reviews[run.id] = {"review": review, "reason": "x", **decided}
            yield run.id
        wish = NewGrant((Predicate("x", PredicateKind.PATTERN, "x"),), 1, utc(NOW) + timedelta(hours=1))
        run = self.ask("x", agent)
        digest = self.successResultOf(Deferred.fromCoroutine(self.runner.approval(run.id))).digest
        granting = self.runner.approve_and_grant(run.id, Decision(True, digest, "x"), wish)
        self.successResultOf(Deferred.fromCoroutine(granting))
        for kind in TrustKind:
            self.runner.put_file(kind, "x", "x")
        trusted = self.runner.put_file(TrustKind.ACTION, "changed", "x")
        word = self.runner.trust([(trusted.kind, trusted.name, trusted.digest)], Actor("human", "x"))
        self.successResultOf(Deferred.fromCoroutine(word))
        self.runner.put_file(TrustKind.ACTION, "changed", "y")
        self.add_passkey()

    def inhabited(self) -> RunningPeople:
        """Accounts with one person."""
        accounts = Accounts(
            self.store.people, MemoryPeopleBook(), self.clock, self.fresh_id, self.randomness, derive_fast
        )
        person = PersonAccount("x", "x", Role.VIEWER, 1, utc(NOW))
        self.successResultOf(Deferred.fromCoroutine(self.store.people.add(person, ())))
        party = RelyingParty("phone.example.org", ("https://phone.example.org",))
        passkeys = AccountPasskeys(accounts, self.store.people, Nonces(self.clock), party, self.clock)
        confirming = Confirming(accounts, passkeys, SignInAttempts(self.clock))
        return RunningPeople(accounts, passkeys, confirming, "https://phone.example.org")

    def add_passkey(self) -> None:
        """A passkey, and a rule that names an action."""
        passkeys = self.deps.passkeys
        passkeys.confirm(passkeys.propose("x", SoftwareAuthenticator(ADDRESS).create(passkeys.offer())))
        passkeys.require(PasskeyRule(False, ("x",)))

    def use(self, words: Words) -> None:
        """Let everything foreign that a page can reach say these."""
        names = [each.name for each in fields(type(self.deps)) if each.name not in _OUR_OWN]
        present = {name: getattr(self.deps, name) for name in names if getattr(self.deps, name) is not None}
        misled: dict[str, Any] = {name: Misled(part, words) for name, part in present.items()}
        self.resource = pages(evolve(self.deps, **misled), self.in_thread)

    def paths(self, rule: str) -> list[str]:
        """The paths of one fragment, for all that may stand in it."""
        values = [self.known.get(name, self.runs[:1]) for name in _PARAMETER.findall(rule)]
        query = _QUERIES.get(rule.removeprefix("/fragments"), "")
        return [self._filled(rule, chosen) + query for chosen in product(*values)]

    def _filled(self, rule: str, chosen: Sequence[str]) -> str:
        for value in chosen:
            rule = _PARAMETER.sub(value, rule, count=1)
        return rule.removeprefix("/fragments")

    def drawn(self, path: str) -> Heard:
        """A fragment that is there."""
        heard = self.fragment(path)
        self.assertEqual(heard.status, 200, f"{path} is not there: put into furnish() what it shows")
        return heard


class HostileTests(HostileCase):
    """Every fragment that there is, drawn from rooms that say nothing but such strings."""

    def rules(self) -> list[str]:
        """The fragments, without the one that stands for all others, and the one that begins with our own text."""
        return [rule for rule in fragments(FeatureSet()) if "<path:" not in rule and not rule.endswith("/_new")]

    def test_every_fragment(self) -> None:
        """Each string, or a part that is another in each run, on each fragment: a parser finds what it does else."""
        self.assertGreaterEqual(len(self.rules()), 3)
        for rule in self.rules():
            usual = {path: self.harmless(path) for path in self.paths(rule)}
            for paths in [[each] for each in usual] if is_all() else [list(usual)]:
                self.assert_inert(paths, usual)

    def harmless(self, path: str, like: Sequence[str] = ()) -> Counter[object]:
        """What a parser finds where harmless words stand.

        :param like: strings in order, whose lines the words have: texts of several lines are drawn otherwise.
        """
        lines = chain(like, repeat(""))
        words = Words(f"harmless{number}" + re.sub(r"[^\n]", "", each) for number, each in enumerate(lines))
        self.use(words)
        found = whole(self.drawn(path).text).found
        self.assertGreater(words.said, 0, f"{path} shows nothing foreign: put into furnish() what it shows")
        return found

    def assert_inert(self, paths: Sequence[str], usual: Mapping[str, Counter[object]]) -> None:
        """Draw them in turn until so many strings were on one, and each was drawn as often."""
        strings, share = hostile_strings(), MANY if is_all() else MANY // 4
        begin = place_among(paths[0], len(strings))
        words = Words(cycle((*strings[begin:], *strings[:begin])))
        self.use(words)
        for _ in range(_ROUNDS):
            if words.said >= share:
                return
            for path in paths:
                before = words.said
                shown = whole(self.drawn(path).text)
                said = [strings[(begin + place) % len(strings)] for place in range(before, words.said)]
                wanted = usual[path]
                if any("\n" in each for each in said):
                    wanted = self.harmless(path, said)
                    self.use(words)
                self.assertEqual(shown.found, wanted, path)
                self.assert_harmless(path, shown)
        self.fail(f"{paths} showed {words.said} strings of {share}")

    def assert_harmless(self, path: str, shown: Whole) -> None:
        """No attribute acts or leads elsewhere, and nothing is there that is not seen."""
        given = [(name, value) for _, attributes in shown.tags for name, value in attributes.items()]
        self.assertEqual([name for name, _ in given if name.startswith("on")], [], path)
        for name, value in given:
            if name in _ADDRESSES:
                self.assertRegex(value, r"\A/(?![/\\])", f"{name} in {path}")
        for text in (shown.text, *(value for _, value in given)):
            unseen = {each for each in text if each != "\n" and unicodedata.category(each) in _UNSEEN}
            self.assertEqual(unseen, set(), path)


class BesideTests(HostileCase):
    """Which pages are drawn beside the reactor."""

    def test_foreign_texts(self) -> None:
        """All that show texts of any length, by an agent, a service or a file."""
        whole = (
            "/approvals/<run_id>",
            "/runs/<run_id>",
            "/audit/<audit_id>",
            "/actions/<name>",
            "/actions/<name>/edit",
            "/actions/<name>/try",
        )
        for rule in ("/approvals", "/runs", "/trust", *whole):
            for path in self.paths(f"/fragments{rule}"):
                self.beside = 0
                self.drawn(path)
                self.assertEqual(self.beside, 1, path)

    def test_failure(self) -> None:
        """One that fails there says so, as any other does, and the next is drawn."""
        path = self.paths("/fragments/runs")[0]
        whole, self.fails = self.drawn(path).text, ZeroDivisionError()
        self.assertEqual(self.fragment(path).status, 500)
        self.fails = None
        self.assertEqual(self.drawn(path).text, whole)

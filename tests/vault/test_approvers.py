"""Signed decisions: of a browser, a terminal and a passkey, and everything that is none for what it is sent with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, cast

from attrs import evolve
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON, utc
from aileron.base.signatures import check_public_key, is_signed, read_base64url, write_base64url, write_public_key
from aileron.client import TerminalKey
from aileron.model.authority import NewGrant, PasskeyRule, Predicate, PredicateKind, decision_item
from aileron.model.errors import Conflict, Forbidden, InvalidRequest, LoginLapsed, Unauthorized
from aileron.model.runs import Assertion, Decision
from aileron.model.signing import TAG, KeyKind, challenge_of, read_statement, write_statement
from aileron.testing import MemoryOperators, MemoryPasskeyBook, MemoryVault, SoftwareAuthenticator
from aileron.vault import Approvers, Nonces, Passkeys, _webauthn
from aileron.vault._logins import IDLE_SECONDS

URL = MemoryOperators.ADDRESS
LIFE = MemoryOperators.INSTANCE
NOW = 1_760_000_000
RUN = "run-1"
YES = Decision(True, "sha256:0", "", "fine")


class ApproversCase(SynchronousTestCase):
    """A person with a browser, a terminal and an authenticator, each enrolled."""

    def setUp(self) -> None:
        """Enrol them."""
        self.vault, self.urls = MemoryVault(), {URL}
        self.clock = Clock()
        self.clock.advance(NOW)
        self.operators = MemoryOperators(self.vault, self.clock)
        self.book = MemoryPasskeyBook(self.vault)
        self.passkeys = Passkeys(self.book, lambda: self.urls, self.clock)
        self.approvers = Approvers(self.passkeys, LIFE, self.operators.require_key, self.clock)
        self.person = SoftwareAuthenticator(URL)
        self.passkeys.confirm(self.passkeys.propose("Mine", self.person.create(self.passkeys.offer())))
        self.terminal, self.session = self.log_in()
        self.yes = evolve(YES, decided_by=self.session)

    def log_in(self) -> tuple[TerminalKey, str]:
        """A terminal's key, and the id of its login."""
        key = TerminalKey.make(LIFE)
        nonce, _ = self.operators.challenge(self.operators.CLIENT_NONCE, URL)
        _token, session = self.operators.login(
            nonce, self.operators.prove(nonce, public_key=key.public_key), key.public_key
        )
        return key, session.id

    def signed(
        self, *decisions: tuple[str, Decision], wish: NewGrant | None = None, key: TerminalKey | None = None
    ) -> Assertion:
        """What the terminal sends with decisions."""
        items = [decision_item(run, decision, wish) for run, decision in decisions]
        told = (key or self.terminal).sign(items, self.clock.seconds())
        return Assertion(str(told["statement"]), str(told["signature"]))

    def touched(self, *decisions: tuple[str, Decision], **changes: Any) -> Assertion:
        """What a page sends with decisions that the person's passkey, changed so, signed by one touch."""
        _instance, nonce, options = self.approvers.offer()
        statement = self.approvers.write(nonce, [decision_item(run, decision, None) for run, decision in decisions])
        return self.answered(statement, options, **changes)

    def answered(self, statement: str, options: Mapping[str, JSON], **changes: Any) -> Assertion:
        """What the person's passkey answers where a page asks for it with this text."""
        asked = {**options, "challenge": challenge_of(statement)}
        return Assertion(statement, credential=(evolve(self.person, **changes) if changes else self.person).get(asked))

    def admitted(self, decision: Decision, run: str = RUN, wish: NewGrant | None = None) -> Decision:
        """What becomes of a decision."""
        return self.approvers.admit("post", run, decision, wish)

    def refused(self, decision: Decision, run: str = RUN, **named: Any) -> Forbidden:
        """It is refused."""
        error: Forbidden = self.assertRaises(Forbidden, self.admitted, decision, run, **named)
        return error


class SignatureTests(ApproversCase):
    """The keys of logins."""

    def test_terminal(self) -> None:
        """What a terminal signed is taken, and can be verified by what is kept of it."""
        taken = self.admitted(evolve(self.yes, assertion=self.signed((RUN, self.yes))))
        assert taken.signed is not None
        self.assertEqual(
            (taken.signed.kind, taken.signed.verified().of(RUN)), (KeyKind.TERMINAL, decision_item(RUN, self.yes, None))
        )
        self.assertEqual(taken.signed.public_key, self.terminal.public_key)

    def test_browser(self) -> None:
        """What a page's key signed is taken, in the form in which a browser signs."""
        browser, session = self.operators.open_browser()
        decision = evolve(self.yes, decided_by=session.id)
        told = browser.sign_text(lambda nonce: write_statement(LIFE, nonce, [decision_item(RUN, decision, None)]))
        taken = self.admitted(evolve(decision, assertion=Assertion(*told)))
        assert taken.signed is not None
        self.assertIs(taken.signed.kind, KeyKind.BROWSER)
        other = evolve(self.yes, assertion=Assertion(*told))
        self.refused(other, "run-2")
        self.refused(other)

    def test_missing(self) -> None:
        """No approval without a signature, or by a login without a key; a denial needs none."""
        self.assertEqual(self.refused(self.yes).details, {"signature": True})
        _token, session = self.operators.log_in()
        bare = evolve(self.yes, decided_by=session.id)
        self.assertIn("older version", self.refused(bare).message)
        self.refused(evolve(bare, assertion=self.signed((RUN, bare))))
        self.admitted(evolve(self.yes, approved=False))

    def test_other(self) -> None:
        """A signature is for one run, digest, verdict, reason, time and grant."""
        grant = NewGrant((), 5, utc(NOW + 3600))
        for changed in (
            {"digest": "sha256:1"},
            {"approved": False},
            {"reason": "other"},
            {"not_before": utc(NOW + 60)},
        ):
            self.refused(evolve(self.yes, assertion=self.signed((RUN, self.yes)), **changed))
        self.refused(evolve(self.yes, assertion=self.signed((RUN, self.yes))), "run-2")
        self.refused(evolve(self.yes, assertion=self.signed((RUN, self.yes))), wish=grant)
        for other in (None, evolve(grant, uses=6), evolve(grant, not_after=grant.not_after + timedelta(hours=1))):
            self.refused(evolve(self.yes, assertion=self.signed((RUN, self.yes), wish=other)), wish=grant)
        self.admitted(evolve(self.yes, assertion=self.signed((RUN, self.yes), wish=grant)), wish=grant)

    def test_other_grant(self) -> None:
        """A grant that only Python takes for the same, or with a member that the daemon ignores, is another one."""
        wish = NewGrant((Predicate("a", PredicateKind.EQUALS, 1),), 5, utc(NOW + 3600))
        item = dict(decision_item(RUN, self.yes, wish))
        grant = cast("dict[str, JSON]", item["grant"])
        predicate = {"argument": "a", "kind": "equals", "given": 1}
        wilds: tuple[dict[str, Any], ...] = (
            {"predicates": [{**predicate, "given": True}]},
            {"predicates": [{**predicate, "only": "tests"}]},
            {"only": "tests"},
            {"uses": "5"},
            {"uses": 5.9},
        )
        for changed in wilds:
            told = self.terminal.sign([{**item, "grant": {**grant, **changed}}], self.clock.seconds())
            signed = Assertion(str(told["statement"]), str(told["signature"]))
            self.refused(evolve(self.yes, assertion=signed), wish=wish)
        self.admitted(evolve(self.yes, assertion=self.signed((RUN, self.yes), wish=wish)), wish=wish)

    def test_any_form(self) -> None:
        """Times and grants may be signed as the request says them."""
        later = evolve(self.yes, not_before=utc(NOW + 60.5))
        item = {**decision_item(RUN, later, None), "not_before": "2025-10-09T08:54:20.500Z"}
        item["grant"] = {
            "uses": 2,
            "not_after": "2025-10-09T10:53:20+01:00",
            "predicates": [{"argument": "a", "kind": "any"}],
        }
        told = self.terminal.sign([item], NOW)
        signed = evolve(later, assertion=Assertion(str(told["statement"]), str(told["signature"])))
        self.admitted(signed, wish=NewGrant((Predicate("a", PredicateKind.ANY),), 2, utc(NOW + 3600)))

    def test_replayed(self) -> None:
        """A signature decides each of its runs once, within some minutes, whoever sends it."""
        pair = ((RUN, self.yes), ("run-2", self.yes))
        signed = evolve(self.yes, assertion=self.signed(*pair))
        self.admitted(signed)
        self.assertIn("used before", self.refused(signed).message)
        self.clock.advance(60)
        self.admitted(signed, "run-2")
        self.refused(signed, "run-2")
        self.clock.advance(240)
        self.refused(signed, "run-2")

    def test_nonce_of_another(self) -> None:
        """A nonce that another signature used is none."""
        signed = self.signed((RUN, self.yes))
        self.admitted(evolve(self.yes, assertion=signed))
        nonce = read_statement(signed.statement).nonce
        statement = write_statement(LIFE, nonce, [decision_item("run-2", self.yes, None)])
        self.refused(evolve(self.yes, assertion=self.by_hand(statement)), "run-2")

    def by_hand(self, statement: str) -> Assertion:
        """The terminal's signature over any text."""
        signature = Ed25519PrivateKey.from_private_bytes(self.terminal.seed).sign(statement.encode())
        return Assertion(statement, write_base64url(signature))

    def test_late(self) -> None:
        """A signature is good for half a minute, before or after."""
        for seconds in (-31, 31):
            told = self.terminal.sign([decision_item(RUN, self.yes, None)], NOW + seconds)
            self.refused(evolve(self.yes, assertion=Assertion(str(told["statement"]), str(told["signature"]))))

    def test_life(self) -> None:
        """A signature for another life of the daemon, or another daemon, is none."""
        other = evolve(self.terminal, instance="another life")
        self.refused(evolve(self.yes, assertion=self.signed((RUN, self.yes), key=other)))

    def test_forged(self) -> None:
        """A signature by another key, of another form, or none at all is refused."""
        stranger = TerminalKey.make(LIFE)
        self.refused(evolve(self.yes, assertion=self.signed((RUN, self.yes), key=stranger)))
        statement = self.signed((RUN, self.yes)).statement
        for signature in (None, "", "AAAA", "=", "\ud800", "A" * 86):
            self.refused(evolve(self.yes, assertion=Assertion(statement, signature)))

    def test_other_texts(self) -> None:
        """What is no list of decisions in its canonical form is refused: another tag, form, or a run named twice."""
        item = decision_item(RUN, self.yes, None)
        nonce = f"{NOW * 1000}.{'A' * 22}"
        good = write_statement(LIFE, nonce, [item])
        for text in (
            good.replace(TAG, "aileron.signin.v1"),
            good.replace(",", ", "),
            good.replace('"fine"', '"f\\u0069ne"'),
            write_statement(LIFE, nonce, [item, {**item, "verdict": "denied"}]),
            write_statement(LIFE, nonce, []),
            write_statement(LIFE, nonce, [{**item, "more": 1}]),
            write_statement(LIFE, nonce, [{**item, "run": str(each)} for each in range(101)]),
            "[]",
            "[" * 5000,
            "\ud800",
        ):
            self.refused(
                evolve(self.yes, assertion=self.by_hand(text) if text != "\ud800" else Assertion(text, "AAAA"))
            )
        self.admitted(evolve(self.yes, assertion=self.by_hand(good)))

    def test_ended(self) -> None:
        """The key of a login that ended, or that may only read, signs nothing, and its holder learns what to do.

        It may end while its request waits.
        """
        browser, session = self.operators.open_browser()
        page = evolve(self.yes, decided_by=session.id)
        told = browser.sign_text(lambda nonce: write_statement(LIFE, nonce, [decision_item(RUN, page, None)]))
        self.clock.advance(IDLE_SECONDS)
        for decision in (self.yes, evolve(self.yes, assertion=self.signed((RUN, self.yes)))):
            error = self.assertRaises(Unauthorized, self.admitted, decision)
            self.assertIn("Log in again", error.message)
        for decision in (page, evolve(page, assertion=Assertion(*told))):
            self.assertRaises(LoginLapsed, self.admitted, decision)
        self.assertIsNone(self.operators.key_of(session.id))
        self.admitted(evolve(self.yes, approved=False))

    def test_another_key(self) -> None:
        """A login's key is the one that whoever holds the passphrase has named: another one, or none, is refused."""
        mine, other = TerminalKey.make(LIFE).public_key, TerminalKey.make(LIFE).public_key
        for proved, sent in ((mine, other), (mine, ""), ("", other)):
            nonce, _ = self.operators.challenge(self.operators.CLIENT_NONCE, URL)
            proof = self.operators.prove(nonce, public_key=proved)
            self.assertRaises(Unauthorized, self.operators.login, nonce, proof, sent)
        nonce, _ = self.operators.challenge(self.operators.CLIENT_NONCE, URL)
        self.assertRaises(InvalidRequest, self.operators.login, nonce, "x", "no key")


class PasskeyTests(ApproversCase):
    """A passkey signs, and what needs one."""

    def setUp(self) -> None:
        """Ask for it."""
        super().setUp()
        self.passkeys.require(PasskeyRule(False, ("post",)))

    def test_needed(self) -> None:
        """A login's key does not approve what needs a passkey; it denies it, and approves what needs none."""
        signed = evolve(self.yes, assertion=self.signed((RUN, self.yes)))
        self.assertEqual(self.refused(signed).details, {"passkey": True})
        self.approvers.admit("look-up", RUN, signed, None)
        no = evolve(self.yes, approved=False)
        self.admitted(evolve(no, assertion=self.signed((RUN, no))))

    def test_list(self) -> None:
        """One touch is enough for a list, whose runs come one by one."""
        runs = [f"run-{number}" for number in range(25)]
        signed = evolve(self.yes, assertion=self.touched(*((run, self.yes) for run in runs)))
        for run in runs:
            taken = self.admitted(signed, run)
            assert taken.signed is not None
            self.assertIs(taken.signed.kind, KeyKind.PASSKEY)
        self.refused(signed, runs[3])

    def test_one(self) -> None:
        """What is asked for one decision is signed for that alone."""
        nonce, options = self.approvers.ask(RUN, self.yes, None)
        statement = self.approvers.write(nonce, [decision_item(RUN, self.yes, None)])
        self.assertEqual(options["challenge"], challenge_of(statement))
        answer = self.answered(statement, options)
        self.refused(evolve(self.yes, assertion=answer, reason="other"))
        self.admitted(evolve(self.yes, assertion=answer))

    def test_transplanted(self) -> None:
        """The answer to another text, with that of a decision beside it, is refused."""
        other = self.touched(("run-2", self.yes))
        mine = self.touched((RUN, self.yes))
        self.refused(evolve(self.yes, assertion=evolve(mine, credential=other.credential)))
        flipped = evolve(self.yes, approved=False)
        self.refused(evolve(self.yes, assertion=evolve(self.touched((RUN, flipped)), statement=mine.statement)))

    def test_not_verified(self) -> None:
        """An authenticator that did not verify the person is refused."""
        self.refused(evolve(self.yes, assertion=self.touched((RUN, self.yes), verifies=False)))

    def test_late(self) -> None:
        """An answer is for less than a minute from when it was asked for."""
        touched = evolve(self.yes, assertion=self.touched((RUN, self.yes)))
        self.clock.advance(60)
        self.refused(touched)

    def test_own_challenge(self) -> None:
        """A challenge that the daemon did not make, or made for something else or in another life, is refused."""
        _instance, nonce, options = self.approvers.offer()
        theirs = Nonces(self.clock).make("decide")
        data = read_base64url(nonce)
        later = write_base64url((int.from_bytes(data[:8], "big") + 1).to_bytes(8, "big") + data[8:])
        chosen = f"{NOW * 1000}.{'A' * 22}"
        ours = Nonces(self.clock, bytes)
        self.assertEqual([ours.is_fresh(each, ours.make("signin")) for each in ("signin", "decide")], [True, False])
        for each in (theirs, later, chosen, "", "A", "="):
            statement = self.approvers.write(each, [decision_item(RUN, self.yes, None)])
            self.refused(evolve(self.yes, assertion=self.answered(statement, options)))

    def test_strangers(self) -> None:
        """However many challenges others ask for, mine stays good, and none of theirs is kept."""
        touched = evolve(self.yes, assertion=self.touched((RUN, self.yes)))
        for _ in range(1000):
            self.approvers.offer()
        self.admitted(touched)

    def test_elsewhere(self) -> None:
        """What was signed at a neighbouring name, at our name with another port, or for another site is refused."""
        for changes in (
            {"origin": "http://localhost:7002"},
            {"origin": "http://x.localhost:7001"},
            {"origin": "http://127.0.0.1:7001"},
            {"origin": "https://localhost:7001"},
            {"site": "evil.example"},
            {"key": ec.generate_private_key(ec.SECP256R1())},
            {"id": b"another"},
        ):
            self.refused(evolve(self.yes, assertion=self.touched((RUN, self.yes), **changes)))

    def test_embedded(self) -> None:
        """A page in a frame, of another site or with one above it, has nothing signed."""
        for more in ({"crossOrigin": True}, {"topOrigin": "https://evil.example"}, {"crossOrigin": "false"}):
            self.refused(evolve(self.yes, assertion=self.touched((RUN, self.yes), more=more)))

    def test_counter(self) -> None:
        """A copy whose counter is behind, or stands still, is noticed."""
        self.admitted(evolve(self.yes, assertion=self.touched((RUN, self.yes), count=5)))
        for count in (5, 3):
            self.refused(evolve(self.yes, assertion=self.touched(("run-2", self.yes), count=count)), "run-2")

    def test_synced_later(self) -> None:
        """A passkey of one device that is a copied one now, or the reverse, is refused."""
        self.refused(evolve(self.yes, assertion=self.touched((RUN, self.yes), synced=True)))
        self.admitted(evolve(self.yes, assertion=self.touched((RUN, self.yes))))

    def test_removed(self) -> None:
        """The answer of a passkey that was removed is refused, and what it approved before has an objection."""
        taken = self.admitted(evolve(self.yes, assertion=self.touched((RUN, self.yes))))
        assert taken.signed is not None
        self.assertIsNone(self.approvers.find_objection("post", taken.signed))
        touched = evolve(self.yes, assertion=self.touched(("run-2", self.yes)))
        self.passkeys.reset()
        self.refused(touched, "run-2")
        self.assertIn("removed since", self.approvers.find_objection("post", taken.signed) or "")

    def test_rule_meanwhile(self) -> None:
        """What a login's key approved has an objection once the rule asks for a passkey."""
        taken = self.approvers.admit("mail", RUN, evolve(self.yes, assertion=self.signed((RUN, self.yes))), None)
        assert taken.signed is not None
        self.assertIsNone(self.approvers.find_objection("mail", taken.signed))
        self.passkeys.require(PasskeyRule(everything=True))
        self.assertIn("needs a passkey", self.approvers.find_objection("mail", taken.signed) or "")

    def test_malformed(self) -> None:
        """Answers of every other form are refused."""
        touched = self.touched((RUN, self.yes))
        assert touched.credential is not None
        response: Any = touched.credential["response"]
        wild: list[Mapping[str, Any]] = [{}, {"response": 1}, {**touched.credential, "response": {}}]
        wild += [
            {**touched.credential, "response": {**response, name: value}}
            for name in response
            for value in ("", 1, "=", "e30")
        ]
        for credential in wild:
            self.refused(evolve(self.yes, assertion=evolve(touched, credential=credential)))

    def test_address(self) -> None:
        """One that was made for localhost is not asked for elsewhere, and what is refused for that says what to do."""
        self.urls = {"http://bcdfghjklm.aileron.localhost:7001"}
        refused = self.refused(self.yes).message
        for words in ("aileron passkey add", "operator_host: localhost"):
            self.assertIn(words, refused)
        self.assertEqual(self.assertRaises(Conflict, self.approvers.offer).message, refused)
        self.assertRaises(Conflict, self.passkeys.require, PasskeyRule(everything=True))
        self.urls = {"http://192.0.2.7:7001"}
        self.assertIn(
            "`operator_listen` in config.yaml gives none. Nothing was decided.", self.refused(self.yes).message
        )

    def test_without_the_library(self) -> None:
        """Where the library is gone what needs a passkey does not pass."""
        touched = evolve(self.yes, assertion=self.touched((RUN, self.yes)))
        self.patch(_webauthn, "import_library", _gone)
        self.assertRaises(Conflict, self.admitted, touched)


class SoundTests(SynchronousTestCase):
    """What a signature is compared with."""

    def test_kinds(self) -> None:
        """A text that is no key, and a curve that we do not use, verify nothing."""
        other = ec.generate_private_key(ec.SECP384R1())
        checks: tuple[Callable[[], object], ...] = (
            lambda: check_public_key("AAAA"),
            lambda: check_public_key(write_public_key(other.public_key())),
        )
        for each in checks:
            self.assertRaises(ValueError, each)
        self.assertFalse(is_signed(write_public_key(other.public_key()), b"x", other.sign(b"x", ec.ECDSA(SHA256()))))


def _gone() -> None:
    raise Conflict("gone")

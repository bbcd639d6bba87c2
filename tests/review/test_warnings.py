"""What makes a request one to look at twice."""

from __future__ import annotations

import re
from typing import Any

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import utc
from aileron.model.precedents import Precedents
from aileron.model.reviews import Card, PreviewField, Review, ReviewedStep
from aileron.model.runs import Approval, Run, RunState
from aileron.review import WARNINGS, WarningSeverity, find_warnings, list_labels, new_here, recipients
from aileron.testing import scripted_offer
from tests.api.case import NOW
from tests.extent import examples
from tests.web.case import planned, previewed, sent

DONE = Precedents(3, True, {})


def approval(*steps: ReviewedStep, **arguments: Any) -> Approval:
    """One that waits, with these steps in its review."""
    now = utc(NOW)
    run = Run("1", "send-mail", "1.0.0", "sha256:x", arguments, RunState.PENDING, True, "e", now, now)
    return Approval(run, "sha256:y", Review(steps=steps), now)


def risks(*about: Any) -> dict[str, str]:
    """The sentence of each warning, by its id."""
    return {each.id: each.text for each in find_warnings(*about)}


class WarningsTests(SynchronousTestCase):
    """Each by itself."""

    def test_none(self) -> None:
        """Where there is nothing to say, nothing is said."""
        idempotent = evolve(scripted_offer(), idempotent=True, destructive=False)
        self.assertEqual(risks(approval(planned(sent()), text="hello"), DONE, idempotent), {})

    def test_first(self) -> None:
        """The first time is told, and then not that everything is new."""
        found = risks(approval(to="ann@a.example"), Precedents(0, True, {"to": ("ann@a.example",)}), None)
        self.assertEqual(found, {"first": "First time this action runs."})

    def test_repeated(self) -> None:
        """An identical call of another session is told, with how it stands, and named in a list."""
        asked = approval(text="hello")
        states = (RunState.PENDING, RunState.COMPLETED, RunState.UNKNOWN, RunState.EXECUTING)
        repeats = tuple(evolve(asked.run, id=f"run-{state.value}", state=state) for state in states)
        found = risks(asked, evolve(DONE, repeats=repeats), None)
        told = {
            "pending_approval": "is waiting for your approval",
            "completed": "is completed",
            "unknown": "has an unknown outcome",
            "executing": "is approved and not finished",
        }
        since = "since 2025-10-09 08:53 UTC"
        sentences = [f"An identical call of another session {how} (run run-{at}, {since})." for at, how in told.items()]
        self.assertEqual(found["repeated"], " ".join(sentences))
        self.assertEqual(list_labels(find_warnings(asked, evolve(DONE, repeats=repeats), None)), ("Asked before",))

    def test_recipients(self) -> None:
        """New values are told of arguments that say to whom or where: by their name, or since they are an address."""
        new = dict.fromkeys(("to", "Channel", "webhook_url", "text", "subject"), ("x",))
        addresses = {"a": ("ann@a.example",), "b": ("https://a.example",), "c": ("#general",), "d": ("+49 30 123456",)}
        found = risks(approval(), Precedents(200, False, {**new, **addresses}), None)
        self.assertEqual(
            found["recipients"], "New values, not used in the last 200 calls: to, Channel, webhook_url, a, b, c, d."
        )

    @settings(deadline=None, max_examples=examples(500))
    @given(
        st.text("@#.:/+ 1a\n\u00a0(-", max_size=12) | st.sampled_from(("http://", "https://", "http://a", "+12 34 56"))
    )
    def test_addresses(self, text: str) -> None:
        """An address is what these shapes say, from end to end."""
        shape = r"[@#]\S+|\S+@\S+\.\S+|https?://\S+|\+[\d ()-]{6,20}"
        found = list(recipients(Precedents(1, True, {"text": (text,)})))
        self.assertEqual(found, ["text"] if re.fullmatch(shape, text) else [])

    def test_new_here(self) -> None:
        """Beside the argument stands which of its values are new; nothing where all is new or none is."""
        before = Precedents(1, True, {"to": tuple(f"u{number}" for number in range(7)), "text": ("x",)})
        self.assertEqual(new_here("to", before), "Not used in the only earlier call: u0, u1, u2, u3, u4 and 2 more.")
        for span, looked_at, whole in (
            ("the last call", 1, False),
            ("any of the 7 earlier calls", 7, True),
            ("the last 200 calls", 200, False),
        ):
            spanned = new_here("to", evolve(before, looked_at=looked_at, whole=whole))
            self.assertIn(f"Not used in {span}: u0", spanned)
        self.assertEqual(new_here("text", before), "")
        self.assertEqual(new_here("cc", before), "")
        self.assertEqual(new_here("to", evolve(before, looked_at=0)), "")
        self.assertEqual(new_here("to", None), "")

    def test_changed(self) -> None:
        """That the action or a connector is another than last time is told."""
        found = risks(approval(), evolve(DONE, action_changed=True, connectors_changed=("builtin://slack",)), None)
        self.assertIn("action's file", found["action"])
        self.assertIn("builtin://slack", found["connectors"])

    def test_private(self) -> None:
        """Where a request stays on this machine or its network is told, whether it is known yet or not."""
        for url in (
            "http://127.0.0.1:8/x",
            "http://localhost/x",
            "https://wiki.internal",
            "http://10.1.2.3",
            "http://[::1]/",
            "https://127.1",
            "https://[::ffff:10.0.0.1]",
            "http://[",
        ):
            self.assertIn("private network", risks(approval(planned(sent(url=url))), DONE, None)["private"], url)
            self.assertIn("private network", risks(approval(planned(None, base_url=url)), DONE, None)["private"], url)
        for url in ("https://example.org", "https://8.8.8.8", "https://notlocalhost", ""):
            self.assertEqual(risks(approval(planned(sent(url=url))), DONE, None).get("private", ""), "", url)

    def test_later(self) -> None:
        """A request that is not known yet is told."""
        self.assertIn("is not known yet", risks(approval(planned(None)), DONE, None)["later"])

    def test_repeat(self) -> None:
        """That doing it twice is two effects is told, unless the connector declares otherwise or it only reads."""
        offer = scripted_offer()
        self.assertIn("Not idempotent.", risks(approval(), DONE, offer)["repeat"])
        for harmless in (evolve(offer, idempotent=True), evolve(offer, read_only=True)):
            self.assertNotIn("repeat", risks(approval(), DONE, harmless))

    def test_destructive(self) -> None:
        """What may change things is a fact, and a red warning only where nothing brings them back."""
        offer = evolve(scripted_offer(), idempotent=True)
        self.assertEqual(list(risks(approval(), DONE, offer)), ["destructive"])
        for_good = evolve(offer, irreversible=True)
        self.assertEqual(list(risks(approval(), DONE, for_good)), ["irreversible"])
        self.assertEqual(list_labels(find_warnings(approval(), DONE, offer)), ())
        self.assertEqual(list_labels(find_warnings(approval(), DONE, for_good)), ("Irreversible",))
        for harmless in (evolve(for_good, read_only=True), evolve(for_good, destructive=False)):
            self.assertEqual(risks(approval(), DONE, harmless), {})

    def test_marked(self) -> None:
        """A preview can mark a request as irreversible, and says what would be lost."""
        offer = evolve(scripted_offer(), idempotent=True, destructive=False)
        for value, expected in (
            ("Deleted: refs/heads/x.", "Irreversible. Deleted: refs/heads/x."),
            (None, ""),
            ("", ""),
        ):
            asked = approval()
            field = PreviewField("Irreversible", value, missing=value is None, multiline=False)
            asked = evolve(asked, review=evolve(asked.review, preview=previewed(field)))
            self.assertEqual(expected, risks(asked, DONE, offer).get("irreversible", ""))

    def test_own_host(self) -> None:
        """A private address that the connector's own file names is a fact; any other is a warning."""
        asked = approval(planned(sent(url="http://10.0.0.1/")), planned(sent(url="http://127.0.0.1:8/")))
        offer = evolve(scripted_offer(), idempotent=True, destructive=False, own_hosts=frozenset({"127.0.0.1"}))
        found = risks(asked, DONE, offer)
        self.assertEqual(found["private"], "Goes to this machine or a private network: 10.0.0.1.")
        self.assertEqual(found["local"], "Goes to an address of this machine or a private network: 127.0.0.1.")
        self.assertEqual(list_labels(find_warnings(asked, DONE, offer)), ("Private network",))
        both = evolve(offer, own_hosts=frozenset({"127.0.0.1", "10.0.0.1"}))
        self.assertEqual(list(risks(asked, DONE, both)), ["local"])

    def test_title(self) -> None:
        """A title made of a text that was not checked is checked itself."""
        asked = approval(text="<!channel>" * 20_000)
        named = evolve(asked, review=evolve(asked.review, title="Post to #g\u0435neral"))
        found = {each.id: each.where for each in find_warnings(named, DONE, None)}
        self.assertEqual(found, {"letters": "/title", "unchecked": ""})

    def test_where(self) -> None:
        """A warning about a text points at it; text that stands in several places is warned of once, at the first."""
        odd = "g\u0435neral"
        asked = approval(planned(sent()), **{"a/b": odd, "text": "hello"})
        line = PreviewField("Topic", "a\u200bb", missing=False, multiline=False)
        asked = evolve(asked, review=evolve(asked.review, preview=previewed(line)))
        card = Card("post", "message", (("to", (odd,)), ("body", ("<!channel>", "x"))))
        found = {each.id: each.where for each in find_warnings(asked, DONE, None, (card,))}
        self.assertEqual(
            found,
            {
                "hidden": "/review/preview/fields/0",
                "letters": "/run/arguments/a~1b",
                "markup": "/cards/0/parts/1",
            },
        )

    def test_unchecked(self) -> None:
        """Text that is too long to be checked at once is said to be unchecked."""
        self.assertEqual(list(risks(approval(text="<!channel>" * 20_000), DONE, None)), ["unchecked"])

    def test_partly_unchecked(self) -> None:
        """A long text keeps no other value from being checked."""
        asked = approval(a="<!channel>" * 20_000, to="ann\u202e@a.example", b=["x"] * 2_000)
        self.assertEqual(list(risks(asked, DONE, None)), ["hidden", "address", "unchecked"])

    def test_order(self) -> None:
        """Warnings stand in the order of the table."""
        asked = evolve(approval(planned(None, base_url="http://10.0.0.1"), text="<!channel>"), stale="It changed.")
        ids = [each.id for each in find_warnings(asked, Precedents(0, True, {}), scripted_offer())]
        self.assertEqual(ids, [each for each in WARNINGS if each in ids])
        self.assertEqual(ids[0], "stale")
        ranks = [(each.standing, list(WarningSeverity).index(each.severity)) for each in WARNINGS.values()]
        self.assertEqual(ranks, sorted(ranks))

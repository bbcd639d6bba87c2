"""What the fragments show: all of it, as text, and nothing that acts or hides."""

from __future__ import annotations

import json
import re
import unicodedata
from datetime import timedelta
from typing import Any

from attrs import evolve
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from aileron.base.json import utc
from aileron.base.text import visible
from aileron.model.audit import Actor
from aileron.model.faults import Fault
from aileron.model.queries import RunQuery
from aileron.model.reviews import Cut, PreviewFault, PreviewField, PreviewStatus, Review, ReviewedArgument, ReviewedStep
from aileron.model.runs import Change, RunState
from aileron.model.sessions import Process
from aileron.testing import scripted_offer
from aileron.web.approvals.review import indent
from tests.api.case import NOW
from tests.extent import examples

from .case import WebCase, bound, planned, previewed, read, sent

HOSTILE = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(
            (
                "<script>alert(1)</script>",
                "</dd></dl>",
                '"><img src=x onerror=alert(1)>',
                "' onmouseover='x",
                "<!--",
                "]]>",
                "&lt;",
                "&#x202e;",
                "${x}",
                "{{told}}",
                "javascript:alert(1)",
                "\u202e",
                "\u2066",
                "\u200b",
                "\ufeff",
                "\x00",
                "\x1b[2J",
                "\x9b",
                "\r\n",
                "\u2028",
                "\ud800",
                "\U000e0041",
                "\u00ad",
            )
        ),
        max_size=5,
    ).map("".join),
)
UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


class ListTests(WebCase):
    """What waits."""

    def test_empty(self) -> None:
        """Where nothing waits, a sentence says so."""
        shown = read(self.fragment("/approvals").text)
        self.assertIn("No pending approvals.", shown.text)
        self.assertEqual(shown.tags[0][1]["data-title"], "Aileron")

    def test_items(self) -> None:
        """Each has its action, its arguments, who asks, and a link; the title counts them."""
        run = self.ask("Dark mode", self.agent(agent="opencode"))
        self.ask("Search", stale="The action was changed.")
        shown = read(self.fragment("/approvals").text)
        for words in ("ship-update", "text: Dark mode", "opencode · Dark mode", "You · Search", "Changed since"):
            self.assertIn(words, shown.text)
        self.assertIn(f"/approvals/{run.id}", [attributes.get("href") for _, attributes in shown.tags])
        self.assertEqual(shown.tags[0][1]["data-said"], "Pending approvals: 2")
        self.assertNotIn("No pending approvals.", shown.text)

    def test_only_what_waits(self) -> None:
        """What is decided is listed no more."""
        self.runner.finish(self.ask().id, RunState.DENIED)
        self.assertNotIn("ship-update", self.fragment("/approvals").text)

    def test_long_arguments(self) -> None:
        """A summary that is cut says so."""
        self.ask("word " * 100)
        self.assertIn("… (open to see all)", self.fragment("/approvals").text)

    def test_many(self) -> None:
        """Fifty are listed, oldest first, with a link to the rest; sessions are looked up once each."""
        session = self.agent()
        runs = [self.ask(f"number {number}", session) for number in range(205)]
        self.runner.cursor = "there is more"
        text = self.fragment("/approvals").text
        self.assertEqual(re.findall(r"/approvals/([\w-]+)", text), [run.id for run in runs[:50]])
        self.assertIn("/approvals?cursor=there%20is%20more", text)
        self.assertEqual(self.sessions.asked, [session.id])
        query = self.runner.watched[-1]
        self.assertTrue(isinstance(query, RunQuery) and query.oldest_first)
        self.assertIn("Pending approvals: 205", text)
        self.fragment("/approvals?cursor=there%20is%20more")
        query = self.runner.watched[-1]
        self.assertTrue(isinstance(query, RunQuery) and query.cursor == "there is more")


class ApprovalTests(WebCase):
    """One approval, whole."""

    def shown(self, run_id: str) -> Any:
        """Its fragment, read."""
        heard = self.fragment(f"/approvals/{run_id}")
        self.assertEqual(heard.status, 200)
        return read(heard.text)

    def review(self, *steps: ReviewedStep, **more: Any) -> str:
        """The text of an approval that is shown so."""
        return str(self.shown(self.ask(review=Review(steps=steps, **more)).id).text)

    def test_waiting(self) -> None:
        """It can be decided, and names the digest of what it shows."""
        run = self.ask(digest="sha256:abc")
        shown = self.shown(run.id)
        root = shown.tags[0][1]
        self.assertEqual((root["data-id"], root["data-digest"]), (run.id, "sha256:abc"))
        self.assertEqual(root["data-state"], "pending_approval")
        found = [attributes for tag, attributes in shown.tags if tag == "button"]
        buttons = {attributes["id"]: attributes for attributes in found if "id" in attributes}
        self.assertEqual(
            set(buttons), {"approve", "deny", "change", "start-now", "approve-ticked", "deny-ticked", "withdraw"}
        )
        for button in (buttons[each] for each in ("approve", "deny", "change")):
            self.assertEqual((button["type"], "disabled" in button), ("button", True), "the script brings it to life")
        self.assertIn("reason", [attributes.get("for") for tag, attributes in shown.tags if tag == "label"])

    def test_grant(self) -> None:
        """With it more calls can be allowed: each argument exactly as it is unless another choice is made."""
        run = self.ask("me@a.org")
        text = self.fragment(f"/approvals/{run.id}").text
        for words in (
            'autocomplete="off" data-argument="text"><option value="">exactly the value above</option>',
            'value="a.org" id="grant-0-domain"',
            "RE2 pattern for the whole text: ",
            'value="me@a\\.org"',
            "ANY VALUE, or none",
            '<option value="all">ALL sessions of all agents</option>',
        ):
            self.assertIn(words, text)

    def test_settled(self) -> None:
        """What no longer waits is shown as its run, beside what waits, and cannot be decided, in any state."""
        for state in set(RunState) - {RunState.PENDING}:
            run = self.ask()
            self.assertEqual(self.shown(run.id).tags[0][1]["data-address"], f"/approvals/{run.id}")
            self.runner.finish(run.id, state)
            shown = self.shown(run.id)
            names = {each.get("id") for _, each in shown.tags}
            self.assertEqual(names & {"approve", "deny", "change", "decision", "options"}, set(), state)
            self.assertEqual((shown.tags[0][1]["data-state"], "inbox" in names), (state.value, True))
            alone, beside = (self.fragment(f"/{each}/{run.id}").text for each in ("runs", "approvals"))
            outcome = alone[alone.index("<h1") : alone.rindex("</article>")]
            self.assertIn(outcome, beside)

    def test_claims(self) -> None:
        """What an agent says of itself is told as that; the operator's own runs have no agent; unknown is unknown."""
        session = self.agent(agent="opencode", working_dir="/src")
        by_agent = self.shown(self.ask(session=session).id).text
        self.assertIn("in /src (self-reported)", by_agent)
        self.assertIn("Session opened by an unknown process", by_agent)
        session = self.agent(peer=Process(7, "/usr/bin/no\u202ede", "/tmp"))
        seen = self.shown(self.ask(session=session).id)
        self.assertIn("Session opened by PID 7, no\\u202ede.", seen.text)
        self.assertIn("PID 7, /usr/bin/no\\u202ede in /tmp", [each.get("title") for _, each in seen.tags])
        self.assertIn("You want to run ship-update ·", self.shown(self.ask().id).text)

    def test_headline(self) -> None:
        """The heading says who wants to do what, and where; of what is decided, who requested it."""
        session = self.agent(agent="opencode")
        run = self.ask(session=session, review=Review(steps=(planned(sent()),)))
        shown = self.shown(run.id)
        self.assertIn("opencode wants to run ship-update on example.org", shown.text)
        self.assertIn("Self-reported name", [each.get("title") for tag, each in shown.tags if tag == "bdi"])
        bound_run = self.ask(review=Review(steps=(planned(sent(), binding=bound("acme")),)))
        self.assertIn("on example.org · as acme", self.shown(bound_run.id).text)
        self.runner.finish(run.id, RunState.DENIED)
        self.assertIn("opencode requested ship-update on example.org", self.shown(run.id).text)
        self.assertIn("You want to run ship-update", self.shown(self.ask().id).text)

    def test_summary(self) -> None:
        """What the action's file says of itself stands beneath the heading, if that is the file that was reviewed."""
        offer = scripted_offer()
        self.runner.offer(
            evolve(offer, action=evolve(offer.action, description="# Title\n\nTells a\nchannel.\n\nMore."))
        )
        for digest, said in ((offer.action.digest, True), ("sha256:other", False)):
            text = self.shown(self.ask(review=Review(manifest_digest=digest)).id).text
            self.assertEqual("Tells a channel." in text, said)
            self.assertNotIn("More.", text)

    def test_bar(self) -> None:
        """Reason, Deny and Approve stand in one bar in this order, with their keys, the last thing in the page."""
        shown = self.shown(self.ask().id)
        names = [each.get("id") or each.get("class") for _, each in shown.tags]
        bar = names[names.index("bar") :]
        self.assertEqual([each for each in bar if each in ("reason", "deny", "approve")], ["reason", "deny", "approve"])
        self.assertNotIn("steps", bar)
        self.assertEqual([tag for tag, _ in shown.tags].count("kbd"), 3, "with that of the filter")

    def test_reasons(self) -> None:
        """Each warning has a label and a reason that one can unfold; what is not there has neither."""
        shown = self.shown(self.ask().id)
        self.assertIn("First time this action runs.WhyThere is no earlier call", shown.text)
        self.assertNotIn("New recipient", shown.text)
        self.assertIn("why-first", [each.get("id") for tag, each in shown.tags if tag == "details"])

    def test_every_argument(self) -> None:
        """Every argument of the run is there in full, whatever its review leaves out or says instead."""
        long = "\n".join(f"line {number}" for number in range(3000))
        review = Review(arguments=(ReviewedArgument("text", "What was shipped", "something harmless"),))
        shown = self.shown(self.ask(long, review=review).id).text
        self.assertIn("What was shipped", shown)
        self.assertTrue(long in shown)
        self.assertIn("28,889 bytes, 3,000 lines, shown in full", shown)
        self.assertNotIn("harmless", shown)
        self.assertTrue(long in self.shown(self.ask(long, review=Review()).id).text)

    def test_defaults(self) -> None:
        """What the review adds to the agent's arguments is shown as well, whatever its type."""
        options = ReviewedArgument("options", "options", {"deep": [1, True, None]})
        shown = self.review(arguments=(ReviewedArgument("text", "text", "x"), options))
        self.assertIn("options", shown)
        self.assertIn(json.dumps({"deep": [1, True, None]}, indent=2), shown)

    def test_request(self) -> None:
        """The request is shown as it leaves, its JSON indented, the credential a placeholder."""
        body = json.dumps({"channel": "#a", "text": "1\n2 \u00e9"}, separators=(",", ":"), ensure_ascii=False)
        text = self.review(planned(sent(body), binding=bound("me@example.org")))
        for words in (
            "POST https://example.org/api/post\nContent-Type: application/json\nAuthorization: (the credential,",
            '{\n  "channel": "#a",\n  "text": "1\\n2 \u00e9"\n}',
            "post of local://test/scripted 1.0.0, credential api_key/slack/default (me@example.org)",
            "may make changes",
        ):
            self.assertIn(words, text)
        reads = self.review(planned(sent(effect="read", credential_header=None)))
        self.assertIn("no credential; read-only", reads)
        self.assertNotIn("Authorization", reads)

    def test_body_as_it_is(self) -> None:
        """A body that indenting would change is shown as it is sent."""
        for body in (
            '{"a": 1, "a": 2}',
            '{"a":1,"a":2}',
            "[1.0,1e999]",
            '{ "a":1}',
            '"text"',
            "x" * 5,
            "[" * 5000,
            "[" * 700 + "]" * 700,
        ):
            self.assertIn(body, self.review(planned(sent(body))), body)
        self.assertIn('"base64": "/w=="', self.review(planned(sent({"base64": "/w=="}))))

    def test_later_request(self) -> None:
        """A request that is not known yet says so, and where it goes."""
        text = self.review(planned(None), planned(sent()))
        self.assertIn("Built from the response to an earlier step. It will be sent to https://example.org", text)
        self.assertIn("POST https://example.org/api/post", text)

    def test_unread_review(self) -> None:
        """A review in another form is shown as it was kept, and hides neither the arguments nor other approvals."""
        run = self.ask("Dark mode", review=Review(unread={"fields": None, "steps": [{"url": "https://example.org/x"}]}))
        text = self.shown(run.id).text
        for words in ("Dark mode", "cannot read the review", '"url": "https://example.org/x"'):
            self.assertIn(words, text)
        self.assertNotIn("cannot read the review", self.review())
        self.assertEqual(self.fragment("/approvals").status, 200)

    def test_preview(self) -> None:
        """What the service shows is there by its labels; what is missing or cut says so."""
        topic = PreviewField("Topic", "Old", missing=False, multiline=False)
        long = PreviewField("Text", "x" * 1200, missing=False, multiline=False, cut=Cut(70000, "sha256:x"))
        owner = PreviewField("Owner", None, missing=True, multiline=False)
        shown = self.shown(self.ask(review=Review(preview=previewed(topic, long, owner))).id)
        for words in (
            "Preview from builtin://slack",
            "Topic",
            "Old",
            "truncated, 70000 bytes in total",
            "(none)",
        ):
            self.assertIn(words, shown.text)
        self.assertNotIn("data-fetching", shown.tags[0][1])
        self.assertNotIn("Preview", self.review())

    def test_no_preview(self) -> None:
        """Why there is none is said; where it is on its way the page exchanges itself."""
        fault = PreviewFault("network_error", "Gone.")
        preview = previewed(status=PreviewStatus.UNAVAILABLE, fault=fault, lacking="It cannot be approved without.")
        text = self.review(planned(None), preview=preview)
        self.assertIn("The preview could not be loaded: Gone. (network_error) It cannot be approved without.", text)
        self.assertNotIn("Built from the response to an earlier step", text)
        shown = self.shown(self.ask(review=Review(preview=previewed(status=PreviewStatus.FETCHING))).id)
        self.assertIn("Loading the preview.", shown.text)
        self.assertEqual(shown.tags[0][1]["data-fetching"], "yes")

    def test_changes(self) -> None:
        """What is otherwise than it was shown is told by label, with what was and what is."""
        review = Review(arguments=(ReviewedArgument("text", "What was shipped", "b"),))
        changes = (Change("/fields/0/value", "changed", "a", "b"), Change("/steps/0", "added", None, {"x": 1}))
        text = self.shown(self.ask(review=review, changes=changes).id).text
        self.assertIn("Changes since it was last shown", text)
        for words in ("What was shipped", "Before: a", "After: b", "Before: (none)"):
            self.assertIn(words, text)
        self.assertNotIn("Changes since", self.review())

    def test_edited(self) -> None:
        """What was edited stands beside what was asked for."""
        run = self.ask("asked")
        edited = self.runner.edit(run.id, {"text": "better"}, None, Actor("human", "op"))
        self.successResultOf(Deferred.fromCoroutine(edited))
        text = self.shown(run.id).text
        for words in ("Your edits", "Before: asked", "After: better"):
            self.assertIn(words, text)

    def test_lines(self) -> None:
        """Of two long texts the lines that differ are marked and most others folded; of others the words are marked."""
        before = "\n".join(f"line {number}" if number == 7 else "x" * 900 for number in range(30))
        changes = (
            Change("/a", "changed", before, before.replace("line 7\n", "other\n")),
            Change("/b", "changed", "x", "y"),
        )
        shown = self.shown(self.ask(changes=changes).id)
        self.assertIn("-line 7\n+other\n", shown.text)
        self.assertIn("Show 4 unchanged lines", shown.text)
        self.assertIn("Show 19 unchanged lines", shown.text)
        self.assertEqual([tag for tag, _ in shown.tags if tag in ("ins", "del")], ["del", "ins"] * 2)
        self.assertEqual(shown.text.count("Before and after"), 2)

    def test_too_many_lines(self) -> None:
        """Texts that take too long to compare stand there whole, and are not compared."""
        pages = ["\n".join(str(number * factor % 4999) for number in range(5000)) for factor in (1, 7)]
        shown = self.shown(self.ask(changes=(Change("/a", "changed", *pages),)).id)
        self.assertNotIn("unchanged lines", shown.text)
        for page in pages:
            self.assertIn(page, shown.text)

    def test_stale_and_expiring(self) -> None:
        """Why it is asked anew, and when it expires, is said."""
        run = self.ask(stale="The action was changed since.", expires_at=utc(NOW) + timedelta(hours=1))
        shown = self.shown(run.id)
        self.assertIn("The action was changed since.", shown.text)
        self.assertIn(". Expires 2025-10-09T09:53:20", shown.text)

    def test_outcome(self) -> None:
        """A settled one tells the decision, the result or the failure, and where it is on record."""
        done = self.ask(approved=True, decided_at=utc(NOW), decided_by="ops_1")
        self.runner.finish(done.id, RunState.COMPLETED, result={"output": {"ts": "17"}, "steps": {}})
        text = self.shown(done.id).text
        for words in ("Completed", "Approved ", "by you", '"ts": "17"', f"audit-{done.id}"):
            self.assertIn(words.lower(), text.lower())
        failed = self.ask()
        self.runner.finish(failed.id, RunState.FAILED, fault=Fault("external_api_error", "Slack said no"))
        text = self.shown(failed.id).text
        self.assertIn("Slack said no", text)
        denied = self.ask(reason="not on a Friday")
        self.runner.finish(denied.id, RunState.DENIED, reason="not on a Friday")
        self.assertIn("not on a Friday", self.shown(denied.id).text)
        unknown = self.ask()
        self.runner.finish(unknown.id, RunState.UNKNOWN)
        text = self.fragment(f"/approvals/{unknown.id}").text
        self.assertIn("Mark as completed", text)
        self.assertIn(f'href="/audit/audit-{unknown.id}"', text)

    def test_moments(self) -> None:
        """Each moment is there for the script to show in the reader's own time."""
        shown = self.shown(self.ask().id)
        self.assertEqual(
            {attributes["datetime"] for tag, attributes in shown.tags if tag == "time"}, {"2025-10-09T08:53:20.000000Z"}
        )


class HostileTests(WebCase):
    """Whatever words come from outside, they stay words."""

    def everything(self, words: str) -> dict[str, Any]:
        """An approval with C{words} wherever they can come from."""
        step = planned(
            sent(words, method=words, url=words, headers=((words, words),), credential_header=words),
            connector=words,
            version=words,
            operation=words,
            binding=bound(words, words),
        )
        line = PreviewField(words, words, missing=False, multiline=False, cut=Cut(7, words))
        fault = PreviewFault(words, words)
        preview = previewed(line, status=PreviewStatus.UNAVAILABLE, fault=fault, lacking=words)
        arguments = (ReviewedArgument("text", words, None), ReviewedArgument(words, words, {words: [words]}))
        return {
            "review": Review(
                arguments=arguments,
                steps=(step, planned(None, base_url=words)),
                preview=evolve(preview, connector=words),
            ),
            "changes": (Change("/" + words, "changed", words, {words: words}), Change("", "more", None, words)),
            "digest": words,
            "stale": words,
            "decided_by": words,
            "decided_at": utc(NOW),
            "reason": words,
        }

    def told(self, words: str) -> list[str]:
        """Every fragment that can show C{words}."""
        session = self.agent(f"s{len(self.runner.calls)}", agent=words, working_dir=words)
        waiting = self.ask(words, session, **self.everything(words))
        failed = self.ask(words, session, **self.everything(words))
        fault = Fault("external_api_error", words)
        self.runner.finish(failed.id, RunState.UNKNOWN, fault=fault, result={words: words}, reason=words, action=words)
        heard = [self.fragment(path) for path in ("/approvals", *(f"/approvals/{run.id}" for run in (waiting, failed)))]
        self.assertEqual([each.status for each in heard], [200, 200, 200])
        self.runner.finish(waiting.id, RunState.DENIED)
        return [each.text for each in heard]

    @settings(deadline=None, max_examples=examples(60))
    @given(HOSTILE)
    @example("[1]")
    def test_inert(self, words: str) -> None:
        """No hostile text adds a tag, an attribute, or a character that a person would not see."""
        assume(indent(words) == words)  # what is JSON is shown in as many lines as it has members
        like = "x@x" if "@" in words else "x"  # an address is offered another choice: its domain
        usual = self.told(like if words.strip() else words)
        for text, plain in zip(self.told(words), usual, strict=True):
            self.assertEqual(read(text).shape, read(plain).shape)
            unseen = [each for each in text if unicodedata.category(each) in UNSEEN and each != "\n"]
            self.assertEqual(unseen, [])
            self.assertNotIn("<script", text.lower())

    @settings(deadline=None, max_examples=examples(60))
    @given(st.text(st.characters().filter(lambda each: visible(each) == each), min_size=1, max_size=60))
    def test_readable(self, words: str) -> None:
        """What a person can see is shown as it is."""
        run = self.ask(words)
        self.assertIn(words, read(self.fragment(f"/approvals/{run.id}").text).text)

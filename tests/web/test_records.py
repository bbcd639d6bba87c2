"""Runs, sessions and the record: all of them, and one whole."""

from __future__ import annotations

import re
from datetime import timedelta

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.web.template import flattenString

from aileron.base.json import JSON, timestamp, utc
from aileron.base.text import visible
from aileron.model.actions import Inverse
from aileron.model.audit import Actor, Event
from aileron.model.faults import Fault
from aileron.model.reviews import Review
from aileron.model.runs import Run, RunState
from aileron.model.sessions import SessionEnding, SessionTally
from aileron.model.usage import Usage
from aileron.web._runs_page import Lane
from aileron.web._sessions_page import describe_calls, draw_timeline
from tests.api.case import NOW
from tests.web.case import WebCase, planned, read, sent

HOSTILE = "<b onclick=x>\u202e</b>"
VISIBLE = visible("\u202e")
NOTES = {"media_type": "text/plain", "text": "it reads\u202e"}
OPERATOR = Actor("human", "operator-1")


class RunPagesTests(WebCase):
    """C{/runs} and C{/runs/…}."""

    def run_in(self, state: RunState, **changes: object) -> Run:
        """A run that stands there."""
        return self.runner.finish(self.ask().id, state, **changes)

    def test_list(self) -> None:
        """Every run is there with its state and why, and leads to its own page."""
        run = self.run_in(RunState.FAILED, fault=Fault("network_error", HOSTILE))
        text = self.fragment("/runs").text
        self.assertIn(f'href="/runs/{run.id}"', text)
        self.assertIn('<span class="chip bad">Failed</span>', text)
        self.assertIn(VISIBLE, text)
        self.assertNotIn("onclick", str([attributes for _, attributes in read(text).tags]))

    def test_answer(self) -> None:
        """What the service answered to an attempt in doubt can be opened, and shows what hides in it."""
        text = self.fragment(f"/runs/{self.run_in(RunState.UNKNOWN).id}").text
        self.assertIn("<summary>Response to post, attempt 1 (text/html)</summary>", text)
        self.assertIn("&lt;script&gt;\\u202e", text)

    def test_counted(self) -> None:
        """What is read aloud counts one run as a run, and several as runs."""
        for said in ("1 run", "2 runs"):
            self.run_in(RunState.FAILED)
            self.assertEqual(read(self.fragment("/runs").text).tags[0][1]["data-said"], said)

    def test_filtered(self) -> None:
        """A filter leaves what is like it, and keeps what was chosen."""
        self.run_in(RunState.FAILED)
        self.assertIn("No matching runs", self.fragment("/runs?state=completed").text)
        shown = self.fragment("/runs?state=failed&action=ship-update").text
        self.assertIn('<option value="failed" selected="selected">', shown)
        self.assertIn('class="chip bad"', shown)

    def test_more(self) -> None:
        """What does not fit on a page is behind a link that keeps the filter."""
        for _ in range(51):
            self.ask()
        first = self.fragment("/runs?action=ship-update").text
        self.assertEqual(first.count("<tr>"), 51)
        self.assertIn('href="/runs?action=ship-update&amp;cursor=', first)

    def test_described(self) -> None:
        """A row says in one short line what was asked, with what hides in it made visible."""
        self.ask("Dark mode is  ready\u202e" + 400 * "x")
        text = read(self.fragment("/runs").text).text
        self.assertIn("Dark mode is ready\\u202exxx", text)
        self.assertNotIn(60 * "x", text)

    def test_waited_and_ran(self) -> None:
        """How long a run waited for a decision, and how long it ran, are told apart; a denied one never ran."""
        ran = evolve(self.run_in(RunState.COMPLETED), changed_at=utc(NOW) + timedelta(minutes=9))
        lane = Lane(ran, decided=ran.received_at + timedelta(minutes=3), began=ran.changed_at - timedelta(seconds=2))
        self.assertEqual((lane.waited, lane.ran), ("3 min", "2 s"))
        fast = evolve(ran, changed_at=ran.received_at + timedelta(seconds=0.0474))
        self.assertEqual(Lane(fast, decided=fast.changed_at, began=fast.received_at).ran, "47 ms")
        for seconds, words in (
            (0.9, "900 ms"),
            (1.24, "1.2 s"),
            (9.97, "10 s"),
            (75, "1 min"),
            (9000, "2 h"),
            (2e5, "2 d"),
        ):
            slow = evolve(ran, changed_at=ran.received_at + timedelta(seconds=seconds))
            self.assertEqual(Lane(slow, began=slow.received_at).ran, words)
        denied = evolve(self.run_in(RunState.DENIED), changed_at=ran.received_at + timedelta(seconds=30))
        self.assertEqual((Lane(denied).waited, Lane(denied).ran), ("30 s", ""))
        self.assertEqual((Lane(self.ask()).waited, Lane(self.ask()).ran), ("", ""))

    def test_searched(self) -> None:
        """A search finds pending and denied runs as well, and shows where the text occurs."""
        self.ask("Rolling back shop-web to 2026.47: p95 of checkout doubled")
        self.run_in(RunState.DENIED, reason="Not shop-web, <b>please</b>")
        self.ask("Nothing of it")
        found = read(self.fragment("/runs?text=SHOP-web").text)
        self.assertEqual(found.tags[0][1]["data-said"], "2 runs")
        self.assertIn("Rolling back shop-web to 2026.47", found.text)
        self.assertIn("Not shop-web, <b>please</b>", found.text)
        self.assertIn("No matching runs", self.fragment("/runs?text=elsewhere").text)

    def test_timeline(self) -> None:
        """What happened to a run is listed in order, in words, with the records; its ids are folded."""
        run = self.run_in(RunState.COMPLETED)
        for number, kind in enumerate(("approval.requested", "approval.approved", "execution.started")):
            event = Event(
                f"event-{number}", kind, utc(NOW) + timedelta(seconds=number), OPERATOR, {"reason": HOSTILE}, run.id
            )
            self.successResultOf(Deferred.fromCoroutine(self.store.audit.append(event)))
        text = self.fragment(f"/runs/{run.id}").text
        places = [text.index(f">{words}<") for words in ("Approval requested", "Approved", "Started")]
        self.assertEqual(places, sorted(places))
        self.assertIn('href="/audit/event-2"', text)
        self.assertIn(VISIBLE, text)
        self.assertGreater(text.index(run.effect_key), text.index('<details id="details-of-run">'))

    def test_opened(self) -> None:
        """The timeline tells once for each content that a browser opened it that may decide, and of no other."""
        run = self.ask()
        self.assertEqual(self.fragment(f"/runs/{run.id}").text, self.fragment(f"/approvals/{run.id}").text)
        opened = [each for each in self.recorded() if each[0] == "approval.shown"]
        self.assertEqual([actor.id for _, actor, _ in opened], [self.session.id])
        self.runner.reviews[run.id] = {"digest": "sha256:other"}
        self.fragment(f"/approvals/{run.id}")
        self.assertEqual([each[0] for each in self.recorded()].count("approval.shown"), 2)
        self.clock.advance(30 * 60)
        self.runner.reviews[run.id] = {"digest": "sha256:third"}
        self.assertEqual(self.fragment(f"/approvals/{run.id}").status, 200)
        self.runner.finish(run.id, RunState.DENIED)
        text = read(self.fragment(f"/runs/{run.id}").text).text
        self.assertEqual(text.count("Opened in the browser"), 2)

    def test_edited(self) -> None:
        """A run whose arguments were edited tells what was asked for beside them."""
        run = self.ask("asked")
        edited = self.runner.edit(run.id, {"text": "better"}, None, OPERATOR)
        self.successResultOf(Deferred.fromCoroutine(edited))
        self.runner.finish(run.id, RunState.COMPLETED)
        text = read(self.fragment(f"/runs/{run.id}").text).text
        for words in ("Your edits", "Before: asked", "After: better"):
            self.assertIn(words, text)

    def test_exchanges(self) -> None:
        """Each step has its request and its response, folded; of a denied run it says that nothing was sent."""
        step = planned(sent('{"text": "Dark mode"}'), id="post")
        run = self.runner.finish(self.ask(review=Review(steps=(step,))).id, RunState.COMPLETED, result={"output": 1})
        shown = read(self.fragment(f"/runs/{run.id}").text)
        names = [each.get("id") for tag, each in shown.tags if tag == "details"]
        self.assertLessEqual({"sent-1", "response-0", "details-of-run"}, set(names))
        self.assertNotIn("Attempts", shown.text)
        denied = self.runner.finish(self.ask(review=Review(steps=(step,))).id, RunState.DENIED)
        text = read(self.fragment(f"/runs/{denied.id}").text).text
        for words in ("Nothing was sent.", "Requests that were not sent"):
            self.assertIn(words, text)

    def test_titled(self) -> None:
        """A run with a title is listed by it, with its action below, and found by it; one without, by its action."""
        run = self.run_in(RunState.COMPLETED)
        self.assertIn(f'<a href="/runs/{run.id}">ship-update</a>', self.fragment("/runs").text)
        self.runner.finish(run.id, title="Post to #general: Dark\u202emode")
        text = self.fragment("/runs?text=POST+to").text
        self.assertIn(f'<a href="/runs/{run.id}">Post to #general: Dark{VISIBLE}mode</a>', text)
        self.assertEqual(read(text).text.count("Post to"), 1)
        self.assertIn("ship-update · Dark mode", text)

    def test_one(self) -> None:
        """One run shows its arguments, who decided, and what came of it."""
        run = self.run_in(RunState.COMPLETED, result={"output": HOSTILE})
        text = self.fragment(f"/runs/{run.id}").text
        for part in (
            '<span class="chip good">Completed</span>',
            run.effect_key,
            '<div id="argument-0" tabindex="-1" class="text" data-label="text">Dark mode<',
            VISIBLE,
        ):
            self.assertIn(part, text)
        self.assertEqual(self.fragment("/runs/none").status, 404)

    def test_attachments(self) -> None:
        """What is attached to a result is told, and how to have it."""
        output = {"picture": {"media_type": "image/png", "base64": "AAEC"}, "notes": NOTES}
        run = self.run_in(RunState.COMPLETED, result={"output": output, "steps": {"a": output}})
        text = self.fragment(f"/runs/{run.id}").text
        for part in ("[attachment 1: image/png, 3 bytes]", "[attachment 2: text/plain", f"aileron run save {run.id} "):
            self.assertIn(part, text)
        self.assertEqual(("AAEC" in text, "attachment 3" in text, text.count(f"it reads{VISIBLE}")), (False, False, 1))
        plain = self.run_in(RunState.COMPLETED, result={"output": "done"})
        self.assertNotIn("attachments", self.fragment(f"/runs/{plain.id}").text)

    def test_unknown(self) -> None:
        """Whose outcome nobody knows can be looked for, settled either way, or done again on purpose."""
        run = self.run_in(RunState.UNKNOWN)
        text = self.fragment(f"/runs/{run.id}").text
        self.assertIn(f'data-act="POST /v1/runs/{run.id}/reconcile"', text)
        for outcome in ("happened", "did_not_happen", "run_again"):
            self.assertIn(f'data-body="{{&quot;outcome&quot;: &quot;{outcome}&quot;}}"', text)
        self.assertEqual((text.count("data-sure"), text.count('name="note"')), (1, 1))
        self.assertEqual(text.count('data-with="settling"'), 3, "each button sends the one note")
        self.assertIn(", or look up the outcome.", text)
        self.runner.reconcilable = False
        text = self.fragment(f"/runs/{run.id}").text
        self.assertEqual(("/reconcile" in text, text.count("/resolve")), (False, 3))
        self.assertIn("Aileron cannot look up the outcome of this run.", text)

    def test_looked_up(self) -> None:
        """While an outcome is unknown, the page says what the last look for it found, and when; also aloud."""
        run, at = self.run_in(RunState.UNKNOWN), utc(NOW)
        failure: JSON = {"class": "network_error", "message": HOSTILE}
        looks: list[tuple[dict[str, JSON], str]] = [
            ({"happened": None}, "Nothing was found, which does not prove that it did not happen."),
            ({"happened": None, "failure": failure}, "The lookup failed: <b onclick=x>"),
            ({"happened": True}, "This step happened, as the service says."),
            ({"happened": False}, "This step did not happen, and the steps after it never started."),
        ]
        self.assertNotIn("Looked up", self.fragment(f"/runs/{run.id}").text)
        for number, (found, words) in enumerate(looks):
            told, later = {"step": "post", **found}, at + timedelta(minutes=number)
            event = Event(f"look-{number}", "execution.reconciled", later, OPERATOR, told, run.id, connector="c://x")
            self.successResultOf(Deferred.fromCoroutine(self.store.audit.append(event)))
            page = read(self.fragment(f"/runs/{run.id}").text)
            self.assertIn(f"Looked up step post at c://x {timestamp(later)}: {words}", page.text)
            self.assertIn(f"Looked up at {later:%H:%M:%S} UTC. {words}", page.tags[0][1]["data-said"])
        self.runner.finish(run.id, RunState.COMPLETED)
        self.assertNotIn("Looked up", self.fragment(f"/runs/{run.id}").text)

    def test_settled(self) -> None:
        """What is over can neither be taken back nor settled."""
        for state in (RunState.COMPLETED, RunState.DENIED):
            self.assertNotIn("data-act", self.fragment(f"/runs/{self.run_in(state).id}").text)

    def test_undo(self) -> None:
        """A completed run can be undone where its action, unchanged since, says how; then its approval is shown."""
        run = self.run_in(RunState.COMPLETED)
        offer = self.runner.offering().offers[run.action]
        action = evolve(offer.action, digest=run.manifest_digest, inverse=Inverse("delete-message"))
        self.runner.offer(evolve(offer, action=action))
        text = self.fragment(f"/runs/{run.id}").text
        self.assertIn(f'data-act="POST /v1/runs/{run.id}/undo"', text)
        self.assertIn('data-leads="/approvals/"', text)
        self.assertIn("Requests delete-message for what this run did.", text)
        self.assertNotIn("/undo", self.fragment(f"/runs/{self.run_in(RunState.FAILED).id}").text)
        self.runner.offer(evolve(offer, action=evolve(action, digest="sha256:another")))
        self.assertNotIn("/undo", self.fragment(f"/runs/{run.id}").text)


class SessionPagesTests(WebCase):
    """C{/sessions} and C{/sessions/…}."""

    def test_list(self) -> None:
        """Every session is there as it calls itself."""
        self.agent("session-1", agent=HOSTILE)
        self.agent("session-2", ended_at=utc(NOW), exit_code=3)
        text = self.fragment("/sessions").text
        self.assertIn(VISIBLE, text)
        self.agent("session-3", ended_at=utc(NOW), ending=SessionEnding.ORPHANED)
        self.assertIn("Ended (exit code 3)", text)
        self.assertIn("Orphaned", self.fragment("/sessions").text)
        self.assertIn("Active", text)

    def test_active(self) -> None:
        """An active session shows what it called last, what waits for you, and buttons that pause and end it."""
        session = self.agent("session-1")
        self.agent("session-2", ended_at=utc(NOW))
        self.assertIn("None yet", self.fragment("/sessions").text)
        run = self.ask("Dark mode" + HOSTILE, session)
        text = self.fragment("/sessions").text
        for part in (
            f'href="/approvals/{run.id}"',
            "1 decision waits for you",
            f"Dark mode&lt;b onclick=x&gt;{VISIBLE}",
            'id="pause-session-1"',
        ):
            self.assertIn(part, text)
        self.assertEqual(text.count("/end"), 1)
        self.ask(session=session)
        self.assertIn("2 decisions wait for you", self.fragment("/sessions").text)
        self.successResultOf(Deferred.fromCoroutine(self.runner.pause("session-1", None, OPERATOR)))
        self.assertIn('id="resume-session-1"', self.fragment("/sessions").text)
        self.agent("session-1", ended_at=utc(NOW))
        self.assertIn("No agent is running", self.fragment("/sessions").text)

    def test_calls(self) -> None:
        """Of a session's calls only what occurred is counted, on one line."""
        self.agent("session-1")
        self.assertIn("<dt>Calls</dt><dd>7</dd>", self.fragment("/sessions/session-1").text)
        tally = SessionTally(calls=7, approvals=2, waiting=5)
        self.assertEqual(describe_calls(tally), "7 (5 pending, 2 approved)")

    def test_lanes(self) -> None:
        """A lane is named after what its run does, shortened to its room, with the whole name where one points."""
        title = "Post to #general: the release notes of the new parser"
        drawn = draw_timeline([Lane(evolve(self.ask(), title=title))], utc(NOW))
        text: bytes = self.successResultOf(flattenString(None, drawn))
        self.assertIn(f"{title[:35]}…<title>{title}</title>", text.decode())
        self.assertIn(f"<title>{title}: waited for approval</title>", text.decode())
        self.assertNotIn("ship-update", text.decode())

    def test_commands(self) -> None:
        """The ended sessions of commands are left out unless asked for; a live one is there."""
        self.agent("session-1", agent="cli", ended_at=utc(NOW))
        self.agent("session-2", agent="cli")
        for query, listed in (("", [False, True]), ("?live=all", [True, True])):
            text = self.fragment(f"/sessions{query}").text
            self.assertEqual([f"/sessions/session-{number}" in text for number in (1, 2)], listed)

    def test_tokens(self) -> None:
        """The sessions that used most tokens, and cost most, are drawn, the most first; those with none are not."""
        begun = self.agent("session-1", agent="claude-code-nightly").started_at
        self.agent("session-2", agent=HOSTILE)
        self.agent("session-3", agent="idle")
        self.assertNotIn("<svg", self.fragment("/sessions").text)
        for session_id, usage in (("1", Usage(1200, 34)), ("2", Usage(70_000, 1)), ("3", Usage())):
            self.store.usage.note("openai", f"session-{session_id}", usage)
        drawn = read(self.fragment("/sessions").text).tags
        (chart,) = [attributes for tag, attributes in drawn if tag == "svg"]
        starts = [attributes["data-at"] for tag, attributes in drawn if tag == "tspan"]
        self.assertEqual(starts, [timestamp(begun)] * 2)
        rows = f"{visible(HOSTILE[:10])} {begun:%d %b %H:%M} 70,001, claude-cod {begun:%d %b %H:%M} 1,234"
        self.assertEqual(chart["aria-label"].partition(": ")[2], rows)
        for session_id, cost in (("1", 2_500_000), ("3", 140)):
            self.store.usage.note("openrouter", f"session-{session_id}", Usage(cost_microdollars=cost))
        costs = [attributes for tag, attributes in read(self.fragment("/sessions").text).tags if tag == "svg"][1]
        rows = f"claude-cod {begun:%d %b %H:%M} $2.50, idle {begun:%d %b %H:%M} $0.000140"
        told = f"Cost as reported by providers, by session (start in UTC): {rows}"
        self.assertEqual(costs["aria-label"], told)

    def test_usage(self) -> None:
        """A session shows its LLM calls, their tokens and, only where a provider told one, their cost; here and listed.

        All of it is what is stored, so it stays when the daemon starts anew.
        """
        self.agent("session-1")
        self.assertNotIn("tokens", self.fragment("/sessions/session-1").text)
        self.store.usage.note("openai", "session-1", Usage(1200, 34))
        self.store.usage.note("openai", "session-1", None)
        self.build()
        text = self.fragment("/sessions/session-1").text
        for name, number in (("LLM requests", "2"), ("Input tokens", "1,200"), ("Output tokens", "34")):
            self.assertIn(f"<dt>{name}</dt><dd>{number}</dd>", text)
        self.assertNotIn("Cost", text)
        numbers = re.compile(r"<t?dd?[^>]*>([\d,]+)</t?dd?>").findall
        self.assertEqual(numbers(self.fragment("/sessions").text)[-3:], ["2", "1,200", "34"])
        self.agent("session-1", ended_at=utc(NOW))
        self.assertEqual(numbers(self.fragment("/sessions").text)[-3:], ["2", "1,200", "34"])
        for microdollars, shown in ((140, "$0.000140"), (12_345_678, "$12.35")):
            self.store.usage.note("openrouter", "session-1", Usage(cost_microdollars=microdollars))
            self.assertIn(
                f"<dt>Cost as reported by providers</dt><dd>{shown}</dd>", self.fragment("/sessions/session-1").text
            )

    def test_one(self) -> None:
        """One session shows its calls, drawn and as rows; it can be paused and ended while it lives."""
        session = self.agent("session-1")
        run = self.ask(session=session)
        text = self.fragment("/sessions/session-1").text
        svg = [attributes for tag, attributes in read(text).tags if tag == "rect"]
        self.assertEqual([each["class"] for each in svg], ["waited"])
        for part in (f'href="/approvals/{run.id}"', "POST /v1/pause", "POST /v1/sessions/session-1/end", "data-sure"):
            self.assertIn(part, text)
        self.successResultOf(Deferred.fromCoroutine(self.runner.pause("session-1", None, OPERATOR)))
        self.assertIn("POST /v1/resume", self.fragment("/sessions/session-1").text)
        self.assertIn("<dd>7</dd>", text)
        self.agent("session-1", ended_at=utc(NOW))
        self.assertNotIn("data-act", self.fragment("/sessions/session-1").text)
        self.assertEqual(self.fragment("/sessions/none").status, 404)


class RecordPagesTests(WebCase):
    """C{/audit} and C{/audit/…}."""

    def keep(self, kind: str, number: int = 1) -> None:
        """Put something on record."""
        at = utc(NOW) + timedelta(hours=number)
        event = Event(f"id-{number}", kind, at, OPERATOR, {"said": HOSTILE}, run_id="run-1", action="x")
        self.successResultOf(Deferred.fromCoroutine(self.store.audit.append(event)))

    def test_list(self) -> None:
        """Records are listed newest first and filtered by kind and time."""
        self.keep("a.b", 1)
        self.keep("c.d", 2)
        text = self.fragment("/audit").text
        self.assertLess(text.index("c.d"), text.index("a.b"))
        self.assertNotIn("c.d</a>", self.fragment("/audit?type=a.b").text)
        self.assertNotIn("a.b</a>", self.fragment("/audit?since=2025-10-09T10:30").text)
        refused = self.fragment("/audit?until=soon")
        self.assertEqual(
            (refused.status, refused.text), (400, "Until is not a valid time. Write it as 2026-01-31T12:00.")
        )
        self.assertEqual(self.fragment("/audit?type=a&type=b").status, 400)

    def test_logins(self) -> None:
        """Logins of commands are left out and said to be, unless they, or something narrower, are asked for."""
        for number, kind in enumerate(("operator.login", "operator.logout"), 1):
            event = Event(f"id-{number}", kind, utc(NOW), OPERATOR, {"browser": False, "session": OPERATOR.id})
            self.successResultOf(Deferred.fromCoroutine(self.store.audit.append(event)))
        self.assertNotIn("operator.login</a>", self.fragment("/audit").text)
        self.assertIn('href="/audit?logins=yes"', self.fragment("/audit").text)
        for query in ("logins=yes", "type=operator.login"):
            text = self.fragment(f"/audit?{query}").text
            self.assertEqual(("operator.login</a>" in text, "list them too" in text), (True, False), query)

    def test_subject(self) -> None:
        """A row says what was trusted, by you."""
        event = Event("id-1", "trust.given", utc(NOW), OPERATOR, {"kind": "config", "name": "config.yaml\u202e"})
        self.successResultOf(Deferred.fromCoroutine(self.store.audit.append(event)))
        text = self.fragment("/audit").text
        self.assertIn("config.yaml\\u202e", text)
        self.assertIn("You", text)
        self.assertNotIn(OPERATOR.id, self.fragment("/audit/id-1").text)

    def test_red(self) -> None:
        """What somebody approved alone is red, with the reason; a usual approval is not."""
        for number, kind in enumerate(("approval.approved", "approval.forced"), 1):
            event = Event(f"id-{number}", kind, utc(NOW), OPERATOR, {"reason": f"{kind}: <b>down\u202e"}, action="x")
            self.successResultOf(Deferred.fromCoroutine(self.store.audit.append(event)))
        text = self.fragment("/audit").text
        self.assertIn('<span class="chip bad">Approved alone</span>', text)
        self.assertIn("approval.forced: &lt;b&gt;down\\u202e", text)
        self.assertNotIn("approval.approved: ", text)

    def test_signed(self) -> None:
        """It says up to which record, when and by which key the record is signed, or that it is not yet."""
        self.assertIn("No checkpoint has been signed yet.", self.fragment("/audit").text)
        self.keep("a.b")
        self.successResultOf(Deferred.fromCoroutine(self.signer.open(unlocked=False)))
        self.successResultOf(Deferred.fromCoroutine(self.signer.checkpoint()))
        latest, text = self.signer.latest, self.fragment("/audit").text
        assert latest is not None
        for part in (f"Signed up to record {latest.sequence}", f'datetime="{latest.at}"', str(self.signer.fingerprint)):
            self.assertIn(part, text)

    def test_one(self) -> None:
        """One record is whole, its contents made visible."""
        self.keep("a.b")
        text = self.fragment("/audit/id-1").text
        for part in (VISIBLE, 'href="/runs/run-1"', "sha256:"):
            self.assertIn(part, text)
        self.assertEqual(self.fragment("/audit/none").status, 404)

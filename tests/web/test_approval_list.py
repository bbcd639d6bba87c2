"""The list of what waits: what can be ticked there, and what floods it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.web.template import Tag

from aileron.base.json import utc
from aileron.model.audit import Actor
from aileron.model.precedents import Precedents
from aileron.model.reviews import Cut, PreviewField, PreviewStatus, Review
from aileron.model.runs import Approval, Call, Change, RunState
from aileron.web.approvals.decision import deny_all
from aileron.web.texts import countdown, segment
from tests.api.case import NOW

from .case import ReviewedRunner, WebCase, bound, planned, previewed, read, sent

REVIEW = Review(steps=(planned(sent("x"), binding=bound("me")),))
TOPIC = PreviewField("Topic", "Old", missing=False, multiline=False)


class RowTests(WebCase):
    """One row each."""

    def tick(self, text: str = "Dark mode", **shown: Any) -> tuple[str, str]:
        """Whether a request can be ticked, and all that its row says."""
        run = self.ask(text, **{"review": REVIEW, **shown})
        shown_now = read(self.fragment("/approvals").text)
        (box,) = [each for _, each in shown_now.tags if each.get("data-id") == run.id]
        self.assertIn("disabled", box, "the script brings it to life")
        self.assertTrue(box["id"].endswith(box["data-digest"]), "another digest has another tick")
        self.runner.reviews[run.id] = {}
        return box["data-tickable"], shown_now.text

    def test_whole(self) -> None:
        """A short request is shown whole, with where it goes and by which credential, and can be ticked."""
        tickable, text = self.tick()
        self.assertEqual(tickable, "yes")
        for words in ("text: Dark mode", "→ post at example.org, credential api_key/slack/default (me)"):
            self.assertIn(words, text)

    def test_digest(self) -> None:
        """The tick names the digest of what the row shows."""
        self.ask("x", review=REVIEW, digest="sha256:abc")
        boxes = [
            each for tag, each in read(self.fragment("/approvals").text).tags if tag == "input" and "data-id" in each
        ]
        self.assertEqual([each["data-digest"] for each in boxes], ["sha256:abc"])

    def test_not_whole(self) -> None:
        """What is long, in several lines, hides something or may mislead is to be opened first."""
        for text in ("x" * 161, "a\nb", "a\u200bb", "<!channel>", "p\u0430ypal.com", "a" + " " * 10 + "b"):
            self.assertEqual(self.tick(text)[0], "no", repr(text))

    def test_irreversible(self) -> None:
        """What cannot be brought back is not decided in the list."""
        self.assertEqual(self.tick("x")[0], "yes")
        self.runner.offer(evolve(self.runner.offering().offers["ship-update"], irreversible=True))
        self.assertEqual(self.tick("x")[0], "no")

    def test_snoozed(self) -> None:
        """What is snoozed is in a folded group of its own until its time is over."""
        run = self.ask("x", review=REVIEW)
        until = utc(NOW) + timedelta(minutes=10)
        Deferred.fromCoroutine(self.store.snoozes.put(run.id, until, ()))
        shown = read(self.fragment("/approvals").text)
        folded = [each for tag, each in shown.tags if tag == "details" and each.get("id") == "snoozed"]
        self.assertEqual([each.get("open") for each in folded], [None])
        self.assertIn("Snoozed · 1", shown.text)
        self.assertNotIn("Look closely", shown.text)
        self.clock.advance(600)
        shown = read(self.fragment("/approvals").text)
        self.assertNotIn("Snoozed", shown.text)
        self.assertIn("Look closely · 1", shown.text)

    def test_not_now(self) -> None:
        """What changed, has no plan, or has a preview that is not all there is to be opened first."""
        unready_previews = (
            previewed(status=PreviewStatus.FETCHING),
            previewed(TOPIC, lacking="It cannot be approved."),
            previewed(evolve(TOPIC, cut=Cut(7, "sha256:x"))),
            previewed(evolve(TOPIC, value="a\nb")),
        )
        unready: tuple[dict[str, Any], ...] = (
            {"stale": "The action was changed."},
            {"changes": (Change("/fields/0/value", "changed", "a", "b"),)},
            {"review": Review()},
            {"review": Review(unread={"steps": "x"})},
            {"review": Review(steps=(planned(None),))},
            *({"review": evolve(REVIEW, preview=each)} for each in unready_previews),
        )
        for number, shown in enumerate(unready):
            self.assertEqual(self.tick(**shown)[0], "no", number)
        tickable, text = self.tick(review=evolve(REVIEW, preview=previewed(TOPIC)))
        self.assertEqual(tickable, "yes")
        self.assertIn("Topic: Old", text)

    def test_twins(self) -> None:
        """Identical requests are one row with their number, unless their agent gave each its own key."""
        sessions = [self.agent("session-1"), self.agent("session-2")]
        for keys, rows in (((None, None), 1), (("a", "b"), 2), (("aileron-a", "aileron-b"), 1), (("c", None), 1)):
            runs = []
            for key in keys:
                call = Call("ship-update", {"text": "hi"}, Actor("agent", "session-1"), sessions[0], key)
                runs.append(self.successResultOf(Deferred.fromCoroutine(self.runner.submit(call))))
            self.runner.earlier |= {
                one.id: Precedents(9, True, {}, twins=(two,)) for one, two in zip(runs, runs[::-1], strict=False)
            }
            found = read(self.fragment("/approvals").text)
            boxes = [each for _, each in found.tags if each.get("data-id")]
            self.assertEqual(len(boxes), rows, keys)
            self.assertEqual(boxes[0]["data-id"].split(",")[0], runs[0].id)
            self.assertEqual("2 identical requests" in found.text, rows == 1)
            self.assertEqual("Identical request" in found.text, rows == 2, "the row says it once")
            for run in runs:
                self.runner.finish(run.id, RunState.DENIED)

    def boxes(self) -> list[dict[str, str]]:
        """The checkboxes of the list's rows."""
        found = read(self.fragment("/approvals").text)
        return [dict(each) for tag, each in found.tags if tag == "input" and each.get("data-id")]

    def test_identical(self) -> None:
        """A row that stands for requests of several sessions names each, with its digest, and says who asks."""
        sessions = [self.agent("session-1", agent="one"), self.agent("session-2", agent="two"), None]
        runs = [self.ask("hi", each, review=REVIEW, digest=f"sha256:{at}") for at, each in enumerate(sessions)]
        (box,) = self.boxes()
        self.assertEqual(box["data-id"], ",".join(run.id for run in runs))
        self.assertEqual(box["data-digest"], "sha256:0,sha256:1,sha256:2")
        self.assertEqual(box["data-tickable"], "yes")
        self.assertIn(
            "3 identical requests: one (session session-1), two (session session-2), You",
            read(self.fragment("/approvals").text).text,
        )
        before = box["id"]
        self.ask("hi", self.agent("session-3"), review=REVIEW)
        (box,) = self.boxes()
        self.assertNotEqual(box["id"], before, "a later one is not selected with the others")

    def test_identical_in_sight_only(self) -> None:
        """What shows something else, is edited, repeats a run or is snoozed is a row of its own."""
        review = evolve(REVIEW, steps=(planned(sent("x"), binding=bound("other")),))
        for shown in ({"review": review}, {"stale": "changed"}, {"review": evolve(REVIEW, title="Other")}):
            runs = [self.ask("hi", self.agent("session-1"), review=REVIEW)]
            runs.append(self.ask("hi", self.agent("session-2"), **{"review": REVIEW, **shown}))
            self.assertEqual([each["data-id"] for each in self.boxes()], [run.id for run in runs], shown)
            for run in runs:
                self.runner.finish(run.id, RunState.DENIED)
        runs = [self.ask("hi", review=REVIEW) for _ in range(2)]
        self.assertEqual(len(self.boxes()), 1)
        until = utc(NOW) + timedelta(minutes=10)
        Deferred.fromCoroutine(self.store.snoozes.put(runs[0].id, until, ()))
        self.assertEqual({each["data-id"] for each in self.boxes()}, {run.id for run in runs})

    def test_identical_page(self) -> None:
        """The page of one has a box for all, which names each with its digest; a red warning takes the box away."""
        runs = [self.ask("hi", self.agent(f"session-{at}", agent="one"), review=REVIEW) for at in (1, 2)]
        for run in runs:
            found = read(self.fragment(f"/approvals/{run.id}").text)
            (box,) = [each for tag, each in found.tags if each.get("data-key") == "t"]
            self.assertEqual(box["data-id"], ",".join(each.id for each in runs))
            self.assertIn("Decide all 2 identical requests", found.text)
            self.assertIn("from one (session session-1), one (session session-2)", found.text)
            self.assertIn("1 of 1 ", found.text)
        self.runner.offer(evolve(self.runner.offering().offers["ship-update"], irreversible=True))
        found = read(self.fragment(f"/approvals/{runs[1].id}").text)
        self.assertEqual([each for tag, each in found.tags if each.get("data-key") == "t"], [])
        self.assertIn("Decide each on its own page, because of the red warning.", found.text)
        self.assertEqual([each["data-tickable"] for each in self.boxes()], ["no"])
        self.runner.finish(runs[0].id, RunState.DENIED)
        self.assertNotIn("identical", read(self.fragment(f"/approvals/{runs[1].id}").text).text)

    def test_identical_changed(self) -> None:
        """Where the list has another version of what the page shows, there is no box."""
        runs = [self.ask("hi", self.agent(f"session-{at}"), review=REVIEW) for at in (1, 2)]
        page = f"/approvals/{runs[0].id}"
        self.assertIn("Decide all 2 identical requests", read(self.fragment(page).text).text)
        show = ReviewedRunner.approval

        async def show_older(runner: ReviewedRunner, run_id: str, *, only_read: bool = False) -> Approval:
            return evolve(await show(runner, run_id, only_read=only_read), digest="sha256:older")

        self.patch(ReviewedRunner, "approval", show_older)
        self.assertNotIn("Decide all", read(self.fragment(page).text).text)

    def test_chips(self) -> None:
        """What makes one to look at twice is said in a word or two."""
        run = self.ask("ann@a.example", review=REVIEW)
        self.runner.earlier[run.id] = Precedents(9, True, {"text": ("ann@a.example",)}, action_changed=True)
        self.ask("x", review=Review(steps=(planned(sent(url="http://10.0.0.1/")),)))
        text = read(self.fragment("/approvals").text).text
        for words in ("New recipient", "Action changed", "Private network", "First time"):
            self.assertIn(words, text)
        self.assertNotIn("Destructive", text)
        self.assertNotIn("Irreversible", text)
        self.runner.offer(evolve(self.runner.offering().offers["ship-update"], irreversible=True))
        self.assertIn("Irreversible", read(self.fragment("/approvals").text).text)

    def test_one_chip_a_severity(self) -> None:
        """Labels of one severity are one chip, so that a row has three, whatever there is to say."""
        run = self.ask("ann@a.example", review=REVIEW)
        self.runner.earlier[run.id] = Precedents(9, True, {"text": ("ann@a.example",)}, action_changed=True)
        chips = [each for tag, each in read(self.fragment("/approvals").text).tags if "chip" in each.get("class", "")]
        self.assertEqual([each["class"] for each in chips], ["chip red", "chip amber", "chip grey"])
        self.assertIn("New recipient · Action changed", read(self.fragment("/approvals").text).text)

    def test_what_the_title_leaves_out(self) -> None:
        """A row says what its title does not: an argument that the title shows, or else the action."""
        for title, words in (("Post to #a: Dark mode", "You · ship-update"), ("Post to #a", "You · Dark mode")):
            run = self.ask("Dark mode", review=evolve(REVIEW, title=title))
            self.assertIn(words, read(self.fragment("/approvals").text).text)
            self.runner.finish(run.id, RunState.DENIED)


class FloodTests(WebCase):
    """A session that asks and asks."""

    def test_flood(self) -> None:
        """More than five of one session stand by themselves, with one button that says how many it denies."""
        calm, flooding = self.agent("calm", agent="quiet one"), self.agent("flooding", agent="loud one")
        for number in range(6):
            self.ask(str(number), flooding)
        self.ask("x", calm)
        heard = self.fragment("/approvals")
        shown = read(heard.text)
        self.assertIn("loud one has 6 pending requests", shown.text)
        self.assertNotIn("quiet one has", shown.text)
        (button,) = [each for tag, each in shown.tags if tag == "button" and "data-act" in each]
        self.assertEqual(button["data-act"], "POST /v1/sessions/flooding/deny")
        self.assertIn("disabled", button)
        self.assertTrue(button["data-sure"])
        self.assertIn("Deny all 6 and end session", shown.text)
        self.assertEqual(heard.text.count("data-row="), 7)

    def test_few(self) -> None:
        """Five of one session are no flood."""
        session = self.agent()
        for number in range(5):
            self.ask(str(number), session)
        self.assertNotIn("pending requests", self.fragment("/approvals").text)

    def test_on_its_page(self) -> None:
        """One request's page has the button as well, where an agent asks."""
        session = self.agent()
        first, _ = self.ask("a", session), self.ask("b", session)
        self.assertIn("Deny all 2 and end session", self.fragment(f"/approvals/{first.id}").text)
        alone = self.agent("alone")
        self.assertIn("Deny and end session", self.fragment(f"/approvals/{self.ask('c', alone).id}").text)
        self.assertNotIn("deny-all", self.fragment(f"/approvals/{self.ask('d').id}").text)

    def test_beside(self) -> None:
        """A wide window gets the first request beside the list, as its own page has it; with none, the list alone."""
        alone = self.fragment("/approvals?beside=yes").text
        self.assertIn('class="split alone"', alone)
        self.assertIn("No pending approvals.", alone)
        first, second = self.ask("first"), self.ask("second")
        self.assertEqual(self.fragment("/approvals?beside=yes").text, self.fragment(f"/approvals/{first.id}").text)
        self.assertIn('class="split alone"', self.fragment("/approvals").text)
        self.snooze(first.id)
        self.assertEqual(self.fragment("/approvals?beside=yes").text, self.fragment(f"/approvals/{second.id}").text)
        self.snooze(second.id)
        self.assertIn("No pending approvals.", self.fragment("/approvals?beside=yes").text)

    def test_place(self) -> None:
        """The place of a request among those to go through leaves out the snoozed ones, listed or not."""
        runs = [self.ask(each) for each in ("a", "b", "c")]
        self.snooze(runs[0].id)
        self.assertIn("<span>2 of 2 ", self.fragment(f"/approvals/{runs[2].id}").text)
        self.assertNotIn(" of 2 ", self.fragment(f"/approvals/{runs[0].id}").text)
        self.runner.cursor = "there is more"
        for _ in range(60):
            self.ask("more", self.agent())
        self.assertIn("<span>2 of 62 ", self.fragment(f"/approvals/{runs[2].id}").text)

    def snooze(self, run_id: str) -> None:
        """Fold a request away for an hour."""
        until = utc(NOW) + timedelta(hours=1)
        self.successResultOf(Deferred.fromCoroutine(self.store.snoozes.put(run_id, until, ())))

    def test_cursor(self) -> None:
        """A cursor that is none is refused in words."""
        self.assertEqual(self.fragment("/approvals?cursor=a&cursor=b").status, 400)


class AddressTests(WebCase):
    """Where a button leads whose row somebody wrote into the database."""

    def test_one_part(self) -> None:
        """An id is one part of the address, whatever stands in it: no button does something else than it says."""
        for hostile in ("../resume z", "../../vault/lock?", "..", ".", "", "a#b", "\ud800"):
            found = segment(hostile)
            self.assertRegex(found, r"\A[A-Za-z0-9_.~%-]+\Z")
            self.assertNotIn(found, (".", ".."))
        self.assertEqual(segment("run-1"), "run-1")

    def test_buttons(self) -> None:
        """So are those in the list: what takes back, and what ends a session."""
        run = evolve(self.ask("x"), id="../resume z", state=RunState.APPROVED, start_after=utc(NOW))
        buttons = [countdown(run)[2], deny_all("../s?", 7)]
        acts = [each.attributes["data-act"] for each in buttons if isinstance(each, Tag)]
        self.assertEqual(
            acts, ["POST /v1/action-approvals/..%2Fresume%20z/withdraw", "POST /v1/sessions/..%2Fs%3F/deny"]
        )

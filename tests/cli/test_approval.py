"""What is shown is what is approved."""

from __future__ import annotations

import json
from typing import Any

from aileron.errors import ApprovalStale, Conflict
from tests.cli.daemon import DECIDE, DIGEST, ONE, RUN, CommandCase, approval


class ApprovalCase(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.serve()
        self.one_waits()

    def result(self, given: dict[str, Any]) -> None:
        """How it ends."""
        self.site.answer("GET", f"{ONE}/result?wait=10", given)


class ShowTests(ApprovalCase):
    def test_whole(self) -> None:
        """Every argument, the request as it will leave, the credential's name, claims as claims, the digest."""
        code, out, _ = self.as_operator("approval", "show", RUN)
        self.assertEqual(code, 0)
        for part in (
            "ship-update 1.0.0",
            "opened by process  7 /bin/x in /w\n",
            "  channel  #eng",
            "  summary\n    │ one\n    │ two\\u202e\n",
            "POST https://slack.com/api/chat.postMessage",
            "Content-Type: application/json",
            "Authorization: (the credential; filled in when it leaves)",
            '│ {"channel":"#eng"}',
            "api_key/slack/default (revision 3)",
            "It claims, and nothing proves:\n    agent      opencode\n    directory  /w\n",
            f"digest  {DIGEST}",
        ):
            self.assertIn(part, out)

    def test_stale(self) -> None:
        """That it changed stands at the top."""
        self.site.answer("GET", ONE, approval(stale="The action was changed since."))
        self.assertIn("CHANGED SINCE IT WAS FIRST SHOWN: The action", self.as_operator("approval", "show", RUN)[1])

    def test_without_request(self) -> None:
        """A step that uses an earlier answer says so and names its host."""
        found = approval()
        found["review"]["steps"][0]["request"] = None
        self.site.answer("GET", ONE, found)
        out = self.as_operator("approval", "show", RUN)[1]
        self.assertIn("built from what an earlier step answers; it goes to https://slack.com.", out)

    def test_unread_review(self) -> None:
        """A review in another form, such as of another version, is printed as the daemon sent it."""
        found = approval()
        found["review"]["steps"][0]["more"] = "than is known\u202e"
        self.site.answer("GET", ONE, found)
        code, out, _ = self.as_operator("approval", "show", RUN)
        self.assertEqual(code, 0)
        self.assertIn("cannot read the review", out)
        self.assertIn('"more": "than is known\\u202e"', out)

    def test_json(self) -> None:
        """For programs: the approval and its session."""
        found = json.loads(self.as_operator("approval", "show", RUN, "--json")[1])
        self.assertEqual((found["digest"], found["session"]["agent"]), (DIGEST, "opencode"))

    def test_list(self) -> None:
        """The list names what waits; a filter is passed on."""
        self.site.answer("GET", "/v1/action-approvals?limit=50", {"items": [approval()], "cursor": "c"})
        code, out, err = self.as_operator("approval", "list")
        self.assertEqual(code, 0)
        self.assertIn("01RUN  ship-update  pending_approval", out)
        self.assertIn("--cursor c", err)
        self.site.answer("GET", "/v1/action-approvals?state=denied&limit=50", {"items": [], "cursor": None})
        self.assertEqual(self.as_operator("approval", "list", "--state", "denied")[1], "Nothing waits for you.\n")


class ApproveTests(ApprovalCase):
    def test_yes(self) -> None:
        """After a yes the digest that was shown is sent, and the outcome told."""
        code, out, _ = self.as_operator("approval", "approve", RUN, answers=["y"])
        self.assertEqual(code, 0)
        self.assertIn("POST https://slack.com/api/chat.postMessage", out)
        self.assertIn("Approved, and done:", out)
        self.assertEqual(self.site.bodies("POST", DECIDE), [{"approved": True, "digest": DIGEST}])

    def test_nothing_decided(self) -> None:
        """Anything but a yes, another digest and what is decided already decide nothing, and say so."""
        denied = {**approval()["run"], "state": "denied"}
        for words, answers, run, told in (
            ((), ["n"], approval()["run"], "Nothing was decided; it still waits."),
            ((), [""], approval()["run"], "Nothing was decided; it still waits."),
            ((), ["yess"], approval()["run"], "Nothing was decided; it still waits."),
            (("--yes", "--digest", "sha256:other"), [], approval()["run"], "nothing was decided"),
            ((), [], denied, "This is denied already."),
        ):
            self.site.answer("GET", ONE, approval(run=run))
            code, _, err = self.as_operator("approval", "approve", RUN, *words, answers=answers)
            self.assertEqual((code, told in err), (1, True), (told, err))
        self.assertEqual(self.site.bodies("POST", DECIDE), [])

    def test_sure(self) -> None:
        """With --yes nothing is asked, and all is shown."""
        code, out, _ = self.as_operator("approval", "approve", RUN, "--yes", "--reason", "fine")
        self.assertEqual((code, "two\\u202e" in out), (0, True))
        self.assertEqual(self.site.bodies("POST", DECIDE)[0]["reason"], "fine")

    def test_changed_meanwhile(self) -> None:
        """A stale answer shows what changed, decides nothing, and asks to look again."""

        def changed(_body: object) -> object:
            now = approval(stale="The action was changed since.")
            now["review"]["fields"][0]["value"] = "#everyone"
            now["review"] = dict(reversed(now["review"].items()))  # the order of names says nothing
            self.site.answer("GET", ONE, now)
            raise ApprovalStale("Look at it again.")

        self.site.answer("POST", DECIDE, changed)
        code, out, err = self.as_operator("approval", "approve", RUN, answers=["y"])
        self.assertEqual(code, 1)
        self.assertIn("The action was changed since.", out)
        self.assertRegex(out, r'│ -.*"#eng"')
        self.assertRegex(out, r'│ \+.*"#everyone"')
        self.assertEqual((out.count("│ +"), out.count("│ -")), (2, 2), "more is told to differ than does")
        self.assertIn("Look again", err)

    def test_conflict(self) -> None:
        """The daemon's no is told as it is."""
        self.site.answer("POST", DECIDE, Conflict("It is cancelled already.", {"state": "cancelled"}))
        code, _, err = self.as_operator("approval", "approve", RUN, "--yes")
        self.assertEqual(code, 1)
        self.assertIn("aileron: It is cancelled already.", err)

    def test_outcome(self) -> None:
        """An approved run that fails is an error; one that takes longer is said to go on."""
        failed = {"status": "failed", "run_id": RUN, "failure": {"message": "Slack said no."}}
        running = {"status": "running", "run_id": RUN}
        for result, code, told in (
            (failed, 1, "it ended as failed: Slack said no."),
            (running, 0, "Approved; it is running."),
        ):
            self.result(result)
            found, *said = self.as_operator("approval", "approve", RUN, "--yes")
            self.assertEqual((found, told in "".join(said)), (code, True), told)

    def test_json(self) -> None:
        """With --json standard output is one JSON value."""
        found = json.loads(self.as_operator("approval", "approve", RUN, "--yes", "--json")[1])
        self.assertEqual(found["result"]["status"], "completed")

    def test_json_failed(self) -> None:
        """For programs too a run that fails is an error, and an approval that nobody would see is refused."""
        self.result({"status": "failed", "run_id": RUN, "failure": {"message": "Slack said no."}})
        code, out, _ = self.as_operator("approval", "approve", RUN, "--yes", "--json")
        self.assertEqual((code, json.loads(out)["result"]["status"]), (1, "failed"))
        self.assertEqual(self.command("approval", "approve", RUN, "--json")[0], 2)

    def test_deny(self) -> None:
        """A denial carries its reason and asks nothing."""
        code, out, _ = self.as_operator("approval", "deny", RUN, "--reason", "too loud")
        self.assertEqual((code, out), (0, "Denied; nothing was sent.\n"))
        self.assertEqual(
            self.site.bodies("POST", DECIDE), [{"approved": False, "digest": DIGEST, "reason": "too loud"}]
        )


class AfterwardsTests(ApprovalCase):
    """Putting off, taking back and forgiving."""

    def test_put_off(self) -> None:
        """The moment is sent; that it waits, and how to take it back, is told."""
        later = "2026-03-01T08:00:00.000000Z"
        decided = approval(approved=True)
        decided["run"] = {**decided["run"], "start_after": later}
        self.site.answer("POST", DECIDE, decided)
        waits = {"status": "running", "run_id": RUN, "begins_at": later}
        self.site.answer("GET", f"{ONE}/result", waits)
        code, out, _ = self.as_operator("approval", "approve", RUN, "--yes", "--not-before", "2026-03-01T09:00+01:00")
        self.assertEqual(code, 0)
        self.assertIn(f"it begins at {later}. Until then: aileron approval cancel {RUN}", out)
        self.assertEqual(self.site.bodies("POST", DECIDE)[0]["not_before"], later)

    def test_no_moment(self) -> None:
        """What is no moment decides nothing."""
        self.assertEqual(self.as_operator("approval", "approve", RUN, "--yes", "--not-before", "soon")[0], 2)
        self.assertEqual(self.site.bodies("POST", DECIDE), [])

    def test_cancel(self) -> None:
        """It is taken back, with a reason."""
        self.site.answer("POST", f"{ONE}/withdraw", {"status": "cancelled", "run_id": RUN})
        code, out, _ = self.as_operator("approval", "cancel", RUN, "--reason", "typo")
        self.assertEqual((code, out), (0, "Taken back; nothing was sent.\n"))
        self.assertEqual(self.site.bodies("POST", f"{ONE}/withdraw"), [{"reason": "typo"}])

    def test_forgive(self) -> None:
        """What was denied is forgiven."""
        self.site.answer("POST", f"{ONE}/forgive", approval(approved=False))
        code, out, _ = self.as_operator("approval", "forgive", RUN)
        self.assertEqual((code, out), (0, "Agents may ask for it again.\n"))

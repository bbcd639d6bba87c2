"""What is shown is what is approved: one, or several after one login."""

from __future__ import annotations

import json
from time import time
from typing import Any

from aileron.base.json import from_timestamp
from aileron.cli.output import when
from aileron.model.errors import ApprovalStale, Forbidden, NotFound
from aileron.model.signing import KeyKind, SignedDecisions
from tests.cli.daemon import DECIDE, DIGEST, ONE, RUN, SESSION, ServedCase, approval

RED = [{"severity": "high", "label": "Misleading link", "id": "link", "text": "x", "why": "y"}]


def alike(run_id: str, identical: list[str], **changed: Any) -> dict[str, Any]:
    """A listed approval of a run, with those that ask the same."""
    found = approval(identical=identical, **changed)
    return {**found, "id": run_id, "run": {**found["run"], "id": run_id}}


class ApprovalCase(ServedCase):
    def setUp(self) -> None:
        super().setUp()
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
            "session opened by                  PID 7, /bin/x in /w\n",
            "  channel  #eng",
            "  summary\n    │ one\n    │ two\\u202e\n",
            "POST https://slack.com/api/chat.postMessage",
            "Content-Type: application/json",
            "Authorization: (the credential, added when the request is sent)",
            '│ {"channel":"#eng"}',
            "api_key/slack/default (revision 3)",
            "agent (self-reported)              opencode\n  working directory (self-reported)  /w\n",
            f"digest  {DIGEST}",
        ):
            self.assertIn(part, out)

    def test_parts(self) -> None:
        """Each part of an upload is shown by name, type, size and digest, with its text; other bytes as base64."""
        given = approval()
        request = given["review"]["steps"][0]["request"]
        size = {"size": 7, "digest": "sha256:d"}
        text = {"name": "report", "filename": "r.csv", "type": "text/csv", "text": "a,b\n1,2\u202e", **size}
        for body, parts in (
            ({"parts": [text, {"type": "image/png", **size}]}, ("Part report:", "r.csv", "│ a,b\n", "│ 1,2\\u202e\n")),
            ({"parts": [text, {"type": "image/png", **size}]}, ("Part (the whole body):", "image/png", "sha256:d")),
            ({"base64": "AAEC"}, ("Binary body, 4 characters", "│ AAEC")),
        ):
            request["body"] = body
            self.site.answer("GET", ONE, given)
            out = self.as_operator("approval", "show", RUN)[1]
            for part in parts:
                self.assertIn(part, out)

    def test_cards(self) -> None:
        """A message is shown as that, its values not twice; the request is shown too, with --raw every argument."""
        parts = [{"name": "to", "values": ["#eng"]}, {"name": "text", "values": ["one\ntwo\u202e"]}]
        self.site.answer("GET", ONE, approval(cards=[{"step": "only", "kind": "message", "parts": parts}]))
        out = self.as_operator("approval", "show", RUN)[1]
        self.assertIn("Message\n  To    #eng\n  Text\n    │ one\n    │ two\\u202e\n", out)
        self.assertIn("POST https://slack.com/api/chat.postMessage", out)
        self.assertNotIn("  channel  #eng", out)
        self.assertNotIn("\nArguments\n", out)
        raw = self.as_operator("approval", "show", RUN, "--raw")[1]
        self.assertIn("\nArguments\n  channel  #eng\n", raw)
        self.assertNotIn("\nMessage\n", raw)

    def test_cards_tell_part(self) -> None:
        """An argument that stands in no card, or only beside a slash, is listed by its name."""
        parts = [{"name": "repository", "values": ["a/b", "#eng"]}, {"name": "number", "values": [7]}]
        self.site.answer("GET", ONE, approval(cards=[{"step": "only", "kind": "issue", "parts": parts}]))
        out = self.as_operator("approval", "show", RUN)[1]
        self.assertIn("Issue\n  Repository  a/b/#eng\n  Number      7\n", out)
        self.assertIn("\nArguments\n  channel  #eng\n", out)

    def test_stale(self) -> None:
        """That it changed stands at the top; a step that uses an earlier answer says so and names its host."""
        self.site.answer("GET", ONE, approval(stale="The action was changed since."))
        self.assertIn("CHANGED since it was first shown: The action", self.as_operator("approval", "show", RUN)[1])
        found = approval()
        found["review"]["steps"][0]["request"] = None
        self.site.answer("GET", ONE, found)
        out = self.as_operator("approval", "show", RUN)[1]
        self.assertIn("Built from the response of an earlier step; sent to https://slack.com.", out)

    def test_unread_review(self) -> None:
        """A review in another form, such as of another version, is printed as the daemon sent it."""
        found = approval()
        found["review"]["steps"][0]["more"] = "than is known\u202e"
        self.site.answer("GET", ONE, found)
        code, out, _ = self.as_operator("approval", "show", RUN)
        self.assertEqual(code, 0)
        self.assertIn("cannot read this review", out)
        self.assertIn('"more": "than is known\\u202e"', out)

    def test_list(self) -> None:
        """The list names what waits, a filter is passed on; for programs one is the approval and its session."""
        self.site.answer("GET", "/v1/action-approvals?limit=50", {"items": [approval()], "cursor": "c"})
        code, out, err = self.as_operator("approval", "list")
        self.assertEqual(code, 0)
        self.assertRegex(out, "ID +REQUEST +REQUESTED\n01RUN  ship-update +2026-01-01")
        self.assertIn("--cursor c", err)
        warnings = [{"severity": "high", "label": "Misleading link"}, {"severity": "low", "label": "First time"}]
        titled = approval(title="Post to #eng: hi", warnings=warnings)
        self.site.answer("GET", "/v1/action-approvals?limit=50", {"items": [titled], "cursor": None})
        out = self.as_operator("approval", "list")[1]
        self.assertRegex(out, "CHECK\n01RUN  Post to #eng: hi .* !! Misleading link, First time")
        self.site.answer("GET", "/v1/action-approvals?state=denied&limit=50", {"items": [], "cursor": None})
        self.assertEqual(self.as_operator("approval", "list", "--state", "denied")[1], "No pending approvals.\n")
        found = json.loads(self.as_operator("approval", "show", RUN, "--json")[1])
        self.assertEqual((found["digest"], found["session"]["agent"]), (DIGEST, "opencode"))

    def test_twins(self) -> None:
        """Identical requests are one row with their number and sessions; those with a red warning are not."""
        ids = [f"01RUN{number}" for number in range(4)]
        items = [alike(each, [one for one in ids[:3] if one != each] if each in ids[:3] else []) for each in ids]
        items[2]["run"]["session_id"] = None
        listed = "/v1/action-approvals?limit=50"
        self.site.answer("GET", listed, {"items": items, "cursor": None})
        title, *rows = self.as_operator("approval", "list")[1].splitlines()
        self.assertIn("IDENTICAL", title)
        self.assertEqual([row.split()[0] for row in rows], ["01RUN0", "01RUN3"])
        self.assertTrue(rows[0].endswith("3 (S, you)"), rows)
        self.assertEqual(len(json.loads(self.as_operator("approval", "list", "--json")[1])["items"]), 4)
        items[1]["warnings"] = RED
        self.site.answer("GET", listed, {"items": items, "cursor": None})
        self.assertEqual(len(self.as_operator("approval", "list")[1].splitlines()), 5)


class IdenticalTests(ApprovalCase):
    """Identical requests that one decision covers."""

    def setUp(self) -> None:
        super().setUp()
        self.wait_alike(alike(RUN, ["01TWO"]), alike("01TWO", [RUN], digest="sha256:two"))
        self.site.answer("POST", "/v1/action-approvals/01TWO/decide", {**approval(approved=True), "id": "01TWO"})
        self.site.answer("GET", "/v1/action-approvals/01TWO/result?wait=10", {"status": "completed"})
        self.result({"status": "completed"})

    def wait_alike(self, *items: dict[str, Any]) -> None:
        """These wait."""
        listed = "/v1/action-approvals?limit=200&action=ship-update"
        self.site.answer("GET", listed, {"items": list(items), "cursor": None})

    def bodies(self) -> list[Any]:
        """All decisions that were sent."""
        return [each for one in (RUN, "01TWO") for each in self.site.bodies("POST", DECIDE.replace(RUN, one))]

    def test_approved(self) -> None:
        """It is shown once, with who asks; after a yes each is approved for its own digest."""
        code, out, _ = self.as_operator("approval", "approve", RUN, "--identical", "--reason", "fine", answers=["y"])
        self.assertEqual(code, 0)
        for words in ("Identical requests: 2", f"{RUN}  opencode (S)", "01TWO  opencode (S)", "All 2 were approved."):
            self.assertIn(words, out)
        given = {"approved": True, "reason": "fine"}
        self.assertEqual(self.bodies(), [{**given, "digest": DIGEST}, {**given, "digest": "sha256:two"}])

    def test_denied(self) -> None:
        """A denial covers each too, with its reason."""
        out = self.as_operator("approval", "deny", RUN, "--identical", "--reason", "no")[1]
        self.assertIn("All 2 were denied.", out)
        given = {"approved": False, "reason": "no"}
        self.assertEqual(self.bodies(), [{**given, "digest": DIGEST}, {**given, "digest": "sha256:two"}])

    def test_partly(self) -> None:
        """One that changed stays as it is, and the outcome says how many were decided."""
        self.site.answer("POST", "/v1/action-approvals/01TWO/decide", ApprovalStale("It changed."))
        code, _, err = self.as_operator("approval", "approve", RUN, "--identical", answers=["y"])
        self.assertEqual(code, 1)
        self.assertIn("It changed.", err)
        self.assertIn("1 of 2 were approved", err)

    def test_nothing_decided(self) -> None:
        """Alone, with a red warning, changed, or without a yes, nothing is decided."""
        two = alike("01TWO", [RUN])
        for items, answers, words in (
            ((alike(RUN, []),), (), "No other pending request is identical."),
            ((alike(RUN, ["01TWO"]), {**two, "warnings": RED}), (), "have a red warning"),
            ((alike(RUN, ["01TWO"], digest="sha256:other"), two), (), "has just changed"),
            ((two,), (), "has just changed"),
            ((alike(RUN, ["01TWO"]), two), ("n",), "Nothing was decided; they are still pending."),
        ):
            self.wait_alike(*items)
            code, _, err = self.as_operator("approval", "approve", RUN, "--identical", answers=list(answers))
            self.assertEqual(code, 1, words)
            self.assertIn(words, err)
        for options in ((RUN, "--yes"), (RUN, "--json", "--yes"), (RUN, "--digest", DIGEST), (RUN, "01TWO")):
            self.assertEqual(self.as_operator("approval", "approve", *options, "--identical")[0], 2, options)
        self.assertEqual(self.as_operator("approval", "deny", RUN, "--end-session", "--identical")[0], 2)
        self.assertEqual(self.bodies(), [])


class ApproveTests(ApprovalCase):
    def test_yes(self) -> None:
        """After a yes the digest that was shown is sent, and the outcome told."""
        code, out, _ = self.as_operator("approval", "approve", RUN, answers=["y"])
        self.assertEqual(code, 0)
        self.assertIn("POST https://slack.com/api/chat.postMessage", out)
        self.assertIn("Approved and completed:", out)
        self.assertEqual(self.site.bodies("POST", DECIDE), [{"approved": True, "digest": DIGEST}])

    def test_nothing_decided(self) -> None:
        """Anything but a yes, another digest and what is decided already decide nothing, and say so."""
        denied = {**approval()["run"], "state": "denied"}
        for words, answers, run, told in (
            ((), ["n"], approval()["run"], "Nothing was decided; it is still pending."),
            ((), [""], approval()["run"], "Nothing was decided; it is still pending."),
            ((), ["yess"], approval()["run"], "Nothing was decided; it is still pending."),
            (("--yes", "--digest", "sha256:other"), [], approval()["run"], "nothing was decided"),
            ((), [], denied, "Already denied; nothing was decided."),
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

    def test_forced(self) -> None:
        """With --force it is sent as forced, with the reason that it needs, after it was shown and confirmed."""
        code, out, _ = self.as_operator("approval", "approve", RUN, "--force", "--reason", "It is down.", answers=["y"])
        self.assertEqual((code, "POST https://slack.com/api/chat.postMessage" in out), (0, True))
        given = {"approved": True, "digest": DIGEST, "forced": True, "reason": "It is down."}
        self.assertEqual(self.site.bodies("POST", DECIDE), [given])
        for words in (("--force",), ("--force", "--reason", " "), ("--force", "--reason", "x", "--identical")):
            code, _, err = self.as_operator("approval", "approve", RUN, *words, answers=["y"])
            self.assertEqual(code, 2, err)
        self.as_operator("approval", "approve", RUN, "--force", "--reason", "It is down.", answers=["n"])
        self.assertEqual(self.site.bodies("POST", DECIDE), [given])

    def test_refused_force(self) -> None:
        """What the daemon says of a forced approval that it refuses is told, and nothing was decided."""
        self.site.answer("POST", DECIDE, Forbidden("Forcing needs a reason, which is recorded. Nothing was decided."))
        code, _, err = self.as_operator("approval", "approve", RUN, "--force", "--reason", "…", "--yes")
        self.assertEqual((code, "Nothing was decided." in err), (1, True), err)

    def test_one_of_several(self) -> None:
        """Where others must approve too, how many have is shown before, and afterwards that it waits for them."""
        waiting = approval(progress="1 of 2 approvals: alice")
        self.site.answer("GET", ONE, waiting)
        self.site.answer("POST", DECIDE, {**waiting, "progress": "2 of 3 approvals: alice, operator"})
        self.result({"status": "pending_approval"})
        code, out, _ = self.as_operator("approval", "approve", RUN, answers=["y"])
        self.assertEqual(code, 0)
        self.assertIn("1 of 2 approvals: alice", out)
        self.assertIn("You approved it: 2 of 3 approvals: alice, operator. It runs when enough people have.", out)

    def test_changed_meanwhile(self) -> None:
        """A stale answer shows what changed, decides nothing, and asks to look again."""

        def changed(_body: object) -> object:
            now = approval(stale="The action was changed since.")
            now["review"]["fields"][0]["value"] = "#everyone"
            now["review"] = dict(reversed(now["review"].items()))  # the order of names says nothing
            self.site.answer("GET", ONE, now)
            raise ApprovalStale("Review it again.")

        self.site.answer("POST", DECIDE, changed)
        code, out, err = self.as_operator("approval", "approve", RUN, answers=["y"])
        self.assertEqual(code, 1)
        self.assertIn("The action was changed since.", out)
        self.assertRegex(out, r'│ -.*"#eng"')
        self.assertRegex(out, r'│ \+.*"#everyone"')
        self.assertEqual((out.count("│ +"), out.count("│ -")), (2, 2), "more is told to differ than does")
        self.assertIn("Review it again", err)

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

    def test_json_failed(self) -> None:
        """For programs standard output is one JSON value, a run that fails is an error, and a question is refused."""
        found = json.loads(self.as_operator("approval", "approve", RUN, "--yes", "--json")[1])
        self.assertEqual(found["result"]["status"], "completed")
        self.result({"status": "failed", "run_id": RUN, "failure": {"message": "Slack said no."}})
        code, out, _ = self.as_operator("approval", "approve", RUN, "--yes", "--json")
        self.assertEqual((code, json.loads(out)["result"]["status"]), (1, "failed"))
        self.assertEqual(self.command("approval", "approve", RUN, "--json")[0], 2)

    def test_missing(self) -> None:
        """Of a request that there is not, the command that lists requests is told, whichever name the command has."""
        self.site.answer("GET", "/v1/action-approvals/nope", NotFound("There is no such approval."))
        for command in (("approve",), ("deny",), ("approval", "deny")):
            err = self.as_operator(*command, "nope")[2]
            self.assertIn("  See what exists:\n    aileron approval list\n", err)

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
        """The moment is sent; that it waits, and how to take it back, is told. What is no moment decides nothing."""
        self.assertEqual(self.as_operator("approval", "approve", RUN, "--yes", "--not-before", "soon")[0], 2)
        self.assertEqual(self.site.bodies("POST", DECIDE), [])
        later = "2026-03-01T08:00:00.000000Z"
        decided = approval(approved=True)
        decided["run"] = {**decided["run"], "start_after": later}
        self.site.answer("POST", DECIDE, decided)
        waits = {"status": "running", "run_id": RUN, "begins_at": later}
        self.site.answer("GET", f"{ONE}/result", waits)
        code, out, _ = self.as_operator("approval", "approve", RUN, "--yes", "--not-before", "2026-03-01T09:00+01:00")
        self.assertEqual(code, 0)
        self.assertIn(f"it starts {when(later)}. To cancel it before then: aileron approval cancel {RUN}", out)
        self.assertEqual(self.site.bodies("POST", DECIDE)[0]["not_before"], later)

    def test_cancel(self) -> None:
        """It is taken back with a reason, and what was denied is forgiven."""
        self.site.answer("POST", f"{ONE}/withdraw", {"status": "cancelled", "run_id": RUN})
        code, out, _ = self.as_operator("approval", "cancel", RUN, "--reason", "typo")
        self.assertEqual((code, out), (0, "Cancelled; nothing was sent.\n"))
        self.assertEqual(self.site.bodies("POST", f"{ONE}/withdraw"), [{"reason": "typo"}])
        self.site.answer("POST", f"{ONE}/forgive", approval(approved=False))
        code, out, _ = self.as_operator("approval", "forgive", RUN)
        self.assertEqual((code, out), (0, "Agents can request it again.\n"))

    def test_snooze(self) -> None:
        """It is hidden for an hour, or until a moment, or shown again."""
        self.site.answer("POST", f"{ONE}/snooze", {"snoozed_until": None})
        for how in ((), ("--until", "2026-03-01T09:00:00+00:00")):
            code, out, _ = self.as_operator("approval", "snooze", RUN, *how)
            until = self.site.bodies("POST", f"{ONE}/snooze")[-1]["until"]
            self.assertEqual((code, out), (0, f"Hidden in the inbox until {when(until)}.\n"))
        hour, moment = (each["until"] for each in self.site.bodies("POST", f"{ONE}/snooze"))
        self.assertLess(abs(from_timestamp(hour).timestamp() - time() - 3600), 60)
        self.assertEqual(moment, "2026-03-01T09:00:00.000000Z")
        code, out, _ = self.as_operator("approval", "snooze", RUN, "--end")
        self.assertEqual((code, out), (0, "Shown in the inbox again.\n"))
        self.assertEqual(self.site.bodies("POST", f"{ONE}/snooze")[-1], {"until": None})


OTHER = "02RUN"


def path(run_id: str, *more: str) -> str:
    """Of one approval."""
    return "/".join(("/v1/action-approvals", run_id, *more))


class SeveralCase(ServedCase):
    """Two wait."""

    def setUp(self) -> None:
        super().setUp()
        self.site.answer("GET", "/v1/sessions/S", SESSION)
        done = {"status": "completed", "run_id": RUN, "result": {"output": {}, "steps": {}}}
        for run_id in (RUN, OTHER):
            self.site.answer("GET", path(run_id), approval(id=run_id, digest=f"{DIGEST}{run_id}"))
            self.site.answer("POST", path(run_id, "decide"), approval(id=run_id))
            self.site.answer("GET", path(run_id, "result?wait=10"), done)

    def decided(self) -> list[Any]:
        """What each was told."""
        return [self.site.bodies("POST", path(run_id, "decide")) for run_id in (RUN, OTHER)]


class SeveralTests(SeveralCase):
    def test_each(self) -> None:
        """Each is shown and confirmed by itself, and decided by its own digest."""
        code, out, _ = self.as_operator("approval", "approve", RUN, OTHER, RUN, answers=["y", "y"])
        self.assertEqual((code, out.count("Request of step")), (0, 2))
        self.assertIn("All 2 were approved.", out)
        for run_id, bodies in zip((RUN, OTHER), self.decided(), strict=True):
            self.assertEqual(bodies, [{"approved": True, "digest": f"{DIGEST}{run_id}"}])

    def test_signed(self) -> None:
        """Each decision is signed by the key that the login named, exactly as it is sent."""
        self.site.takes_key = True
        later = "2030-01-01T00:00:00Z"
        self.as_operator("approval", "approve", RUN, OTHER, "--not-before", later, answers=["y", "y"])
        (login,) = self.site.bodies("POST", "/v1/operator/login")
        for run_id, (body,) in zip((RUN, OTHER), self.decided(), strict=True):
            told = body["signed"]
            signed = SignedDecisions(KeyKind.TERMINAL, login["public_key"], told["statement"], told["signature"])
            (item,) = signed.verified().items
            self.assertEqual((item["run"], item["digest"], item["verdict"]), (run_id, body["digest"], "approved"))
            self.assertEqual((item["not_before"], signed.verified().instance), (body["not_before"], "life"))

    def test_not_all(self) -> None:
        """A no to one, or one that changed, leaves that one as it is and not the others; the exit code tells."""
        code, _, err = self.as_operator("approval", "approve", RUN, OTHER, answers=["n", "y"])
        self.assertEqual((code, [len(each) for each in self.decided()]), (1, [0, 1]))
        self.assertIn("1 of 2 were approved", err)
        self.site.answer("POST", path(RUN, "decide"), ApprovalStale("Look again."))
        code, _, err = self.as_operator("approval", "approve", RUN, OTHER, answers=["y", "y"])
        self.assertEqual((code, "1 of 2 were approved" in err), (1, True))

    def test_alone(self) -> None:
        """What is about one alone is refused of several."""
        for option in (("--digest", "x"), ("--grant",), ("--yes", "--json")):
            self.assertEqual(self.command("approval", "approve", RUN, OTHER, *option)[0], 2, option)
        self.assertEqual(self.site.asked, [])


class DenyTests(SeveralCase):
    def setUp(self) -> None:
        super().setUp()
        self.site.answer("POST", "/v1/sessions/S/end", {})
        self.site.answer("POST", "/v1/sessions/S/deny", {"session": {}, "denied": ["03RUN"], "left": []})

    def test_several(self) -> None:
        """Several are denied with one reason."""
        code, out, _ = self.as_operator("approval", "deny", RUN, OTHER, "--reason", "no")
        self.assertEqual((code, "All 2 were denied." in out), (0, True))
        self.assertEqual([each[0]["reason"] for each in self.decided()], ["no", "no"])

    def test_end_session(self) -> None:
        """With its session ended all else that it asks is denied, with the same reason."""
        code, out, _ = self.as_operator("approval", "deny", RUN, "--end-session", "--reason", "flood")
        self.assertEqual(code, 0)
        self.assertIn("Session S ended. Other requests denied: 1.", out)
        self.assertEqual(self.site.bodies("POST", "/v1/sessions/S/deny"), [{"reason": "flood"}])

    def test_no_session(self) -> None:
        """Where no session asks nothing is denied."""
        run = {**approval()["run"], "session_id": None}
        self.site.answer("GET", path(OTHER), approval(id=OTHER, run={**run, "id": OTHER}))
        code, _, err = self.as_operator("approval", "deny", RUN, OTHER, "--end-session")
        self.assertEqual((code, self.decided()), (1, [[], []]))
        self.assertIn("nothing was denied", err)

    def test_sessions_end(self) -> None:
        """A session is ended by itself; with --deny what it asks is denied too, and what still waited is counted."""
        self.assertEqual(self.as_operator("sessions", "end", "S")[1], "Session S ended.\n")
        self.assertEqual(self.site.bodies("POST", "/v1/sessions/S/deny"), [])
        out = self.as_operator("sessions", "end", "S", "--deny", "--reason", "flood")[1]
        self.assertIn("Session S ended. Requests denied: 1.", out)
        self.assertEqual(self.site.bodies("POST", "/v1/sessions/S/deny"), [{"reason": "flood"}])
        self.assertEqual(self.command("sessions", "end", "S", "--reason", "x")[0], 2)

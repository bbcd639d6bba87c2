"""What a model reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.attachments import Attachment
from aileron.client import AnswerNotUnderstood, DaemonAnswer, DaemonError, DaemonFault, DaemonUnreachable
from aileron.mcp._texts import ToolResult, mention_answers, render_error, render_run, render_status
from aileron.model.errors import STATUS
from aileron.model.faults import Fault

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def fault(kind: str, message: str = "No.", status: int = 400, **details: Any) -> DaemonFault:
    """What the daemon refused with."""
    return DaemonFault(message, status, Fault(kind, message, details=details), "R", None)


class RunTests(SynchronousTestCase):
    """The answer to a run."""

    def done(self, output: object, **more: object) -> ToolResult:
        """A run that is done."""
        return render_run(
            DaemonAnswer(200, {"run_id": "R", "audit_id": "A", "result": {"output": output, "steps": {}}, **more})
        )

    def test_note(self) -> None:
        """What was said with an approval, as that a standing grant allowed it, is read beside the result."""
        done = {"result": {"output": "ok"}, "audit_id": "A", "reason": "Allowed by a standing grant."}
        self.assertEqual(render_run(DaemonAnswer(200, done)).text, "note: Allowed by a standing grant.\nok")
        self.assertIn("note: Allowed", render_status({"status": "completed", **done}).text)

    def test_output(self) -> None:
        """The output is compact JSON, or the text itself; nothing is never an empty text, a failure to some clients."""
        for output, text in (
            ({"ts": "1", "ok": True}, '{"ts":"1","ok":true}'),
            ("Grüße\nzwei", "Grüße\nzwei"),
            ([], "[]"),
            (False, "false"),
            (None, "Done. The action gave no output."),
        ):
            self.assertEqual(self.done(output), ToolResult(text))

    def test_attachments(self) -> None:
        """They stand beside the text, which says where each was, whoever asks for the result."""
        output = {"caption": "c", "picture": {"media_type": "image/png", "base64": "AAEC"}}
        picture = (Attachment("image/png", base64="AAEC"),)
        text = '{"caption":"c","picture":"[attachment 1: image/png, 3 bytes]"}'
        self.assertEqual(self.done(output), ToolResult(text, run_id="R", attachments=picture))
        status = {"status": "completed", "run_id": "R", "audit_id": "A", "result": {"output": output}}
        result = render_status(status)
        self.assertEqual((result.run_id, result.attachments), ("R", picture))
        self.assertEqual(result.text, f"status: completed (audit_id=A)\nresult: {text}")

    def test_edited(self) -> None:
        """Before the output stands what the user changed."""
        result = self.done("ok", edited={"text": {"from": "a", "to": "b"}})
        self.assertEqual(
            result.text, 'The user changed the arguments before approving: {"text":{"from":"a","to":"b"}}\nok'
        )

    def test_edited_and_failed(self) -> None:
        """That the user changed the arguments is told however it ended, and is not taken for a success."""
        changes = [{"path": "/text", "kind": "changed", "before": "a", "after": "b"}]
        for status in ("failed", "unknown"):
            result = render_status({"status": status, "edited": changes, "failure": {"message": "No", "class": "x"}})
            self.assertIn('The user changed the arguments before approving: [{"path":"/text"', result.text)
            self.assertTrue(result.text.startswith(f"status: {status}\n"))
        self.assertIn("The user changed", render_error(fault("external_api_error", edited=changes)).text)

    def test_pending(self) -> None:
        """A pending run is no error, shows the daemon's message, and names the approval; without one it is not done."""
        body = {"status": "pending_approval", "approval_id": "R", "message": "Ask the user to review it at …"}
        self.assertEqual(
            render_run(DaemonAnswer(202, body)), ToolResult("Ask the user to review it at …\napproval_id: R")
        )
        self.assertIn("no result yet: running", render_run(DaemonAnswer(202, {"status": "running"})).text)


class StatusTests(SynchronousTestCase):
    """How a run stands."""

    def test_begins_later(self) -> None:
        """What is approved and has not begun cannot be taken for something that is done, or under way."""
        text = render_status({"status": "running", "run_id": "R", "begins_at": "2026-03-01T08:00:00Z"}).text
        for part in ("approved, not started", "starts at 2026-03-01T08:00:00Z", "undo it", "Nothing was sent yet"):
            self.assertIn(part, text)
        self.assertNotIn("running", text)

    def test_settled(self) -> None:
        """A result, the user's reason or that there is none, what failed, and which run is to do it again are told."""
        failure = {"class": "network_error", "message": "Slack was not reached."}
        again = {"class": "outcome_unknown", "details": {"run_again": "R2"}}
        table: list[tuple[dict[str, Any], list[str]]] = [
            (
                {"status": "completed", "audit_id": "A", "result": {"output": {"a": 1}}},
                ['status: completed (audit_id=A)\nresult: {"a":1}'],
            ),
            ({"status": "denied", "reason": "not now"}, ["reason: not now"]),
            ({"status": "denied"}, ["gave no reason"]),
            (
                {"status": "failed", "failure": failure},
                ["status: failed\nSlack was not reached. (class: network_error)"],
            ),
            ({"status": "unknown", "failure": again}, ["may have happened or not", "check_action_status with R2"]),
        ]
        for body, parts in table:
            for part in parts:
                self.assertIn(part, render_status(body).text)

    @settings(deadline=None, max_examples=60)
    @given(st.dictionaries(st.sampled_from(["status", "result", "failure", "reason", "edited"]), JSON_VALUES))
    def test_wild(self, body: dict[str, Any]) -> None:
        """Whatever comes, there is a text."""
        self.assertTrue(render_status(body).text.startswith("status: "))
        self.assertTrue(render_run(DaemonAnswer(202, body)).text)
        self.assertIsInstance(render_run(DaemonAnswer(200, body)).text, str)


class ErrorTests(SynchronousTestCase):
    """Why there is no result."""

    def test_partly_done(self) -> None:
        """Of a run that stopped on its way, in a limit or a pause, nothing says that nothing was sent."""
        for kind in ("limit_exceeded", "paused"):
            told = render_error(fault(kind, "This request was not sent.", steps_done=["a"]))
            self.assertNotIn("Nothing was sent", told.text)

    def test_problems(self) -> None:
        """Every offending argument is listed, and problems of another shape harm nothing."""
        problems = [{"pointer": "/args/text", "message": "is missing"}, {"pointer": "", "message": "too many"}]
        result = render_error(fault("invalid_request", "The arguments are wrong.", problems=problems))
        lines = ["The arguments are wrong.", "- text: is missing", "- arguments: too many"]
        self.assertEqual(result, ToolResult("\n".join([*lines, "(class: invalid_request, run_id: R)"]), is_error=True))
        self.assertIn("- odd", render_error(fault("invalid_request", problems=["odd"])).text)
        self.assertNotIn("odd", render_error(fault("invalid_request", problems="odd")).text)

    def test_remedies(self) -> None:
        """Each error says whether anything was sent, whether to try again, and what the user can do."""
        denied = fault("approval_denied", "The operator denied this. too early", reason="too early")
        table: list[tuple[DaemonError, str, str]] = [
            (denied, "do not try it again", "reason: too early"),
            (fault("unauthorized", status=401), "start this agent again", "cut off"),
            (fault("vault_locked", status=423), "aileron vault unlock", "cut off"),
            (DaemonUnreachable("No daemon."), "Nothing was sent", "do not repeat it"),
            (DaemonUnreachable("Cut off.", sent=True), "do not repeat it", "Nothing was sent"),
            (
                AnswerNotUnderstood("The daemon's answer is too long.", 200),
                "It may still happen: do not repeat it",
                "Nothing was sent",
            ),
        ]
        for error, said, unsaid in table:
            result = render_error(error)
            self.assertTrue(result.is_error)
            self.assertIn(said, result.text)
            self.assertNotIn(unsaid, result.text)

    def test_their_words(self) -> None:
        """What a person said themselves is not for the model to mend."""
        refused = ToolResult("No.", is_error=True)
        self.assertIn("in a form: channel. Change nothing", mention_answers(refused, ["channel"]).text)
        self.assertEqual(mention_answers(refused, []), refused)
        self.assertEqual(mention_answers(ToolResult("ok"), ["channel"]), ToolResult("ok"))


LONGEST = 330
"""Characters of ours, without what the daemon, the service or the user said."""

SUCCESS = re.compile(
    r"\b(done|success\w*|succeeded|completed?|finished|okay?|delivered|posted|worked)\b",
    re.IGNORECASE,
)

STATUSES = (
    "pending_approval",
    "awaiting_vault",
    "awaiting_credential",
    "running",
    "denied",
    "expired",
    "cancelled",
    "failed",
    "unknown",
)


def texts() -> Iterator[tuple[str, ToolResult]]:
    """Everything that is no result, by what it is."""
    for status in STATUSES:
        yield f"status {status}", render_status({"status": status})
        yield f"run {status}", render_run(DaemonAnswer(202, {"status": status, "run_id": "R", "approval_id": "R"}))
    yield "approved, later", render_status({"status": "running", "begins_at": "2026-03-01T08:00:00Z"})
    again = {"class": "outcome_unknown", "details": {"run_again": "R2"}}
    yield "again", render_status({"status": "unknown", "failure": again})
    for kind in sorted(STATUS):
        for cut_off in (False, True):
            error = DaemonFault("", 400, Fault(kind, ""), "R", None)
            yield f"fault {kind}, cut off: {cut_off}", render_error(error, cut_off=cut_off)
    for sent in (False, True):
        yield f"unreachable, sent: {sent}", render_error(DaemonUnreachable("", sent=sent))


class MisreadingTests(SynchronousTestCase):
    """The table."""

    def test_table(self) -> None:
        """No word of success stands where there is none, each is short and says what may be done; refusals are errors.

        What waits is no error, so that nobody tries it again.
        """
        for what, result in texts():
            self.assertIsNone(SUCCESS.search(result.text), f"{what}: {result.text}")
            self.assertTrue(0 < len(result.text) <= LONGEST, f"{what}: {len(result.text)}")
            self.assertEqual(result.is_error, what.startswith(("fault", "unreachable")), what)
            if "unknown" in what and what.startswith(("status", "fault outcome")):
                self.assertIn("o not repeat it", result.text)
            if what.startswith("status") and "failed" not in what:
                self.assertRegex(result.text, "Nothing was sent|not known yet|may have happened or not", what)
            if "cut off: True" in what:
                self.assertIn("cut off", result.text, what)

    def test_a_result_sounds_like_one(self) -> None:
        """Only what is completed says so."""
        self.assertRegex(render_status({"status": "completed", "result": {"output": None}}).text, SUCCESS)
        self.assertRegex(render_run(DaemonAnswer(200, {"result": {"output": None}})).text, SUCCESS)

"""Of answers in the error form of the service: what tools show of them, and that nothing repeats them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from xml.etree.ElementTree import fromstring

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.own_tools._aws import AWS_JSON, AWS_QUERY, AWS_REST, AWS_S3
from aileron.features.own_tools._recognition import GRAPHQL, REST, Recognised
from aileron.features.own_tools._refusals import Refusals
from aileron.features.own_tools.values import ToolAnswer
from aileron.model.own_tools import ERROR_FORMS

from .requests import declared, github

URL = "http://127.0.0.1:8484/approvals/run_1"
EACH: tuple[tuple[Callable[[Refusals], ToolAnswer], str, str], ...] = (
    (lambda forms: forms.waits("run_1", URL), URL, "Run the same command again after approval"),
    (lambda forms: forms.under_way("run_1", URL), URL, "was approved"),
    (lambda forms: forms.denied("run_1", "Not today"), 'Reason: "Not today"', "Nothing was sent."),
    (lambda forms: forms.ended("run_1", "The request expired."), "The request expired.", "Nothing was sent."),
    (lambda forms: forms.unknown("run_1", URL), "outcome of this request is unknown", "will not be sent again"),
    (lambda forms: forms.owed(), "An earlier request of this command", "Nothing was sent."),
    (lambda forms: forms.refused("The vault is locked."), "The vault is locked.", "Nothing was sent."),
    (lambda forms: forms.unauthorized("builtin://github"), "builtin://github", "aileron credential list"),
)
"""Each answer, and words that it must have."""


def find_text(form: str, answer: ToolAnswer) -> str:
    """Return the text of an answer, found where clients of services with this form look for it."""
    if form == "reason":
        return answer.reason
    if form == "text":
        return answer.body.decode()
    body = json.loads(answer.body)
    places: dict[str, Callable[[], object]] = {
        "message": lambda: body["message"],
        "error": lambda: body["error"],
        "error_object": lambda: body["error"]["message"],
        "errors": lambda: body["errors"][0]["detail"],
        "ok": lambda: body["error"],
    }
    return str(places[form]())


class RefusalTests(SynchronousTestCase):
    """Each answer in each form."""

    def test_rest(self) -> None:
        """Each answer has a status that nothing repeats, mostly 403, and its text where clients look for it."""
        for form in ERROR_FORMS:
            for make, *words in EACH:
                answer = make(Refusals(form, REST))
                headers = dict(answer.headers)
                status = 200 if form == "ok" else 403
                self.assertEqual((answer.status, headers["x-should-retry"]), (status, "false"))
                self.assertEqual(headers["Cache-Control"], "no-store")
                self.assertTrue(answer.reason.isascii() and answer.reason)
                self.assertNotIn("Retry-After", headers)
                text = find_text(form, answer)
                for each in words:
                    self.assertIn(each, text, form)
                self.assertNotIn("rate limit", text)

    def test_ok(self) -> None:
        """A client of Slack, which gets the status 200 for everything, is told by a member that it failed."""
        answer = Refusals("ok", REST).waits("run_1", URL)
        self.assertIs(json.loads(answer.body)["ok"], False)

    def test_graphql(self) -> None:
        """In GraphQL each answer has the status 200 and no data, and its text is that of the first error."""
        for form in ERROR_FORMS:
            for make, *words in EACH:
                answer = make(Refusals(form, GRAPHQL))
                body = json.loads(answer.body)
                self.assertEqual((answer.status, answer.reason, body["data"]), (200, "OK", None))
                for each in words:
                    self.assertIn(each, body["errors"][0]["message"])
                self.assertEqual(dict(answer.headers)["Cache-Control"], "no-store")

    def test_reason(self) -> None:
        """A reason phrase is one line in ASCII, whatever the user wrote."""
        answer = Refusals("reason", REST).denied("run_1", "Später\n\x1b")
        self.assertTrue(re.fullmatch("[ -~]+", answer.reason), answer.reason)

    def test_github(self) -> None:
        """A tool of GitHub sees the phrase, the message and the address of the review."""
        answer = Refusals.of(declared(github()), Recognised("write")).waits("run_1", URL)
        body = json.loads(answer.body)
        self.assertEqual((answer.reason, body["code"]), ("Waits for approval", "pending_approval"))
        self.assertEqual(body["documentation_url"], URL)
        self.assertEqual(dict(answer.headers)["Aileron-Run"], "run_1")
        self.assertEqual(dict(answer.headers)["Content-Type"], "application/json; charset=utf-8")

    def test_no_run(self) -> None:
        """What has no run names none."""
        for answer in (Refusals("text", REST).owed(), Refusals("message", REST).refused("Paused.")):
            self.assertNotIn("Aileron-Run", dict(answer.headers))
        self.assertNotIn(b"documentation_url", Refusals("message", REST).refused("Paused.").body)

    def test_no_reason(self) -> None:
        """A denial without a reason has none."""
        self.assertEqual(
            find_text("error", Refusals("error", REST).denied("run_1")),
            "The user denied this request. Nothing was sent.",
        )

    def test_hostile_reason(self) -> None:
        """Line breaks and invisible characters in a reason are shown, and a long one is cut."""
        answer = Refusals("text", REST).denied("run_1", "a\r\nSet-Cookie: b\u202e\x1b[2J" + "c" * 5000)
        text = answer.body.decode()
        self.assertEqual(text.count("\n"), 1)
        self.assertNotIn("\x1b", text)
        self.assertNotIn("\u202e", text)
        self.assertLess(len(text), 2300)


class AwsTests(SynchronousTestCase):
    """Each answer in the form of AWS's errors."""

    def test_xml(self) -> None:
        """Of a service with forms, and of S3, the code and the text are elements of an error."""
        for protocol, path in ((AWS_QUERY, "Error/"), (AWS_S3, "")):
            for make, *words in EACH:
                answer = make(Refusals("text", protocol))
                self.assertEqual((answer.status, dict(answer.headers)["Content-Type"]), (403, "application/xml"))
                root = fromstring(answer.body)
                self.assertTrue(root.findtext(f"{path}Code"))
                for each in words:
                    self.assertIn(each, root.findtext(f"{path}Message") or "")

    def test_json(self) -> None:
        """Of a service with JSON, the type and the text are members; of REST, a header has the type too."""
        for protocol in (AWS_JSON, AWS_REST):
            answer = Refusals("text", protocol).waits("run_1", URL)
            body, headers = json.loads(answer.body), dict(answer.headers)
            self.assertEqual((answer.status, body["__type"]), (403, "PendingApproval"))
            self.assertIn(URL, body["message"])
            self.assertEqual((headers["Aileron-Run"], headers["Cache-Control"]), ("run_1", "no-store"))
            self.assertEqual(headers.get("x-amzn-ErrorType"), "PendingApproval" if protocol == AWS_REST else None)

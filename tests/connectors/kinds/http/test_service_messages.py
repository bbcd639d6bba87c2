"""What a service says went wrong reaches the model and the person, and its whole answer the person."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.connectors.kinds.http._classify import MOST_KEPT
from aileron.connectors.kinds.http._message import find_message
from aileron.model.connectors import Outcome
from tests.base.test_json import VALUES
from tests.connectors.kinds.http.test_http import SECRET, Rig
from tests.connectors.service import answer, json_answer
from tests.growth import seconds

TEXT_HTML = {"Content-Type": "text/html; charset=utf-8"}


class FindTests(SynchronousTestCase):
    """Where services say what went wrong."""

    def test_usual(self) -> None:
        """The usual members are found, alone or within each other."""
        usual: tuple[tuple[JSON, str], ...] = (
            ({"error": "channel_not_found"}, "channel_not_found"),
            ({"message": "Not Found."}, "Not Found"),
            ({"Message": "Not Found"}, "Not Found"),
            ({"error": {"code": 400, "message": "Bad to", "status": "INVALID"}}, "Bad to"),
            ({"error": "invalid_grant", "error_description": "It was revoked."}, "It was revoked"),
            ({"errors": ["a", {"message": "b"}, "c", "d"]}, "a; b; c"),
            ({"errors": {"title": ["can't be blank"]}}, "title: can't be blank"),
            ({"type": "about:blank", "title": "Unprocessable", "detail": "No such label"}, "No such label"),
            ({"title": "Unprocessable"}, "Unprocessable"),
            ({"detail": [{"loc": ["body", "to"], "msg": "field required"}]}, "body.to: field required"),
            (
                {"message": "Validation Failed", "errors": [{"field": "title", "code": "missing_field"}]},
                "Validation Failed; title: missing_field",
            ),
            ({"Error": {"Code": "NoSuchKey", "Message": "No key"}}, "No key"),
            ({"response": {"message": "Within"}}, "Within"),
            ("as a text", "as a text"),
            ([{"message": "in a list"}], "in a list"),
        )
        for content, message in usual:
            self.assertEqual(find_message(content), message, content)

    def test_none(self) -> None:
        """Where nothing says it, nothing is said."""
        nothing: tuple[JSON, ...] = (None, 3, {}, [], "", {"error": None}, {"error": {}}, {"id": 1, "name": "x"})
        for content in nothing:
            self.assertIsNone(find_message(content), content)

    @given(VALUES)
    def test_total(self, content: JSON) -> None:
        """Whatever a service sends is read."""
        found = find_message(content)
        self.assertTrue(found is None or found == " ".join(found.split()))

    def test_bounded(self) -> None:
        """Large answers are read in no time."""
        many: JSON = {"errors": {str(number): "x" * 100 for number in range(100_000)}}
        deep: JSON = "x"
        for _ in range(60):
            deep = {"error": deep, "errors": [deep] * 3}
        for content in (many, deep, "a " * 5_000_000, {"message": "x" * 10_000_000}):
            self.assertLess(seconds(partial(find_message, content)), 1)


class AnswerTests(SynchronousTestCase):
    """Answers that are no success."""

    def setUp(self) -> None:
        self.rig = Rig()

    def outcome(self, reply: bytes, operation: str = "show") -> Outcome:
        """What one answer comes to."""
        self.rig.service.replies.append(reply)
        inputs: dict[str, JSON] = {"title": "x"} if operation == "replace" else {"project": "p", "title": "x"}
        return self.successResultOf(self.rig.send(operation, inputs))

    def failure(self, reply: bytes, operation: str = "show") -> str:
        """The message of what it comes to."""
        fault = self.outcome(reply, operation).fault
        assert fault is not None
        return fault.message.removeprefix("local://me/tracker ")

    def test_message(self) -> None:
        """A rejection tells status and message, whatever the operation reads of a success, without the secret."""
        said = json_answer({"message": f"No title for {SECRET.decode()}."}, 422)
        for operation in ("show", "create", "replace"):
            self.assertEqual(self.failure(said, operation), "answered with status 422: No title for [redacted].")
        self.assertIn(": Try later", self.failure(answer(b"Try later\n", 403, {"Content-Type": "text/plain"})))
        self.assertIn("status 404: text/html.", self.failure(answer(b"<p>x", 404, TEXT_HTML)))
        self.assertLess(len(self.failure(json_answer({"message": "x" * 100_000}, 400))), 400)

    def test_unexpected(self) -> None:
        """A success in another form says which came and which was expected."""
        for reply, message in (
            (answer(b"<p>Log in", headers=TEXT_HTML), "returned text/html; JSON was expected (status 200)."),
            (answer(b"{", headers={"Content-Type": "application/json"}), "a body that is not valid JSON (status 200)."),
            (answer(b"{}", headers={"Content-Encoding": "gzip"}), "in the encoding gzip, which was not requested"),
        ):
            self.assertIn(message, self.failure(reply))
        self.assertIn("an empty body; JSON was expected", self.failure(answer(b"", 200), "create"))

    def test_kept(self) -> None:
        """The operator can read the whole answer of a failure: redacted, then cut; of a success nothing is kept."""
        outcome = self.outcome(answer(b"<p>" + SECRET + b"</p>", 500, TEXT_HTML), "create")
        self.assertEqual(outcome.kept_answer, ("<p>[redacted]</p>", "text/html"))
        binary = self.outcome(answer(b"\xff\xfe", 500)).kept_answer
        self.assertEqual(binary, ("(2 bytes that are not text in UTF-8)", ""))
        long = self.outcome(answer(b"x" * (MOST_KEPT + 1), 400), "create").kept_answer[0]
        self.assertEqual(long, "x" * MOST_KEPT + f"\n… ({MOST_KEPT + 1} characters in all)")
        self.assertEqual(self.outcome(json_answer({"id": 1})).kept_answer, (None, None))

"""Of what an answer puts out that is an attachment."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors._schema import read_file
from aileron.values import JSON, Outcome
from tests.connectors.service import answer, json_answer, spec_of
from tests.connectors.test_http import SECRET, TRACKER, Rig

RESULT = (
    'result = { id = "id", picture = { media_type = "image/png", base64 = "shown.png" }, '
    'notes = { media_type = "text/markdown", text = "notes" } }\n'
)
FETCH = """
[operations.fetch]
method = "GET"
path = "/chart"
effect = "read"
answer = "file"

[operations.draw]
method = "POST"
path = "/chart"
"""
CHARTS = TRACKER + FETCH
PNG = b"\x89PNG\r\n\x1a\n\xff\x00%5C\\u0041&amp;"


def encoded(content: bytes) -> str:
    """In the usual base64."""
    return base64.b64encode(content).decode()


class AttachmentCase(SynchronousTestCase):
    """A service that draws."""

    def setUp(self) -> None:
        self.rig = Rig()
        self.rig.connector = self.rig.service.connector(spec_of(CHARTS + RESULT))

    def outcome(self, reply: bytes, operation: str) -> Outcome:
        """What one answer comes to."""
        self.rig.service.replies.append(reply)
        return self.successResultOf(self.rig.send(operation, {}))


class FileTests(AttachmentCase):
    """An answer that is one."""

    def fetched(self, body: bytes, media_type: str | None) -> Outcome:
        """Once fetched."""
        return self.outcome(answer(body, headers={} if media_type is None else {"Content-Type": media_type}), "fetch")

    def test_bytes(self) -> None:
        """The bytes are those that were sent, under the type that they were sent as."""
        outcome = self.fetched(PNG, "image/png")
        self.assertEqual(({"media_type": "image/png", "base64": encoded(PNG)}, {}), (outcome.output, outcome.notes))
        self.assertIn(b"Accept: */*\r\n", self.rig.service.requests[0])

    def test_text(self) -> None:
        """A text is one."""
        output: JSON = {"media_type": "text/csv", "text": "a;ü"}
        self.assertEqual(output, self.fetched("a;ü".encode(), "text/csv; charset=utf-8").output)

    def test_nobody_says_what(self) -> None:
        """Without a type it is bytes, and without a body nothing."""
        output: JSON = {"media_type": "application/octet-stream", "base64": "YQ=="}
        self.assertEqual(output, self.fetched(b"a", None).output)
        self.assertIsNone(self.fetched(b"", "image/png").output)

    def test_encoded(self) -> None:
        """Compressed bytes that nobody asked for are not taken for the file's."""
        outcome = self.outcome(answer(PNG, headers={"Content-Encoding": "gzip"}), "fetch")
        self.assertFalse(outcome.classified)

    def test_echo(self) -> None:
        """A secret within a text is taken out; bytes that hold one are held back; either is on record."""
        text = self.fetched(b"a;" + SECRET, "text/csv")
        self.assertEqual({"media_type": "text/csv", "text": "a;[redacted]"}, text.output)
        for body in (PNG + SECRET + PNG, b"\xff" + base64.b64encode(b"k:" + SECRET)):
            outcome = self.fetched(body, "image/png")
            self.assertEqual({"media_type": "image/png", "text": "[redacted]"}, outcome.output)
            self.assertIn("echoed", outcome.notes)
        self.assertEqual({"echoed": ["plain"]}, text.notes)

    def test_failure(self) -> None:
        """What is no success is no file."""
        outcome = self.outcome(answer(PNG, 404, {"Content-Type": "image/png"}), "fetch")
        self.assertEqual((None, True), (outcome.output, outcome.classified))


class PartTests(AttachmentCase):
    """Parts of a JSON answer that are."""

    def test_parts(self) -> None:
        """Each as declared, whatever way of base64 the service has."""
        picture, notes = (
            {"media_type": "image/png", "base64": encoded(PNG)},
            {"media_type": "text/markdown", "text": "#"},
        )
        for way in (encoded(PNG), f"{encoded(PNG)[:8]}\n{encoded(PNG)[8:]}\n", base64.urlsafe_b64encode(PNG).decode()):
            outcome = self.outcome(json_answer({"id": 7, "shown": {"png": way}, "notes": "#"}), "draw")
            self.assertEqual({"id": 7, "picture": picture, "notes": notes}, outcome.output)

    def test_not_there(self) -> None:
        """What is not there, or no base64, or no text, is left out."""
        nothing: Sequence[Mapping[str, JSON]] = (
            {},
            {"shown": {"png": "no!"}},
            {"shown": {"png": 7}, "notes": ["#"]},
            {"shown": {"png": ""}},
        )
        for odd in nothing:
            self.assertEqual({"id": 7}, self.outcome(json_answer({"id": 7, **odd}), "draw").output, odd)

    def test_echo(self) -> None:
        """A picture that holds the secret is left out, however it is folded, and that is on record."""
        whole = encoded(PNG + b"k:" + SECRET)
        for way in (whole, "\n".join(whole[at : at + 7] for at in range(0, len(whole), 7))):
            outcome = self.outcome(json_answer({"id": 7, "shown": {"png": way}}), "draw")
            self.assertNotIn(encoded(PNG), str(outcome.output))
            self.assertEqual({"echoed": ["base64"]}, outcome.notes)


class ReadingTests(SynchronousTestCase):
    """What may be declared."""

    def test_faults(self) -> None:
        """What contradicts itself is told, with what would be right."""
        for added, message in (
            ('result = { a = { media_type = "image/png" } }', "one of base64 and text"),
            ('result = { a = { media_type = "image/png", base64 = "b", text = "t" } }', "one of base64 and text"),
            ('result = { a = { media_type = "PNG", base64 = "b" } }', "must be a media type"),
            ('result = { a = { base64 = "b" } }', "media_type: is missing"),
            ('result = { a = { media_type = "image/png", base64 = "b..c" } }', "dotted path"),
            ('result = { a = { media_type = "image/png", base64 = "b", size = 1 } }', "not a known key"),
            ("result = { a = 1 }", "must be a text"),
            (RESULT + 'output = { type = "object" }', "without attachments"),
            ('answer = "file"\noutput = { type = "object" }', "without attachments"),
            ('answer = "file"\nresult = { a = "b" }', "must be json"),
        ):
            found = read_file((CHARTS + added).encode(), "x.toml").problems
            self.assertEqual([True], [message in each.message for each in found], (added, found))

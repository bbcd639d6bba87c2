"""Of what an answer puts out that is an attachment."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence

from attrs import evolve
from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.connectors._schema import read_file
from aileron.connectors.kinds.http import _connector
from aileron.model.connectors import Outcome, Sought
from aileron.testing import MemoryCredential
from tests.connectors.kinds.http.test_http import SECRET, TRACKER, Rig
from tests.connectors.service import NOW, answer, json_answer, spec_of

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
FOUND = """
[operations.draw.reconcile]
op = "drawn"
inputs = { key = "${effect.key}" }
items = "items"
result = { picture = { media_type = "image/png", base64 = "png" } }

[operations.drawn]
method = "GET"
path = "/drawn/${in.key}"
effect = "read"
"""
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


class LongTests(SynchronousTestCase):
    """Answers that take long to read."""

    def test_beside(self) -> None:
        """A long answer is read in another thread, and its echo taken out there; a short one is read at once."""
        self.patch(_connector, "_LONG_BYTES", 200)
        rig, asked = Rig(), list[object]()

        def in_thread(work: Callable[[], Outcome]) -> Deferred[Outcome]:
            asked.append(work)
            return succeed(work())

        rig.connector = evolve(rig.connector, in_thread=in_thread)
        for length, times in ((10, 0), (200, 1)):
            secret = SECRET.decode()
            rig.service.replies.append(json_answer({"id": secret, "more": "x" * length}))
            outcome = self.successResultOf(rig.send("show"))
            self.assertEqual(len(asked), times)
            self.assertNotIn(secret, str(outcome))
            self.assertEqual(outcome.notes, {"echoed": ["plain"]})


class FileTests(AttachmentCase):
    """An answer that is one."""

    def fetched(self, body: bytes, media_type: str | None) -> Outcome:
        """Once fetched."""
        return self.outcome(answer(body, headers={} if media_type is None else {"Content-Type": media_type}), "fetch")

    def test_output(self) -> None:
        """The bytes are those that were sent, under their type; a text is one, no type is bytes, no body is nothing."""
        outputs: tuple[tuple[bytes, str | None, JSON], ...] = (
            (PNG, "image/png", {"media_type": "image/png", "base64": encoded(PNG)}),
            ("a;ü".encode(), "text/csv; charset=utf-8", {"media_type": "text/csv", "text": "a;ü"}),
            (b"a", None, {"media_type": "application/octet-stream", "base64": "YQ=="}),
            (b"", "image/png", None),
        )
        for body, media_type, output in outputs:
            outcome = self.fetched(body, media_type)
            self.assertEqual((output, {}), (outcome.output, outcome.notes))
        self.assertIn(b"Accept: */*\r\n", self.rig.service.requests[0])

    def test_no_file(self) -> None:
        """Compressed bytes that nobody asked for are not taken for the file's, and what is no success is no file."""
        for reply, classified in (
            (answer(PNG, headers={"Content-Encoding": "gzip"}), False),
            (answer(PNG, 404, {"Content-Type": "image/png"}), True),
        ):
            outcome = self.outcome(reply, "fetch")
            self.assertEqual((None, classified), (outcome.output, outcome.classified))

    def test_echo(self) -> None:
        """A secret within a text is taken out; bytes that hold one are held back; either is on record."""
        text = self.fetched(b"a;" + SECRET, "text/csv")
        self.assertEqual({"media_type": "text/csv", "text": "a;[redacted]"}, text.output)
        for body in (PNG + SECRET + PNG, b"\xff" + base64.b64encode(b"k:" + SECRET)):
            outcome = self.fetched(body, "image/png")
            self.assertEqual({"media_type": "image/png", "text": "[redacted]"}, outcome.output)
            self.assertIn("echoed", outcome.notes)
        self.assertEqual({"echoed": ["plain"]}, text.notes)
        told = self.fetched(b"\xff", f"image/{SECRET.decode().partition('/')[0]}; k={SECRET.decode()}")
        self.assertEqual({"echoed": ["plain"]}, told.notes)


class PartTests(AttachmentCase):
    """Parts of a JSON answer that are."""

    def test_parts(self) -> None:
        """Each as declared, whatever way of base64 the service has; what is not there, or none, is left out."""
        picture, notes = (
            {"media_type": "image/png", "base64": encoded(PNG)},
            {"media_type": "text/markdown", "text": "#"},
        )
        for way in (encoded(PNG), f"{encoded(PNG)[:8]}\n{encoded(PNG)[8:]}\n", base64.urlsafe_b64encode(PNG).decode()):
            outcome = self.outcome(json_answer({"id": 7, "shown": {"png": way}, "notes": "#"}), "draw")
            self.assertEqual({"id": 7, "picture": picture, "notes": notes}, outcome.output)
        nothing: Sequence[Mapping[str, JSON]] = (
            {},
            {"shown": {"png": "no!"}},
            {"shown": {"png": 7}, "notes": ["#"]},
            {"shown": {"png": ""}},
        )
        for odd in nothing:
            self.assertEqual({"id": 7}, self.outcome(json_answer({"id": 7, **odd}), "draw").output, odd)

    def test_echo(self) -> None:
        """A picture that holds the secret is held back or left out, however it is written, and that is on record."""
        held = {"id": 7, "picture": {"media_type": "image/png", "text": "[redacted]"}}
        whole = encoded(PNG + b"k:" + SECRET)
        wide = SECRET.decode().encode("utf-16-le")
        for way, output, kind in (
            (whole, {"id": 7}, "base64"),
            ("\n".join(whole[at : at + 7] for at in range(0, len(whole), 7)), {"id": 7}, "base64"),
            (" ".join(whole), held, "plain"),
            ("\t".join(whole), held, "plain"),
            (encoded(PNG + wide), held, "plain"),
            (encoded(PNG + SECRET.hex().encode()), held, "hex"),
            (encoded(PNG + base64.b64encode(b"k:" + SECRET)), held, "base64"),
        ):
            outcome = self.outcome(json_answer({"id": 7, "shown": {"png": way}}), "draw")
            self.assertEqual((output, {"echoed": [kind]}), (outcome.output, outcome.notes), way)

    def test_echo_in_a_finding(self) -> None:
        """What is found by looking for an effect is searched as well."""
        spec = spec_of(CHARTS + RESULT + FOUND)
        connector = self.rig.service.connector(spec)
        for hidden, heard in ((" ".join(encoded(PNG + SECRET)), ["plain"]), (encoded(PNG), None)):
            self.rig.service.replies.append(json_answer({"items": [{"png": hidden, "key": "effect-1"}]}))
            sought = Sought("draw", {}, self.rig.base_url, "effect-1", NOW, NOW)
            looking = Deferred.fromCoroutine(connector.reconcile(sought, MemoryCredential(SECRET, "Bearer {key}"), 60))
            self.rig.advance(0)
            finding = self.successResultOf(looking)
            self.assertEqual((True, heard), (finding.happened, finding.notes.get("echoed")))
            self.assertNotIn(encoded(PNG + SECRET), str(finding.output))
            self.assertIn("picture", str(finding.output))


class ReadingTests(SynchronousTestCase):
    """What may be declared."""

    def test_faults(self) -> None:
        """What contradicts itself is told, with what would be right."""
        for added, message in (
            ('result = { a = { media_type = "image/png" } }', "one of base64 and text"),
            ('result = { a = { media_type = "image/png", base64 = "b", text = "t" } }', "one of base64 and text"),
            ('result = { a = { media_type = "PNG", base64 = "b" } }', "must be a media type"),
            ('result = { a = { base64 = "b" } }', "`media_type` is missing"),
            ('result = { a = { media_type = "image/png", base64 = "b..c" } }', "dotted path"),
            ('result = { a = { media_type = "image/png", base64 = "b", size = 1 } }', "not a known key"),
            ("result = { a = 1 }", "must be a string"),
            (RESULT + 'output = { type = "object" }', "without attachments"),
            ('answer = "file"\noutput = { type = "object" }', "without attachments"),
            ('answer = "file"\nresult = { a = "b" }', "must be json"),
            ('answer = "file"\nmax_response_bytes = 6291457', "must be at most 6291456 for a file"),
        ):
            found = read_file((CHARTS + added).encode(), "x.toml").problems
            self.assertEqual([True], [message in each.message for each in found], (added, found))

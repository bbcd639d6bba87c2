"""From a tool's request to the bytes on the wire and back, by the real runner and connector."""

from __future__ import annotations

import json
from typing import Any, cast

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.base.json import digest_of_bytes
from aileron.features.own_tools import _contents
from aileron.features.own_tools._forms import read_long
from aileron.features.own_tools.action_file import write_action
from aileron.features.own_tools.values import ToolAnswer
from aileron.model.errors import NotFound
from aileron.model.runs import Run, RunState
from aileron.model.streams import AnswerCut
from aileron.model.tool_claims import ToolCaller
from aileron.model.vault import NewBinding
from aileron.testing import MemoryConnectors
from tests.connectors.kinds.http.test_forward import SECRET, TRACKER
from tests.connectors.kinds.http.test_streaming import Taker
from tests.connectors.service import Service, answer, spec_of

from .door import HOLD, ONE, TWO, DoorCase, header

HOST = "127.0.0.1:8080"
BASE = f"http://{HOST}/api"


class WireCase(DoorCase):
    """A tracker at the other end of memory transports."""

    def setUp(self) -> None:
        super().setUp()
        self.wire = Service()
        connector = evolve(self.wire.connector(spec_of(TRACKER)), open_content=self.stored.open)
        description = connector.describe()
        self.connectors = MemoryConnectors.of([connector])
        self.believe_connectors()
        tools = description.own_tools
        assert tools is not None
        self.write("tracker-tools", write_action(description, tools))
        scope = description.scope(BASE)
        assert scope is not None
        self.bindings.add(NewBinding("api_key", "tracker", "me", description.name, SECRET, scope=scope))
        self.restart()

    def written(self, asked: Deferred[ToolAnswer]) -> ToolAnswer:
        """Have the service answer, and return what the tool gets."""
        self.wire.advance(0)
        return self.delivered(asked)

    def decide_last(self) -> None:
        """Approve the newest run, and have the service answer."""
        self.approve(self.runs()[-1])
        self.wire.advance(0)


class FoundTests(WireCase):
    """Services that a session may open."""

    def test_address(self) -> None:
        """A service at an IP address is not opened: tools would reach it without the proxy, or not at all."""
        with self.assertRaises(NotFound) as refused:
            self.door.find_services(("tracker",))
        self.assertIn("IP address", refused.exception.message)


class WriteTests(WireCase):
    """Writes, as the service sees them."""

    def test_bytes(self) -> None:
        """What the service gets is what the tool wrote, with the credential; the tool gets what the service said."""
        headers = (("Content-Type", "application/json"), ("X-Key", "aileron-placeholder"), ("User-Agent", "gh"))
        body = b'{ "b": 1,  "a": "\xc3\xbc" }'
        asked = self.ask("POST", "/api/x%2Fy?q=%20", body, host=HOST, headers=headers)
        self.wire.replies.append(
            answer(b'{"id": 1}', 201, {"Location": "/api/x/1", "Content-Type": "application/json"})
        )
        self.decide_last()
        found = self.written(asked)
        head, _, sent = self.wire.requests[0].partition(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"POST /api/x%2Fy?q=%20 HTTP/1.1\r\n"), head)
        self.assertIn(b"X-Key: Token s3cret/va+lue=42", head)
        self.assertNotIn(b"placeholder", head)
        self.assertEqual(body, sent)
        self.assertEqual((201, b'{"id": 1}', "/api/x/1"), (found.status, found.body, header(found, "location")))
        self.assertEqual(1, len(self.wire.requests))

    def test_refusal_is_kept(self) -> None:
        """A refusal of the service is kept whole, even if it is long, and is claimed after a restart."""
        text = json.dumps({"message": "no", "errors": ["x" * 1000] * 200}).encode()
        self.parked("POST", "/api/x", b"{}", host=HOST)
        self.wire.replies.append(answer(text, 422, {"Content-Type": "application/json", "X-Request-Id": "7"}))
        self.decide_last()
        self.assertIs(self.runs()[0].state, RunState.FAILED)
        self.next_life()
        found = self.answered("POST", "/api/x", b"{}", host=HOST, caller=TWO)
        self.assertEqual((422, text, "7"), (found.status, found.body, header(found, "x-request-id")))

    def test_in_doubt(self) -> None:
        """An answer that leaves it in doubt is not handed on, and the request is not sent again."""
        self.parked("POST", "/api/x", b"{}", host=HOST)
        self.wire.replies.append(answer(b"{}", 502))
        self.decide_last()
        found = self.answered("POST", "/api/x", b"{}", host=HOST, caller=TWO)
        self.assertEqual((403, 1), (found.status, len(self.wire.requests)))

    def test_echo(self) -> None:
        """The credential is in nothing that the tool gets, and in no row."""
        self.parked("POST", "/api/x", b"{}", host=HOST)
        self.wire.replies.append(answer(b'{"you": "' + SECRET + b'"}', 200, {"X-You": SECRET.decode()}))
        self.decide_last()
        found = self.answered("POST", "/api/x", b"{}", host=HOST, caller=TWO)
        self.assertNotIn(SECRET, found.body + repr(found.headers).encode())
        self.assertNotIn(SECRET.decode(), json.dumps([each.result for each in self.runs()], default=str))


class ReadTests(WireCase):
    """Reads, as the service sees them."""

    def test_read(self) -> None:
        """A read is sent at once with the credential; its answer is handed on whole."""
        asked = self.ask("GET", "/api/x?page=2", b"", host=HOST)
        self.wire.replies.append(answer(b"y" * 200_000, 200))
        found = self.written(asked)
        self.assertEqual((200, 200_000), (found.status, len(found.body)))
        self.assertIn(b"X-Key: Token s3cret", self.wire.requests[0])
        self.assertEqual([], self.runs())

    def test_long(self) -> None:
        """A long answer is passed on while it arrives, and its end is recorded."""
        asked = self.ask("GET", "/api/x?page=2", b"", host=HOST)
        self.wire.replies.append(answer(b"y" * 3_000_000, 200))
        found = self.written(asked)
        self.assertEqual((200, 3_000_000, b""), (found.status, found.length, found.body))
        assert found.stream is not None
        taker = Taker()
        passing = Deferred.fromCoroutine(found.stream.pass_on(taker))
        self.wire.advance()
        self.successResultOf(passing)
        self.assertEqual(3_000_000, len(taker.got))
        self.assertEqual([3_000_000], [each["bytes"] for each in self.payloads("own_tools.read")])

    def test_long_echo(self) -> None:
        """A long answer that holds the credential is cut before it, which is recorded."""
        asked = self.ask("GET", "/api/x", b"", host=HOST)
        self.wire.replies.append(answer(b"\0" * 300_000 + SECRET + b"\0" * 300_000))
        found = self.written(asked)
        assert found.stream is not None
        taker = Taker()
        passing = Deferred.fromCoroutine(found.stream.pass_on(taker))
        self.wire.advance()
        self.failureResultOf(passing, AnswerCut)
        self.assertNotIn(SECRET[:6], bytes(taker.got))
        self.assertEqual([["plain"]], [each["forms"] for each in self.payloads("secret.echoed")])

    def test_redirect(self) -> None:
        """A redirect is the tool's to follow, without the credential."""
        asked = self.ask("GET", "/api/x", b"", host=HOST)
        self.wire.replies.append(answer(b"", 302, {"Location": "https://elsewhere.example/"}))
        found = self.written(asked)
        self.assertEqual((302, "https://elsewhere.example/"), (found.status, header(found, "location")))
        self.assertEqual(1, len(self.wire.requests))

    def test_unauthorized(self) -> None:
        """A 401 is not handed on."""
        asked = self.ask("GET", "/api/x", b"", host=HOST)
        self.wire.replies.append(answer(b"{}", 401, {"WWW-Authenticate": "Basic"}))
        found = self.written(asked)
        self.assertEqual((403, ""), (found.status, header(found, "www-authenticate")))


class LongTests(WireCase):
    """Bodies that are too long for the arguments of a run, from the disk to the wire."""

    BODY = b"PK" + bytes(range(256)) * 1000
    ZIP = (("Content-Type", "application/zip"), ("X-Key", "aileron-placeholder"))

    def upload(
        self, body: bytes = BODY, caller: ToolCaller = ONE, headers: tuple[tuple[str, str], ...] = ZIP
    ) -> Deferred[ToolAnswer]:
        """Send a write with a long body."""
        spool = self.spools.open("session-1", read_long(dict(headers)["Content-Type"]))
        spool.write(body)
        long = self.sync(spool.finish())
        request = self.request("PUT", "/api/x", b"", caller, host=HOST, headers=headers, long=long, spool=spool)
        return self.later(self.door.handle(request))

    def parked_upload(self, *args: Any, **kwargs: Any) -> Run:
        """Send a write with a long body, and return its run when the hold is over."""
        asked = self.upload(*args, **kwargs)
        self.assertNoResult(asked)
        self.clock.advance(HOLD)
        self.assertEqual("Waits for approval", self.delivered(asked).reason)
        return self.runs()[-1]

    def names(self) -> list[str]:
        """Return the digests of the files."""
        return [each.name for each in self.stored.directory.iterdir()]

    def test_sent(self) -> None:
        """It is shown by size and digest, kept until it is decided, and sent as it came; the tool gets the answer."""
        run = self.parked_upload()
        expected = {
            "host": HOST,
            "method": "PUT",
            "target": "/api/x",
            "headers": ["Content-Type: application/zip"],
            "content": digest_of_bytes(self.BODY),
            "size": len(self.BODY),
        }
        given = {name: value for name, value in run.arguments.items() if name != "recognised"}
        self.assertEqual(expected, given)
        approval = self.sync(self.runner.decisions.approval(run.id))
        (step,) = approval.review.steps
        assert step.request is not None
        shown = {"size": len(self.BODY), "digest": digest_of_bytes(self.BODY)}
        self.assertEqual({"parts": [shown]}, step.request.body)
        self.sync(self.contents.sweep())
        self.wire.replies.append(answer(b'{"id": 1}', 201))
        self.decide_last()
        head, _, sent = self.wire.requests[0].partition(b"\r\n\r\n")
        self.assertEqual(self.BODY, sent)
        self.assertIn(f"Content-Length: {len(self.BODY)}\r\n".encode(), head)
        self.assertIn(b"X-Key: Token s3cret/va+lue=42", head)
        again = self.delivered(self.upload(caller=TWO))
        self.assertEqual((201, b'{"id": 1}', run.id), (again.status, again.body, header(again, "Aileron-Run")))
        self.assertEqual(1, len(self.wire.requests))
        self.sync(self.contents.sweep())
        self.assertEqual([], self.names())

    def test_shown(self) -> None:
        """Of a text the beginning is shown, and of a multipart body its parts."""
        text = self.parked_upload(b"a,b\n" * 1000, headers=(("Content-Type", "text/csv"),))
        self.assertTrue(str(text.arguments["beginning"]).startswith("a,b\na,b\n"))
        body = b'--b\r\nContent-Disposition: form-data; name="f"; filename="a.zip"\r\n\r\nPK\r\n--b--\r\n'
        parts = self.parked_upload(body, TWO, (("Content-Type", "multipart/form-data; boundary=b"),))
        (line,) = cast("list[str]", parts.arguments["parts"])
        self.assertTrue(line.startswith("f: a.zip, 2 bytes, sha256:"), line)

    def test_at_once(self) -> None:
        """Two equal uploads at once are two runs. Their one file is kept until both are decided."""
        self.upload()
        self.upload(caller=TWO)
        first, second = self.runs()
        for run in (first, second):
            self.sync(self.contents.sweep())
            self.assertEqual([digest_of_bytes(self.BODY)[7:]], self.names())
            self.wire.replies.append(answer(b"{}", 201))
            self.approve(run)
            self.wire.advance(0)
        self.assertEqual([RunState.COMPLETED] * 2, [each.state for each in self.runs()])
        self.sync(self.contents.sweep())
        self.assertEqual([], self.names())

    def test_denied(self) -> None:
        """The file of a denied request is deleted, and a further copy of one that waits at once."""
        run = self.parked_upload()
        self.parked_upload(caller=TWO)
        self.assertEqual(1, len(self.names()))
        self.approve(run, approved=False)
        self.sync(self.contents.sweep())
        self.assertEqual(([], []), (self.names(), self.wire.requests))

    def test_changed(self) -> None:
        """A file that was changed or deleted on the disk is not sent: the run fails, and says that nothing was sent."""
        for content in (b"!" * len(self.BODY), b""):
            run = self.parked_upload()
            path = self.stored.directory / digest_of_bytes(self.BODY).removeprefix("sha256:")
            path.unlink()
            if content:
                path.write_bytes(content)
            self.decide_last()
            ended = self.sync(self.runner.submission.run(run.id))
            self.assertIs(ended.state, RunState.FAILED)
            assert ended.fault is not None
            self.assertIn("nothing was sent", ended.fault.message)
            self.assertEqual([], self.wire.requests)
            self.delivered(self.upload())
            self.sync(self.contents.sweep())

    def test_restart(self) -> None:
        """After a restart, it is sent from the file."""
        run = self.parked_upload()
        unfinished = self.stored.begin()
        unfinished.add(b"half")
        self.restart()
        self.sync(self.contents.start())
        self.assertEqual([digest_of_bytes(self.BODY)[7:]], self.names())
        self.wire.replies.append(answer(b"{}", 201))
        self.decide_last()
        self.assertEqual(run.id, self.runs()[0].id)
        self.assertTrue(self.wire.requests[0].endswith(self.BODY))

    def test_refused(self) -> None:
        """What is refused leaves no file with the door: one too many, and one for an action of an earlier version."""
        self.patch(_contents, "MOST_STORED_OF_SESSION", len(self.BODY))
        self.parked_upload()
        refused = self.delivered(self.upload(self.BODY + b"!", TWO))
        self.assertIn(b"too long together", refused.body)
        self.assertEqual([digest_of_bytes(self.BODY)[7:]], self.names())
        text = (self.directory / "tracker-tools.md").read_text()
        self.write(
            "tracker-tools", text.replace('name = "content"', 'name = "other"').replace("args.content", "args.other")
        )
        self.restart()
        refused = self.delivered(self.upload(b"another" * 1000, TWO))
        self.assertIn(b"aileron own-tools remove tracker", refused.body)
        self.assertEqual(1, len(self.runs()))

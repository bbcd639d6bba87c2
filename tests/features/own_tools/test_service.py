"""From a tool's request to the bytes on the wire and back, by the real runner and connector."""

from __future__ import annotations

import json

from twisted.internet.defer import Deferred

from aileron.features.own_tools.action_file import write_action
from aileron.features.own_tools.values import ToolAnswer
from aileron.model.runs import RunState
from aileron.model.vault import NewBinding
from aileron.testing import MemoryConnectors
from tests.connectors.kinds.http.test_forward import SECRET, TRACKER
from tests.connectors.service import Service, answer, spec_of

from .door import TWO, DoorCase, header

HOST = "127.0.0.1:8080"
BASE = f"http://{HOST}/api"


class WireCase(DoorCase):
    """A tracker at the other end of memory transports."""

    def setUp(self) -> None:
        super().setUp()
        self.wire = Service()
        connector = self.wire.connector(spec_of(TRACKER))
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
        """A read is sent at once with the credential; a long answer is handed on whole."""
        asked = self.ask("GET", "/api/x?page=2", b"", host=HOST)
        self.wire.replies.append(answer(b"y" * 3_000_000, 200))
        found = self.written(asked)
        self.assertEqual((200, 3_000_000), (found.status, len(found.body)))
        self.assertIn(b"X-Key: Token s3cret", self.wire.requests[0])
        self.assertEqual([], self.runs())

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

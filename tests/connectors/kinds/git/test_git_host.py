"""Of a git host's connector: a push is what its title says, and what is sent is what was shown, or nothing is."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON, digest_of_bytes
from aileron.connectors import SHOW_PUSH, GitHost, HttpTransport, NotGit
from aileron.connectors._schema import read_file
from aileron.connectors.kinds.git._objects import BLOB, Damaged
from aileron.connectors.kinds.git._upload import RemoteObjects
from aileron.model.connectors import FORWARD, FORWARD_READ, READ, WRITE, Outcome
from aileron.model.errors import CapabilityDenied, InvalidRequest
from aileron.model.streams import AnswerCut, StreamedAnswer
from aileron.testing import MemoryCredential
from tests.connectors.githost import FILE, Contents, host_connector, inputs_of, spec
from tests.connectors.kinds.git.test_git_fetch import pack
from tests.connectors.kinds.git.test_push import A, B, C, body, line
from tests.connectors.kinds.http.test_streaming import Taker
from tests.connectors.repository import packets
from tests.connectors.service import Service, answer

PORT = 8080
HOST = f"127.0.0.1:{PORT}"
SECRET = b"YW5uOnNlY3JldC10b2tlbg=="
PUSH = body(line(A, B))
OK = packets(b"\1" + packets(b"unpack ok\n", b"ok refs/heads/main\n", None), None)
REFUSED = packets(b"\1" + packets(b"unpack ok\n", b"ng refs/heads/main declined\n", None), None)


class HostCase(SynchronousTestCase):
    """A git host at the other end of memory transports, and a stored push."""

    def setUp(self) -> None:
        self.wire, self.contents = Service(), Contents()
        self.host: GitHost = host_connector(HttpTransport(self.wire.opener), self.wire.reactor, self.contents, PORT)
        self.contents.keep(PUSH)

    def start(self, operation: str, inputs: Mapping[str, JSON]) -> Deferred[Outcome]:
        """Send a request."""
        return self.wire.start(self.host, operation, inputs, base_url=f"http://{HOST}", secret=SECRET)

    def send(self, operation: str, inputs: Mapping[str, JSON], *replies: bytes) -> Outcome:
        """Send a request, and return its outcome."""
        self.wire.replies += replies
        return self.successResultOf(self.start(operation, inputs))


class FileTests(SynchronousTestCase):
    """The file of a git host."""

    def faults(self, **changes: str) -> str:
        """Return the faults of the file with lines replaced."""
        text = FILE.format(origin="https://git.example", host="git.example:443", private="false")
        for old, new in changes.items():
            marks = {"kind": 'kind = "basic"', "url": ", bindable = false", "tools": 'service = "site"'}
            text = text.replace(marks[old], new)
        return " ".join(each.message for each in read_file(text.encode(), "x.toml").problems)

    def test_read(self) -> None:
        """It has what own tools need, and no operation for actions."""
        found = spec()
        tools = found.description.own_tools
        assert tools is not None
        self.assertTrue(found.is_host and tools.is_git)
        self.assertEqual((("git.example",), "site", {}), (tools.hosts, tools.service, dict(tools.variables)))
        self.assertEqual({}, dict(found.operations))
        effects = {name: each.effect for name, each in found.description.operations.items()}
        self.assertEqual({FORWARD: WRITE, FORWARD_READ: READ, SHOW_PUSH: READ}, effects)
        self.assertTrue(all(each.tools_only for each in found.description.operations.values()))

    def test_faults(self) -> None:
        """The credential is one for HTTP in its usual header; the address is fixed; both tables at once are a fault."""
        self.assertIn("must be basic", self.faults(kind='kind = "ssh_key"').replace("api_key or ", ""))
        self.assertIn("in the header Authorization", self.faults(kind='kind = "api_key"\nheader = "X-Key"'))
        self.assertIn("must be fixed", self.faults(url=", bindable = true"))
        self.assertIn("must be a name", self.faults(tools='service = "My Site"'))
        self.assertIn("git", self.faults(tools='service = "site"\n[git]\nrepository = "/x"'))
        self.assertEqual("", self.faults())


class OpenReadTests(HostCase):
    """What the agent's git reads."""

    def fetch(self, *replies: bytes) -> Outcome | StreamedAnswer:
        """Fetch, and return what has come."""
        self.wire.replies += replies
        inputs = {"host": HOST, "method": "POST", "target": "/site.git/git-upload-pack", "body": "0000", "headers": ()}
        request = self.host.prepare(FORWARD_READ, inputs, f"http://{HOST}", "effect-1")
        credential = MemoryCredential(SECRET, "Basic {key}")
        asked = Deferred.fromCoroutine(self.host.open_read(request, credential, 60, "session-1"))
        self.wire.advance()
        return self.successResultOf(asked)

    def test_short(self) -> None:
        """A short answer is returned as a whole. The next read uses the same connection."""
        for _ in range(2):
            found = self.fetch(answer(b"pack"))
            assert isinstance(found, Outcome)
            self.assertEqual("pack", found.output["body"])  # type: ignore[index,call-overload]
        self.assertEqual(1, len(self.wire.connected))

    def test_long(self) -> None:
        """A long answer is passed on while it arrives, until it holds the token, in any of its forms."""
        for told in (b"", b"secret-token", SECRET):
            content = b"PACK\0" + b"x" * 300_000 + told
            found = self.fetch(answer(content))
            assert isinstance(found, StreamedAnswer)
            taker = Taker()
            passing = Deferred.fromCoroutine(found.body.pass_on(taker))
            self.wire.advance()
            if told:
                self.failureResultOf(passing, AnswerCut)
                self.assertTrue(content.removesuffix(told).startswith(bytes(taker.got)))
            else:
                self.successResultOf(passing)
                self.assertEqual(content, bytes(taker.got))

    def test_refused(self) -> None:
        """A refused token is no answer."""
        found = self.fetch(answer(b"x" * 300_000, 401))
        assert isinstance(found, Outcome)
        self.assertEqual((401, True), (found.status, found.fault is not None))


class PrepareTests(HostCase):
    """Which requests are prepared."""

    def prepare(self, **changes: JSON) -> Any:
        """Prepare a push with some inputs changed."""
        return self.host.prepare(FORWARD, {**inputs_of(PUSH, HOST), **changes}, f"http://{HOST}", "effect-1")

    def test_push(self) -> None:
        """The request has the address of the repository, and the digest of what is sent."""
        request = self.prepare()
        self.assertEqual(("POST", f"http://{HOST}/site.git/git-receive-pack"), (request.method, request.url))
        shown = json.loads(request.body)
        self.assertEqual(([line(A, B)], digest_of_bytes(PUSH)), (shown["updates"], shown["content"]))
        self.assertEqual((WRITE, "Authorization"), (request.effect, request.credential_header))

    def test_title(self) -> None:
        """What the title says is what the updates do."""
        for changes, updates in (
            ("update other", [line(A, B)]),
            ("update main", [line(A, C, "refs/heads/x")]),
            ("", []),
        ):
            self.assertRaises(InvalidRequest, self.prepare, changes=changes, updates=updates)

    def test_invalid(self) -> None:
        """Inputs of a wrong type, unknown ones, a credential among the headers, and other hosts are refused."""
        for changes in (
            {"content": 1},
            {"repository": None},
            {"updates": "x"},
            {"updates": [1]},
            {"more": "x"},
            {"headers": ["Authorization: Basic x"]},
            {"repository": "a b"},
            {"repository": "x?y=z"},
            {"repository": "/x"},
            {"repository": "a/../b"},
        ):
            self.assertRaises(InvalidRequest, self.prepare, **changes)
        self.assertRaises(CapabilityDenied, self.prepare, host="other.example")


class PushTests(HostCase):
    """What is sent of a push, and what its report means."""

    def push(self, *replies: bytes, **changes: JSON) -> Outcome:
        """Push, and return the outcome."""
        return self.send(FORWARD, {**inputs_of(PUSH, HOST), **changes}, *replies)

    def test_sent(self) -> None:
        """The stored bytes are sent with the credential, once; the output has the whole answer and the report."""
        outcome = self.push(answer(OK))
        (sent,) = self.wire.requests
        self.assertTrue(sent.endswith(PUSH))
        self.assertIn(b"Authorization: Basic " + SECRET, sent)
        assert isinstance(outcome.output, Mapping)
        self.assertEqual(({"refs/heads/main": "ok"}, 200), (outcome.output["report"], outcome.output["status"]))

    def test_gone(self) -> None:
        """If the content is not stored any more, or is another one, nothing is sent."""
        digest = digest_of_bytes(PUSH)
        for kept in ({}, {digest: PUSH + b"x"}, {digest: body(line(A, C))}):
            self.contents.kept = kept
            outcome = self.push()
            assert outcome.fault is not None
            self.assertIn("not stored any more", outcome.fault.message)
            self.assertFalse(outcome.sent)
        self.assertEqual([], self.wire.requests)

    def test_other_refs(self) -> None:
        """If the content updates other refs than were shown, or has other options, nothing is sent."""
        others = (
            body(line(A, B, "refs/heads/other")),
            body(line(A, B), line(A, B, "refs/heads/other")),
            body(line(A, C)),
            body(line(A, B), capabilities="report-status atomic"),
            body(f"shallow {C}", line(A, B)),
        )
        for other in others:
            outcome = self.push(content=self.contents.keep(other), size=len(other))
            assert outcome.fault is not None
            self.assertIn("other refs than were shown", outcome.fault.message)
            self.assertFalse(outcome.sent)
        self.assertEqual([], self.wire.requests)

    def test_refused(self) -> None:
        """A push of which no ref was updated failed for certain; its answer is kept for the tool."""
        outcome = self.push(answer(REFUSED))
        assert outcome.fault is not None
        self.assertIn("declined", outcome.fault.message)
        self.assertTrue(outcome.classified)
        kept = json.loads(str(outcome.kept_answer[0]))
        self.assertEqual(REFUSED, b64decode(kept["body_base64"]))

    def test_no_report(self) -> None:
        """A push without a report on its refs is in doubt."""
        for reply in (b"", b"hello", OK[:-4], OK.replace(b"main", b"mair")):
            outcome = self.push(answer(reply))
            self.assertEqual((True, False), (outcome.sent, outcome.classified), reply)
        outcome = self.push(answer(b"", 500))
        self.assertFalse(outcome.classified)

    def test_status(self) -> None:
        """A push that the host refuses as a whole failed for certain."""
        for status in (401, 403, 404):
            outcome = self.push(answer(b"no", status))
            self.assertEqual((status, True), (outcome.status, outcome.classified))
            self.assertIsNotNone(outcome.fault)

    def test_echo(self) -> None:
        """A secret in an answer is not in the outcome."""
        outcome = self.push(answer(b"secret-token " + SECRET, 403))
        self.assertNotIn("secret-token", str(outcome.kept_answer))
        self.assertNotIn(SECRET.decode(), str(outcome.kept_answer))

    def test_foreign(self) -> None:
        """A request of another connector is not sent."""
        request = self.host.prepare(FORWARD, inputs_of(PUSH, HOST), f"http://{HOST}", "effect-1")
        for changed in (evolve(request, connector="x"), evolve(request, url="http://127.0.0.1:1/site.git")):
            failed = Deferred.fromCoroutine(self.host.invoke(changed, None, 20))
            self.failureResultOf(failed, CapabilityDenied)


class ReadTests(HostCase):
    """Reads of git, and what a push shows if the host does not help."""

    def test_read(self) -> None:
        """A read is sent with the credential, and its whole answer is returned."""
        inputs: dict[str, JSON] = {"host": HOST, "method": "GET", "target": "/a/info/refs", "headers": []}
        outcome = self.send(FORWARD_READ, inputs, answer(b"refs\0x"))
        assert isinstance(outcome.output, Mapping)
        self.assertEqual("cmVmcwB4", outcome.output["body_base64"])
        self.assertIn(b"Authorization: Basic ", self.wire.requests[0])

    def test_unreachable(self) -> None:
        """If the repository cannot be read, there is no preview, and the reason is said."""
        outcome = self.send(SHOW_PUSH, inputs_of(PUSH, HOST), answer(b"", 503))
        assert outcome.fault is not None
        self.assertIn("status 503", outcome.fault.message)

    def test_hidden(self) -> None:
        """If the host lacks the protocol, the refs are shown alone, and the reason is said."""
        outcome = self.send(SHOW_PUSH, inputs_of(PUSH, HOST), answer(packets(b"# service=git-upload-pack\n", None)))
        assert isinstance(outcome.output, Mapping)
        self.assertIn("cannot be shown: the remote does not support version 2", str(outcome.output["warning"]))
        self.assertIn(f"{A} → {B}", str(outcome.output["refs"]))


class FetchTests(SynchronousTestCase):
    """Single objects of a remote that sends what it should not."""

    def fetch(self, *answers: bytes, wanted: tuple[str, ...] = (A,)) -> Deferred[Any]:
        """Fetch an object from a remote that answers so."""
        left = [packets(b"version 2\n", b"fetch=shallow filter\n", None), *answers]

        async def ask(_: str, __: bytes | None) -> bytes:
            return left.pop(0)

        async def at_once(work: Any) -> Any:
            return work()

        return Deferred.fromCoroutine(RemoteObjects(ask, lambda: None, at_once).fetch(wanted))

    def test_fetched(self) -> None:
        """The pack is found among sections and messages."""
        sections = packets(b"shallow-info\n", b"shallow " + A.encode()) + b"0001"
        data = pack((BLOB, b"abc"))
        sent = sections + packets(b"packfile\n", b"\2hello\n", b"\1" + data[:9], b"\1" + data[9:], None)
        self.assertEqual([(BLOB, b"abc")], [*self.successResultOf(self.fetch(sent)).values()])

    def test_refused(self) -> None:
        """Errors, a broken answer, none, and a request for too much are failures with a reason."""
        data = pack((BLOB, b"abc"))
        for sent in (
            packets(b"ERR upload-pack: not our ref\n"),
            packets(b"packfile\n", b"\3fatal", None),
            packets(b"packfile\n", None),
            b"00zz",
            b"0004",
            packets(b"packfile\n", b"\1" + data)[:-5],
        ):
            self.failureResultOf(self.fetch(sent), NotGit, Damaged)
        many = tuple(f"{each:040x}" for each in range(2001))
        self.failureResultOf(self.fetch(wanted=many), NotGit)

    def test_nothing(self) -> None:
        """If nothing is wanted, nothing is asked."""
        self.assertEqual({}, self.successResultOf(self.fetch(wanted=())))

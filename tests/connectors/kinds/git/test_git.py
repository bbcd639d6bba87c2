"""Of the connector to a git repository: the contract, and what it makes of a server's every answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from attrs import define, evolve, field
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.connectors import HttpTransport
from aileron.connectors._connection import ConnectionOpener
from aileron.connectors._schema import read_file
from aileron.connectors.kinds.git import GitConnector
from aileron.model.connectors import Finding, Outcome, Sought
from aileron.model.errors import BindingFailed, BindingRequired, CapabilityDenied, InvalidRequest
from aileron.testing import ConnectorContract, MemoryCredential
from tests.connectors.certificate import Certificate
from tests.connectors.repository import FILE, Pair, connector, git, listed, packets
from tests.connectors.service import NOW, Service, answer

LIST = {"Content-Type": "application/x-git-receive-pack-advertisement"}
SECRET = b"ann:s3cret/va+lue"


def _transport(service: Service) -> HttpTransport:
    tls = Certificate.made("nobody.invalid").verifying
    return HttpTransport(ConnectionOpener(service.reactor, service._resolve, tls, lambda: service.own_ports))


def made(case: SynchronousTestCase) -> Pair:
    """A repository and its remote."""
    return Pair.made(Path(case.mktemp()).absolute())


@define
class Served(Service):
    """A git server: lists of refs and reports on updates are answers of their own.

    :ivar reports: what updates are answered with.
    """

    reports: list[bytes | None] = field(factory=list)

    def took(self, peer: Any, request: bytes) -> None:
        """An update takes its answer from its own list."""
        if request.startswith(b"POST"):
            self.replies.insert(0, self.reports.pop(0))
        super().took(peer, request)


@define
class Rig:
    """A repository with a commit that its remote lacks, and the remote's server in the contract's hand."""

    pair: Pair
    service: Served = field(factory=Served)
    _answered: int = 0
    connector: GitConnector = field()
    base_url: str = "http://127.0.0.1:8080/site.git"
    reads: str = "compare"
    writes: str = "create_branch"
    old: str = field()
    new: str = field()
    inputs: Mapping[str, JSON] = field()

    @old.default
    def _old(self) -> str:
        return git(self.pair.work, "rev-parse", "HEAD")

    @new.default
    def _new(self) -> str:
        return self.pair.commit("src/a.txt", "one\ntwo\n", "Add a file")

    @connector.default
    def _connector(self) -> GitConnector:
        return connector(self.pair, _transport(self.service), self.service.reactor, 8080)

    @inputs.default
    def _inputs(self) -> Mapping[str, JSON]:
        return {"branch": "agent/x", "commit": self.new}

    def lists(self, **refs: str) -> None:
        """Let the server list these branches next."""
        names = {f"refs/heads/{name.replace('__', '/')}": commit for name, commit in refs.items()}
        self.service.replies.append(answer(listed(names), headers=LIST))

    def reports(self, *lines: bytes) -> None:
        """Let the server say what became of an update."""
        self.service.reports.append(answer(packets(*lines, None)))

    def queue_answer(self, output: JSON) -> JSON:
        """With the list of refs, and a report where one is asked for."""
        self._answered += 1
        self.lists(main=self.old)
        self.reports(b"unpack ok\n", b"ok refs/heads/agent/x\n")
        done: JSON = {"ref": "refs/heads/agent/x", "old": "0" * 40, "new": self.new}
        return _compared(self) if self._answered == 1 else done

    def queue_silence(self) -> None:
        """The update is never answered."""
        self.lists(main=self.old)
        self.service.reports.append(None)

    def advance(self, seconds: float) -> None:
        self.service.advance(seconds)

    def sent(self) -> int:
        """How often a list was asked for, less those that came before an update."""
        return sum(each.startswith(b"GET") for each in self.service.requests)

    def send(self, operation: str, inputs: Mapping[str, JSON], key: str = "effect-1") -> Deferred[Outcome]:
        """Start one sending."""
        return self.service.start(
            self.connector, operation, inputs, base_url=self.base_url, secret=SECRET, key=key, seconds=60
        )


def _compared(rig: Rig) -> JSON:
    """What the rig's comparison shows, each part of which other tests are about."""
    outcomes: list[Outcome] = []
    other = Rig(rig.pair, old=rig.old, new=rig.new)
    other.lists(main=rig.old)
    other.send("compare", other.inputs).addCallback(outcomes.append)
    return outcomes[0].output


class GitContractTests(ConnectorContract, SynchronousTestCase):
    """It keeps the contract of every connector."""

    def rig(self) -> Rig:
        """One of its own for each test."""
        return Rig(made(self))


class GitCase(SynchronousTestCase):
    """A repository whose branch C{main} is one commit before its remote's."""

    def setUp(self) -> None:
        self.rig = Rig(made(self))

    def push(self, *report: bytes, operation: str = "push") -> Outcome:
        """Push C{main}, and let the server report this."""
        self.rig.lists(main=self.rig.old)
        self.rig.reports(*report)
        return self.update(operation)

    def update(self, operation: str = "push", **inputs: str) -> Outcome:
        """Update C{main}."""
        given = {"branch": "main", "commit": self.rig.new, "expected": self.rig.old} | inputs
        return self.successResultOf(self.rig.send(operation, given))

    def meaning(self, outcome: Outcome) -> str:
        """What the runner makes of it."""
        if outcome.fault is None:
            return "done"
        return "not done" if outcome.classified or not outcome.sent else "unknown"


class LongListTests(GitCase):
    """Lists with very many refs."""

    def test_in_a_thread(self) -> None:
        """A long list of refs is read in another thread, a short one at once."""
        waiting: list[tuple[Deferred[Any], Callable[[], Any]]] = []

        def in_thread(work: Callable[..., Any], *args: Any) -> Deferred[Any]:
            waiting.append((Deferred(), partial(work, *args)))
            return waiting[-1][0]

        self.rig.connector = evolve(self.rig.connector, in_thread=in_thread)
        self.rig.lists(main=self.rig.old)
        short = self.successResultOf(self.rig.send("remote_branch", {"branch": "main"}))
        self.rig.lists(main=self.rig.old, **{f"b{each}": self.rig.old for each in range(2000)})
        long = self.rig.send("remote_branch", {"branch": "main"})
        self.assertNoResult(long)
        [(answered, work)] = waiting
        answered.callback(work())
        self.assertEqual(self.successResultOf(long).output, short.output)


class UpdateTests(GitCase):
    """From the request to what came of it."""

    def test_request(self) -> None:
        """What is approved names the ref, both commits and the effect; nothing else chooses what is changed."""
        inputs = {"branch": "main", "commit": self.rig.new, "expected": self.rig.old}
        request = self.rig.connector.prepare("push", inputs, self.rig.base_url, "k1")
        expected = {"ref": "refs/heads/main", "old": self.rig.old, "new": self.rig.new, "effect": "k1"}
        self.assertEqual(json.loads(request.body or b""), expected)
        self.assertEqual((request.method, request.url), ("POST", f"{self.rig.base_url}/git-receive-pack"))
        self.assertEqual(request.credential_header, "Authorization")

    def test_command(self) -> None:
        """The server is told from which commit the ref is moved, and gets a pack; the credential goes with both."""
        outcome = self.push(b"unpack ok\n", b"ok refs/heads/main\n")
        self.assertEqual(outcome.output, {"ref": "refs/heads/main", "old": self.rig.old, "new": self.rig.new})
        asked, told = self.rig.service.requests
        command = f"{self.rig.old} {self.rig.new} refs/heads/main\0 report-status agent=aileron".encode()
        self.assertIn(b"%04x%s0000PACK" % (len(command) + 4, command), told)
        self.assertTrue(all(b"Authorization: Basic " in each for each in (asked, told)))
        self.assertIn(b"GET /site.git/info/refs?service=git-receive-pack ", asked)

    def test_session(self) -> None:
        """A server that takes a name for the session gets the effect key, for its own records."""
        refs = {"refs/heads/main": self.rig.old}
        reply = answer(listed(refs, capabilities="report-status session-id=abc"), headers=LIST)
        self.rig.service.replies.append(reply)
        self.rig.reports(b"unpack ok\n", b"ok refs/heads/main\n")
        self.update()
        self.assertIn(b"session-id=effect-1", self.rig.service.requests[1])

    def test_moved(self) -> None:
        """A ref that is elsewhere by now is left alone, and it says where it is."""
        other = "b" * 40
        self.rig.lists(main=other)
        outcome = self.update()
        assert outcome.fault is not None
        self.assertEqual((self.meaning(outcome), outcome.sent, outcome.fault.retriable), ("not done", False, False))
        self.assertIn(f"Nothing was changed: refs/heads/main is at {other}", outcome.fault.message)
        self.assertEqual(len(self.rig.service.requests), 1)

    def test_refused(self) -> None:
        """A server's refusal is final, and its reason told, however it is written."""
        outcome = self.push(b"unpack ok\n", b"ng refs/heads/main hook\x1b[31m declined\n")
        assert outcome.fault is not None
        self.assertEqual(self.meaning(outcome), "not done")
        self.assertIn("refused the update of refs/heads/main: hook␛[31m declined", outcome.fault.message)

    def test_reports(self) -> None:
        """A report that does not say what became of exactly this update settles nothing."""
        for lines in (
            (),
            (b"unpack ok\n",),
            (b"unpack ok\n", b"ok refs/heads/other\n"),
            (b"unpack ok\n", b"ng refs/heads/other no\n"),
            (b"unpack index-pack failed\n", b"ok refs/heads/main\n"),
            (b"unpack ok\n", b"ok refs/heads/main\n", b"ng refs/heads/main no\n"),
            (b"unpack ok\n", b"ok refs/heads/main\n", b"ok refs/heads/other\n"),
            (b"nonsense\n", b"ok refs/heads/main\n"),
        ):
            self.assertEqual(self.meaning(self.push(*lines)), "unknown", lines)

    def test_answers(self) -> None:
        """Whatever else answers an update, only a refusal by HTTP's own status says that nothing happened."""
        for reply, meaning in (
            (answer(b"", 403), "not done"),
            (answer(b"", 500), "unknown"),
            (answer(b"", 302, {"Location": "http://127.0.0.1:8080/other"}), "unknown"),
            (answer(b"0008unp"), "unknown"),
            (answer(b"<html>hello</html>"), "unknown"),
            (answer(b"x", headers={"Content-Length": "99999999"}), "unknown"),
        ):
            self.rig.lists(main=self.rig.old)
            self.rig.service.reports.append(reply)
            self.assertEqual(self.meaning(self.update()), meaning, reply)

    def test_lists(self) -> None:
        """Before there is a list of refs nothing is sent, whatever else was answered."""
        good = listed({"refs/heads/main": self.rig.old})
        for reply in (
            answer(b"", 401),
            answer(b"", 500),
            answer(b"", 301, {"Location": "http://127.0.0.1:8080/other/info/refs"}),
            answer(b"<html>", headers={"Content-Type": "text/html"}),
            answer(good),
            answer(good[:-6], headers=LIST),
            answer(good[:-4], headers=LIST),
            answer(b"", headers=LIST),
            answer(listed({"refs/heads/main": self.rig.old}, service="git-upload-pack"), headers=LIST),
            answer(listed({"refs/heads/main": "b" * 64}), headers=LIST),
            answer(listed({"refs/heads/main": self.rig.old}, capabilities="object-format=sha256"), headers=LIST),
            answer(b"x", headers={**LIST, "Content-Length": "99999999"}),
        ):
            self.rig.service.replies.append(reply)
            outcome = self.update()
            self.assertEqual((self.meaning(outcome), outcome.sent), ("not done", False), reply)
        self.assertFalse([each for each in self.rig.service.requests if each.startswith(b"POST")])

    def test_time_is_up(self) -> None:
        """Where the list of refs has taken all the time, no update is sent any more."""
        self.rig.service.replies.append(None)
        sending = self.rig.send("push", {"branch": "main", "commit": self.rig.new, "expected": self.rig.old})
        self.rig.advance(60)
        outcome = self.successResultOf(sending)
        self.assertEqual((outcome.sent, self.meaning(outcome)), (False, "not done"))
        self.assertEqual(len(self.rig.service.requests), 1)

    def test_reading_without_credential(self) -> None:
        """A read of the remote needs the credential, and raises where it does not open; one of the local needs none."""
        request = self.rig.connector.prepare("compare", self.rig.inputs, self.rig.base_url, "k1")
        closed = MemoryCredential(BindingFailed("It does not open."))
        for credential, error in ((None, BindingRequired), (closed, BindingFailed)):
            self.failureResultOf(Deferred.fromCoroutine(self.rig.connector.read(request, credential, 5)), error)
        self.assertEqual(self.rig.service.requests, [])
        local = self.rig.connector.prepare("log", {"count": 1}, self.rig.base_url, "k1")
        self.assertEqual((local.url, local.credential_header), (f"file://{self.rig.pair.work}", None))
        outcome = self.successResultOf(Deferred.fromCoroutine(self.rig.connector.read(local, None, 5)))
        self.assertIn(self.rig.new, json.dumps(outcome.output))

    def test_broken(self) -> None:
        """A connection that breaks before the update leaves it not done; after it was sent, unknown."""
        for sent in (False, True):
            rig = Rig(self.rig.pair, old=self.rig.old, new=self.rig.new)
            if sent:
                rig.queue_silence()
            else:
                rig.service.replies.append(None)
            sending = rig.send("push", {"branch": "main", "commit": rig.new, "expected": rig.old})
            rig.service.reset()
            outcome = self.successResultOf(sending)
            self.assertEqual((outcome.sent, self.meaning(outcome)), (sent, "unknown" if sent else "not done"))

    def test_not_forward(self) -> None:
        """A push that would lose commits of the remote is not sent; force_push, marked destructive, is."""
        git(self.rig.pair.work, "checkout", "-q", "--orphan", "other")
        other = self.rig.pair.commit("README", "Another.\n", "Begin again")
        self.rig.lists(main=self.rig.old)
        outcome = self.update(commit=other)
        assert outcome.fault is not None
        self.assertIn("does not build on", outcome.fault.message)
        self.assertEqual((self.meaning(outcome), outcome.sent), ("not done", False))
        self.rig.lists(main=self.rig.old)
        self.rig.reports(b"unpack ok\n", b"ok refs/heads/main\n")
        self.assertEqual(self.meaning(self.update("force_push", commit=other)), "done")
        operations = self.rig.connector.describe().operations
        marked = {name for name, each in operations.items() if each.destructive and each.effect == "write"}
        self.assertEqual(marked, {"force_push", "delete_branch"})

    def test_delete(self) -> None:
        """Deleting sends no pack, and asks for the commit that the branch must be at."""
        self.rig.lists(agent__x=self.rig.old)
        self.rig.reports(b"unpack ok\n", b"ok refs/heads/agent/x\n")
        outcome = self.successResultOf(self.rig.send("delete_branch", {"branch": "agent/x", "expected": self.rig.old}))
        self.assertEqual(self.meaning(outcome), "done")
        self.assertTrue(self.rig.service.requests[1].endswith(b"0000"))

    def test_unable(self) -> None:
        """A server that would not report what it did, or cannot delete, is not asked."""
        inputs = {"branch": "main", "commit": self.rig.new, "expected": self.rig.old}
        for operation, capabilities in (("push", "delete-refs"), ("delete_branch", "report-status")):
            reply = listed({"refs/heads/main": self.rig.old}, capabilities=capabilities)
            self.rig.service.replies.append(answer(reply, headers=LIST))
            given = {name: inputs[name] for name in inputs if operation == "push" or name != "commit"}
            outcome = self.successResultOf(self.rig.send(operation, given))
            self.assertEqual((outcome.sent, self.meaning(outcome)), (False, "not done"))

    def test_allowed(self) -> None:
        """Only refs that the file lists are updated, and only what is a ref's name and a commit's id is taken."""
        inputs = {"branch": "main", "commit": self.rig.new, "expected": self.rig.old}
        for changed, error in (
            ({"branch": "release"}, CapabilityDenied),
            ({"branch": "agent/../main"}, InvalidRequest),
            ({"branch": "main\n"}, InvalidRequest),
            ({"branch": "main x"}, InvalidRequest),
            ({"branch": "agent/x\0report-status"}, InvalidRequest),
            ({"branch": "agent/x.lock"}, InvalidRequest),
            ({"branch": 7}, InvalidRequest),
            ({"commit": self.rig.new[:12]}, InvalidRequest),
            ({"commit": self.rig.new + "\n"}, InvalidRequest),
            ({"commit": "0" * 40}, InvalidRequest),
            ({"expected": "0" * 40}, InvalidRequest),
            ({"note": "x"}, InvalidRequest),
        ):
            with self.assertRaises(error, msg=str(changed)):
                self.rig.connector.prepare("push", {**inputs, **changed}, self.rig.base_url, "k1")

    def test_echo(self) -> None:
        """A server that repeats the credential does not get it into what is told."""
        from aileron.connectors._screened import Screened

        self.rig.lists(main=self.rig.old)
        self.rig.reports(b"unpack ok\n", b"ng refs/heads/main no, ann:s3cret/va+lue\n")
        inputs = {"branch": "main", "commit": self.rig.new, "expected": self.rig.old}
        request = self.rig.connector.prepare("push", inputs, self.rig.base_url, "k1")
        credential = MemoryCredential(SECRET)
        sending = Deferred.fromCoroutine(Screened(self.rig.connector).invoke(request, credential, 60))
        self.rig.service.advance(0)
        fault = self.successResultOf(sending).fault
        assert fault is not None
        self.assertNotIn("s3cret", fault.message)
        self.assertIn("[redacted]", fault.message)


class ReconcileTests(GitCase):
    """Whether an update happened whose answer was lost."""

    def look(self, operation: str = "push", seconds: float = 600, **refs: str) -> Finding:
        """What is found if the server lists these."""
        inputs = {"branch": "main", "commit": self.rig.new, "expected": self.rig.old}
        if operation == "delete_branch":
            del inputs["commit"]
        self.rig.lists(**refs)
        sought = Sought(operation, inputs, self.rig.base_url, "k1", NOW, NOW - timedelta(seconds=seconds))
        looking = Deferred.fromCoroutine(self.rig.connector.reconcile(sought, MemoryCredential(SECRET), 10))
        self.rig.service.advance(0)
        return self.successResultOf(looking)

    def test_where_it_is(self) -> None:
        """At the new commit it was done, at the old one it was not, and anywhere else nobody can say."""
        self.assertEqual(self.look(main=self.rig.new).happened, True)
        self.assertEqual(self.look(main=self.rig.old).happened, False)
        self.assertEqual(self.look(main="b" * 40).happened, None)
        self.assertEqual(self.look(other=self.rig.new).happened, None)
        self.assertEqual(
            self.look(main=self.rig.new).output, {"ref": "refs/heads/main", "old": self.rig.old, "new": self.rig.new}
        )

    def test_too_early(self) -> None:
        """Ten minutes long the update may still be under way, so that it is at the old commit says nothing."""
        self.assertEqual(self.look(seconds=599, main=self.rig.old).happened, None)
        self.assertEqual(self.look(seconds=599, main=self.rig.new).happened, True)

    def test_deleted(self) -> None:
        """A branch that is gone was deleted."""
        self.assertEqual(self.look("delete_branch", other=self.rig.old).happened, True)
        self.assertEqual(self.look("delete_branch", main=self.rig.old).happened, False)

    def test_no_answer(self) -> None:
        """A server that does not answer as one finds nothing."""
        self.rig.service.replies.append(answer(b"", 500))
        finding = self.look()
        self.assertEqual((finding.happened, finding.fault is None), (None, False))


class FileTests(SynchronousTestCase):
    """The file of such a connector."""

    def problems(self, old: str = "", new: str = "") -> str:
        """What is wrong with it, once a part is replaced."""
        text = FILE.format(port=8080, path="/srv/site")
        self.assertIn(old, text)
        return " ".join(each.message for each in read_file(text.replace(old, new).encode(), "site.toml").problems)

    def test_faults(self) -> None:
        """What it does not say, or says wrongly, is a fault."""
        self.assertEqual(self.problems(), "")
        self.assertIn("`repository` must be an absolute path", self.problems("/srv/site", "site"))
        self.assertIn("`repository` must be an absolute path", self.problems("/srv/site", "/srv/../etc"))
        self.assertIn("`kind` must be one of: http, git", self.problems('kind = "git"', 'kind = "svn"'))
        self.assertIn("`branches` has 'a b'", self.problems('"main"', '"a b"'))
        self.assertIn("`kind` must be api_key or basic", self.problems('kind = "basic"', 'kind = "aws_sigv4"'))
        self.assertIn("`hooks` is not a known key", self.problems("[git]", "[git]\nhooks = true"))
        self.assertIn("`git` is missing", self.problems(FILE[FILE.index("[git]") :].format(path="/srv/site"), ""))

    def test_nothing_allowed(self) -> None:
        """A file that lists no refs lets none be updated."""
        pair = made(self)
        spec = evolve(pair.spec(), branches=(), tags=())
        self.assertFalse(spec.may_update("refs/heads/main") or spec.may_update(""))

    def test_allowed(self) -> None:
        """A star stands for any part of a name, and nothing else for anything but itself."""
        pair = made(self)
        for pattern, names, others in (
            ("main", ("main",), ("mains", "main/x", "Main", "")),
            ("agent/*", ("agent/x", "agent/x/y", "agent/"), ("agent", "my/agent/x")),
            ("*-fix", ("a-fix", "-fix"), ("a-fixed", "fix")),
            ("a*b*c", ("abc", "axxbyyc", "abbcc"), ("ab", "acb", "abcd", "bac")),
            ("ab*ba", ("abba", "ab-ba"), ("aba", "ab")),
        ):
            spec = evolve(pair.spec(), branches=(pattern,), tags=())
            found = {name: spec.may_update(f"refs/heads/{name}") for name in (*names, *others)}
            self.assertEqual(found, {**dict.fromkeys(names, True), **dict.fromkeys(others, False)}, pattern)
            self.assertFalse(spec.may_update(f"refs/tags/{names[0]}"))

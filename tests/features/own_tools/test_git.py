"""Of the git of agents: what it reads is sent, a push is a run that is stored, shown, and answered in git's form."""

from __future__ import annotations

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors import GitPush, NotGit, read_push
from aileron.features.own_tools._git import GIT, GIT_FETCH, GIT_PUSH, GitRequest, push_form, recognise_git
from aileron.features.own_tools.values import ToolRequest
from aileron.model.connectors import READ, WRITE, Outcome
from aileron.model.errors import ResourceLimitExceeded
from aileron.model.runs import RunState
from aileron.model.tool_claims import CLAIMED_COMMAND, NO_CALLER
from tests.connectors.kinds.git.test_push import A, B, C, line

from .door import HOLD, ONE, THREE, TWO, header, whole
from .gitdoor import REPORT, TARGET, TYPE, GitDoorCase, push_body

FETCH_TYPE = ("Content-Type", "application/x-git-upload-pack-request")
FETCH = "/acme/web.git/git-upload-pack"


def ask(method: str, target: str, body: bytes = b"", *headers: tuple[str, str]) -> ToolRequest:
    """Return a request to a git host."""
    return ToolRequest("ses_1", 1, "git.example", method, target, headers, body)


def found(method: str, target: str, body: bytes = b"", *headers: tuple[str, str]) -> GitRequest:
    """Return what a request is recognised as."""
    return recognise_git(ask(method, target, body, *headers))


class RecognitionTests(SynchronousTestCase):
    """What git asks of a host."""

    def test_reads(self) -> None:
        """Lists of refs, fetches and the probe before a long push are reads."""
        for service in ("git-upload-pack", "git-receive-pack"):
            read = found("GET", f"/acme/web.git/info/refs?service={service}")
            self.assertEqual((READ, GIT, "acme/web.git"), (read.effect, read.protocol, read.repository))
        fetched = found("POST", FETCH, b"\x1f\x8bany", FETCH_TYPE, ("Content-Encoding", "gzip"))
        self.assertEqual((READ, GIT_FETCH), (fetched.effect, fetched.protocol))
        self.assertEqual((READ, GIT), (found("POST", TARGET, b"0000", TYPE).effect, GIT))
        self.assertEqual(
            "a/b/c-1/.github", found("POST", "/a/b/c-1/.github/git-upload-pack", b"", FETCH_TYPE).repository
        )

    def test_push(self) -> None:
        """A push is a write of what its updates say."""
        pushed = found("POST", TARGET, push_body(), TYPE)
        self.assertEqual((WRITE, GIT_PUSH, "acme/web.git"), (pushed.effect, pushed.protocol, pushed.repository))
        assert pushed.push is not None
        self.assertEqual([line(A, B)], [str(each) for each in pushed.push.updates])
        self.assertRaises(NotGit, found, "POST", TARGET, b"00000000", TYPE)

    def test_other(self) -> None:
        """Everything else at the host is refused: pages, the old protocol, large files, other spellings."""
        for method, target in (
            ("GET", "/acme/web"),
            ("GET", "/acme/web.git/info/refs"),
            ("GET", "/acme/web.git/info/refs?service=git-upload-archive"),
            ("GET", "/acme/web.git/info/refs?service=git-upload-pack&x=1"),
            ("GET", "/acme/web.git/INFO/refs?service=git-upload-pack"),
            ("GET", "/acme/web.git/HEAD"),
            ("HEAD", "/acme/web.git/info/refs?service=git-upload-pack"),
            ("GET", "/acme/web.git/git-receive-pack"),
            ("PUT", TARGET),
            ("POST", f"{TARGET}?x=1"),
            ("POST", f"{TARGET}/"),
            ("POST", "/acme/web.git/Git-Receive-Pack"),
            ("POST", "/acme/web.git/info/lfs/objects/batch"),
            ("POST", "/acme/web.git/info/refs?service=git-receive-pack"),
            ("POST", "/login/oauth/access_token"),
        ):
            self.assertRaises(NotGit, found, method, target, push_body() if method == "POST" else b"", TYPE)

    def test_paths(self) -> None:
        """A path that could name another repository, or another service, is refused."""
        for path in (
            "/git-receive-pack",
            "//git-receive-pack",
            "/acme//web/git-receive-pack",
            "/acme/../web/git-receive-pack",
            "/acme/./web/git-receive-pack",
            "/acme/we%62/git-receive-pack",
            "/acme/web;x/git-receive-pack",
            "/acme/web.git/git-upload-pack/git-receive-pack",
            "/acme/web.git/info/git-receive-pack",
            f"/{'a/' * 30}git-receive-pack",
        ):
            self.assertRaises(NotGit, found, "POST", path, push_body(), TYPE)

    def test_encoded(self) -> None:
        """A push that is compressed as a whole, or of another type, is refused."""
        for headers in ((), (TYPE, ("Content-Encoding", "gzip")), (TYPE, TYPE), (FETCH_TYPE,)):
            self.assertRaises(NotGit, found, "POST", TARGET, push_body(), *headers)


class FormTests(SynchronousTestCase):
    """Which pushes are the same."""

    def form(self, body: bytes, host: str = "git.example", repository: str = "acme/web.git") -> str:
        """Return the form of a push."""
        push: GitPush = read_push(body)
        return push_form(ToolRequest("ses_1", 1, host, "POST", TARGET, (), body), repository, push)

    def test_same(self) -> None:
        """The bytes of the pack and the order of the updates differ between two runs of one command."""
        one, two = line(A, B), line(A, C, "refs/heads/x")
        self.assertEqual(self.form(push_body(b"1", one, two)), self.form(push_body(b"2", two, one)))

    def test_different(self) -> None:
        """Other commits, refs, repositories, options or hosts are another push."""
        forms = [
            self.form(push_body()),
            self.form(push_body(b"", line(A, C))),
            self.form(push_body(b"", line(C, B))),
            self.form(push_body(b"", line(A, B, "refs/heads/x"))),
            self.form(push_body(capabilities="report-status atomic")),
            self.form(push_body(capabilities="report-status push-options", options=("x",))),
            self.form(push_body(), "git.example:8443"),
            self.form(push_body(), repository="acme/site.git"),
        ]
        self.assertEqual(len(forms), len(set(forms)))


class ReadingTests(GitDoorCase):
    """What git reads through the door."""

    def test_read(self) -> None:
        """A read is sent at once, and its answer is handed on as it is."""
        self.service.script.append(whole(200, "001e# service=git-upload-pack\n"))
        answer = self.successResultOf(
            self.later(self.door.handle(self.git("GET", "/acme/web.git/info/refs?service=git-upload-pack")))
        )
        self.assertEqual((200, b"001e# service=git-upload-pack\n"), (answer.status, answer.body))

    def test_failed(self) -> None:
        """A fetch that fails is answered with a sentence that git shows."""
        self.service.script.append(Outcome(fault=ResourceLimitExceeded("The answer took too long, really.").fault()))
        request = self.git("POST", FETCH, b"0000", headers=(FETCH_TYPE,))
        answer = self.successResultOf(self.later(self.door.handle(request)))
        self.assertEqual((200, "application/x-git-upload-pack-result"), (answer.status, header(answer, "Content-Type")))
        self.assertEqual(f"{len(answer.body):04x}ERR The answer took too long, really.\n", answer.body.decode())

    def test_other(self) -> None:
        """What is not git is refused with a text that git shows, and nothing is sent."""
        answer = self.successResultOf(self.later(self.door.handle(self.git("GET", "/acme/web"))))
        self.assertEqual((403, "text/plain; charset=utf-8"), (answer.status, header(answer, "Content-Type")))
        self.assertIn(b"only git over HTTPS", answer.body)
        self.assertEqual([], self.service.sendings)

    def test_credential(self) -> None:
        """A credential of the tool's own, as from a URL, is refused."""
        headers = (("Authorization", "Basic YW5uOnNlY3JldA=="),)
        request = self.git("GET", "/acme/web.git/info/refs?service=git-upload-pack", headers=headers)
        answer = self.successResultOf(self.later(self.door.handle(request)))
        self.assertEqual(403, answer.status)
        self.assertIn(b"a credential of its own (header Authorization)", answer.body)
        self.assertEqual([], self.service.sendings)


class PushTests(GitDoorCase):
    """Pushes through the door."""

    def test_waits(self) -> None:
        """A push is stored and waits; git is told so of each ref, with the address of the review; nothing was sent."""
        answer = self.parked_push()
        (run,) = self.runs()
        self.assertEqual(
            (200, "application/x-git-receive-pack-result"), (answer.status, header(answer, "Content-Type"))
        )
        self.assertIn(b"ng refs/heads/main waits for approval", answer.body)
        self.assertIn(f"http://127.0.0.1:7001/approvals/{run.id}".encode(), answer.body)
        self.assertEqual(push_body(), self.stored.read(str(run.arguments["content"])))
        self.assertEqual(0, self.sent())

    def test_shown(self) -> None:
        """The review names the repository and the updates, and has what the preview shows."""
        self.parked_push()
        shown = self.shown(self.runs()[0])
        self.assertEqual("Push to acme/web.git: update main", shown.review.title)
        values = {each.name: each.value for each in shown.review.arguments}
        self.assertEqual([line(A, B)], values["updates"])
        assert shown.review.preview is not None
        self.assertEqual(
            ("+x",), tuple(each.value for each in shown.review.preview.shown.fields if each.label == "Patch")
        )

    def test_claimed(self) -> None:
        """The command line of the process is shown, if it is known, and if the action has a place for it."""
        self.parked_push()
        self.assertEqual({CLAIMED_COMMAND: ONE.command}, self.runs()[-1].arguments["recognised"])
        self.parked_push(push_body(b"", line(A, C)), caller=NO_CALLER)
        self.assertNotIn("recognised", self.runs()[-1].arguments)
        text = (self.directory / "site-tools.md").read_text()
        older = text.replace('name = "recognised"', 'name = "older"').replace("args.recognised", "args.older")
        self.write("site-tools", older)
        self.restart()
        self.parked_push(push_body(b"", line(B, C)), caller=TWO)
        self.assertNotIn("recognised", self.runs()[-1].arguments)

    def test_denied_again(self) -> None:
        """A denied push is refused for a while, also if its command is worded otherwise."""
        asked = self.push()
        self.approve(self.runs()[0], approved=False)
        self.delivered(asked)
        refused = self.delivered(self.push(caller=evolve(ONE, command="git push again")))
        self.assertIn(b"denied", refused.body)
        self.assertEqual(1, len(self.runs()))

    def test_approved(self) -> None:
        """The answer of an approved push goes to the command that repeats it, though its pack has other bytes."""
        self.parked_push()
        (run,) = self.runs()
        self.approve(run)
        self.assertEqual(1, self.sent())
        answer = self.delivered(self.push(push_body(b"others"), TWO))
        self.assertEqual((200, REPORT, 1), (answer.status, answer.body, self.sent()))
        self.assertEqual(run.id, header(answer, "Aileron-Run"))
        self.assertNoResult(self.push(caller=THREE))

    def test_approved_meanwhile(self) -> None:
        """A push that is approved while it is held gets its report at once."""
        asked = self.push()
        self.approve(self.runs()[0])
        self.assertEqual(REPORT, self.delivered(asked).body)

    def test_denied(self) -> None:
        """A denied push is told so of each ref, with the reason; nothing was sent."""
        asked = self.push()
        self.approve(self.runs()[0], approved=False, reason="not on Fridays")
        answer = self.delivered(asked)
        self.assertIn(b"ng refs/heads/main denied", answer.body)
        self.assertIn(b"not on Fridays", answer.body)
        self.assertEqual(0, self.sent())

    def test_refused(self) -> None:
        """A push that cannot be read is refused, and nothing is stored."""
        answer = self.delivered(self.push(push_body(b"", line(A, B), line(B, C))))
        self.assertEqual(403, answer.status)
        self.assertIn(b"updates a ref twice", answer.body)
        self.assertEqual(({}, []), (self.stored.list_sizes(), self.runs()))

    def test_long(self) -> None:
        """A push of several MiB waits as any other, and its bytes are not in the database."""
        self.parked_push(push_body(b"x" * 3_000_000))
        (run,) = self.runs()
        self.assertEqual(RunState.PENDING, run.state)
        self.assertLess(len(str(run.arguments)), 5000)

    def test_deleted(self) -> None:
        """The content of a push is deleted once its run is settled."""
        for approved in (True, False):
            asked = self.push()
            self.approve(self.runs()[-1], approved)
            self.clock.advance(HOLD)
            self.delivered(asked)
            self.sync(self.contents.sweep())
            self.assertEqual({}, self.stored.list_sizes())

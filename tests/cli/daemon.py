"""A daemon in memory for tests of commands: it proves itself as the real one does, and answers what a test puts in."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import attrs
from treq.testing import RequestTraversalAgent
from twisted.internet.defer import Deferred, fail
from twisted.internet.error import ConnectionLost, ConnectionRefusedError
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http import Request
from twisted.web.iweb import IAgent
from twisted.web.resource import Resource
from zope.interface import implementer

from aileron.base.converter import to_json
from aileron.cli._main import run
from aileron.cli.context import CliContext, Links
from aileron.client import Daemon, DaemonClient, Operator
from aileron.home.discovery import Discovery, write_discovery
from aileron.home.lock import acquire_lock, release_lock
from aileron.home.paths import Home, prepare
from aileron.model.errors import AileronError, WrongPassphrase
from aileron.vault.keys import DataKey, LoginExchange, client_proof, daemon_proof, new_nonce, operator_key

T = TypeVar("T")

KEY = b"k" * 32
PASSPHRASE = "Canary battery staple 42"
LAUNCH_KEY, TOKEN, AGENT_TOKEN = "ail_l_launch", "ail_o_operator", "ail_a_agent"
URL, OPERATOR_URL = "http://127.0.0.1:9", "http://bcdfghjklm.aileron.localhost:8"
RUN = "01RUN"
DIGEST = "sha256:" + "0" * 64
ONE = f"/v1/action-approvals/{RUN}"
DECIDE = f"{ONE}/decide"

_ANSWERS = json.loads((Path(__file__).parents[1] / "api" / "answers.json").read_text("utf-8"))

Given = Callable[[Any], Any] | Mapping[str, Any] | AileronError


@attrs.frozen
class Asked:
    """One request: the path with its query, the bearer, the JSON body."""

    method: str
    path: str
    bearer: str | None
    body: Any


class MemoryDaemon(Resource):
    """Both sites.

    :ivar state: of its vault.
    :ivar key: that it proves to know.
    :ivar logins: live operator tokens.
    :ivar cut_off: how many requests from now on get no answer.
    :ivar takes_key: whether a login may name the key that will sign its decisions.
    :ivar refuses: whether these find nobody listening.
    :ivar answer_unknown: to what nothing was put in for; a test that does not say so fails.
    """

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.state = "unlocked"
        self.key = KEY
        self.asked: list[Asked] = []
        self.logins: list[str] = []
        self.sessions: list[str] = []
        self.answer_unknown: Given = _unknown
        self._answers: dict[tuple[str, str], Given] = {}
        self._exchanges: dict[str, LoginExchange] = {}
        self.cut_off = 0
        self.takes_key = False
        self.refuses = False
        self._http = Flaky(self, RequestTraversalAgent(self))

    def answer(self, method: str, path: str, given: Given) -> None:
        """Answer this from now on: with an object, a failure, or what a function makes of the body."""
        self._answers[method, path] = given

    def bodies(self, method: str, path: str) -> list[Any]:
        """What was sent there so far."""
        return [asked.body for asked in self.asked if (asked.method, asked.path) == (method, path)]

    def daemon(self, url: str, token: str | None) -> Daemon:
        return Daemon(DaemonClient(self._http, url, token, Clock()))

    def operator(self, operator_url: str, token: str | None) -> Operator:
        return Operator(DaemonClient(self._http, operator_url, token, Clock()))

    def probe(self, _url: str, path: str, _token: str | None) -> Mapping[str, Any]:
        """A GET before any reactor runs."""
        given = self._answers.get(("GET", path), {"state": self.state, "service": "aileron"})
        return cast("Mapping[str, Any]", given)

    def render(self, request: Request) -> bytes:
        """Answer one request."""
        asked = _asked(request)
        self.asked.append(asked)
        try:
            body = self._body(asked)
        except AileronError as error:
            request.setResponseCode(error.status)
            body = {"error": {**to_json(error.fault()), "run_id": RUN}}
        if isinstance(body, Mapping) and body.get("status") == "pending_approval" and asked.path.endswith("/run"):
            request.setResponseCode(202)
        return body if isinstance(body, bytes) else json.dumps(body).encode()

    def _body(self, asked: Asked) -> Any:
        ours = {
            "/v1/vault/status": lambda _: {"state": self.state},
            "/v1/operator/challenge": self._challenge,
            "/v1/operator/login": self._login,
            "/v1/operator/logout": lambda _: self._end(self.logins, TOKEN),
            "/v1/sessions": self._open,
            "/v1/sessions/S/end": lambda _: self._end(self.sessions, AGENT_TOKEN),
        }
        found = (asked.method, asked.path)
        given = self._answers[found] if found in self._answers else ours.get(asked.path, self.answer_unknown)
        if isinstance(given, AileronError):
            raise given
        return given(asked.body) if callable(given) else given

    def _challenge(self, body: Mapping[str, str]) -> Any:
        exchange = LoginExchange(body["nonce"], new_nonce(), "life", OPERATOR_URL)
        self._exchanges[exchange.daemon_nonce] = exchange
        told = {"nonce": exchange.daemon_nonce, "proof": daemon_proof(self._operator_key(), exchange)}
        return {**told, "takes_key": True} if self.takes_key else told

    def _login(self, body: Mapping[str, str]) -> Any:
        named = attrs.evolve(self._exchanges[body["nonce"]], public_key=body.get("public_key", ""))
        assert body["proof"] == client_proof(self._operator_key(), named)
        self.logins.append(TOKEN)
        return {"token": TOKEN, "expires_at": "later", "id": "ops_1"}

    def _open(self, _body: object) -> Any:
        self.sessions.append(AGENT_TOKEN)
        return {"id": "S", "token": AGENT_TOKEN, "gateway_key": "gk"}

    def _end(self, live: list[str], token: str) -> Any:
        live.remove(token)
        return {}

    def _operator_key(self) -> bytes:
        return operator_key(DataKey(self.key))


@implementer(IAgent)
@attrs.frozen
class Flaky:
    """Cuts off as many requests as its site says, and hands on the others."""

    _site: MemoryDaemon
    _agent: IAgent

    def request(self, *asked: Any, **more: Any) -> Any:
        if not self._site.cut_off:
            return self._agent.request(*asked, **more)
        self._site.cut_off -= 1
        return fail(ConnectionRefusedError() if self._site.refuses else ConnectionLost())


class CommandCase(SynchronousTestCase):
    """Runs commands against a L{MemoryDaemon} that serves a home of the test's own.

    :ivar typed: what the person will answer, in order.
    :ivar secret: how a secret is asked for.
    :ivar out: what the last command has said so far.
    """

    def setUp(self) -> None:
        self.home = Home(Path(self.mktemp()).absolute())
        prepare(self.home)
        self.site = MemoryDaemon()
        self.typed: list[str] = []
        self.secret: Callable[[str, int | None], str] = lambda _prompt, _descriptor: self.typed.pop(0)
        self.environ = {"HOME": "/nowhere", "AILERON_HOME": str(self.home.root)}

    def serve(self, local_key: str | None = None) -> None:
        """Have the daemon run.

        :param local_key: None: it is of an earlier version, and a login is needed for everything.
        """
        acquire_lock(self.home)
        self.addCleanup(release_lock, self.home)
        discovery = Discovery(
            URL, OPERATOR_URL, os.getpid(), "life", "0.1.0", "2026-01-01T00:00:00.000000Z", LAUNCH_KEY, local_key
        )
        write_discovery(self.home, discovery)

    def cli_context(self) -> CliContext:
        """What the commands of this test find."""
        return CliContext(
            self.environ,
            drive=self._drive,
            probe=self.site.probe,
            ask=lambda _prompt: self.typed.pop(0),
            passphrase=lambda _prompt, _descriptor, _unattended: self.typed.pop(0),
            secret=self.secret,
            open_vault=_open_vault,
            interactive=lambda: bool(self.typed),
            conceal=lambda: None,
        )

    def command(self, *arguments: str) -> tuple[int, str, str]:
        """The exit code, standard output and standard error of a command."""
        self.out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(self.out), redirect_stderr(err):
            code = run(arguments, self.cli_context())
        return code, self.out.getvalue(), err.getvalue()

    def as_operator(self, *arguments: str, answers: Sequence[str] = ()) -> tuple[int, str, str]:
        """The same after the right passphrase; no login is left behind."""
        self.typed = [PASSPHRASE, *answers]
        found = self.command(*arguments)
        self.assertEqual(self.site.logins, [], "a login is left")
        return found

    def editing(self, *texts: str) -> None:
        """Have an editor that puts these in place, one each time it is opened."""
        directory = Path(self.mktemp()).absolute()
        directory.mkdir()
        for number, text in enumerate(texts):
            (directory / f"{number}.next").write_text(text)
        script = directory / "edit"
        script.write_text(f'#!/bin/sh\nset -- "$1" {directory}/*.next\nmv "$2" "$1"\n')
        script.chmod(0o700)
        self.environ |= {"EDITOR": "false", "VISUAL": str(script)}

    def one_waits(self, **changed: Any) -> None:
        """Have one approval wait, of a session, which is decided as it is asked and then done."""
        self.site.answer("GET", ONE, approval(**changed))
        self.site.answer("GET", "/v1/sessions/S", SESSION)
        self.site.answer("POST", DECIDE, approval(approved=True))
        done = {"status": "completed", "run_id": RUN, "result": {"output": {}, "steps": {}}}
        self.site.answer("GET", f"{ONE}/result?wait=10", done)

    def _drive(self, work: Callable[[Links], Awaitable[T]]) -> T:
        ended: list[T | Failure] = []
        Deferred.fromCoroutine(_coroutine(work(self.site))).addBoth(ended.append)
        self.assertTrue(ended, "the command waits for ever")
        if isinstance(ended[0], Failure):
            ended[0].raiseException()
        return ended[0]


class ServedCase(CommandCase):
    """The daemon runs."""

    def setUp(self) -> None:
        super().setUp()
        self.serve()


async def _coroutine(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _open_vault(_path: Path, passphrase: str) -> DataKey:
    if passphrase != PASSPHRASE:
        raise WrongPassphrase("This passphrase does not open the vault.")
    return DataKey(KEY)


def _unknown(_body: object) -> Any:
    raise AssertionError("the daemon is asked what this test has no answer for")


def _asked(request: Request) -> Asked:
    content = cast("BinaryIO", request.content).read()
    bearer = request.getHeader("authorization")
    token = None if bearer is None else bearer.removeprefix("Bearer ")
    return Asked(request.method.decode(), request.uri.decode(), token, json.loads(content) if content else None)


def answered(name: str, /, **changed: Any) -> dict[str, Any]:
    """What the daemon answers of a value, as the tests of its API have it, but for these members."""
    return {**_ANSWERS[name], **changed}


def approval(**changed: Any) -> dict[str, Any]:
    """An approval as the daemon shows it."""
    return {
        "id": RUN,
        "approval_id": RUN,
        "run": {"id": RUN, "action": "ship-update", "state": "pending_approval", "session_id": "S", "arguments": {}},
        "digest": DIGEST,
        "review": {
            "action": {"name": "ship-update", "version": "1.0.0", "source": "local://me/ship-update@1.0.0"},
            "manifest_digest": "sha256:manifest",
            "fields": [
                {"name": "channel", "label": "channel", "value": "#eng", "multiline": False},
                {"name": "summary", "label": "summary", "value": "one\ntwo\u202e", "multiline": True},
            ],
            "steps": [
                {
                    "id": "post",
                    "connector": "builtin://slack",
                    "version": "1.0.0",
                    "content_hash": "sha256:connector",
                    "operation": "post_message",
                    "base_url": "https://slack.com",
                    "binding": {
                        "name": "api_key/slack/default",
                        "kind": "api_key",
                        "connector": "builtin://slack",
                        "revision": 3,
                        "base_url": None,
                        "account": None,
                    },
                    "request": {
                        "connector": "builtin://slack",
                        "operation": "post_message",
                        "effect": "write",
                        "method": "POST",
                        "url": "https://slack.com/api/chat.postMessage",
                        "headers": [["Content-Type", "application/json"]],
                        "body": '{"channel":"#eng"}',
                        "credential": "Authorization",
                    },
                }
            ],
            "preview": None,
        },
        "requested_at": "2026-01-01T00:00:00.000000Z",
        "expires_at": None,
        "stale": None,
        **changed,
    }


SESSION = {
    "id": "S",
    "agent": "opencode",
    "working_dir": "/w",
    "peer": {"pid": 7, "executable": "/bin/x", "working_dir": "/w"},
    "started_at": "2026-01-01T00:00:00.000000Z",
}


def _provider(name: str, base_url: str, source: str, credential: bool = False) -> dict[str, Any]:
    return {"name": name, "base_url": base_url, "prefix": f"/{name}", "credential": credential, "source": source}


UPSTREAMS: dict[str, Any] = {
    "providers": [
        _provider("openai", "https://api.openai.com", "default"),
        _provider("anthropic", "https://api.anthropic.com", "default", credential=True),
        _provider("vault", "https://a.test/\x1b", "config"),
    ],
    "proxies": [
        {"variable": "https_proxy", "value": "http://p.test:1"},
        {"variable": "no_proxy", "value": "x.test"},
    ],
}

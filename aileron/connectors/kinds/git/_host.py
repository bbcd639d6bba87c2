"""A connector to a git host: sends what an agent's own git wrote, and shows pushes."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from attrs import evolve, field, frozen
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.base.addresses import read_origin
from aileron.base.json import JSON, canonical, compact, digest_of_bytes
from aileron.connectors._answer import Flight, OutgoingRequest, ServiceAnswer
from aileron.connectors._forwarding import (
    MOST_FORWARDED_BYTES,
    MOST_READ_BYTES,
    judge_forwarded,
    prepare_forwarded,
    read_whole_body,
)
from aileron.connectors._reach import refuse_strangers
from aileron.connectors._sending import FAILURES, describe_failure, list_secrets, open_credential, wait_in_time
from aileron.connectors._streaming import OpeningTransport, ReadOpener
from aileron.connectors._template import problem
from aileron.model.connectors import (
    FORWARD_READ,
    READ,
    ConnectorDescription,
    Finding,
    Outcome,
    Request,
    Sought,
)
from aileron.model.errors import AileronError, CapabilityDenied, ExternalApiError, InvalidRequest
from aileron.model.interfaces.connectors import IConnector, IInputNormalizer, IStreamingConnector
from aileron.model.interfaces.vault import ICredential
from aileron.model.streams import StreamedAnswer
from aileron.model.vault import Authorization
from aileron.redaction import Redactor

from ._host_spec import PUSH_INPUTS, SHOW_PUSH
from ._push import GitPush, RefUpdate, read_push, read_reports, read_updates
from ._received import PushShower
from ._remote import NotGit, read_remote
from ._repository import Deadline
from ._spec import NOTHING, RECEIVE, GitSpec
from ._upload import RemoteObjects

_AFTER = timedelta(minutes=10)  # a hook of the remote may still run after the connection broke
_VERSION = "Git-Protocol: version=2"
_OK, _UNAUTHORIZED = 200, 401
_LONG_BYTES = 64 * 1024
_REPOSITORY = re.compile(r"(?:(?!\.{1,2}/)[A-Za-z0-9_.~-]+/)*(?!\.{1,2}$)[A-Za-z0-9_.~-]+")
_GONE = "What was to be pushed is not stored any more, so nothing was sent. Push again."


@implementer(IConnector, IStreamingConnector, IInputNormalizer)
@frozen
class GitHost:
    """A connector that sends what an agent's own git wrote.

    A push is prepared from what is shown of it: the updates of refs, and the digest and size of the stored content. The
    content is read when it is sent, and refused if it is another.

    :ivar transport: sends requests.
    :ivar clock: measures time limits.
    :ivar now: returns the current time.
    :ivar read_content: returns the stored content of a digest, or None if there is none.
    :ivar in_thread: calls a function with arguments in another thread, or None to call it in this one.
    """

    spec: GitSpec
    transport: OpeningTransport = field(repr=False)
    clock: IReactorTime = field(repr=False)
    now: Callable[[], datetime] = field(repr=False)
    read_content: Callable[[str], bytes | None] = field(repr=False)
    in_thread: Callable[..., Awaitable[Any]] | None = field(default=None, repr=False)

    def describe(self) -> ConnectorDescription:
        return self.spec.description

    def prepare(self, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str) -> Request:
        """Build the request. The JSON body of a push has the updates of refs, and the digest of the content.

        :raises CapabilityDenied: if the operation or the host is unknown.
        :raises InvalidRequest: if an input is missing or invalid, or the inputs contradict each other.
        """
        declared, reach = self.spec.find_operation(operation), self.spec.reach
        if operation == FORWARD_READ:
            return prepare_forwarded(reach, declared, inputs, base_url)
        refuse_strangers(inputs, PUSH_INPUTS)
        self._check(inputs)
        target = f"/{inputs['repository']}/{RECEIVE}"
        written = {"host": inputs.get("host"), "method": "POST", "target": target, "headers": inputs.get("headers", ())}
        request = prepare_forwarded(reach, declared, written, base_url)
        shown = {name: inputs.get(name, ()) for name in ("updates", "capabilities", "options", "shallow")}
        body = canonical({**shown, "content": inputs.get("content"), "size": inputs.get("size")})
        return evolve(request, body=body)

    def _check(self, inputs: Mapping[str, JSON]) -> None:
        """Check that a push is what its title says.

        :raises InvalidRequest: if it is not, or an input has the wrong type.
        """
        if not all(isinstance(inputs.get(name), str) for name in ("host", "repository", "changes", "content")):
            raise problem("content", "must be a text, as must host, repository and changes")
        if not _REPOSITORY.fullmatch(str(inputs["repository"])):
            raise problem("repository", "must be a plain path")
        try:
            updates = read_updates(inputs.get("updates"))
        except NotGit as error:
            raise problem("updates", f"must list updates of refs: {error}") from None
        # guard of own tools: the title of a push names what is updated
        #    -> connectors.kinds.git.test_git_host.PrepareTests.test_title
        if GitPush(updates, ()).summarize() != inputs["changes"]:
            raise problem("changes", "must say what the updates do")

    def normalize_input(self, operation: str, name: str, value: JSON) -> JSON:
        return self.spec.normalize_input(operation, name, value)

    # reads -----------------------------------------------------------------------------------

    async def read(self, request: Request, credential: ICredential | None, seconds: float) -> Outcome:
        """Send a read of the agent's git, or show a push.

        :raises CapabilityDenied: if the operation is no read, or another connector prepared the request.
        :raises AileronError: if the credential cannot be opened.
        """
        self.spec.find_read(request.operation)
        self._check_own(request)
        if request.operation != SHOW_PUSH:
            return await self._send(request, credential, seconds)
        try:
            content, push = await self._open(request)
            deadline = Deadline.after(seconds)
            ask = _RemoteAsker(self, request, credential, deadline).ask
            shower = PushShower(push, RemoteObjects(ask, deadline.check, self._apart), deadline, self._apart)
            return Outcome(await shower.show(content))
        except (InvalidRequest, ExternalApiError) as error:
            return Outcome(fault=error.fault(), sent=False)

    async def open_read(
        self, request: Request, credential: ICredential | None, seconds: float, scope: str
    ) -> Outcome | StreamedAnswer:
        self.spec.find_read(request.operation)
        self._check_own(request)
        name, until = self.spec.fqn, self.clock.seconds() + seconds
        sent = await open_credential(self.spec.description, request, credential, seconds=seconds, clock=self.clock)
        secrets = list_secrets(sent)
        echo = Redactor.of(*secrets)

        def judge(answer: ServiceAnswer) -> Outcome:
            echo.listen(answer.head)
            return echo.outcome(judge_forwarded(name, READ, answer, echo, None))

        opener = ReadOpener(name, self.transport, self.clock, self.in_thread)
        message, left = self._write(request, sent, MOST_READ_BYTES), max(until - self.clock.seconds(), 0.0)
        found = await opener.open(message, secrets, scope, left, judge)
        outcome = found.outcome if isinstance(found, StreamedAnswer) else found
        noted = await _note_credential(credential, sent, outcome)
        return noted if found is outcome else found

    def _write(self, request: Request, sent: Authorization, most_bytes: int) -> OutgoingRequest:
        """Return the request as it is sent, with its credential."""
        headers, private_network = (*request.headers, *sent.headers), self.spec.private_network
        return OutgoingRequest(request.method, request.url, headers, request.body, private_network, most_bytes)

    def _check_own(self, request: Request) -> None:
        declared, reach = self.spec.find_operation(request.operation), self.spec.reach
        reach.check_own(request, declared, request.method, None)

    async def _send(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        """Send a request, and return its whole answer as an outcome, without the secret."""
        about, operation = self.spec.description, self.spec.find_operation(request.operation)
        until = self.clock.seconds() + min(seconds, operation.timeout_seconds)
        sent = await open_credential(about, request, credential, seconds=seconds, clock=self.clock)
        most = MOST_READ_BYTES if operation.effect == READ else MOST_FORWARDED_BYTES
        message = self._write(request, sent, most)
        flight, left = Flight(), max(until - self.clock.seconds(), 0.0)
        try:
            sending = self.transport.send(message, flight)
            answer = await wait_in_time(sending, self.clock, flight, seconds=left, late_seconds=late_seconds)
        except FAILURES as error:
            fault = describe_failure(about.name, error, flight, seconds=left, most_bytes=most)
            return Outcome(fault=fault, sent=flight.sent, classified=operation.effect == READ)
        outcome = await self._judge_answer(answer, operation.effect, Redactor.of(*list_secrets(sent)))
        return await _note_credential(credential, sent, outcome)

    async def _judge_answer(self, answer: ServiceAnswer, effect: str, echo: Redactor) -> Outcome:
        """Return the outcome of an answer, redacted. A long answer is read in a thread."""

        def judge() -> Outcome:
            echo.listen(answer.head)
            return echo.outcome(judge_forwarded(self.spec.fqn, effect, answer, echo, None))

        if len(answer.body) < _LONG_BYTES:
            return judge()
        judged: Outcome = await self._apart(judge)
        return judged

    async def _open(self, request: Request) -> tuple[bytes, GitPush]:
        """Return the stored content of a push, and the push that it is.

        :raises InvalidRequest: if it is not stored, or is not the push that was shown.
        """
        shown = json.loads(request.body or b"{}")
        content = await self._apart(self.read_content, shown["content"])
        if content is None or len(content) != shown["size"] or digest_of_bytes(content) != shown["content"]:
            raise InvalidRequest(_GONE)
        try:
            push = read_push(content)
        except NotGit as error:
            raise InvalidRequest(f"What was to be pushed cannot be read: {error}. Nothing was sent.") from None
        # guard of own tools: a push updates the refs that were shown, and no other
        #    -> connectors.kinds.git.test_git_host.PushTests.test_other_refs
        if any(push.to_json()[name] != shown[name] for name in push.to_json()):
            raise InvalidRequest("What was to be pushed updates other refs than were shown. Nothing was sent.")
        return content, push

    async def _apart(self, work: Callable[..., Any], *args: Any) -> Any:
        return work(*args) if self.in_thread is None else await self.in_thread(work, *args)

    # pushes ----------------------------------------------------------------------------------

    async def invoke(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        """Send a push, once.

        :raises CapabilityDenied: if another connector prepared the request.
        :raises VaultLocked, BindingFailed, NetworkError: if the credential cannot be opened.
        """
        if self.spec.find_operation(request.operation).effect == READ:
            return await self.read(request, credential, seconds)
        self._check_own(request)
        try:
            content, push = await self._open(request)
        except InvalidRequest as error:
            return Outcome(fault=error.fault(), sent=False)
        outcome = await self._send(evolve(request, body=content), credential, seconds, late_seconds)
        return outcome if outcome.fault is not None else self._judge(outcome, push)

    def _judge(self, outcome: Outcome, push: GitPush) -> Outcome:
        """Return the outcome of a push from the server's report.

        It succeeded if any ref was updated. Then the output has the report on each.
        """
        fqn, whole = self.spec.fqn, outcome.output
        notes: dict[str, JSON] = {**outcome.notes, "answer": {"type": "application/json", "text": compact(whole)}}
        try:
            body = read_whole_body(whole) if outcome.status == _OK else b""
            report = read_reports(body, push)
        # guard of own tools: a push without a report is in doubt
        #    -> connectors.kinds.git.test_git_host.PushTests.test_no_report
        except NotGit as error:
            fault = ExternalApiError(f"The report of {fqn} cannot be read: {error}.").fault()
            return evolve(outcome, output=None, fault=fault, classified=False, notes=notes)
        if "ok" in report.values() and isinstance(whole, Mapping):
            return evolve(outcome, output={**whole, "report": dict(report)})
        said = "; ".join(f"{ref}: {why}" for ref, why in report.items())
        return evolve(
            outcome, output=None, fault=ExternalApiError(f"{fqn} updated no ref. {said}.").fault(), notes=notes
        )

    async def reconcile(self, sought: Sought, credential: ICredential | None, seconds: float) -> Finding:
        """Look up where the refs are now, to find out whether a push took effect.

        It did if all are where the push leads. It did not if all are where they were, and ten minutes have passed.

        :raises CapabilityDenied: if the operation is not reconcilable.
        :raises InvalidRequest: if an input is not valid any more.
        :raises VaultLocked, BindingFailed, NetworkError: if the credential cannot be opened.
        """
        if not self.spec.find_operation(sought.operation).reconcilable:
            raise CapabilityDenied(f"The operation {sought.operation} has no effect to look for.")
        request = self.prepare(sought.operation, sought.inputs, sought.base_url, sought.effect_key)
        updates = read_updates(sought.inputs.get("updates"))
        asker = _RemoteAsker(self, request, credential, Deadline.after(seconds), version="")
        try:
            listed = await asker.ask(f"/info/refs?service={RECEIVE}", None)
            kind = {"content-type": f"application/x-{RECEIVE}-advertisement"}
            refs = read_remote(ServiceAnswer(_OK, kind, listed), RECEIVE).refs
        except (AileronError, NotGit) as error:
            known = error if isinstance(error, AileronError) else ExternalApiError(f"The refs cannot be read: {error}.")
            return Finding(None, fault=known.fault())
        return _find(refs, updates, is_late=self.now() - sought.last_at >= _AFTER)


async def _note_credential(credential: ICredential | None, sent: Authorization, outcome: Outcome) -> Outcome:
    """Note whether the host has accepted or refused the credential, and return the outcome."""
    if credential is not None and outcome.status == _UNAUTHORIZED:
        if await credential.refused(sent) and outcome.fault is not None:
            return evolve(outcome, fault=evolve(outcome.fault, retriable=True))
    elif credential is not None and outcome.fault is None:
        credential.accepted(sent)
    return outcome


def _find(refs: Mapping[str, str], updates: tuple[RefUpdate, ...], *, is_late: bool) -> Finding:
    there = [(refs.get(each.ref, NOTHING), each) for each in updates]
    if all(at == each.new for at, each in there):
        return Finding(True, {"report": {each.ref: "ok" for each in updates}})
    if is_late and all(at == each.old for at, each in there):
        return Finding(False)
    return Finding(None)


@frozen
class _RemoteAsker:
    """Sends reads to the repository of a push.

    :ivar version: the header by which the protocol's version 2 is asked for, or empty.
    """

    host: GitHost
    push: Request
    credential: ICredential | None
    deadline: Deadline
    version: str = _VERSION

    async def ask(self, path: str, body: bytes | None) -> bytes:
        """Send a request to a path below the repository's URL, and return the response's body.

        :raises ExternalApiError: if there is no response with the status 200.
        """
        request = self._write(path, body)
        outcome = await self.host.read(request, self.credential, self.deadline.left())
        if outcome.fault is not None or outcome.status != _OK:
            why = f"status {outcome.status}" if outcome.fault is None else outcome.fault.message
            raise ExternalApiError(f"The repository could not be read to show the push: {why}")
        return read_whole_body(outcome.output)

    def _write(self, path: str, body: bytes | None) -> Request:
        url = self.push.url
        origin = read_origin(url)
        repository = url.removeprefix(origin.url).removesuffix(f"/{RECEIVE}")
        headers: list[JSON] = [*([self.version] if self.version else []), "User-Agent: git/aileron"]
        inputs: dict[str, JSON] = {
            "host": origin.host_and_port.removesuffix(":443"),
            "method": "GET" if body is None else "POST",
            "target": f"{repository}{path}",
        }
        if body is not None:
            kind = f"application/x-{path[1:]}"
            headers += [f"Content-Type: {kind}-request", f"Accept: {kind}-result"]
            inputs["body_base64"] = base64.b64encode(body).decode("ascii")
        return self.host.prepare(FORWARD_READ, {**inputs, "headers": headers}, origin.url, "")

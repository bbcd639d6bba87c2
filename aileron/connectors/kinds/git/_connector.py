"""A connector to one git repository: reads the local copy and the remote, and updates one remote ref per call."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from attrs import evolve, field, frozen
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.base.json import JSON
from aileron.connectors._answer import Flight, OutgoingRequest, ServiceAnswer, Transport, may_pass
from aileron.connectors._reach import encode_json, refuse_strangers
from aileron.connectors._sending import FAILURES, describe_failure, open_credential, wait_in_time
from aileron.connectors._template import ReferenceScope
from aileron.model.connectors import READ, ConnectorDescription, Finding, Outcome, Request, Sought
from aileron.model.errors import AileronError, CapabilityDenied, ExternalApiError, InvalidRequest, ResourceLimitExceeded
from aileron.model.faults import Fault
from aileron.model.interfaces.connectors import IConnector, IInputNormalizer
from aileron.model.interfaces.vault import ICredential
from aileron.model.vault import Authorization

from ._history import find_update, is_ancestor, pack
from ._objects import is_object_id
from ._reads import compare, read_local
from ._remote import NotGit, Remote, read_remote, read_report, write_update
from ._repository import Deadline, LocalRepository, is_ref_name
from ._spec import LOCAL, NOTHING, RECEIVE, GitSpec

_T = TypeVar("_T")
_AFTER = timedelta(minutes=10)  # a hook of the remote may still run after the connection broke
_UNAUTHORIZED, _OK, _TIMEOUT = 401, 200, 408
_LONG_BYTES, _MANY_REFS = 64 * 1024, 1000
"""From this size on a list of refs is read in another thread: a server may send 200,000 refs."""


@frozen
class _Failed(Exception):
    """The remote could not be reached, or did not respond as a git server does.

    :ivar sent: whether any byte of the update was sent.
    :ivar classified: whether it is certain that the update had no effect.
    :ivar status: the HTTP status of the response, or None if there is none.
    """

    fault: Fault
    sent: bool = False
    classified: bool = True
    status: int | None = None


def _outcome_of(error: _Failed | AileronError) -> Outcome:
    """Return the outcome of a failed attempt to update or read the remote.

    An L{AileronError} is raised before an update is sent, so its outcome has C{sent=False}.
    """
    if isinstance(error, AileronError):
        return Outcome(fault=error.fault(), sent=False)
    return Outcome(fault=error.fault, sent=error.sent, classified=error.classified, status=error.status)


@implementer(IConnector, IInputNormalizer)
@frozen
class GitConnector:
    """A connector that reads a local repository and its remote, and updates refs of the remote as its file allows.

    An update makes two requests to the remote: one for the list of refs, and one for the update itself.

    :ivar transport: sends requests to the remote.
    :ivar clock: measures time limits.
    :ivar now: returns the current time.
    :ivar in_thread: calls a function in another thread, to read the local repository and long lists of refs; if None,
        they are read in the calling thread.
    """

    spec: GitSpec
    transport: Transport = field(repr=False)
    clock: IReactorTime = field(repr=False)
    now: Callable[[], datetime] = field(repr=False)
    in_thread: Callable[..., Awaitable[Any]] | None = field(default=None, repr=False)

    def describe(self) -> ConnectorDescription:
        return self.spec.description

    def prepare(self, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str) -> Request:
        """Build the request. The JSON body of an update has the ref, the old and the new commit.

        :raises CapabilityDenied: if the operation is unknown, or the file does not allow the update or the host.
        :raises InvalidRequest: if an input is unknown or malformed.
        """
        if operation in {"push", "force_push", "create_branch", "delete_branch", "create_tag"}:
            self._check(operation, inputs)
        declared, need = self.spec.find_declared(operation), self.spec.description.credential
        base = self.spec.find_base_url(base_url)
        refuse_strangers(inputs, declared.inputs)
        local = declared.is_local
        return Request(
            connector=self.spec.fqn,
            operation=operation,
            effect=declared.operation.effect,
            idempotent=declared.operation.idempotent,
            method=declared.method,
            url=f"file://{self.spec.repository}" if local else f"{base.url}{declared.path}",
            headers=declared.headers,
            body=encode_json(declared.body, ReferenceScope(inputs, effect_key)),
            credential_header=None if local or need is None else need.header or None,
        )

    def normalize_input(self, operation: str, name: str, value: JSON) -> JSON:
        return self.spec.normalize_input(operation, name, value)

    def _check(self, operation: str, inputs: Mapping[str, JSON]) -> None:
        kind = "tag" if operation == "create_tag" else "branch"
        ref = _ref(kind, inputs)
        if not self.spec.may_update(ref):
            fqn = self.spec.fqn
            raise CapabilityDenied(f"{fqn} does not allow updates of {ref}; its file says which it does.")
        for name in ("commit", "expected"):
            value = inputs.get(name)
            if value is not None and (not isinstance(value, str) or not is_object_id(value)):
                raise InvalidRequest(f"The input {name!r} must be the id of a commit in full, 40 digits and letters.")
            if value == NOTHING:
                raise InvalidRequest(
                    f"The input {name!r} is no commit. To make or delete a branch, use that operation."
                )

    # reads -----------------------------------------------------------------------------------

    async def read(self, request: Request, credential: ICredential | None, seconds: float) -> Outcome:
        """Execute a read on the local repository, the remote, or both.

        Failures of the repository and the remote are returned as an outcome. Failures to open the credential are
        raised.

        :raises CapabilityDenied: if the operation is not a read, or another connector prepared the request.
        :raises AileronError: if the repository or the credential cannot be opened.
        """
        operation = self.spec.find_read(request.operation)
        if request.effect != READ:
            raise CapabilityDenied(f"The operation {request.operation} is not declared as a read.")
        inputs = json.loads(request.body or b"{}")
        until = self.clock.seconds() + min(seconds, operation.timeout_seconds)
        if request.operation in LOCAL:
            return await self._to_outcome(self._here(until, lambda here: read_local(here, request.operation, inputs)))
        self.spec.check_own(request)
        sent = await self._open(request, credential, until - self.clock.seconds())
        return await self._to_outcome(self._ask_and_show(request, inputs, sent, credential, until))

    async def _open(self, request: Request, credential: ICredential | None, seconds: float) -> Authorization:
        return await open_credential(self.spec.description, request, credential, seconds=seconds, clock=self.clock)

    async def _to_outcome(self, reading: Awaitable[JSON]) -> Outcome:
        try:
            return Outcome(await reading)
        except (_Failed, AileronError) as error:
            return _outcome_of(error)

    async def _ask_and_show(
        self,
        request: Request,
        inputs: Mapping[str, JSON],
        sent: Authorization,
        credential: ICredential | None,
        until: float,
    ) -> JSON:
        service = self.spec.find_declared(request.operation).service
        remote = await self._list(self._base_url(request), service, sent, credential, until)
        return await self._read_remote(request.operation, inputs, remote, until)

    async def _read_remote(self, operation: str, inputs: Mapping[str, JSON], remote: Remote, until: float) -> JSON:
        if operation == "refs":
            return await self._apart(len(remote.refs) >= _MANY_REFS, _list_refs, remote)
        if operation == "remote_branch":
            ref = _ref("branch", inputs)
            return {"ref": ref, "commit": remote.refs.get(ref)}
        if len({"branch", "tag"} & inputs.keys()) != 1:
            raise InvalidRequest("A comparison needs either a branch or a tag of the remote.")
        ref, revision = _ref("tag" if "tag" in inputs else "branch", inputs), inputs.get("commit")
        if not isinstance(revision, str):
            raise InvalidRequest("The input 'commit' must be a text.")
        return await self._here(until, lambda here: compare(here, remote, ref, here.resolve(revision)))

    async def _here(self, until: float, work: Callable[[LocalRepository], _T]) -> _T:
        """Open the local repository and return C{work(repository)}.

        C{work} is called by C{in_thread} if that is not None, so that it does not block the reactor.

        :param until: the deadline.
        :raises AileronError: if the repository cannot be opened, or for any reason of C{work}.
        """
        path, deadline = self.spec.repository, Deadline.after(until - self.clock.seconds())

        def look() -> _T:
            with LocalRepository.open(path, deadline) as here:
                return work(here)

        return await self._apart(True, look)

    async def _apart(self, is_long: bool, work: Callable[..., _T], *args: Any) -> _T:
        """Return C{work(*args)}, called by C{in_thread} if that is not None and C{is_long} is true."""
        if self.in_thread is None or not is_long:
            return work(*args)
        found: _T = await self.in_thread(work, *args)
        return found

    async def _list(
        self, base_url: str, service: str, sent: Authorization, credential: ICredential | None, until: float
    ) -> Remote:
        """Request the list of refs from the remote.

        If the remote refused the credential, the credential is marked as refused, and the failure may be retriable.

        :raises _Failed: if the remote cannot be reached, or does not respond with a list of refs. Nothing was changed.
        :raises AileronError: if no time is left. Nothing was changed.
        """
        if self.spec.over_ssh:
            message = self._message(service, base_url, (), sent, None)
        else:
            url, accept = f"{base_url}/info/refs?service={service}", f"application/x-{service}-advertisement"
            message = self._message("GET", url, (("Accept", accept),), sent, None)
        answer = await self._ask(message, Flight(), until - self.clock.seconds(), 0.0)
        if answer.status != _OK:
            fault = self._status_fault(answer)
            if answer.status == _UNAUTHORIZED and credential is not None and await credential.refused(sent):
                fault = evolve(fault, retriable=True)
            raise _Failed(fault, status=answer.status)
        try:
            return await self._apart(len(answer.body) >= _LONG_BYTES, read_remote, answer, service)
        except NotGit as error:
            wrong = ExternalApiError(f"{self.spec.fqn} gave an answer that was not expected: {error}.")
            raise _Failed(wrong.fault(), status=answer.status) from None

    def _message(
        self, method: str, url: str, headers: tuple[tuple[str, str], ...], sent: Authorization, body: bytes | None
    ) -> OutgoingRequest:
        most = self.spec.operations["push"].max_response_bytes
        private_network, key = self.spec.private_network, sent.private_key
        return OutgoingRequest(method, url, (*headers, *sent.headers), body, private_network, most, key)

    async def _ask(
        self, message: OutgoingRequest, flight: Flight, seconds: float, late_seconds: float
    ) -> ServiceAnswer:
        name, is_update = self.spec.fqn, message.body is not None
        if seconds <= 0:
            raise ResourceLimitExceeded(f"{name} was not asked: the time was up; nothing was changed.")
        try:
            sending = self.transport.send(message, flight)
            return await wait_in_time(sending, self.clock, flight, seconds=seconds, late_seconds=late_seconds)
        except FAILURES as error:
            most = message.max_response_bytes
            fault = describe_failure(name, error, flight, seconds=seconds, most_bytes=most)
            raise _Failed(fault, sent=is_update and flight.sent, classified=not is_update) from None

    def _base_url(self, request: Request) -> str:
        """Return the base URL of the remote for a request; over SSH this is the request's URL."""
        return request.url.partition("/info/refs?")[0].removesuffix("" if self.spec.over_ssh else f"/{RECEIVE}")

    def _status_fault(self, answer: ServiceAnswer) -> Fault:
        fqn, status = self.spec.fqn, answer.status
        error = ExternalApiError(f"{fqn} answered with status {status}.", {"status": status})
        return evolve(error.fault(), retriable=may_pass(status))

    # updates ---------------------------------------------------------------------------------

    async def invoke(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        """Update one ref of the remote, if the ref is still at the expected commit. Execute a read by L{read}.

        Failures after the credential was opened are returned as an outcome. Failures to open it are raised.

        :raises CapabilityDenied: if another connector prepared the request, or the file does not allow the update.
        :raises VaultLocked, BindingFailed, NetworkError: if the credential cannot be opened.
        """
        operation = self.spec.check_own(request)
        if operation.operation.effect == READ:
            return await self.read(request, credential, seconds)
        until = self.clock.seconds() + min(seconds, operation.operation.timeout_seconds)
        asked = json.loads(request.body or b"{}")
        ref, old, new = asked["ref"], asked["old"], asked["new"]
        if not self.spec.may_update(ref):
            raise CapabilityDenied(f"{self.spec.fqn} does not allow updates of {ref}.")
        sent = await self._open(request, credential, until - self.clock.seconds())
        base_url = self._base_url(request)
        try:
            remote = await self._list(base_url, RECEIVE, sent, credential, until)
            self._refuse_unable(remote, new)
            self._refuse_moved(remote, ref, old)
            packed = await self._packed(request.operation, remote, old, new, until)
            body = write_update(ref, old, new, asked["effect"], remote, packed)
            message = self._message(request.method, request.url, request.headers, sent, body)
            answer = await self._ask(message, Flight(), until - self.clock.seconds(), late_seconds)
            return self._judge(answer, ref, old, new)
        except (_Failed, AileronError) as error:
            return _outcome_of(error)

    def _refuse_unable(self, remote: Remote, new: str) -> None:
        for needed in ("report-status", *(("delete-refs",) if new == NOTHING else ())):
            if needed not in remote.capabilities:
                unable = f"{self.spec.fqn} lacks {needed}, without which it is not asked for this update."
                raise ExternalApiError(unable)

    def _refuse_moved(self, remote: Remote, ref: str, old: str) -> None:
        there = remote.refs.get(ref, NOTHING)
        if there == old:
            return
        now, was = (f"at {each}" if each != NOTHING else "not there" for each in (there, old))
        moved = f"Nothing was changed: {ref} is {now}, and was {was} when this was asked for."
        raise ExternalApiError(moved, {"expected": old, "found": there})

    async def _packed(self, operation: str, remote: Remote, old: str, new: str, until: float) -> bytes:
        if new == NOTHING:
            return b""

        def work(here: LocalRepository) -> bytes:
            known = old if old != NOTHING and here.has(old) else None
            if operation == "push" and (known is None or not is_ancestor(here, known, here.peel(new).id)):
                raise InvalidRequest(
                    "Nothing was pushed: the remote branch has commits that this one does not build on. "
                    "Fetch and merge them, or use force_push, which loses them."
                )
            return pack(here, find_update(here, new, known, remote.has))

        return await self._here(until, work)

    def _judge(self, answer: ServiceAnswer, ref: str, old: str, new: str) -> Outcome:
        """Return the outcome of an update from the remote's response."""
        fqn, status = self.spec.fqn, answer.status
        if status != _OK:
            refused = 400 <= status <= 499 and status != _TIMEOUT
            return Outcome(fault=self._status_fault(answer), classified=refused, status=status)
        try:
            why = read_report(answer.body, ref)
        except NotGit as error:
            unclear = ExternalApiError(f"The report of {fqn} cannot be read: {error}.")
            return Outcome(fault=unclear.fault(), classified=False, status=status)
        if why is not None:
            return Outcome(fault=ExternalApiError(f"{fqn} refused the update of {ref}: {why}.").fault(), status=status)
        return Outcome({"ref": ref, "old": old, "new": new}, status=status)

    async def reconcile(self, sought: Sought, credential: ICredential | None, seconds: float) -> Finding:
        """Look up where the ref is now, to find out whether an update took effect.

        It did if the ref is at the new commit. It did not if the ref is at the old commit and ten minutes have passed.
        Otherwise, and if the remote cannot be asked, the finding is undecided.

        :raises CapabilityDenied: if the operation is not reconcilable, or the file does not allow its host.
        :raises InvalidRequest: if an input is not valid any more.
        :raises VaultLocked, BindingFailed, NetworkError: if the credential cannot be opened.
        """
        if not self.spec.find_operation(sought.operation).reconcilable:
            raise CapabilityDenied(f"The operation {sought.operation} has no effect to look for.")
        request = self.prepare(sought.operation, sought.inputs, sought.base_url, sought.effect_key)
        self.spec.check_own(request)
        until, asked = self.clock.seconds() + seconds, json.loads(request.body or b"{}")
        sent = await self._open(request, credential, seconds)
        try:
            remote = await self._list(self._base_url(request), RECEIVE, sent, credential, until)
        except (_Failed, AileronError) as error:
            return Finding(None, fault=_outcome_of(error).fault)
        there = remote.refs.get(asked["ref"], NOTHING)
        if there == asked["new"]:
            return Finding(True, {name: asked[name] for name in ("ref", "old", "new")})
        if there == asked["old"] and self.now() - sought.last_at >= _AFTER:
            return Finding(False)
        return Finding(None)


def _ref(kind: str, inputs: Mapping[str, JSON]) -> str:
    name = inputs.get(kind)
    if not isinstance(name, str) or not is_ref_name(name):
        raise InvalidRequest(f"The input {kind!r} must be the name of a {kind}, without refs/.")
    return f"refs/{'tags' if kind == 'tag' else 'heads'}/{name}"


def _list_refs(remote: Remote) -> JSON:
    return {"refs": [{"ref": name, "commit": at} for name, at in sorted(remote.refs.items())]}

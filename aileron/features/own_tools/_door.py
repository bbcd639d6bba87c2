"""Answers the requests of tools: reads are sent, writes become runs, and everything else is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from attrs import define, evolve, field, frozen
from twisted.internet.defer import DeferredLock

from aileron.base.json import JSON
from aileron.model.connectors import READ
from aileron.model.errors import AileronError, Forbidden
from aileron.model.interfaces.runner import ISubmission
from aileron.model.interfaces.store import ISessions
from aileron.model.runs import Run, RunState
from aileron.model.sessions import Session
from aileron.model.streams import StreamedAnswer
from aileron.model.tool_claims import CLAIMED_COMMAND

from ._forms import form_digest
from ._git import push_form, push_inputs
from ._hiding import hide_members
from ._messages import MOST_BODY_BYTES, find_whole_answer, is_emptied, read_answer, write_inputs
from ._reads import SessionReads
from ._recognition import MOST_PACKAGE_BYTES, REST, Recognised, recognise
from ._recorder import ToolRecorder
from ._refusals import Refusals
from ._services import ToolServices, UsedService
from ._writes import CallerIsOwed, HeldRun, Write, Writes
from .values import ToolAnswer, ToolRequest, ToolService

_UNAUTHORIZED = 401
_UNREADABLE = "The service's answer cannot be handed on."
_OLD_ACTION = (
    "Its body has more than 1 MiB, and the action of {service} was written by an earlier version. The user can replace "
    "it: aileron own-tools remove {service}, then aileron own-tools add {service}"
)
_NEVER_SENT = frozenset((RunState.CANCELLED, RunState.EXPIRED))


@frozen
class _Asked:
    """A request of a tool, with its session, its service, and the effect that was recognised."""

    session: Session
    service: UsedService
    request: ToolRequest
    recognised: Recognised

    @property
    def refusals(self) -> Refusals:
        """The error answers for this request, in the form of its service's errors."""
        return Refusals.of(self.service.tools, self.recognised)


@define(eq=False)
class Door:
    """Answers the requests of all sessions' tools.

    :param review_url: returns the URL of the page on which the run with an id is approved or denied.
    """

    _sessions: ISessions
    _services: ToolServices
    _reads: SessionReads
    _writes: Writes
    _submission: ISubmission
    _recorder: ToolRecorder
    _review_url: Callable[[str], str]
    _examining: DeferredLock = field(factory=DeferredLock, init=False)

    def find_services(self, names: tuple[str, ...]) -> tuple[ToolService, ...]:
        """Return the services with these names. Each must have an action and a credential now.

        :raises NotFound: if no connector with C{[own_tools]} has the name, or its action is not offered.
        :raises BindingRequired: if no credential is bound to it.
        """
        return self._services.find(names)

    async def handle(self, request: ToolRequest) -> ToolAnswer:
        """Answer a request: send it if it reads, have it approved and sent if it writes, or refuse it.

        Cancelling stops the waiting only. A run that was created goes on, and its answer is kept.
        """
        refusals = Refusals("text", REST)
        try:
            self._recorder.admit_request(request)
            service = self._services.find_for(request)
            refusals = Refusals.of(service.tools, Recognised(""))
            session = await self._find_session(request.session_id)
        except AileronError as error:
            self._recorder.record_refusal(request, error.message)
            return refusals.refused(error.message, error.kind)
        asked = _Asked(session, service, request, Recognised(""))
        try:
            asked = evolve(asked, recognised=await self._recognise(request, service))
            return hide_members(await self._answer(asked), service.tools.hidden)
        except AileronError as error:
            return self._refuse(asked, error.message, error.kind)

    async def _recognise(self, request: ToolRequest, service: UsedService) -> Recognised:
        """Return what a request does. Load a long body that may publish a package into memory, one body at a time.

        :raises StoreUnavailable: if the body cannot be read.
        """
        spool, long, about = request.spool, request.long, service.about
        if spool is None or long is None or not service.tools.packages or long.size > MOST_PACKAGE_BYTES:
            return recognise(request, about)
        async with self._examining:
            return await spool.examine(lambda body: recognise(evolve(request, body=body, long=None), about))

    async def _answer(self, asked: _Asked) -> ToolAnswer:
        if len(asked.request.body) > MOST_BODY_BYTES and asked.recognised.push is None:
            return self._refuse(asked, f"Requests of tools can have at most {MOST_BODY_BYTES} bytes.", "too_long")
        if asked.recognised.problem:
            code = "foreign_credential" if asked.recognised.is_foreign else "refused"
            return self._refuse(asked, asked.recognised.problem, code)
        if asked.recognised.effect == READ:
            return await self._read(asked)
        try:
            return await self._write(asked)
        except CallerIsOwed:
            self._recorder.record_refusal(asked.request, "An earlier request of this command waits for approval.")
            return asked.refusals.owed()

    async def _find_session(self, session_id: str) -> Session:
        """Return a live session.

        :raises Forbidden: if there is no such session, or it has ended.
        """
        session = await self._sessions.get(session_id)
        # guard of own tools: the tools of an ended session are refused
        #    -> features.own_tools.test_door.RefusedTests.test_session_ended
        if session is None or not session.live:
            raise Forbidden("The session of this agent has ended. Nothing was sent.")
        return session

    async def _read(self, asked: _Asked) -> ToolAnswer:
        request, tools = asked.request, asked.service.tools
        self._recorder.admit_read(asked.session.id)
        inputs = write_inputs(request, tools.headers | asked.recognised.left_out)
        found = await self._reads.read(asked.session, asked.service.action, inputs)
        if isinstance(found, StreamedAnswer):
            return await self._open_long(asked, found)
        outcome = found
        # guard of own tools: content that is withheld is not taken for an empty one
        #    -> features.own_tools.test_door.ReadTests.test_withheld, instead is_whole = outcome.fault is None
        is_whole = outcome.fault is None and not is_emptied(outcome.output)
        answer = read_answer(outcome.output) if is_whole else None
        size = 0 if answer is None else len(answer.body)
        await self._recorder.record_read(request, tools.service, outcome.status, size)
        if answer is not None:
            return answer
        if outcome.status == _UNAUTHORIZED:
            return asked.refusals.unauthorized(asked.service.about.name)
        why = _UNREADABLE if outcome.fault is None else outcome.fault.message
        return asked.refusals.failed(why)

    async def _open_long(self, asked: _Asked, found: StreamedAnswer) -> ToolAnswer:
        """Record a read whose answer is long, and return the answer, which is passed on while it arrives."""
        request, status, recorder = asked.request, found.outcome.status, self._recorder
        answer = read_answer(found.outcome.output)
        if answer is None:
            found.body.close()
            return asked.refusals.failed(_UNREADABLE)
        try:
            # guard of own tools: a long answer is on record before a tool gets any of it
            #    -> features.own_tools.test_door.ReadTests.test_long
            await recorder.record_read(request, asked.service.tools.service, status, found.length)
        except BaseException:
            found.body.close()
            raise
        ended = partial(recorder.record_end, request)
        return evolve(answer, stream=found.body, length=found.length, ended=ended)

    async def _write(self, asked: _Asked) -> ToolAnswer:
        """Return the answer to a write: the answer of its run, or the notice that it waits for approval.

        :raises CallerIsOwed: if the write is new, and its command has not got the answer to an earlier write yet.
        :raises AileronError: if the write cannot be requested. Nothing is stored.
        """
        # guard of own tools: a restricted session gets no answer of an action that it may not use
        #    -> features.own_tools.test_door.LaterSessionTests.test_profile
        self._reads.check(asked.session, asked.service.action)
        if asked.request.long is not None and "content" not in asked.service.inputs:
            return self._refuse(asked, _OLD_ACTION.format(service=asked.service.tools.service), "too_long")
        held = await self._writes.hold(_make_write(asked))
        url = self._review_url(held.run.id)
        # guard of own tools: what may have happened is not answered as if it had
        #    -> features.own_tools.test_door.EndTests.test_unknown
        if held.run.state is RunState.UNKNOWN:
            return asked.refusals.unknown(held.run.id, url)
        if held.run.state is RunState.PENDING:
            return asked.refusals.waits(held.run.id, url)
        if not held.run.state.settled:
            return asked.refusals.under_way(held.run.id, url)
        answer = await self._answer_of(asked, held.run)
        return evolve(answer, delivered=lambda: self._note_given(asked, held))

    async def _answer_of(self, asked: _Asked, run: Run) -> ToolAnswer:
        """Return the answer that a tool gets for a settled run whose outcome is known."""
        _, attempts = await self._submission.history(run.id)
        answer = read_answer(find_whole_answer(run, attempts), run.id)
        # guard of own tools: no login is asked of the tool -> features.own_tools.test_door.EndTests.test_login_refused
        if answer is not None and answer.status == _UNAUTHORIZED:
            return asked.refusals.unauthorized(asked.service.about.name)
        if answer is not None:
            return answer
        if run.state is RunState.DENIED:
            return asked.refusals.denied(run.id, run.reason or "")
        if run.state in _NEVER_SENT:
            return asked.refusals.ended(run.id, _explain_end(run))
        return asked.refusals.failed(_explain_end(run), run.id)

    def _note_given(self, asked: _Asked, held: HeldRun) -> None:
        """Store that the answer of a run was written to the tool's connection."""
        self._recorder.record_answer(asked.request, held)

    def _refuse(self, asked: _Asked, message: str, code: str) -> ToolAnswer:
        self._recorder.record_refusal(asked.request, message)
        return asked.refusals.refused(message, code)


def _make_write(asked: _Asked) -> Write:
    """Return the write of a request that was recognised as one."""
    request, service, push = asked.request, asked.service, asked.recognised.push
    claimed: dict[str, JSON] = {CLAIMED_COMMAND: request.caller.command} if request.caller.command else {}
    if push is None:
        aws, left_out = asked.recognised.aws, service.tools.headers | asked.recognised.left_out
        recognised = {**asked.recognised.to_json(), **claimed}
        varying = frozenset[str]() if aws is None else aws.varying
        form = form_digest(request, service.tools, left_out, varying, asked.recognised.same)
        is_stored = bool(asked.recognised.package) and request.long is None and "content" in service.inputs
        shown = evolve(request, body=b"") if is_stored else request
        inputs = {**write_inputs(shown, left_out), "recognised": recognised}
        return Write(asked.session, request, service.action, inputs, form, is_stored=is_stored)
    repository = asked.recognised.repository
    inputs = dict(push_inputs(request, repository, push))
    if claimed and "recognised" in service.inputs:
        inputs["recognised"] = claimed
    form = push_form(request, repository, push)
    return Write(asked.session, request, service.action, inputs, form, is_stored=True)


def _explain_end(run: Run) -> str:
    """Return sentences that explain how a run ended for which the service gave no answer."""
    if run.state is RunState.COMPLETED:
        return "This request was sent, and a person noted that it took effect. Its answer is not known."
    if run.state is RunState.CANCELLED:
        return f"This request was cancelled. {run.reason or ''}".rstrip()
    if run.state is RunState.EXPIRED:
        return "Nobody decided on this request in time."
    return "This request failed." if run.fault is None else run.fault.message

"""Fetches previews when asked for, again where missed, and before anything rests on one; renders what is shown."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Iterator

from attrs import define, field
from twisted.internet.defer import DeferredSemaphore
from twisted.logger import Logger

from aileron.actions import look_up
from aileron.base.json import JSON, canonical, digest_of_bytes, plain
from aileron.base.waiting import afterwards
from aileron.model.actions import PreviewRule
from aileron.model.connectors import Outcome
from aileron.model.errors import AileronError, ApprovalStale, ConnectorRuntimeError, StateConflict, VaultLocked
from aileron.model.reviews import Cut, Preview, PreviewField, PreviewStatus
from aileron.model.runs import Approval, Run, RunState

from .outcomes import Echoes, find_echoes
from .pauses import EffectGate
from .plan import PlannedStep, make_unavailable
from .requests import ApprovalRequests
from .runs import RunRepository
from .scheduling import ResultWaiters, Tasks

SECONDS = 5.0
"""How long a service has to answer."""

AGAIN_SECONDS = 10.0
"""What has failed is not tried again by looking before so long."""

MOST_IN_BACKGROUND, MOST_FOR_THE_OPERATOR, MOST_BEFORE_EFFECTS = 6, 2, 4
"""How many are fetched at once: what agents ask for never keeps the operator's own decisions waiting."""


MOST_BYTES, MOST_BYTES_IN_ALL = 64 * 1024, 256 * 1024
MOST_CARRIED = 4096  # characters; it goes into a request

_MOST_TRIES = 3  # what is asked anew while its preview is fetched is another question
_log = Logger()


@define(eq=False)
class Previews:
    """Puts previews where they are looked at, and fetches them, in three queues, before anything rests on one.

    :param read: sends the read of a preview, and answers what came of it within so many seconds.
    """

    _runs: RunRepository
    _requests: ApprovalRequests
    _read: Callable[[PlannedStep, float], Awaitable[Outcome]]
    _effects: EffectGate
    _tasks: Tasks
    _waiters: ResultWaiters[str, None]
    _background: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(MOST_IN_BACKGROUND), init=False)
    _foreground: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(MOST_FOR_THE_OPERATOR), init=False)
    _before_effects: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(MOST_BEFORE_EFFECTS), init=False)
    _tried: dict[str, float] = field(factory=dict, init=False)  # by run, when

    # what is shown ---------------------------------------------------------------------------

    def begin(self, run_id: str, then: Callable[[str], Awaitable[None]] | None = None) -> bool:
        """Have a preview fetched that is not there yet; C{False}: it is being fetched, or cannot be now.

        :param then: what is done with the run once it is there.
        """
        return self._effects.may_act() and self._tasks.start(_task(run_id), self._show_and_tell(run_id, then))

    async def looked_at(self, approval: Approval) -> Approval:
        """Return C{approval} as it is to be shown now: with a missed preview, if that comes in time."""
        run_id, task = approval.run.id, _task(approval.run.id)
        if not lacks_preview(approval):
            return approval
        unanswered = approval.review.shown_preview.status is PreviewStatus.FETCHING
        if run_id in self._recent() and not unanswered and not self._tasks.running(task):
            return approval  # it failed just now
        waiter = self._waiters.enlist(run_id)  # before it is begun: it may end at once
        if self._tasks.running(task) or self.begin(run_id):
            await self._waiters.first(run_id, waiter, SECONDS)
        self._waiters.dismiss(run_id, waiter)
        return await self._requests.show(await self._runs.approval(run_id))

    async def wait_under_way(self, approval: Approval) -> Approval:
        """Return the stored approval once the preview that is being fetched is there, if that comes in time.

        No fetch is started, and nothing is stored.
        """
        run_id = approval.run.id
        if not lacks_preview(approval) or not self._tasks.running(_task(run_id)):
            return approval
        waiter = self._waiters.enlist(run_id)
        await self._waiters.first(run_id, waiter, SECONDS)
        self._waiters.dismiss(run_id, waiter)
        return await self._runs.approval(run_id)

    async def take_up(self) -> None:
        """Begin with all that was missed."""
        if self._effects.may_act():
            for run_id in await self._runs.table.unshown():
                self.begin(run_id)

    async def _show_and_tell(self, run_id: str, then: Callable[[str], Awaitable[None]] | None) -> None:
        await afterwards(self._show(run_id, then), lambda: self._waiters.tell(run_id, None))

    async def _show(self, run_id: str, then: Callable[[str], Awaitable[None]] | None) -> None:
        try:
            for _ in range(_MOST_TRIES):
                if await self._is_shown(run_id):
                    return None if then is None else await then(run_id)
        except StateConflict as conflict:
            _log.info("run {run} went {state} before its preview came", run=run_id, state=conflict.present.state.value)
        except AileronError as error:  # it is looked at again; what it lacks is told there
            _log.info("the preview of run {run} is not shown: {why}", run=run_id, why=error.message)

    async def _is_shown(self, run_id: str) -> bool:
        """Fetch and store the preview of a run; C{False} if the approval changed meanwhile and needs another try."""
        approval = await self._runs.approval(run_id)
        if not lacks_preview(approval):
            return True
        fetched = await self._fetch(approval.run, self._background, only_missed=True)
        if fetched is None:
            return True
        try:
            await self._requests.previewed(approval, *fetched)
        except ApprovalStale:
            return False
        return True

    # what decisions and effects rest on ------------------------------------------------------

    async def fetch_again(self, run: Run, *, before_effect: bool = False) -> Preview | None:
        """Fetch the preview of C{run} as it is now; L{None} if its action has none.

        :param before_effect: whether it is to begin; else the operator waits for it.

        :raises VaultLocked, Paused: it cannot be fetched now.
        :raises AileronError: what the run needs is not there.
        """
        fetched = await self._fetch(run, self._before_effects if before_effect else self._foreground)
        if fetched is None:
            return None
        preview, echoes = fetched
        if echoes.events:
            await self._runs.audit.append(*echoes.events)
        return preview

    async def _fetch(
        self, run: Run, turns: DeferredSemaphore, *, only_missed: bool = False
    ) -> tuple[Preview, Echoes] | None:
        """Plan by what is there now, and ask the service, once, in its turn; L{None} if the action has no preview.

        :param only_missed: ask only where the preview is still missed when its turn has come.
        """
        if self._requests.plan(run).preview is None:
            return None
        return await turns.run(self._fetch_now, run, only_missed)

    async def _fetch_now(self, run: Run, only_missed: bool) -> tuple[Preview, Echoes] | None:
        if only_missed and not lacks_preview(await self._runs.approval(run.id)):
            return None
        if not self._effects.may_act():
            raise VaultLocked("The preview cannot be fetched while the vault is locked.")
        self._effects.pauses.refuse(run.session_id)
        self._tried = {**self._recent(), run.id: self._tasks.clock.seconds()}
        self._requests.planner.offerings.refresh()
        planned = self._requests.plan(run).preview
        if planned is None:
            return None
        outcome = await self._read(planned.read, SECONDS)
        if outcome.fault is not None and outcome.fault.kind == VaultLocked.kind:
            raise VaultLocked(outcome.fault.message)
        echoes = find_echoes(self._runs.events, run, planned.read, outcome)
        return render_preview(planned.rule, outcome, planned.carried), echoes

    def _recent(self) -> dict[str, float]:
        """Those that were tried just now; a clock that was set back forgets them."""
        now = self._tasks.clock.seconds()
        return {run_id: at for run_id, at in self._tried.items() if 0 <= now - at < AGAIN_SECONDS}


def lacks_preview(approval: Approval) -> bool:
    """Tell whether what waits for a decision has a preview that is not shown."""
    is_shown = approval.review.shown_preview.status is PreviewStatus.SHOWN
    return approval.run.state is RunState.PENDING and approval.review.may_have_preview and not is_shown


def _task(run_id: str) -> str:
    return f"the preview of {run_id}"


def render_preview(rule: PreviewRule, outcome: Outcome, carried: Collection[str]) -> Preview:
    """Render what C{rule} shows of an answer.

    :param carried: the paths that steps refer to.
    """
    if outcome.fault is not None:
        return make_unavailable(outcome.fault)
    found = {path: look_up(outcome.output, path) for path in carried}
    ties = {path: value for path, value in found.items() if _ties(value)}
    try:
        return Preview(PreviewStatus.SHOWN, tuple(_fields(rule, outcome.output)), None, ties)
    except (TypeError, ValueError, RecursionError):
        return make_unavailable(ConnectorRuntimeError("The answer is none that could be shown.").fault())


def _fields(rule: PreviewRule, output: JSON) -> Iterator[PreviewField]:
    left = MOST_BYTES_IN_ALL
    for label, path in rule.render:
        value = look_up(output, path)
        if value is None:
            yield PreviewField(label, None, missing=True, multiline=False)
            continue
        text, cut = _text(value, min(left, MOST_BYTES))
        left -= len(text.encode("utf-8"))
        multiline = label in rule.multiline or not isinstance(value, (str, bool, int, float))
        yield PreviewField(label, text, missing=False, multiline=multiline, cut=cut)


def _text(value: JSON, room: int) -> tuple[str, Cut | None]:
    """C{value} in words, cut to C{room} bytes."""
    text = value if isinstance(value, str) else json.dumps(plain(value), indent=2, ensure_ascii=False)
    data = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")
    if len(data) <= room:
        return data.decode("utf-8"), None
    return data[:room].decode("utf-8", "ignore"), Cut(len(data), digest_of_bytes(data))


def _ties(value: JSON) -> bool:
    """Tell whether a request can be tied to C{value}: a text or a number that means something and can be carried."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return False
    try:
        return 2 < len(canonical(value)) <= MOST_CARRIED if isinstance(value, str) else bool(canonical(value))
    except ValueError:
        return False

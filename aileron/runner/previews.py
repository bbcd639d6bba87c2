"""Fetches previews from their services and renders them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Iterator

from attrs import define, field
from twisted.internet.defer import DeferredSemaphore
from twisted.internet.interfaces import IReactorTime

from aileron.actions import look_up
from aileron.base.json import JSON, canonical, digest_of_bytes, plain
from aileron.model.actions import PreviewRule
from aileron.model.connectors import Outcome
from aileron.model.errors import ConnectorRuntimeError, VaultLocked
from aileron.model.people import Owner
from aileron.model.reviews import Cut, Preview, PreviewField, PreviewStatus
from aileron.model.runs import Approval, Run, RunState

from .effect_gate import EffectGate
from .outcomes import Echoes, find_echoes
from .plan import PlannedStep, Planner, make_unavailable
from .runs import RunRepository

PREVIEW_SECONDS = 5.0
"""The time within which a service must respond to the read of a preview."""

AGAIN_SECONDS = 10.0
"""The seconds after a failed fetch in which viewing the approval does not fetch the preview again."""

MOST_IN_BACKGROUND, MOST_FOR_THE_OPERATOR, MOST_BEFORE_EFFECTS = 6, 2, 4
"""The maximum numbers of concurrent fetches. Separate limits keep agents' requests from delaying the operator."""

MOST_BYTES, MOST_BYTES_IN_ALL = 64 * 1024, 256 * 1024
MOST_CARRIED = 4096  # characters of a value that a step's request uses


@define(eq=False)
class PreviewReader:
    """Fetches previews from their services, in three queues: in the background, for the operator and before effects.

    :param read: sends the read of a preview and returns its outcome within the given number of seconds.
    """

    _runs: RunRepository
    _planner: Planner
    _read: Callable[[PlannedStep, Owner | None, float], Awaitable[Outcome]]
    _effects: EffectGate
    _clock: IReactorTime
    _background: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(MOST_IN_BACKGROUND), init=False)
    _foreground: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(MOST_FOR_THE_OPERATOR), init=False)
    _before_effects: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(MOST_BEFORE_EFFECTS), init=False)
    _tried: dict[str, float] = field(factory=dict, init=False)  # by run id, the time of the last fetch

    async def fetch_missing(self, run: Run) -> tuple[Preview, Echoes] | None:
        """Fetch the preview of C{run} in the background queue.

        :return: the preview and the echoes of the credential in the response, or None if the action has no preview or
            the preview is no longer missing when the fetch gets its turn.
        :raises VaultLocked, Paused: if it cannot be fetched now.
        :raises AileronError: if the run cannot be planned. See L{Planner.plan_run}.
        """
        return await self._fetch(run, self._background, only_missing=True)

    async def fetch_again(self, run: Run, *, before_effect: bool = False) -> Preview | None:
        """Fetch the present preview of C{run}, and record echoes of the credential in the response.

        :param before_effect: True if the run is about to start, False if the operator is waiting. It selects the queue.
        :return: the preview, or None if the action has none.
        :raises VaultLocked, Paused: if it cannot be fetched now.
        :raises AileronError: if the run cannot be planned. See L{Planner.plan_run}.
        """
        fetched = await self._fetch(run, self._before_effects if before_effect else self._foreground)
        if fetched is None:
            return None
        preview, echoes = fetched
        if echoes.events:
            await self._runs.record(*echoes.events)
        return preview

    def was_tried(self, run_id: str) -> bool:
        """Return whether the preview of that run was fetched within the last L{AGAIN_SECONDS}."""
        return run_id in self._recent()

    async def _fetch(
        self, run: Run, turns: DeferredSemaphore, *, only_missing: bool = False
    ) -> tuple[Preview, Echoes] | None:
        if not self._planner.has_preview(run):
            return None
        return await turns.run(self._fetch_now, run, only_missing)

    async def _fetch_now(self, run: Run, only_missing: bool) -> tuple[Preview, Echoes] | None:
        if only_missing and not lacks_preview(await self._runs.approval(run.id)):
            return None
        if not self._effects.may_act():
            raise VaultLocked("The preview cannot be fetched while the vault is locked.")
        self._effects.refuse_paused(run.session_id)
        self._tried = {**self._recent(), run.id: self._clock.seconds()}
        self._planner.refresh()
        planned = self._planner.plan_preview(run)
        if planned is None:
            return None
        outcome = await self._read(planned.read, run.owner, PREVIEW_SECONDS)
        if outcome.fault is not None and outcome.fault.kind == VaultLocked.kind:
            raise VaultLocked(outcome.fault.message)
        echoes = find_echoes(self._runs.events, run, planned.read, outcome)
        return render_preview(planned.rule, outcome, planned.carried), echoes

    def _recent(self) -> dict[str, float]:
        """Return the time of the last fetch of each run's preview, for the last L{AGAIN_SECONDS}, by the run's id.

        Times in the future are left out.
        """
        now = self._clock.seconds()
        return {run_id: at for run_id, at in self._tried.items() if 0 <= now - at < AGAIN_SECONDS}


def lacks_preview(approval: Approval) -> bool:
    """Return whether the approval is pending and its preview, if its action has one, is not shown yet or failed."""
    is_shown = approval.review.shown_preview.status is PreviewStatus.SHOWN
    return approval.run.state is RunState.PENDING and approval.review.may_have_preview and not is_shown


def render_preview(rule: PreviewRule, outcome: Outcome, carried: Collection[str]) -> Preview:
    """Return the preview that C{rule} makes of a response, or an unavailable one if the read failed.

    :param carried: the paths into the response that steps refer to.
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
    """Return the text of C{value}, cut to C{room} bytes, and a L{Cut} with the size and digest of the whole.

    If the text is not cut, the second part is None.
    """
    text = value if isinstance(value, str) else json.dumps(plain(value), indent=2, ensure_ascii=False)
    data = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")
    if len(data) <= room:
        return data.decode("utf-8"), None
    return data[:room].decode("utf-8", "ignore"), Cut(len(data), digest_of_bytes(data))


def _ties(value: JSON) -> bool:
    """Return whether a step is allowed to use this value of a preview: a number, or a text neither empty nor long."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return False
    try:
        return 2 < len(canonical(value)) <= MOST_CARRIED if isinstance(value, str) else bool(canonical(value))
    except ValueError:
        return False

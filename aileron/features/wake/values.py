"""The settings of waking, and the messages that wake an agent."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from aileron.model.runs import Run, RunState

_CARRIED_OUT = (RunState.COMPLETED, RunState.FAILED, RunState.UNKNOWN)
_NOT_CARRIED_OUT = (RunState.DENIED, RunState.EXPIRED, RunState.CANCELLED)

_WORDS: Mapping[RunState, str] = {
    RunState.COMPLETED: "has completed",
    RunState.FAILED: "has failed",
    RunState.UNKNOWN: "ended with an unknown outcome: it may have happened, so do not repeat it",
    RunState.DENIED: "was denied by the user: do not try it again",
    RunState.EXPIRED: "expired because nobody decided in time; nothing was sent",
    RunState.CANCELLED: "was cancelled; nothing was sent",
}


@frozen
class WakeSettings:
    """The settings of the feature.

    :ivar after_seconds: how long an outcome waits for the agent to fetch it by itself.
    :ivar denied: whether runs that were denied, expired or were cancelled wake an agent too.
    :ivar resume: whether launches resume an agent that has ended, unless the user says otherwise.
    :ivar most_resumes: how often an agent is resumed in one session.
    """

    after_seconds: int = 5
    denied: bool = False
    resume: bool = False
    most_resumes: int = 3

    @property
    def states(self) -> tuple[RunState, ...]:
        """The states of ended runs that wake an agent."""
        return (*_CARRIED_OUT, *_NOT_CARRIED_OUT) if self.denied else _CARRIED_OUT


@frozen
class WakeOutcome:
    """The outcome of a run, as an agent is told it.

    :ivar message: one sentence or two without any text of an agent or a service.
    """

    run_id: str
    action: str
    state: RunState
    message: str


@frozen
class WakeAnswer:
    """The answer to an agent's hook that waits for an outcome.

    :ivar waiting: whether an outcome may still come, so that it is worth waiting again.
    :ivar outcome: the outcome, or None if there is none now.
    :ivar conversation: the agent's own ID of its conversation, as its hook said last; empty if unknown.
    :ivar resumes_left: how often the agent may still be resumed in this session.
    """

    waiting: bool
    outcome: WakeOutcome | None
    conversation: str
    resumes_left: int


def describe_outcome(run: Run) -> WakeOutcome:
    """Return the outcome of an ended run.

    :raises KeyError: if the run has not ended.
    """
    message = (
        f"Aileron: {run.action}, which you called earlier, {_WORDS[run.state]}. "
        f"For details call check_action_status with approval_id {run.id}."
    )
    return WakeOutcome(run.id, run.action, run.state, message)

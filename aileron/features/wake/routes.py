"""The route by which an agent's hook, or its launcher, waits for an outcome that the agent does not know."""

from __future__ import annotations

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext, Schema
from aileron.api.faults import Answer, answer
from aileron.api.guard import Who
from aileron.api.shapes.schemas import BOOLEAN, COUNT, STATE, TEXT, WAIT, made_of, or_null
from aileron.api.shapes.values import to_json
from aileron.model.errors import NotFound

from ._outcomes import OutcomeService
from .running import RunningWake

TABLE = EndpointTable()

STATUS = made_of({"resume": BOOLEAN, "most_resumes": COUNT})

CONVERSATION = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$"
"""The pattern of an agent's ID of its conversation. It becomes an argument of the agent, so it is no option."""

# guard of waking: what an agent calls its conversation cannot become an option of its next launch
#    -> wake.test_routes.WakeTests.test_conversation, instead _CONVERSATION = TEXT
_CONVERSATION: Schema = {"type": "string", "pattern": CONVERSATION}
_SAYS = made_of({"conversation": _CONVERSATION})
_BODY = made_of(
    {},
    {
        "conversation": {**_CONVERSATION, "description": "the agent's own ID of its conversation"},
        "wait": WAIT,
        "resume": {**BOOLEAN, "description": "true: the agent has ended, and is resumed with the outcome"},
    },
)
_OUTCOME = made_of({"run_id": TEXT, "action": TEXT, "state": STATE, "message": TEXT})
_ANSWER = made_of(
    {"waiting": BOOLEAN, "outcome": or_null(_OUTCOME), "conversation": TEXT, "resumes_left": COUNT},
)


@TABLE.route("POST", "/v1/wake", agents=Who.AGENT, body=_BODY, answers={200: _ANSWER})
async def wait_for_outcome(context: RequestContext, deps: Dependencies) -> Answer:
    """Return the next outcome that the agent has not fetched, and never return it again.

    Wait for it at most C{wait} seconds, and only while a run may still end. A later request of the session ends this
    one.

    :raises NotFound: if this daemon wakes no agents.
    :raises LimitExceeded: if too many requests of the session wait already.
    :raises Unauthorized: if the session ends during the wait.
    :raises StoreUnavailable: if it cannot be recorded. The outcome is kept.
    """
    session_id, seconds = context.caller.session_id or "", context.body.get("wait", 0)
    waiting = _outcomes(deps).next(
        session_id,
        float(seconds) if isinstance(seconds, int | float) else 0.0,
        conversation=context.text("conversation") or "",
        resumes=context.body.get("resume") is True,
    )
    return answer(to_json(await deps.waits.wait(session_id, waiting)))


@TABLE.route("POST", "/v1/wake/conversation", agents=Who.AGENT, body=_SAYS, answers={200: made_of({})})
async def name_conversation(context: RequestContext, deps: Dependencies) -> Answer:
    """Note which conversation the agent has, so that its launcher can resume it.

    :raises NotFound: if this daemon wakes no agents.
    """
    _outcomes(deps).name_conversation(context.caller.session_id or "", str(context.body["conversation"]))
    return answer({})


def _outcomes(deps: Dependencies) -> OutcomeService:
    running = deps.features.find(RunningWake)
    if running is None:
        raise NotFound("This daemon wakes no agents.")
    return running.outcomes

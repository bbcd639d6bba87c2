"""The routes of the agents' own permission prompts: agents' hooks call one, and the operator lists and answers asks."""

from __future__ import annotations

from typing import cast

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext, Schema
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.shapes.schemas import ANY_OBJECT, BOOLEAN, COUNT, described, list_of, made_of
from aileron.api.shapes.values import to_json
from aileron.model.errors import InvalidRequest, NotFound
from aileron.model.sessions import Session

from ._asks import AskService
from .forms import FORMS
from .patterns import MOST_CHARACTERS
from .running import RunningPrompts
from .trying import RuleTrial, read_tried_rule, try_rule
from .values import AgentAsk, AskAnswer, ReplyKind

TABLE = EndpointTable()

STATUS = made_of({"inbox": BOOLEAN, "checks": BOOLEAN, "wait_seconds": COUNT, "waiting": COUNT})
_ASK = described(
    AgentAsk,
    agent={"description": "whose hook was called"},
    text={"description": "the command, or the change of a file; whole while the ask waits"},
    rest={"description": "further members of the tool's input, as JSON; empty: none"},
    directory={"description": "where the agent works: a claim"},
    patterns={"description": "rules that you may allow for the session, the narrowest first"},
    by={"description": "operator, session, rule or terminal; empty: nobody"},
    pattern={"description": "the rule by which it was answered; empty: none"},
)
_MOST_REASON = 2000
_ANSWER: Schema = {"enum": [each.value for each in AskAnswer]}
_BODY = made_of(
    {"answer": _ANSWER},
    {
        "pattern": {"type": "string", "minLength": 1, "maxLength": MOST_CHARACTERS},
        "reason": {"type": "string", "maxLength": _MOST_REASON},
    },
)

_TRIAL: Schema = made_of(
    {},
    {
        "rule": {"type": "string", "minLength": 1, "maxLength": MOST_CHARACTERS},
        "answer": {"enum": [each.value for each in (ReplyKind.ALLOW, ReplyKind.ASK, ReplyKind.DENY)]},
        "project": {"type": "string", "pattern": "^/", "maxLength": 1000},
    },
)


@TABLE.route("POST", "/v1/prompts/<agent>", agents=Who.AGENT, body=ANY_OBJECT, answers={200: ANY_OBJECT})
async def call_hook(context: RequestContext, deps: Dependencies, agent: str) -> Answer:
    """Reply to an agent's hook in the form of that agent, once it is decided. The agent may hang up at any time.

    :raises NotFound: if there are no hooks of this name.
    """
    form = FORMS.get(agent)
    if form is None:
        raise NotFound(f"There are no hooks of this name; there are: {', '.join(FORMS)}.")
    call = form.read(context.body)
    reply = await _asks(deps).reply(cast("Session", context.caller.session), agent, call)
    return answer(form.write(call, reply))


@TABLE.route("GET", "/v1/asks", operators=READERS, answers={200: made_of({"items": list_of(_ASK)})})
async def list_asks(context: RequestContext, deps: Dependencies) -> Answer:
    """List the agents' own permission prompts, those that wait first, then those that were closed last."""
    return answer({"items": [to_json(each) for each in _asks(deps).list()]})


@TABLE.route(
    "POST",
    "/v1/asks/<ask_id>/answer",
    # guard of prompts: who only watches, or reads the home, answers no prompt
    #    -> test_routes.AnswerTests.test_who_answers, instead READERS
    operators=Who.OPERATOR,
    body=_BODY,
    answers={200: _ASK},
)
async def answer_ask(context: RequestContext, deps: Dependencies, ask_id: str) -> Answer:
    """Answer a permission prompt: allow it once, allow calls like it for the session, or deny it.

    :raises NotFound: if there is no such prompt.
    :raises Conflict: if it was answered or closed already.
    :raises InvalidRequest: if the pattern does not apply to this call.
    :raises StoreUnavailable: if the answer cannot be recorded. The prompt still waits.
    """
    given = AskAnswer(str(context.body["answer"]))
    answered = await _asks(deps).answer(
        ask_id,
        given,
        context.caller.actor,
        pattern=context.text("pattern") or "",
        reason=context.text("reason") or "",
    )
    return answer(to_json(answered))


@TABLE.route("GET", "/v1/asks/trial", operators=READERS, query=_TRIAL, answers={200: described(RuleTrial)})
async def try_prompt_rule(context: RequestContext, deps: Dependencies) -> Answer:
    """Try a rule on the newest permission prompts, and return which it would have answered. Without one, try C{*}.

    :raises InvalidRequest: if the rule is not valid.
    :raises StoreUnavailable: if the audit log cannot be read.
    """
    kind, project = context.text("answer") or "", context.text("project") or ""
    try:
        rule = read_tried_rule(context.text("rule") or "*", kind, project)
    except ValueError as error:
        raise InvalidRequest.listing("The rule is not valid.", ("/rule", str(error))) from None
    return answer(to_json(await try_rule(deps.audit, rule)))


def _asks(deps: Dependencies) -> AskService:
    found = deps.features.find(RunningPrompts)
    if found is None:
        raise NotFound("This daemon lists no permission prompts.")
    return found.asks

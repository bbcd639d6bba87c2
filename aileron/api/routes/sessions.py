"""The routes of agents' sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import cast

from attrs import evolve
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext, Schema
from aileron.api.faults import Answer, Streamed, answer
from aileron.api.guard import READERS, Who
from aileron.api.shapes.schemas import (
    BOOLEAN,
    CURSOR,
    LIMIT,
    MOMENT,
    MOMENT_OR_NULL,
    REASON,
    TEXT,
    list_of,
    made_of,
    page_of,
    ref,
)
from aileron.api.shapes.values import moment, optional_json, page, session_json, to_json
from aileron.api.tokens import AGENT_TOKEN, mint, token_digest
from aileron.base.json import JSON, timestamp
from aileron.model.audit import Event
from aileron.model.deciders import check_may_change
from aileron.model.errors import ApprovalStale, Conflict, Forbidden, NotFound, VaultLocked
from aileron.model.people import Owner
from aileron.model.queries import Page, RunQuery
from aileron.model.runs import Approval, Decision, RunState
from aileron.model.sessions import (
    GATEWAY_KEY,
    IN_BAND_KEY,
    SELECTOR,
    ActionSelection,
    Session,
    derive_gateway_key,
)
from aileron.model.vault import VaultState

from .audit import STILL_HERE_SECONDS, STREAM
from .limits import paused_for

TABLE = EndpointTable()

COMMAND_SESSION = "cli"
"""The agent name of a session that a command opens for itself."""
AGENT_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 64, "pattern": r"^[\w][\w .:@/+-]*$"}
DIRECTORY: Schema = {"type": "string", "maxLength": 4096}
OPENED = made_of(
    {
        "id": TEXT,
        "token": TEXT,
        "gateway_key": TEXT,
        "started_at": MOMENT,
        "ends_at": MOMENT_OR_NULL,
        "agent": TEXT,
        "working_dir": TEXT,
    },
    {"in_band_key": TEXT},
)
_SELECTOR: Schema = {"type": "string", "pattern": SELECTOR, "maxLength": 256}
_SELECTORS: Schema = {**list_of(_SELECTOR), "maxItems": 64}
PROFILE: Schema = {"type": "string", "pattern": r"^[a-z0-9][a-z0-9._-]{0,63}$"}
SELECTION = made_of({}, {"allow": _SELECTORS, "deny": _SELECTORS})
_DAY = 24 * 60
MINUTES: Schema = {"type": "integer", "minimum": 1, "maximum": 30 * _DAY}
_EXIT_CODE: Schema = {"type": ["integer", "null"], "minimum": -255, "maximum": 255}


@TABLE.route(
    "POST",
    "/v1/sessions",
    agents=Who.LAUNCH,
    body=made_of(
        {"agent": AGENT_NAME},
        {
            "working_dir": DIRECTORY,
            "client": BOOLEAN,
            "lease": BOOLEAN,
            "minutes": MINUTES,
            "in_band": BOOLEAN,
            "notes_tools": {**BOOLEAN, "description": "Whether tools that providers run for it are noted"},
            "profile": {**PROFILE, "description": "The profile that restricts its actions"},
            "selection": {**SELECTION, "description": "A choice of actions that restricts it further"},
        },
    ),
    answers={201: OPENED},
)
async def open_session(context: RequestContext, deps: Dependencies) -> Answer:
    """Open a session. Its agent and directory are unverified claims. Its token and keys are shown only once.

    With a C{lease}, the session lives as long as its launcher holds the lease, else C{minutes}, by default a day. A
    C{client} that opens a session for itself must be known to the operator by name. With C{in_band}, the session also
    gets a key for in-band mode. Without C{profile}, the profile applies that the operator configured for the agent and
    the directory, if there is one.

    The event C{session.started} is recorded.

    :raises Forbidden: if a C{client} is unknown to the operator.
    :raises VaultLocked: if there is no vault yet.
    :raises InvalidRequest: if there is no such profile.
    :raises LimitExceeded: if too many sessions are live.
    :raises StoreUnavailable: if the session cannot be stored.
    """
    _refuse_stranger(context, deps)
    return await start_session(context, deps)


async def start_session(context: RequestContext, deps: Dependencies, owner: Owner | None = None) -> Answer:
    """Store a session as the body of the request describes it, and return the answer with its token and keys.

    :param owner: the account to which it belongs, or None for the operator.
    :raises VaultLocked: if there is no vault yet.
    :raises InvalidRequest: if there is no such profile.
    :raises LimitExceeded: if too many sessions are live.
    :raises StoreUnavailable: if the session cannot be stored.
    """
    _refuse_without_vault(deps)
    session, keys = evolve(_read_claim(context, deps), owner=owner), _mint_keys(context, deps)
    peer = optional_json(session.peer)
    claims: Mapping[str, JSON] = {"agent": session.agent, "working_dir": session.working_dir}
    lasts: dict[str, JSON] = {"leased": session.leased, "ends_at": moment(session.ends_at)}
    if session.in_band:
        lasts["in_band"] = True
    if session.notes_tools:
        lasts["notes_tools"] = True
    if session.restricted:
        lasts |= {"profile": session.profile, "selection": optional_json(session.selection)}
    if owner is not None:
        lasts["owner"] = to_json(owner)
    event = _event(context, deps, "session.started", session, **claims, peer=peer, **lasts)
    token, gateway_key, *in_band_key = map(token_digest, keys.values())
    await deps.sessions.open(session, token, gateway_key, (event,), *in_band_key)
    times: Mapping[str, JSON] = {"started_at": timestamp(session.started_at), "ends_at": moment(session.ends_at)}
    return answer({"id": session.id, **keys, **times, **claims}, 201)


def _mint_keys(context: RequestContext, deps: Dependencies) -> dict[str, str]:
    """Return a new session's token and gateway key, and its in-band key last if requested."""
    token = mint(AGENT_TOKEN, deps.randomness)
    if context.body.get("in_band") is not True:
        return {"token": token, "gateway_key": mint(GATEWAY_KEY, deps.randomness)}
    in_band_key = mint(IN_BAND_KEY, deps.randomness)
    return {"token": token, "gateway_key": derive_gateway_key(in_band_key), "in_band_key": in_band_key}


@TABLE.route(
    "GET",
    "/v1/sessions",
    agents=Who.AGENT,
    operators=READERS,
    query=made_of(
        {},
        {
            "live": BOOLEAN,
            "commands": {**BOOLEAN, "description": "false: leave out the ended sessions of commands, named cli"},
            "limit": LIMIT,
            "cursor": CURSOR,
        },
    ),
    answers={200: page_of("Session")},
)
async def list_sessions(context: RequestContext, deps: Dependencies) -> Answer:
    """List sessions, newest first. An agent sees only its own.

    :raises InvalidRequest: if the cursor is not of this list.
    """
    own = context.caller.session
    live, limit = context.query.get("live") is True, int(context.number("limit", 100))
    without = COMMAND_SESSION if context.query.get("commands") is False else None
    found = Page((own,)) if own is not None else await deps.sessions.list(live, limit, context.text("cursor"), without)
    added = await deps.features.session_members(*(session.id for session in found.items))
    return answer(page(found, lambda session: session_payload(session, deps, added[session.id])))


@TABLE.route("GET", "/v1/sessions/<session_id>", agents=Who.AGENT, operators=READERS, answers={200: ref("Session")})
async def show_session(context: RequestContext, deps: Dependencies, session_id: str) -> Answer:
    """Return one session, with the numbers of its runs by outcome.

    :raises NotFound: if there is no such session, or the caller may not see it.
    """
    return answer(await session_summary(await _visible(context, deps, session_id), deps))


@TABLE.route(
    "POST",
    "/v1/sessions/<session_id>/end",
    agents=Who.AGENT,
    operators=Who.OPERATOR,
    body=made_of({}, {"exit_code": _EXIT_CODE}),
    answers={200: ref("Session")},
)
async def end_session(context: RequestContext, deps: Dependencies, session_id: str) -> Answer:
    """End a session. Its token and keys become invalid.

    The event C{session.ended} is recorded, and waiting requests of the session are cancelled. If the session has ended
    already, nothing changes.

    :raises NotFound: if there is no such session, or the caller may not see it.
    """
    session = await _visible(context, deps, session_id)
    exit_code = context.body.get("exit_code")
    code = exit_code if isinstance(exit_code, int) else None
    event = _event(context, deps, "session.ended", session, exit_code=code)
    ended = await deps.sessions.end(session_id, code, (event,))
    deps.session_ended(session_id)
    return answer(await session_summary(ended, deps))


async def session_summary(session: Session, deps: Dependencies) -> Mapping[str, JSON]:
    """Return the JSON of a session with its C{summary}."""
    tally, added = await deps.sessions.tally(session.id), await deps.features.session_members(session.id)
    until = session.ended_at or deps.now()
    seconds = max(0, int((until - session.started_at).total_seconds()))
    return {**session_payload(session, deps, added[session.id]), "summary": {**to_json(tally), "seconds": seconds}}


def session_payload(session: Session, deps: Dependencies, added: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return the JSON of a session with whether it is paused, and with the members that features add."""
    paused = paused_for(deps, session.id) is not None
    return {**session_json(session, deps.now()), "paused": paused, **added}


async def _visible(context: RequestContext, deps: Dependencies, session_id: str) -> Session:
    session = await deps.sessions.get(session_id) if context.caller.may_see(session_id) else None
    if session is None:
        raise NotFound("There is no such session.")
    return session


async def find_launched(deps: Dependencies, session_id: str) -> Session:
    """Return a live session of the operator's, for a program that has the launch key.

    Every program beside the daemon can have this key. With it nothing is opened in the name of an account.

    :raises NotFound: if there is no such session, it has ended, or it belongs to an account.
    """
    session = await deps.sessions.get(session_id)
    # guard of roles: the launch key opens nothing for the session of an account
    #    -> features.people.test_attacks.LaunchKeyTests.test_session_of_another,
    #    instead if session is None or not session.live
    if session is None or not session.live or session.owner is not None:
        raise NotFound("There is no such session, or it has ended.")
    return session


def _read_claim(context: RequestContext, deps: Dependencies) -> Session:
    """Return a new session, which is not stored yet, made from the body of a request to open one.

    C{peer} is the process that sent the request, as the kernel shows it, or None if that is unknown.

    :raises InvalidRequest: if there is no such profile.
    """
    now = deps.now()
    claims = context.text("agent") or "", context.text("working_dir") or ""
    leased = context.body.get("lease") is True
    minutes = context.body.get("minutes", None if leased else _DAY)
    ends_at = now + timedelta(minutes=minutes) if isinstance(minutes, int) else None
    ends = context.received.ends
    peer = None if ends is None else deps.process_behind(*ends)
    in_band, notes_tools = (context.body.get(name) is True for name in ("in_band", "notes_tools"))
    session = Session(
        deps.ids(),
        *claims,
        started_at=now,
        seen_at=now,
        peer=peer,
        leased=leased,
        ends_at=ends_at,
        in_band=in_band,
        notes_tools=notes_tools,
    )
    return deps.filters.open(restrict_session(session, context.body))


def restrict_session(session: Session, body: Mapping[str, JSON]) -> Session:
    """Return the session with the profile and the selection of actions that the body of the request names."""
    profile, selection = body.get("profile"), body.get("selection")
    if isinstance(profile, str):
        session = evolve(session, profile=profile)
    if isinstance(selection, Mapping):
        chosen = {name: tuple(map(str, cast("Sequence[JSON]", words))) for name, words in selection.items()}
        session = evolve(session, selection=ActionSelection(**chosen))
    return session


def _refuse_stranger(context: RequestContext, deps: Dependencies) -> None:
    name = context.text("agent")
    if context.body.get("client") is True and name not in deps.clients:
        raise Forbidden(
            f"The client {name} may not open a session: name it under clients in config.yaml, "
            "run aileron config trust, and restart the daemon."
        )


def _refuse_without_vault(deps: Dependencies) -> None:
    state = deps.vault.state()
    if state in {VaultState.MISSING, VaultState.LOST}:
        raise VaultLocked(
            f"The vault is {state.value}: run aileron vault {'init' if state is VaultState.MISSING else 'reset'}.",
            {"state": state.value},
        )


def _event(context: RequestContext, deps: Dependencies, kind: str, session: Session, **payload: JSON) -> Event:
    return Event(deps.ids(), kind, deps.now(), context.caller.actor, payload, session_id=session.id)


@TABLE.route("GET", "/v1/sessions/<session_id>/lease", agents=Who.LAUNCH, answers={200: STREAM})
async def hold_lease(context: RequestContext, deps: Dependencies, session_id: str) -> Streamed:
    """Hold the lease of a session while this connection is open. The stream ends with the session.

    Server-sent events: one when the lease is held, then keep-alives.

    :raises NotFound: if there is no such session with a lease.
    """
    if not await _is_leased(deps, session_id):
        raise NotFound("There is no such session with a lease.")
    context.received.keep_place(session_id)
    return Streamed(_stream_lease(deps, session_id), "text/event-stream")


async def _stream_lease(deps: Dependencies, session_id: str) -> AsyncIterator[bytes]:
    clock: IReactorTime = deps.clock
    with deps.leases.held(session_id):
        yield b"event: held\ndata: {}\n\n"
        while True:
            await deferLater(clock, STILL_HERE_SECONDS)
            if not await _is_leased(deps, session_id):
                return
            yield b": still here\n\n"


async def _is_leased(deps: Dependencies, session_id: str) -> bool:
    session = await deps.sessions.get(session_id)
    return session is not None and session.live and session.leased


_AT_ONCE = 100
_LEFT = made_of({"id": TEXT, "message": TEXT})


@TABLE.route(
    "POST",
    "/v1/sessions/<session_id>/deny",
    operators=Who.OPERATOR,
    body=made_of({}, {"reason": REASON}),
    answers={200: made_of({"session": ref("Session"), "denied": list_of(TEXT), "left": list_of(_LEFT)})},
)
async def deny_session(context: RequestContext, deps: Dependencies, session_id: str) -> Answer:
    """End a session, then deny all its pending requests. Each denial is recorded.

    If the session has ended already, only its requests are denied. The answer lists the denied requests, and those that
    could not be denied with the reason.

    :raises NotFound: if there is no such session.
    :raises Forbidden: if it belongs to another person.
    """
    session = await _visible(context, deps, session_id)
    # guard of roles: nobody ends the session of another person's agent
    #    -> features.people.test_agents.OthersTests.test_end
    check_may_change(context.caller.account, session.owner)
    event = _event(context, deps, "session.ended", session, exit_code=None)
    session = await deps.sessions.end(session_id, None, (event,))
    try:
        denied, left = await _deny_all(context, deps, session_id)
    finally:  # only now, so that an agent that waits for a request receives its denial
        deps.session_ended(session_id)
    added = await deps.features.session_members(session_id)
    return answer({"session": session_payload(session, deps, added[session_id]), "denied": denied, "left": left})


async def _deny_all(context: RequestContext, deps: Dependencies, session_id: str) -> tuple[list[JSON], list[JSON]]:
    denied: list[JSON] = []
    left: list[JSON] = []
    for approval in await _waiting(deps, session_id):
        trouble = await _deny_one(context, deps, approval)
        if trouble is None:
            denied.append(approval.run.id)
        else:
            left.append({"id": approval.run.id, "message": trouble})
    return denied, left


async def _waiting(deps: Dependencies, session_id: str) -> list[Approval]:
    """Return all pending approvals of a session. The list is complete before the caller denies any."""
    query: RunQuery | None = RunQuery(states=(RunState.PENDING,), session_id=session_id, limit=_AT_ONCE)
    found: list[Approval] = []
    while query is not None:
        page = await deps.decisions.approvals(query)
        found += page.items
        query = None if page.cursor is None else evolve(query, cursor=page.cursor)
    return found


async def _deny_one(context: RequestContext, deps: Dependencies, approval: Approval) -> str | None:
    """Deny one approval. If it has changed since it was listed, deny it in its changed form.

    :return: None if the approval was denied, else the reason: it changed again, or is not pending any more.
    :raises NotFound: if there is no such approval any more.
    :raises Paused, VaultLocked, Forbidden, InvalidRequest: if nothing can be decided now.
    """
    for digest in (approval.digest, None):
        try:
            present = digest or (await deps.decisions.approval(approval.run.id)).digest
            caller, reason = context.caller, context.text("reason")
            word = Decision(False, present, caller.actor.id, reason, account=caller.account)
            await deps.decisions.decide(approval.run.id, word)
        except ApprovalStale as error:
            trouble = error.message
        except Conflict as error:
            return error.message
        else:
            return None
    return trouble

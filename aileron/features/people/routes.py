"""The routes of accounts, for the operator at the desk and for administrators at the public name."""

from __future__ import annotations

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext, Schema
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.routes.sessions import AGENT_NAME, MINUTES, OPENED, PROFILE, start_session
from aileron.api.shapes.schemas import MOMENT, TEXT, list_of, made_of, or_null
from aileron.api.shapes.values import moment
from aileron.base.json import JSON
from aileron.model.errors import Forbidden, NotFound, Unauthorized
from aileron.model.people import MOST_GROUPS, NAME, PersonAccount, Role

from ._agents import end_agents
from .running import RunningPeople

TABLE = EndpointTable()

_NO_NAME = (
    "People sign in at a public name, and none is in force. Set phone.public_url in config.yaml, run "
    "`aileron config trust` and `aileron daemon stop`, then `aileron vault unlock`."
)

_ROLE: Schema = {"enum": [role.value for role in Role]}
_NAME: Schema = {"type": "string", "pattern": NAME}
_STATE: Schema = {
    "enum": ["active", "invited", "altered"],
    "description": "invited: no passphrase was set yet; altered: something else changed it, so it has no rights",
}
_GROUPS: Schema = {
    "type": "array",
    "items": _NAME,
    "maxItems": MOST_GROUPS,
    "description": "groups that rules about approvals can name",
}
_PERSON = made_of(
    {
        "name": TEXT,
        "role": _ROLE,
        "groups": list_of(TEXT),
        "state": _STATE,
        "passkeys": {"type": "integer", "description": "how many passkeys the account has"},
        "created_at": MOMENT,
        "invited_until": or_null(MOMENT),
    }
)
_INVITED = made_of({"name": TEXT, "role": _ROLE, "url": TEXT, "invited_until": MOMENT})


@TABLE.route("GET", "/v1/people", operators=READERS, answers={200: made_of({"items": list_of(_PERSON)})})
async def list_people(context: RequestContext, deps: Dependencies) -> Answer:
    """List the accounts, by name. Passphrases, links and keys are not listed.

    :raises NotFound: if there is no public name.
    """
    running = _running(context, deps)
    items: list[JSON] = [_person(running, each) for each in await running.accounts.list()]
    return answer({"items": items})


@TABLE.route(
    "POST",
    "/v1/people",
    operators=Who.OPERATOR,
    body=made_of({"name": _NAME, "role": _ROLE}, {"groups": _GROUPS}),
    answers={201: _INVITED},
)
async def add_person(context: RequestContext, deps: Dependencies) -> Answer:
    """Make an account. The answer has the link by which its person sets a passphrase, once, within three days.

    :raises Conflict: if the name is taken, or there are too many accounts.
    :raises NotFound: if there is no public name.
    :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be stored.
    """
    running = _running(context, deps)
    account, code = await running.accounts.add(
        str(context.body["name"]), Role(str(context.body["role"])), context.caller.actor, _read_groups(context)
    )
    return answer(_invited(running, account, code), status=201)


@TABLE.route("POST", "/v1/people/<name>/invite", operators=Who.OPERATOR, answers={200: _INVITED})
async def invite_person(context: RequestContext, deps: Dependencies, name: str) -> Answer:
    """Replace the passphrase and the passkeys of an account by a new link. Its logins end.

    :raises NotFound: if there is no such account, or no public name.
    :raises Conflict: if something else changed the account.
    :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be stored.
    """
    running = _running(context, deps)
    account, code = await running.accounts.invite(name, context.caller.actor)
    _end_logins(deps, account)
    return answer(_invited(running, account, code))


@TABLE.route(
    "POST",
    "/v1/people/<name>/role",
    operators=Who.OPERATOR,
    body=made_of({"role": _ROLE}),
    answers={200: _PERSON},
)
async def change_person(context: RequestContext, deps: Dependencies, name: str) -> Answer:
    """Give an account another role. Its logins end.

    :raises NotFound: if there is no such account, or no public name.
    :raises Conflict: if something else changed the account.
    :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be stored.
    """
    running = _running(context, deps)
    account = await running.accounts.change_role(name, Role(str(context.body["role"])), context.caller.actor)
    _end_logins(deps, account)
    return answer(_person(running, account))


@TABLE.route(
    "POST",
    "/v1/people/<name>/groups",
    operators=Who.OPERATOR,
    body=made_of({"groups": _GROUPS}),
    answers={200: _PERSON},
)
async def change_groups(context: RequestContext, deps: Dependencies, name: str) -> Answer:
    """Give an account other groups, which rules about approvals can name. Its logins end.

    :raises NotFound: if there is no such account, or no public name.
    :raises Conflict: if something else changed the account.
    :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be stored.
    """
    running = _running(context, deps)
    account = await running.accounts.change_groups(name, _read_groups(context), context.caller.actor)
    _end_logins(deps, account)
    return answer(_person(running, account))


@TABLE.route("DELETE", "/v1/people/<name>", operators=Who.OPERATOR, answers={200: made_of({"name": TEXT})})
async def remove_person(context: RequestContext, deps: Dependencies, name: str) -> Answer:
    """Remove an account. Its logins and its agents' sessions end, and what these requested is withdrawn.

    Its name can be given to another account.

    :raises NotFound: if there is no such account, or no public name.
    :raises Conflict: if the account was changed meanwhile.
    :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be stored.
    """
    running = _running(context, deps)
    account = await running.accounts.remove(name, context.caller.actor)
    _end_logins(deps, account)
    await end_agents(deps, account, context.caller.actor)
    return answer({"name": account.name})


@TABLE.route(
    "POST",
    "/v1/people/<name>/sessions",
    operators=Who.OPERATOR,
    body=made_of({"agent": AGENT_NAME, "minutes": MINUTES}, {"profile": PROFILE}),
    answers={201: OPENED},
)
async def connect_agent(context: RequestContext, deps: Dependencies, name: str) -> Answer:
    """Open a session for an agent of an account, which is elsewhere. Its token and keys are shown only once.

    The operator does this for everybody, a person only for their own account.

    :raises NotFound: if there is no such account, or no public name.
    :raises Forbidden: if it is the account of somebody else.
    :raises Unauthorized: if the account was changed or removed meanwhile.
    :raises Conflict: if something else changed the account.
    :raises InvalidRequest: if there is no such profile.
    :raises LimitExceeded: if too many sessions are live.
    :raises VaultLocked, StoreUnavailable: if the session cannot be stored.
    """
    running, login = _running(context, deps), context.caller.account
    if login is None:
        return await start_session(context, deps, await running.accounts.find_owner(name))
    # guard of roles: nobody but the operator opens a session for somebody else
    #    -> features.people.test_agents.ConnectTests.test_another
    if login.name != name:
        raise Forbidden("You can connect only your own agents. Nothing was opened.")
    account = await running.accounts.find_account(login)
    # guard of roles: a person who was just removed opens none, not even for a new account of the same name
    #    -> features.people.test_agents.ConnectTests.test_same_name
    if account is None:
        raise Unauthorized("Your account was changed or removed. Nothing was opened.")
    return await start_session(context, deps, account.owner)


def _running(context: RequestContext, deps: Dependencies) -> RunningPeople:
    """Return the feature that runs.

    :raises NotFound: if there is no public name.
    :raises Forbidden: if the request comes from a phone.
    """
    found = deps.features.find(RunningPeople)
    if found is None:
        raise NotFound(_NO_NAME)
    operator = context.caller.operator
    # guard of roles: a phone manages no accounts -> features.people.test_routes.RouteTests.test_phone
    if operator is not None and operator.passkey is not None:
        raise Forbidden("Accounts are managed at the desk, or by an administrator.")
    return found


def _read_groups(context: RequestContext) -> list[str]:
    groups = context.body.get("groups")
    return [str(each) for each in groups] if isinstance(groups, list | tuple) else []


def _end_logins(deps: Dependencies, account: PersonAccount) -> None:
    """End the logins of an account in this process. In other daemons, each login ends at its next request."""
    for session in deps.operators.list():
        if session.account is not None and session.account.account == account.id:
            deps.operators.log_out(session.id)
            deps.forget_places(session.id)


def _person(running: RunningPeople, account: PersonAccount) -> dict[str, JSON]:
    ends_at = None if account.invitation is None else account.invitation.ends_at
    return {
        "name": account.name,
        "role": account.role.value,
        "groups": list(account.groups),
        "state": running.describe(account),
        "passkeys": len(account.passkeys),
        "created_at": moment(account.created_at),
        "invited_until": moment(ends_at),
    }


def _invited(running: RunningPeople, account: PersonAccount, code: str) -> dict[str, JSON]:
    ends_at = None if account.invitation is None else account.invitation.ends_at
    told: dict[str, JSON] = {"name": account.name, "role": account.role.value}
    return {**told, "url": running.write_link(code), "invited_until": moment(ends_at)}

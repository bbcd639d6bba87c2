"""The routes by which a person who is signed in manages the passkeys of their account."""

from __future__ import annotations

from collections.abc import Mapping

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext, Schema
from aileron.api.faults import Answer, answer
from aileron.api.guard import Who
from aileron.api.shapes.schemas import ANY_OBJECT, BOOLEAN, MOMENT, TEXT, list_of, made_of, or_null
from aileron.api.shapes.values import moment
from aileron.base.json import JSON
from aileron.model.errors import Forbidden, InvalidRequest, LoginLapsed, NotFound, Unauthorized

from ._passkeys import MOST_NAME, AccountPasskeys, SignedInPerson
from .running import RunningPeople

TABLE = EndpointTable()

_PEOPLE = Who.OPERATOR | Who.WATCHER
"""Everybody with an account. The login of a viewer is one that only watches."""

_PATH = "/v1/account/passkeys"
_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": MOST_NAME}
_PASSPHRASE: Schema = {"type": "string", "maxLength": 1024}
_ASKED = made_of({"nonce": TEXT, "options": ANY_OBJECT})
_PASSKEY = made_of(
    {
        "id": TEXT,
        "name": TEXT,
        "added_at": MOMENT,
        "used_at": or_null(MOMENT),
        "synced": {"type": "boolean", "description": "whether the passkey may be copied to other devices"},
        "usable": {**BOOLEAN, "description": "false if the passkey was made for another public name"},
    }
)


@TABLE.route("GET", _PATH, operators=_PEOPLE, answers={200: made_of({"items": list_of(_PASSKEY)})})
async def list_own_passkeys(context: RequestContext, deps: Dependencies) -> Answer:
    """List the passkeys of the person's account, oldest first.

    :raises NotFound: if there is no public name.
    """
    passkeys, person = _find(context, deps)
    items: list[JSON] = [
        {
            "id": each.id,
            "name": each.name,
            "added_at": moment(each.added_at),
            "used_at": moment(used_at),
            "synced": each.synced,
            "usable": passkeys.is_usable(each),
        }
        for each, used_at in await passkeys.list(person)
    ]
    return answer({"items": items})


@TABLE.route("POST", f"{_PATH}/ask", operators=_PEOPLE, answers={200: _ASKED})
async def ask_own_passkey(context: RequestContext, deps: Dependencies) -> Answer:
    """Return the options with which a passkey of the person's account confirms that another one may be added.

    :raises Conflict: if the account has no passkey for this address, or passkeys are unavailable.
    :raises NotFound: if there is no public name.
    """
    passkeys, person = _find(context, deps)
    nonce, options = await passkeys.ask(person)
    return answer({"nonce": nonce, "options": dict(options)})


@TABLE.route(
    "POST",
    f"{_PATH}/offer",
    operators=_PEOPLE,
    body=made_of({}, {"passphrase": _PASSPHRASE, "nonce": TEXT, "credential": ANY_OBJECT}),
    answers={200: _ASKED},
)
async def offer_own_passkey(context: RequestContext, deps: Dependencies) -> Answer:
    """Return the options with which a browser makes a passkey for the person's account, within two minutes.

    The body confirms that the person is there: with the passphrase, or with the answer of another passkey. A wrong
    passphrase and a refused passkey are recorded.

    :raises Forbidden: if the confirmation is not valid.
    :raises LoginLapsed: if the login may only watch by now.
    :raises LimitExceeded: if there were too many attempts.
    :raises Conflict: if the account cannot have a further passkey, or passkeys are unavailable.
    :raises NotFound: if there is no public name.
    """
    passkeys, person = _find(context, deps)
    _require_fresh(context, deps)
    try:
        await _confirm(context, deps, person)
    except Forbidden:
        await deps.access_log.refuse()
        raise
    nonce, options = await passkeys.offer(person)
    return answer({"nonce": nonce, "options": dict(options)})


@TABLE.route(
    "POST",
    _PATH,
    operators=_PEOPLE,
    body=made_of({"nonce": TEXT, "name": _NAME, "credential": ANY_OBJECT}),
    answers={201: made_of({"id": TEXT, "name": TEXT})},
)
async def add_own_passkey(context: RequestContext, deps: Dependencies) -> Answer:
    """Add the passkey that a browser has made to the person's account.

    :raises Forbidden: if the offer is not fresh or was used.
    :raises LoginLapsed: if the login may only watch by now.
    :raises Conflict: if the passkey is not valid, or the account cannot have it.
    :raises NotFound: if there is no public name.
    :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be stored.
    """
    passkeys, person = _find(context, deps)
    _require_fresh(context, deps)
    nonce, name = str(context.body["nonce"]), str(context.body["name"]).strip()
    if not name:
        raise InvalidRequest("The passkey needs a name.")
    added = await passkeys.add(person, nonce, name, _object(context.body["credential"]))
    return answer({"id": added.id, "name": added.name}, status=201)


@TABLE.route("DELETE", f"{_PATH}/<passkey_id>", operators=_PEOPLE, answers={200: made_of({"id": TEXT, "name": TEXT})})
async def remove_own_passkey(context: RequestContext, deps: Dependencies, passkey_id: str) -> Answer:
    """Remove a passkey from the person's account.

    :raises LoginLapsed: if the login may only watch by now.
    :raises NotFound: if the account has no such passkey, or there is no public name.
    :raises Conflict: if the account was changed meanwhile.
    :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be stored.
    """
    passkeys, person = _find(context, deps)
    _require_fresh(context, deps)
    removed = await passkeys.remove(person, passkey_id)
    return answer({"id": removed.id, "name": removed.name})


def _running(deps: Dependencies) -> RunningPeople:
    found = deps.features.find(RunningPeople)
    if found is None:
        raise NotFound("People sign in at a public name, and none is in force.")
    return found


def _find(context: RequestContext, deps: Dependencies) -> tuple[AccountPasskeys, SignedInPerson]:
    """Return the passkeys of accounts, and the person who is signed in.

    :raises NotFound: if there is no public name.
    :raises Unauthorized: if the login has no account. See L{aileron.api.roles.ACCOUNT_ONLY}.
    """
    login = context.caller.account
    if login is None:
        raise Unauthorized("You are not signed in with an account.")
    return _running(deps).passkeys, SignedInPerson(login, context.caller.actor.id)


def _require_fresh(context: RequestContext, deps: Dependencies) -> None:
    """Check that the login has not lapsed. That of a viewer may only watch, but lapses as well.

    :raises LoginLapsed: if it has.
    """
    # guard of roles: a page that was left alone changes no passkey
    #    -> features.people.test_passkeys.RouteTests.test_lapsed
    if context.caller.actor.id not in {each.id for each in deps.operators.list() if each.decides}:
        raise LoginLapsed("You can watch. Sign in again to change your passkeys.")


async def _confirm(context: RequestContext, deps: Dependencies, person: SignedInPerson) -> None:
    """Check the confirmation in the body.

    :raises InvalidRequest: if there is none, or more than one.
    :raises Forbidden: if it is not valid.
    """
    confirming, body = _running(deps).confirming, context.body
    if set(body) == {"passphrase"}:
        await confirming.check_passphrase(person, str(body["passphrase"]))
    elif set(body) == {"nonce", "credential"}:
        await confirming.check_passkey(person, str(body["nonce"]), _object(body["credential"]))
    else:
        raise InvalidRequest("Send the passphrase, or the nonce and the credential of a passkey.")


def _object(value: JSON) -> Mapping[str, JSON]:
    if not isinstance(value, Mapping):
        raise InvalidRequest("The request body is not valid.")
    return value

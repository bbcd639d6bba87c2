"""The routes of Web Push: the registered browsers, the daemon's key, and a test.

A phone sees and removes only the browsers that it registered itself.
"""

from __future__ import annotations

from typing import cast

from aileron.api.dependencies import Dependencies
from aileron.api.endpoint import EndpointTable, RequestContext, Schema
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.shapes.schemas import TEXT, described, list_of, made_of
from aileron.api.shapes.values import to_json
from aileron.base.json import JSON
from aileron.model.errors import Conflict, NotFound

from .running import RunningPush, explain_unavailable, find_pages
from .values import PushBrowser

TABLE = EndpointTable()

_PATH = "/v1/notifications/browsers"
_BROWSER = described(
    PushBrowser,
    service={"description": "the host of the browser's push service"},
    sent_at={"description": "when the push service last accepted a message"},
    problem={"description": "why the last attempt failed; null: it did not"},
    phone={"description": "the phone that registered it; null: a page at the desk"},
)
_BROWSERS = made_of({"items": list_of(_BROWSER)})
_TEXT_OF: dict[str, Schema] = {
    name: {"type": "string", "minLength": 1, "maxLength": most}
    for name, most in {"endpoint": 1000, "p256dh": 100, "auth": 40, "name": 200}.items()
}


@TABLE.route("GET", _PATH, operators=READERS, answers={200: _BROWSERS})
async def list_browsers(context: RequestContext, deps: Dependencies) -> Answer:
    """List the browsers that are notified by Web Push, each with its state since the daemon started."""
    return answer(_list(context, _running(deps)))


@TABLE.route("POST", f"{_PATH}/key", operators=Who.OPERATOR, answers={200: made_of({"key": TEXT})})
async def show_push_key(context: RequestContext, deps: Dependencies) -> Answer:
    """Return the public key for which a browser subscribes. The first call makes the key."""
    return answer({"key": await _available(deps).browsers.read_public_key()})


@TABLE.route("POST", _PATH, operators=Who.OPERATOR, body=made_of(_TEXT_OF), answers={201: _BROWSER})
async def register_browser(context: RequestContext, deps: Dependencies) -> Answer:
    """Register a browser by its push subscription, in place of an earlier registration of the same endpoint.

    :raises InvalidRequest: if the endpoint or a key is not allowed.
    :raises Conflict: if there are too many browsers.
    :raises LimitExceeded: if too many were registered within an hour.
    :raises VaultLocked: if the vault is not unlocked.
    :raises NotFound: if the feature does not run.
    """
    told = {name: cast("str", context.body[name]) for name in _TEXT_OF}
    actor, pages = context.caller.actor, find_pages(deps)
    running = _available(deps)
    registered = await running.browsers.register(told, told["name"], actor, pages, _passkey_of(context))
    await running.notifier.set_baseline(registered.id)
    return answer(to_json(registered), status=201)


@TABLE.route("DELETE", f"{_PATH}/<browser_id>", operators=Who.OPERATOR, answers={200: _BROWSERS})
async def remove_browser(context: RequestContext, deps: Dependencies, browser_id: str) -> Answer:
    """Remove a browser, which is sent nothing more, and return the others.

    :raises NotFound: if no such browser is registered.
    :raises VaultLocked: if the vault is not unlocked.
    :raises NotFound: also if the feature does not run.
    """
    running = _running(deps)
    await running.browsers.remove(browser_id, context.caller.actor, passkey=_passkey_of(context))
    return answer(_list(context, running))


@TABLE.route("POST", f"{_PATH}/test", operators=Who.OPERATOR, answers={200: _BROWSERS})
async def try_browsers(context: RequestContext, deps: Dependencies) -> Answer:
    """Send a test to every browser, one attempt each, and return their states after it.

    :raises VaultLocked: if the vault is not unlocked.
    :raises NotFound: if the feature does not run.
    :raises StoreUnavailable: if the store cannot be read or written.
    """
    running = _running(deps)
    await running.notifier.test()
    return answer(_list(context, running))


def _list(context: RequestContext, running: RunningPush) -> JSON:
    return {"items": [to_json(each) for each in running.browsers.list(_passkey_of(context))]}


def _passkey_of(context: RequestContext) -> str | None:
    """Return the ID of the passkey by which a phone's page is logged in, or None for a page on the computer."""
    operator = context.caller.operator
    return None if operator is None else operator.passkey


def _available(deps: Dependencies) -> RunningPush:
    running = _running(deps)
    unavailable = explain_unavailable(find_pages(deps))
    if unavailable is not None:
        raise Conflict(unavailable)
    return running


def _running(deps: Dependencies) -> RunningPush:
    found = deps.features.find(RunningPush)
    if found is None:
        raise NotFound("This daemon sends no Web Push.")
    return found

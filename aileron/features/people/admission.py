"""Signs a page of a person in, or refuses it, for every way in which accounts sign in."""

from __future__ import annotations

from collections.abc import Mapping

from twisted.web.iweb import IRequest

from aileron.api import Dependencies, login_payload
from aileron.api.guard import signed_request
from aileron.base.json import JSON
from aileron.features.phone.bodies import write_json
from aileron.model.audit import Actor
from aileron.model.people import AccountLogin
from aileron.web import set_cookie

_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    b"manifest-src 'self'; worker-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


async def admit_page(
    request: IRequest, deps: Dependencies, login: AccountLogin, public_key: str, told: Mapping[str, str]
) -> bytes:
    """Start the login of a page with this key, record it, set its cookie, and return the daemon's instance as JSON.

    :param told: what is recorded besides: C{by}, the way in which the person signed in.
    :raises InvalidRequest: if the key is invalid.
    :raises StoreUnavailable: if the login cannot be recorded. It has ended then.
    """
    before = signed_request(request, deps).cookie
    cookie, session = deps.operators.admit_account(public_key, login, before)
    payload: dict[str, JSON] = {**login_payload(deps, session), "account": login.account, "name": login.name, **told}
    try:
        await deps.access_log.record("operator.login", Actor("human", session.id), payload)
    except BaseException:
        # guard of roles: a login that is not on record ends
        #    -> features.people.test_entrance.SignInTests.test_unrecorded
        deps.operators.log_out(session.id)
        raise
    set_cookie(request, deps, cookie, "/")
    return write_json(request, {"instance": deps.instance})


async def refuse_page(request: IRequest, deps: Dependencies, words: str) -> bytes:
    """Answer with 401 and these words, without the advice for the operator, and record a refused login.

    :raises StoreUnavailable: if it cannot be recorded.
    """
    await deps.access_log.refuse()
    request.setResponseCode(401)
    request.setHeader(b"Content-Type", b"text/plain; charset=utf-8")
    return words.encode()


def send_page(request: IRequest, content: str) -> bytes:
    """Return a page that is shown without a login, and set its headers. Nobody stores it."""
    request.setHeader(b"Content-Type", b"text/html; charset=utf-8")
    request.setHeader(b"Content-Security-Policy", _POLICY)
    request.setHeader(b"Cache-Control", b"no-store")
    return content.encode()

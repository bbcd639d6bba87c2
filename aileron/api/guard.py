"""Authenticates the requests of both sites: reads one credential and looks it up by its hash.

Neither site accepts the other's credentials.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Iterator
from enum import Flag, auto
from typing import TypeAlias

from attrs import evolve, field, frozen
from twisted.web.iweb import IRequest

from aileron.base.converter import to_json
from aileron.base.json import JSON
from aileron.model.audit import Actor
from aileron.model.errors import Forbidden, LoginLapsed, Unauthorized
from aileron.model.people import AccountLogin, Role
from aileron.model.sessions import IN_BAND_KEY, OperatorSession, Session, SignedRequest

from .channels.request import MemoryRequest
from .dependencies import Dependencies
from .roles import require_role
from .tokens import AGENT_TOKEN, OPERATOR_TOKEN, token_digest

PROOF = "X-Aileron-Proof"
"""The header of a page's signature. Only the cookie and the signature together identify a browser."""

LEVEL = "X-Aileron-Level"
"""The header by which a browser's page learns what its login may do: C{deciding} or C{reading}."""

ROLE = "X-Aileron-Role"
"""The header by which the page of a person's login learns the role of the account."""

INSTANCE = "X-Aileron-Instance"
"""The header by which a refused page learns that the daemon was restarted since the login."""

POLL = "X-Aileron-Poll"
"""The header that marks a page's automatic request, which does not extend the session."""

_AUTHORIZATION = b"Authorization"


class Who(Flag):
    """Kinds of callers.

    C{OPERATOR}: a login that may decide.  C{WATCHER}: a browser's login that may only read.
    """

    ANYONE = auto()
    LAUNCH = auto()
    AGENT = auto()
    OPERATOR = auto()
    SCRAPER = auto()
    LOCAL = auto()
    WATCHER = auto()


NONE = Who(0)
READERS = Who.OPERATOR | Who.LOCAL | Who.WATCHER
"""The callers that may read stored data, and pause or lock: the operator, programs that can read the home, and browsers
whose login only reads.

Programs that can read the home can read the database and stop the daemon anyway. Neither they nor such browsers can
decide, trust, grant or bind.
"""


@frozen
class Caller:
    """The authenticated sender of a request.

    :ivar session: the agent's session, or None.
    :ivar operator: the operator's session, or None.
    :ivar token: the operator's token, if one was sent.
    :ivar role: the role of the person whose account it is, or None for the operator, who may do everything.
    """

    who: Who
    session: Session | None = None
    operator: OperatorSession | None = None
    token: str | None = field(default=None, repr=False)
    role: Role | None = None

    @property
    def actor(self) -> Actor:
        """The caller in the form in which the audit log stores it."""
        if self.operator is not None:
            return Actor("human", self.operator.id)
        if self.session is not None:
            return Actor("agent", self.session.id)
        return Actor("service", "local" if self.who is Who.LOCAL else "launch")

    @property
    def account(self) -> AccountLogin | None:
        """The account of the person's login, or None if the caller has none."""
        return None if self.operator is None else self.operator.account

    @property
    def is_reader(self) -> bool:
        """True if the caller may see all sessions."""
        return self.who in READERS

    @property
    def only_reads(self) -> bool:
        """True if the caller may not decide. A read for it sends nothing to a service and stores nothing."""
        return self.who in Who.LOCAL | Who.WATCHER

    @property
    def session_id(self) -> str | None:
        """The id of the agent's session, or None if the caller is not an agent."""
        return None if self.session is None else self.session.id

    def may_see(self, session_id: str | None) -> bool:
        """Return whether the caller may see things of this session: every reader may, and an agent sees its own."""
        return self.is_reader or (self.session is not None and self.session.id == session_id)


ANONYMOUS = Caller(Who.ANYONE)
Identify: TypeAlias = Callable[[IRequest, Dependencies], Awaitable[Caller]]


async def on_agent_site(request: IRequest, deps: Dependencies) -> Caller:
    """Return the caller with a launch key or an agent token.

    :raises Unauthorized: if the credential is unknown, or its session has ended.
    """
    return await agent_caller(bearer(request), deps)


async def agent_caller(token: str, deps: Dependencies) -> Caller:
    """Return the caller with a launch key or an agent token.

    :raises Unauthorized: if the token is unknown, or its session has ended.
    """
    digest = token_digest(token)
    if hmac.compare_digest(digest, deps.launch_key_digest):
        return Caller(Who.LAUNCH)
    return await _agent(await deps.sessions.by_token(digest) if token.startswith(AGENT_TOKEN) else None, deps)


async def in_band_caller(key: str, deps: Dependencies) -> Caller:
    """Return the agent whose in-band key this is. HTTP requests cannot use it as a credential.

    :raises Unauthorized: if the key is unknown, or its session has ended.
    """
    found = await deps.sessions.by_in_band_key(token_digest(key)) if key.startswith(IN_BAND_KEY) else None
    return await _agent(found, deps)


async def _agent(session: Session | None, deps: Dependencies) -> Caller:
    if session is None:
        raise _unknown()
    if not session.live or await deps.leases.end_if_removed(session):
        raise Unauthorized("The session of this token has ended.")
    return Caller(Who.AGENT, session=session)


async def on_operator_site(request: IRequest, deps: Dependencies) -> Caller:
    """Return the caller on the operator site.

    The credential is a token, or a browser's cookie and signature together. The metrics also accept their own token,
    and routes that only read, pause or lock accept the local key of C{daemon.json}. An unknown token is recorded as a
    refused login.

    :raises Unauthorized: if there is no valid credential.
    :raises StoreUnavailable: if it cannot be recorded.
    """
    if header(request, _AUTHORIZATION) is None:
        asked = signed_request(request, deps)
        if asked.proof:  # a cookie of another daemon process has another name; its browser must learn of the restart
            return await _in_browser(request, deps, asked)
    token = bearer(request)
    if hmac.compare_digest(token_digest(token), deps.local_key_digest):
        return Caller(Who.LOCAL)
    scraper = deps.metrics_token_digest
    if scraper is not None and hmac.compare_digest(token_digest(token), scraper):
        return Caller(Who.SCRAPER)
    session = deps.operators.by_token(token) if token.startswith(OPERATOR_TOKEN) else None
    if session is None:
        await deps.access_log.refuse()
        raise _unknown()
    return Caller(Who.OPERATOR, operator=session, token=token)


async def by_passkey(request: IRequest, deps: Dependencies) -> Caller:
    """Return the caller at the public name: a browser that a passkey let in. No token or key counts there.

    :raises Unauthorized: if no such login signed the request.
    """
    return await _in_browser(request, deps, signed_request(request, deps))


def signed_request(request: IRequest, deps: Dependencies, *, waiting: bool = False) -> SignedRequest:
    """Return a browser's request with its cookie and signature, which are empty if missing.

    A page of a neighbouring name or port can set more cookies of this name. Only the daemon's own cookie counts.

    :param waiting: True for the cookie of a page whose two words were not typed in a terminal yet. It may be beside the
        cookie of a login.
    """
    knows = deps.operators.expects_cookie if waiting else deps.operators.knows_cookie
    body = request.content.read()
    request.content.seek(0)
    return SignedRequest(
        cookie=next(filter(knows, _cookies(request, deps.cookie)), ""),
        proof=header(request, PROOF.encode("ascii")) or "",
        method=request.method.decode("latin-1"),
        target=request.uri.decode("latin-1"),
        body_digest=hashlib.sha256(body).digest(),
    )


def _cookies(request: IRequest, name: bytes) -> Iterator[str]:
    """Yield the values of all cookies of a name, in the browser's order."""
    for line in request.requestHeaders.getRawHeaders(b"Cookie", ()):
        for pair in line.split(b";"):
            found, _, value = pair.strip().partition(b"=")
            if found == name:
                yield value.decode("latin-1")


async def browser_session(
    request: IRequest, deps: Dependencies, asked: SignedRequest
) -> tuple[OperatorSession, Role | None]:
    """Return the session of the browser that signed a request, and the role of its account, or None for the operator.

    The session of a viewer decides nothing. Headers of the response say whether the browser may decide or only read,
    and the role.

    :raises Unauthorized: if no session matches, or its account was removed or changed.
    :raises StoreUnavailable: if the account cannot be read.
    """
    used = header(request, POLL.encode("ascii")) is None
    session = deps.operators.by_browser(asked, renew=used)
    if session is None:
        request.setHeader(INSTANCE, deps.instance)
        raise Unauthorized("You are not logged in.")
    # guard of roles: the account is read for each request -> features.people.test_roles.RoleTests.test_removed
    role = None if session.account is None else await _find_role(request, deps, session, session.account)
    if role is not None:
        # guard of roles: a viewer only watches -> features.people.test_roles.RoleTests.test_viewer
        session = evolve(session, decides=session.decides and role.covers(Role.APPROVER))
        request.setHeader(ROLE, role.value.encode("ascii"))
    request.setHeader(LEVEL, b"deciding" if session.decides else b"reading")
    return session, role


async def _find_role(request: IRequest, deps: Dependencies, session: OperatorSession, account: AccountLogin) -> Role:
    """Return the present role of a login's account. If the account was removed or changed, end the login.

    :raises Unauthorized: if it was.
    :raises StoreUnavailable: if the account cannot be read.
    """
    role = await deps.find_role(account)
    if role is None:
        deps.operators.log_out(session.id)
        deps.forget_places(session.id)
        request.setHeader(INSTANCE, deps.instance)
        raise Unauthorized("Your account was changed or removed. Sign in again.")
    return role


async def _in_browser(request: IRequest, deps: Dependencies, asked: SignedRequest) -> Caller:
    session, role = await browser_session(request, deps, asked)
    # guard against attack: a login that may only read decides nothing -> test_watching.WatchingTests.test_every_route,
    #    instead return Caller(Who.OPERATOR, operator=session)
    return Caller(Who.OPERATOR if session.decides else Who.WATCHER, operator=session, role=role)


def login_payload(deps: Dependencies, session: OperatorSession) -> dict[str, JSON]:
    """Return the payload of a login's audit event: the browser, and its public key if it signs decisions."""
    key = deps.operators.key_of(session.id)
    told: dict[str, JSON] = {"browser": session.browser}
    return told if key is None else {**told, "key": to_json(key)}


async def admit(
    allowed: Who, identify: Callable[[], Awaitable[Caller]], keep: Callable[[str], object], route: str = ""
) -> Caller:
    """Return the caller if its kind, and the role of its account, are allowed on this route.

    :param identify: reads the credential. It is not called if anyone is allowed.
    :param keep: called with the owner of the credential, to protect the connection while the site is full.
    :param route: the name of the route, from which its least role follows.
    :raises Unauthorized: if the credential is unknown.
    :raises LoginLapsed: if the browser's login may only read, and this route needs one that may decide.
    :raises Forbidden: if the kind of caller, or its role, is not allowed.
    """
    if Who.ANYONE in allowed:
        return ANONYMOUS
    caller = await identify()
    keep(caller.actor.id)
    # guard of roles: a route is called with its least role -> features.people.test_roles.RoleTests.test_every_route
    require_role(route, caller.role)
    if caller.who is Who.WATCHER and caller.who not in allowed:
        raise LoginLapsed("You can watch; to decide, run `aileron open`.")
    if caller.who not in allowed:
        raise Forbidden("This credential may not do that.")
    return caller


def keep_place(request: IRequest, owner: str) -> None:
    """Protect a request's connection from being dropped while the site is full.

    :param owner: the owner of the request's credential.
    """
    if isinstance(request, MemoryRequest):
        request.keep_place(owner)


def bearer(request: IRequest) -> str:
    """Return the bearer token of a request.

    :raises Unauthorized: if there is none.
    """
    scheme, _, token = (header(request, _AUTHORIZATION) or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized("This needs a credential: Authorization: Bearer …")
    return token.strip()


def _unknown() -> Unauthorized:
    return Unauthorized("This credential is not valid here.")


def header(request: IRequest, name: bytes) -> str | None:
    """Return the value of a header, or None if there is none. Any byte is decoded, since a client may send any."""
    value = request.getHeader(name)
    return None if value is None else value.decode("latin-1")

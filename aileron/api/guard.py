"""The guard of both sites: one credential, read, hashed, looked up. Neither site knows the other's credentials."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Iterator
from enum import Flag, auto
from typing import TypeAlias

from attrs import field, frozen
from twisted.web.iweb import IRequest

from aileron.model.audit import Actor
from aileron.model.errors import Forbidden, Unauthorized
from aileron.model.sessions import IN_BAND_KEY, OperatorSession, Session, SignedRequest

from .channels.request import MemoryRequest
from .dependencies import Dependencies
from .tokens import AGENT_TOKEN, OPERATOR_TOKEN, token_digest

PROOF = "X-Aileron-Proof"
"""The header of a page's signature: without it the cookie of the browser is worth nothing, nor it without that."""

INSTANCE = "X-Aileron-Instance"
"""The header by which a page that is refused learns that the daemon is another one than it was let in by."""

POLL = "X-Aileron-Poll"
"""The header by which a page says that it asks by itself, which keeps no session alive."""

_AUTHORIZATION = b"Authorization"


class Who(Flag):
    """Kinds of callers."""

    ANYONE = auto()
    LAUNCH = auto()
    AGENT = auto()
    OPERATOR = auto()
    SCRAPER = auto()
    LOCAL = auto()


NONE = Who(0)
READERS = Who.OPERATOR | Who.LOCAL
"""Who may see what the database holds, and pause or lock: the operator, and every program that can read the home.

Such a program reads the database as well, and can end the daemon. It decides, trusts, grants and binds nothing.
"""


@frozen
class Caller:
    """The proven sender of a request.

    :ivar session: an agent's.
    :ivar operator: an operator's.
    :ivar token: the operator's own, where it was sent as a token.
    """

    who: Who
    session: Session | None = None
    operator: OperatorSession | None = None
    token: str | None = field(default=None, repr=False)

    @property
    def actor(self) -> Actor:
        """The caller, as the audit record names it."""
        if self.operator is not None:
            return Actor("human", self.operator.id)
        if self.session is not None:
            return Actor("agent", self.session.id)
        return Actor("service", "local" if self.who is Who.LOCAL else "launch")

    @property
    def is_reader(self) -> bool:
        """True if the caller may see what belongs to any session."""
        return self.who in READERS

    @property
    def only_reads(self) -> bool:
        """True if the caller has no login: reading for it sends nothing to a service and stores nothing."""
        return self.who is Who.LOCAL

    @property
    def session_id(self) -> str | None:
        """The id of the agent's session; L{None}: the caller is no agent."""
        return None if self.session is None else self.session.id

    def may_see(self, session_id: str | None) -> bool:
        """Tell whether what belongs to this session is the caller's to see."""
        return self.is_reader or (self.session is not None and self.session.id == session_id)


ANONYMOUS = Caller(Who.ANYONE)
Identify: TypeAlias = Callable[[IRequest, Dependencies], Awaitable[Caller]]


async def on_agent_site(request: IRequest, deps: Dependencies) -> Caller:
    """Return the launch key's or an agent token's holder.

    :raises Unauthorized: neither; or its session has ended.
    """
    return await agent_caller(bearer(request), deps)


async def agent_caller(token: str, deps: Dependencies) -> Caller:
    """Return the holder of a launch key or an agent token.

    :raises Unauthorized: it is neither; or its session has ended.
    """
    digest = token_digest(token)
    if hmac.compare_digest(digest, deps.launch_key_digest):
        return Caller(Who.LAUNCH)
    return _agent(await deps.sessions.by_token(digest) if token.startswith(AGENT_TOKEN) else None)


async def in_band_caller(key: str, deps: Dependencies) -> Caller:
    """Return the agent whose in-band key this is.  No request over HTTP proves anything by it.

    :raises Unauthorized: it is none; or its session has ended.
    """
    return _agent(await deps.sessions.by_in_band_key(token_digest(key)) if key.startswith(IN_BAND_KEY) else None)


def _agent(session: Session | None) -> Caller:
    if session is None:
        raise _unknown()
    if not session.live:
        raise Unauthorized("The session of this token has ended.")
    return Caller(Who.AGENT, session=session)


async def on_operator_site(request: IRequest, deps: Dependencies) -> Caller:
    """Let in the operator.

    By token, or by a browser's cookie and signature together. The metrics also open to their own token, and what
    only reads, pauses or locks to the local key of C{daemon.json}.

    :raises Unauthorized: neither.
    """
    if header(request, _AUTHORIZATION) is None:
        asked = signed_request(request, deps)
        if asked.proof:  # with another life's cookie, whose name is another, it is a browser that must learn of that
            return _in_browser(request, deps, asked)
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


def signed_request(request: IRequest, deps: Dependencies) -> SignedRequest:
    """Read what a browser asks for; where it sent no cookie or no signature, these are empty.

    A page of a neighbouring name or port can set more cookies of the same name. The one that the daemon gave counts.
    """
    body = request.content.read()
    request.content.seek(0)
    return SignedRequest(
        cookie=next(filter(deps.operators.knows_cookie, _cookies(request, deps.cookie)), ""),
        proof=header(request, PROOF.encode("ascii")) or "",
        method=request.method.decode("latin-1"),
        target=request.uri.decode("latin-1"),
        body_digest=hashlib.sha256(body).digest(),
    )


def _cookies(request: IRequest, name: bytes) -> Iterator[str]:
    """Yield the values of all cookies of a name, in the order in which the browser sent them."""
    for line in request.requestHeaders.getRawHeaders(b"Cookie", ()):
        for pair in line.split(b";"):
            found, _, value = pair.strip().partition(b"=")
            if found == name:
                yield value.decode("latin-1")


def _in_browser(request: IRequest, deps: Dependencies, asked: SignedRequest) -> Caller:
    used = header(request, POLL.encode("ascii")) is None
    session = deps.operators.by_browser(asked, renew=used)
    if session is None:
        request.setHeader(INSTANCE, deps.instance)
        raise _unknown()
    return Caller(Who.OPERATOR, operator=session)


async def admit(allowed: Who, identify: Callable[[], Awaitable[Caller]], keep: Callable[[str], object]) -> Caller:
    """Return the caller, if it is of a kind that this route allows.

    :param identify: reads the credential; it is not asked where anyone may come.
    :param keep: is told the owner of a credential, whose connection keeps its place from then on.
    :raises Unauthorized: its credential is unknown.
    :raises Forbidden: it may not do this.
    """
    if Who.ANYONE in allowed:
        return ANONYMOUS
    caller = await identify()
    keep(caller.actor.id)
    if caller.who not in allowed:
        raise Forbidden("This credential may not do that.")
    return caller


def keep_place(request: IRequest, owner: str) -> None:
    """Have the connection of a request keep its place while the site is flooded.

    :param owner: who sent it, as its credential proved.
    """
    if isinstance(request, MemoryRequest):
        request.keep_place(owner)


def bearer(request: IRequest) -> str:
    """Read the token that came with a request.

    :raises Unauthorized: none did.
    """
    scheme, _, token = (header(request, _AUTHORIZATION) or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized("This needs a credential: Authorization: Bearer …")
    return token.strip()


def _unknown() -> Unauthorized:
    return Unauthorized("This credential is not valid here.")


def header(request: IRequest, name: bytes) -> str | None:
    """Read a field's value; any byte is a character, since anyone may send any byte."""
    value = request.getHeader(name)
    return None if value is None else value.decode("latin-1")

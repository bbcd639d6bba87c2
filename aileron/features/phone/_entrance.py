"""Serves the requests that need no login at the phone's pages: pairing a phone with a code, and signing in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from attrs import frozen
from twisted.web.iweb import IRequest

from aileron.api import Dependencies
from aileron.api.guard import signed_request
from aileron.api.shapes.values import to_json
from aileron.base.json import JSON
from aileron.model.audit import DAEMON, Actor
from aileron.model.authority import Passkey
from aileron.model.errors import Conflict, InvalidRequest, NotFound, Unauthorized
from aileron.model.sessions import HandOverState
from aileron.model.signing import EnrolledKey
from aileron.web import Entrance, set_cookie
from aileron.web.parts import Shell

from ._pairing import Pairings
from ._signing_in import SignIns, StrangerLimit
from .bodies import read_members, write_json

SHOWN = ("/", "/approvals", "/approvals/<run_id>", "/runs", "/runs/<run_id>", "/history")
"""The pages at the public name."""

ROUTES = (
    "decide",
    "ask_passkey",
    "ask_for_list",
    "edit",
    "withdraw",
    "snooze",
    "deny_session",
    "follow_events",
    "pause",
    "logout",
    "list_pending",
    "show_pending",
    "show_push_key",
    "register_browser",
    "remove_browser",
)
"""The operator's routes at the public name: what the buttons of L{SHOWN} call. No other route is served there."""

_STATIC = Path(__file__).with_name("static")
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    b"manifest-src 'self'; worker-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SIGN_IN = '<a id="enter-again" class="button enter-again" href="/signin" hidden>Sign in</a>'
CHANGES = {
    "/static/manifest.webmanifest": "/static/phone.webmanifest",
    "</head>": '<link rel="stylesheet" href="/static/phone.css">\n</head>',
    'class="brand" href="/home"': 'class="brand" href="/approvals"',
    '<button type="button" id="enter-again" class="enter-again" hidden>Enter a code</button>': _SIGN_IN,
    '<p id="level" role="status">': '<p id="level" role="status" data-reading="You can watch. Sign in to decide.">',
    '<template id="no-session">': (
        '<template id="no-session">\n<h1 tabindex="-1">Sign in</h1>\n<p id="why"></p>\n'
        '<p><a class="button yes" href="/signin">Sign in with your passkey</a></p>\n</template>\n'
        '<template id="desk-session">'
    ),
}
"""How the shell differs from the one at the desk."""

Serve = Callable[[IRequest, Dependencies, Shell], Awaitable[bytes]]


@frozen
class PhoneEntrance:
    """The handlers of pairing a phone and of signing in with its passkey.

    :ivar clears_cache: whether a sign-in empties the browser's cache. Another program may have served a page at this
        address.
    """

    _pairings: Pairings
    _sign_ins: SignIns
    _limit: StrangerLimit
    _key_of: Callable[[str], EnrolledKey | None]
    _clears_cache: bool = False

    def entrance(self) -> Entrance:
        """Return the routes and static files of pairing and signing in, for the phone's site."""
        routes: Sequence[tuple[str, str, Serve]] = (
            ("/pair", "GET", _page("pair.html")),
            ("/signin", "GET", _page("signin.html")),
            ("/pair/open", "POST", self.open),
            ("/pair/passkey", "POST", self.propose),
            ("/pair/state", "POST", self.progress),
            ("/signin/nonce", "POST", self.offer),
            ("/signin", "POST", self.sign_in),
        )
        files = tuple(_STATIC / name for name in ("phone.js", "phone.css", "phone.webmanifest"))
        return Entrance(routes, SHOWN, CHANGES, files)

    async def open(self, request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
        """Exchange the code for the options of a passkey. Return the page's secret and the options as JSON.

        The outcome is recorded in the audit log.

        :raises InvalidRequest: if the body is something else.
        :raises LimitExceeded: if strangers send too much.
        :raises Unauthorized: if the code is unknown, or its pairing has ended.
        :raises Conflict: if the code was used before.
        :raises StoreUnavailable: if it cannot be recorded.
        """
        (code,) = self._read(request, "code")
        try:
            page, options = self._pairings.redeem(str(code))
        except Conflict:
            await deps.access_log.record("phone.pairing_refused", DAEMON, {"reason": HandOverState.TWICE.value})
            raise
        except Unauthorized:
            await deps.access_log.refuse()
            raise
        await deps.access_log.record("phone.pairing_opened", DAEMON, {})
        return write_json(request, {"page": page, "options": dict(options)})

    async def propose(self, request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
        """Accept the passkey that the page made, and return the two words to show.

        :raises InvalidRequest: if the body is something else, or the passkey is refused.
        :raises LimitExceeded: if strangers send too much.
        :raises Unauthorized: if the page has no pairing, or has made a passkey already.
        :raises Conflict: if the passkey is refused.
        """
        page, credential = self._read(request, "page", "credential")
        return write_json(request, {"words": self._pairings.propose(str(page), _object(credential))})

    async def progress(self, request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
        """Return as JSON the state of the page's pairing, which tells the page whether its words were typed.

        :raises InvalidRequest: if the body is something else.
        :raises LimitExceeded: if strangers send too much.
        :raises Unauthorized: if the page has no pairing.
        """
        (page,) = self._read(request, "page")
        return write_json(request, {"state": self._pairings.progress(str(page)).value})

    async def offer(self, request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
        """Return a new sign-in challenge as JSON, valid for one minute.

        :raises InvalidRequest: if the body is not an empty JSON object.
        :raises LimitExceeded: if strangers send too much.
        """
        self._read(request)
        return write_json(request, self._sign_ins.offer())

    async def sign_in(self, request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
        """Start the login of the page whose key a passkey has signed. Set the cookie, and return the daemon's instance.

        The login, or its refusal, is recorded.

        :raises InvalidRequest: if the body is something else.
        :raises LimitExceeded: if strangers send too much.
        :raises Unauthorized: if the nonce is not fresh or was used, or the signature is not valid.
        :raises NotFound: if there is no such passkey.
        :raises StoreUnavailable: if it cannot be recorded.
        """
        nonce, public_key, credential = self._read(request, "nonce", "public_key", "credential")
        try:
            passkey = self._sign_ins.verify(str(nonce), str(public_key), _object(credential))
        except (Unauthorized, NotFound):
            await deps.access_log.refuse()
            raise
        before = signed_request(request, deps).cookie
        cookie, session = deps.operators.admit_passkey(str(public_key), passkey.id, before)
        await deps.access_log.record("operator.login", Actor("human", session.id), self._told(session.id, passkey))
        set_cookie(request, deps, cookie, "/")
        # guard of the phone: a sign-in clears another program's page -> phone.test_door.PlainTests.test_cleared
        if self._clears_cache:
            request.setHeader(b"Clear-Site-Data", b'"cache"')
        return write_json(request, {"instance": deps.instance})

    def _told(self, session_id: str, passkey: Passkey) -> dict[str, JSON]:
        key = self._key_of(session_id)
        told: dict[str, JSON] = {"browser": True, "passkey": passkey.id, "name": passkey.name}
        return told if key is None else {**told, "key": to_json(key)}

    def _read(self, request: IRequest, *names: str) -> list[JSON]:
        """Return the members of the body, which are exactly these.

        :raises LimitExceeded: if strangers send too much.
        :raises InvalidRequest: if the body is something else.
        """
        self._limit.take()
        return read_members(request, *names)


def _object(value: JSON) -> Mapping[str, JSON]:
    if not isinstance(value, Mapping):
        raise InvalidRequest("The request body is not valid.")
    return value


def read_sign_in_page() -> str:
    """Return the page for signing in with a passkey."""
    return (_STATIC / "signin.html").read_text(encoding="utf-8")


def _page(name: str) -> Serve:
    """Return the handler of a page that does nothing before its button is pressed."""
    content = (_STATIC / name).read_bytes()

    async def serve(request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
        request.setHeader(b"Content-Type", b"text/html; charset=utf-8")
        request.setHeader(b"Content-Security-Policy", _POLICY)
        request.setHeader(b"Cache-Control", b"no-store")
        return content

    return serve

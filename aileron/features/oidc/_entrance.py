"""Serves the requests with which a person signs in with the provider, at the public name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlencode

from attrs import field, frozen
from twisted.web.iweb import IRequest
from twisted.web.template import flattenString, tags

from aileron.api import Dependencies
from aileron.base.text import visible
from aileron.credentials import BrowserSignIn, NotOurCallback, SignInRefused
from aileron.features.people.admission import admit_page, refuse_page, send_page
from aileron.features.people.running import Accounts
from aileron.features.phone.bodies import read_members, write_json
from aileron.model.errors import (
    BindingFailed,
    Conflict,
    Forbidden,
    InvalidRequest,
    LimitExceeded,
    Unauthorized,
)
from aileron.model.people import AccountLogin
from aileron.web.parts import Shell

from ._attempts import ATTEMPT_SECONDS, COOKIE, EXPIRED, ProviderAttempt, ProviderAttempts
from ._confirmations import Confirmations
from ._membership import find_role, make_account_id, make_name
from ._provider import SignInProvider, VerifiedPerson
from .values import OidcSettings

Serve: TypeAlias = Callable[[IRequest, Dependencies, Shell], Awaitable[bytes]]

RETURN_PATH = "/signin/oidc/return"
"""The path of the redirect URI."""

MOST_AT_ONCE = 8
"""The most sign-ins for which the provider is asked at once."""

FILES = (Path(__file__).with_name("static") / "oidc.js",)
_RETURN_PAGE = Path(__file__).with_name("static") / "return.html"
_MOST_BYTES = 16 * 1024
_SEED_BYTES = 32
_PLAIN = "Nobody signs in here: something other than Aileron ends TLS (phone.tls in config.yaml)."
_NO_ROLE = "{name} knows you, but gives you no role in this Aileron. Ask the person who runs it to add you to a group."
_SCRIPT = '<script src="/static/oidc.js" type="module"></script>\n</head>'


@frozen
class SignInSite:
    """The public name, as the sign-in with the provider uses it.

    :ivar redirect_uri: the address to which the provider sends the browser.
    :ivar limit: counts a request without a login, and raises L{LimitExceeded} if there are too many.
    :ivar show_sign_in: the handler of the page for signing in by the other ways.
    :ivar is_plain: whether the daemon is reached by plain HTTP. Nobody signs in then.
    """

    redirect_uri: str
    limit: Callable[[], None]
    show_sign_in: Serve
    is_plain: bool = False


@frozen(eq=False)
class ProviderEntrance:
    """The handlers of signing in with the provider."""

    _settings: OidcSettings
    _provider: SignInProvider
    _attempts: ProviderAttempts
    _confirmations: Confirmations
    _accounts: Accounts
    _randomness: Callable[[int], bytes]
    _site: SignInSite
    _under_way: list[None] = field(factory=list, init=False)

    def routes(self) -> Sequence[tuple[str, str, Serve]]:
        """Return the handlers, each with its path and method."""
        return (
            ("/signin", "GET", self.show_sign_in),
            (RETURN_PATH, "GET", self.show_return),
            ("/signin/oidc/begin", "POST", self.begin),
            ("/signin/oidc", "POST", self.sign_in),
        )

    async def show_sign_in(self, request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
        """Return the page for signing in, with the button of the provider.

        :raises StoreUnavailable: if the accounts cannot be read.
        """
        page = (await self._site.show_sign_in(request, deps, shell)).decode()
        button = tags.button(f"Sign in with {visible(self._settings.name)}", type="button", id="provider", disabled="")
        drawn = (await flattenString(None, tags.p(button))).decode()
        return page.replace("</head>", _SCRIPT).replace('<p id="trouble"', f'{drawn}\n<p id="trouble"').encode()

    async def show_return(self, request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
        """Return the page to which the provider sends the browser. The page is the same for everybody.

        The query is not read here, so that opening an address signs nobody in. The page sends it by POST.
        """
        return send_page(request, _RETURN_PAGE.read_text(encoding="utf-8"))

    async def begin(self, request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
        """Begin an attempt: set its cookie, and return the address of the provider's page as JSON.

        :raises InvalidRequest: if the body is something else.
        :raises LimitExceeded: if there are too many requests without a login.
        :raises Conflict: if nobody signs in here, or the provider cannot be used as it is configured.
        :raises NetworkError: if the provider cannot be reached.
        """
        self._read(request)
        cookie, attempt = self._attempts.begin(self._randomness(_SEED_BYTES))
        try:
            sign_in = await self._provider.open(attempt, self._site.redirect_uri)
        except (SignInRefused, BindingFailed) as error:
            raise Conflict(f"{error} Tell the person who runs this Aileron.") from None
        _set_attempt(request, cookie, ATTEMPT_SECONDS)
        return write_json(request, {"url": f"{sign_in.authorize_url}&{urlencode({'nonce': attempt.nonce})}"})

    async def sign_in(self, request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
        """Sign in the page to which the provider has sent the browser. The attempt is used up.

        The answer is 401 if the attempt, the provider's answer or the person is refused.

        :raises InvalidRequest: if the body is something else.
        :raises LimitExceeded: if there are too many requests without a login.
        :raises Conflict: if nobody signs in here, or the account cannot be used.
        :raises NetworkError: if the provider cannot be reached.
        :raises VaultLocked, StoreUnavailable: if the account cannot be read or stored, or the login cannot be recorded.
        """
        query, public_key = self._read(request, "query", "public_key")
        try:
            attempt = self._find_attempt(request)
            login = await self._exchange(attempt, query)
        except (SignInRefused, Unauthorized, Forbidden, BindingFailed) as error:
            return await refuse_page(request, deps, visible(str(error)))
        _set_attempt(request, "", 0)
        return await admit_page(request, deps, login, public_key, {"by": "provider"})

    async def _exchange(self, attempt: ProviderAttempt, query: str) -> AccountLogin:
        # guard of sign-in: strangers have the provider asked a few times at once
        #    -> features.oidc.test_entrance.LimitTests.test_at_once
        if len(self._under_way) >= MOST_AT_ONCE:
            raise LimitExceeded("Too many people sign in at once. Try again in a moment.", {"retry_after": 2})
        self._under_way.append(None)
        try:
            sign_in = await self._provider.open(attempt, self._site.redirect_uri)
            code = self._read_answer(sign_in, attempt, query)
            person = await self._provider.redeem(sign_in, code, attempt.nonce)
        finally:
            self._under_way.pop()
        return await self._admit(person, attempt)

    def _read_answer(self, sign_in: BrowserSignIn, attempt: ProviderAttempt, query: str) -> str:
        """Return the code of the provider's answer, and use the attempt up.

        An answer to another attempt does not use this one up, so a page elsewhere cannot end it.

        :raises Unauthorized: if the answer is to another attempt, or this one was used.
        :raises SignInRefused: if the provider refuses, or the answer is from another provider.
        """
        try:
            code = sign_in.read_callback(query)
        except NotOurCallback:
            raise Unauthorized(EXPIRED) from None
        except SignInRefused:
            self._attempts.use(attempt)
            raise
        self._attempts.use(attempt)
        return code

    async def _admit(self, person: VerifiedPerson, attempt: ProviderAttempt) -> AccountLogin:
        issuer, role = self._settings.issuer, find_role(self._settings, person.claims)
        account_id = make_account_id(issuer, person.subject)
        # guard of sign-in: nobody has an account without a role of their groups
        #    -> features.oidc.test_entrance.PersonTests.test_no_role, instead role = role or Role.VIEWER
        if role is None:
            self._confirmations.end(account_id)
            raise Forbidden(_NO_ROLE.format(name=self._settings.name))
        told = {"issuer": issuer, "subject": person.subject}
        login = await self._accounts.sign_in(account_id, make_name(account_id, person.claims), role, told)
        self._confirmations.begin(login, person, attempt.nonce)
        return login

    def _find_attempt(self, request: IRequest) -> ProviderAttempt:
        # guard of sign-in: the answer comes by the browser that has asked
        #    -> features.oidc.test_entrance.AttemptTests.test_other_browser
        cookie = request.getCookie(COOKIE.encode("ascii"))
        if cookie is None:
            raise Unauthorized(EXPIRED)
        return self._attempts.find(cookie.decode("latin-1"))

    def _read(self, request: IRequest, *names: str) -> list[str]:
        """Return the texts of the body, which has exactly these members.

        :raises LimitExceeded: if there are too many requests without a login.
        :raises Conflict: if nobody signs in here.
        :raises InvalidRequest: if the body is something else.
        """
        self._site.limit()
        # guard of sign-in: nobody signs in where a program may pose as the daemon
        #    -> features.oidc.test_entrance.PlainTests.test_refused
        if self._site.is_plain:
            raise Conflict(_PLAIN)
        texts = read_members(request, *names, most_bytes=_MOST_BYTES)
        if not all(isinstance(text, str) for text in texts):
            raise InvalidRequest("The request body is not valid.")
        return [str(text) for text in texts]


def _set_attempt(request: IRequest, cookie: str, seconds: int) -> None:
    """Set the cookie of an attempt. With 0 seconds the browser deletes it."""
    given = f"{COOKIE}={cookie}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict; Secure"
    request.responseHeaders.addRawHeader(b"Set-Cookie", given.encode("ascii"))

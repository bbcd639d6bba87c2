"""Serves the requests that need no login: setting a passphrase by a link, and signing in by passphrase or passkey."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from attrs import frozen
from twisted.web.iweb import IRequest

from aileron.api import Dependencies
from aileron.base.json import JSON
from aileron.features.phone.bodies import read_members, write_json
from aileron.features.phone.running import read_sign_in_page
from aileron.model.errors import Conflict, InvalidRequest, Unauthorized
from aileron.model.people import NAME
from aileron.web.parts import Shell

from ._accounts import Accounts
from ._attempts import SignInAttempts
from ._passkeys import AccountPasskeys, read_handle
from .admission import admit_page, refuse_page, send_page

Serve = Callable[[IRequest, Dependencies, Shell], Awaitable[bytes]]

FILES = (Path(__file__).with_name("static") / "people.js",)
_STATIC = Path(__file__).with_name("static")
_MOST_BYTES = 16 * 1024
_HINT = "</main>", '<p><a href="/signin/account">Sign in with your account</a></p>\n</main>'
_is_name = re.compile(NAME).fullmatch
_PLAIN = "Nobody signs in with an account here: something other than Aileron ends TLS (phone.tls in config.yaml)."


@frozen(eq=False)
class AccountEntrance:
    """The handlers of setting a passphrase by a link, and of signing in.

    :ivar limit: counts a request without a login, and raises L{LimitExceeded} if there are too many.
    :ivar passkey_attempts: the attempts with a passkey, by the account's ID.
    :ivar is_plain: whether the daemon is reached by plain HTTP. Neither a passphrase nor a passkey is accepted then.
    """

    _accounts: Accounts
    _passkeys: AccountPasskeys
    _attempts: SignInAttempts
    _passkey_attempts: SignInAttempts
    _limit: Callable[[], None]
    _is_plain: bool = False

    def routes(self) -> Sequence[tuple[str, str, Serve]]:
        """Return the handlers, each with its path and method."""
        return (
            ("/join", "GET", _page("join.html")),
            ("/signin/account", "GET", _page("account.html")),
            ("/signin", "GET", self.show_sign_in),
            ("/join", "POST", self.join),
            ("/signin/account", "POST", self.sign_in),
            ("/signin/account/nonce", "POST", self.offer),
            ("/signin/account/passkey", "POST", self.sign_in_by_passkey),
        )

    async def show_sign_in(self, request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
        """Return the phone's page for signing in. If there are accounts, it has a link to sign in with one.

        :raises StoreUnavailable: if the accounts cannot be read.
        """
        content = read_sign_in_page()
        return send_page(request, content.replace(*_HINT) if await self._accounts.list() else content)

    async def join(self, request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
        """Set the passphrase of the account that was invited, and sign its page in. The code is used up.

        The answer is 401 if the code is unknown, used or too old.

        :raises InvalidRequest: if the body is something else, or the passphrase is too weak.
        :raises LimitExceeded: if there are too many requests without a login.
        :raises Conflict: if passphrases are not accepted here.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be stored.
        """
        code, passphrase, public_key = self._read(request, "code", "passphrase", "public_key")
        self._attempts.begin("")
        try:
            login = await self._accounts.join(code, passphrase)
        except Unauthorized as error:
            return await refuse_page(request, deps, error.message)
        finally:
            self._attempts.end("", is_right=True)
        return await admit_page(request, deps, login, public_key, {"by": "link"})

    async def sign_in(self, request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
        """Sign a page in with the name and the passphrase of an account. The login, or its refusal, is recorded.

        The answer is 401 if the name or the passphrase is wrong.

        :raises InvalidRequest: if the body is something else.
        :raises LimitExceeded: if there were too many attempts.
        :raises Conflict: if passphrases are not accepted here.
        :raises StoreUnavailable: if the accounts cannot be read, or the login cannot be recorded.
        """
        name, passphrase, public_key = self._read(request, "name", "passphrase", "public_key")
        if not _is_name(name):
            name = "-"  # no account can have it
        self._attempts.begin(name)
        login = None
        try:
            login = await self._accounts.check(name, passphrase)
        finally:
            self._attempts.end(name, is_right=login is not None)
        if login is None:
            return await refuse_page(request, deps, "The name or the passphrase is wrong.")
        return await admit_page(request, deps, login, public_key, {"by": "passphrase"})

    async def offer(self, request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
        """Return a new challenge for signing in with a passkey, as JSON. It can be answered for one minute.

        :raises InvalidRequest: if the body is not an empty JSON object.
        :raises LimitExceeded: if there are too many requests without a login.
        :raises Conflict: if passkeys are not accepted here.
        :raises VaultLocked, BindingFailed: if none can be made.
        """
        self._read_members(request)
        return write_json(request, self._passkeys.offer_sign_in())

    async def sign_in_by_passkey(self, request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
        """Sign in the page whose key a passkey of an account has signed. The login, or its refusal, is recorded.

        The answer is 401 if the challenge is not fresh or was used, or the passkey's answer is not valid.

        :raises InvalidRequest: if the body is something else.
        :raises LimitExceeded: if there were too many attempts.
        :raises Conflict: if passkeys are not accepted here.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the accounts cannot be read, or the login cannot be
            recorded.
        """
        nonce, public_key, credential = self._read_members(request, "nonce", "public_key", "credential")
        if not isinstance(nonce, str) or not isinstance(public_key, str) or not isinstance(credential, Mapping):
            raise InvalidRequest("The request body is not valid.")
        account_id = read_handle(credential)
        # guard of roles: answers of passkeys cannot be tried out
        #    -> features.people.test_passkeys.LimitTests.test_one_account
        self._passkey_attempts.begin(account_id)
        is_right = False
        try:
            login, passkey = await self._passkeys.check_sign_in(nonce, public_key, credential)
            is_right = True
        except Unauthorized as error:
            return await refuse_page(request, deps, error.message)
        finally:
            self._passkey_attempts.end(account_id, is_right=is_right)
        told = {"by": "passkey", "passkey": passkey.id, "passkey_name": passkey.name}
        return await admit_page(request, deps, login, public_key, told)

    def _read(self, request: IRequest, *names: str) -> list[str]:
        """Return the texts of the body, which has exactly these members.

        :raises LimitExceeded: if there are too many requests without a login.
        :raises Conflict: if passphrases are not accepted here.
        :raises InvalidRequest: if the body is something else.
        """
        texts = self._read_members(request, *names)
        if not all(isinstance(text, str) for text in texts):
            raise InvalidRequest("The request body is not valid.")
        return [str(text) for text in texts]

    def _read_members(self, request: IRequest, *names: str) -> list[JSON]:
        """Return the members of the body, which are exactly these.

        :raises LimitExceeded: if there are too many requests without a login.
        :raises Conflict: if nobody signs in with an account here.
        :raises InvalidRequest: if the body is something else.
        """
        self._limit()
        # guard of roles: no passphrase in plain text -> features.people.test_entrance.PlainTests.test_refused
        if self._is_plain:
            raise Conflict(_PLAIN)
        return read_members(request, *names, most_bytes=_MOST_BYTES)


def _page(name: str) -> Serve:
    """Return the handler of a page that is the same for everybody. Opening it does nothing."""
    content = (_STATIC / name).read_bytes()

    async def serve(request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
        return send_page(request, content.decode())

    return serve

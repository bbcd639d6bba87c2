"""Keeps the registered browsers, and the key by which push services recognize the daemon, in the vault.

A phone's browser is kept together with the phone's passkey.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from attrs import define, field
from twisted.internet.defer import DeferredLock

from aileron.base.addresses import may_be_private, read_url
from aileron.base.json import utc
from aileron.base.text import visible
from aileron.credentials import DEFAULT_KIND
from aileron.model.audit import DAEMON, Actor, Event
from aileron.model.errors import Conflict, InvalidRequest, LimitExceeded, NotFound, VaultLocked
from aileron.model.vault import Binding, NewBinding

from ._delivery import BrowserDelivery
from ._encryption import check_keys, decode_base64url, encode_base64url, encode_point, make_key, read_key
from .values import KEY, MOST_BROWSERS, PUSH, SCOPE, PushBrowser, Subscription

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from twisted.internet.interfaces import IReactorTime

    from aileron.model.authority import Passkey
    from aileron.model.interfaces.store import IAudit
    from aileron.model.interfaces.vault import IBindings

MOST_ENDPOINT = 1000
_SERVICE, _KEY_IDENTITY = "push", "key"
_HTTPS_PORT = 443
_ID_CHARACTERS = 16
_MOST_NAME = 60
_MOST_AN_HOUR, _HOUR = 20, 3600.0


def check_endpoint(endpoint: str) -> str:
    """Check the endpoint of a browser at its push service, and return its host.

    The endpoint is chosen by a browser, or by a program that claims to be one, so only https, its own port and a public
    host are allowed. The address of the host is checked at each connection.

    :raises ValueError: if it is not allowed. The message is the end of a sentence.
    """
    if len(endpoint) > MOST_ENDPOINT:
        raise ValueError(f"must have {MOST_ENDPOINT} characters at most")
    url = read_url(endpoint)
    if url.origin.scheme != "https" or url.origin.port != _HTTPS_PORT:
        raise ValueError("must begin with https:// and have no port of its own")
    if url.user_info is not None or url.fragment is not None:
        raise ValueError("must have no user name, no password and no fragment")
    # guard of the phone: a browser's endpoint is public -> push.test_sender.EndpointTests.test_forbidden
    if may_be_private(url.origin.host):
        raise ValueError("must have a public host")
    return url.origin.host


def identify(endpoint: str) -> str:
    """Return the ID of the browser with this endpoint: the same each time that it is registered."""
    return sha256(endpoint.encode()).hexdigest()[:_ID_CHARACTERS]


@define(eq=False)
class PushBrowsers:
    """The registered browsers. Each is an entry of the vault, and so is the daemon's key.

    The target of an entry has the browser's ID. If a phone registered the browser, an id of the phone's passkey follows
    (L{mark_passkey}): the entry is valid as long as the passkey is registered.

    :param deliveries: what became of messages, by the browser's ID.
    :param passkeys: returns the registered passkeys, also while the vault is locked.
    :param check: L{check_endpoint}; a test double of a push service needs another one.
    """

    _vault: IBindings
    _audit: IAudit
    _clock: IReactorTime
    _ids: Callable[[], str]
    _deliveries: dict[str, BrowserDelivery]
    _passkeys: Callable[[], Sequence[Passkey]] = tuple
    _check: Callable[[str], str] = check_endpoint
    _turn: DeferredLock = field(factory=DeferredLock, init=False)
    _times: list[float] = field(factory=list, init=False)

    def list(self, passkey: str | None = None) -> Sequence[PushBrowser]:
        """Return the registered browsers, also while the vault is locked.

        :param passkey: the ID of a phone's passkey, for the browsers that the phone registered, or None for all.
        """
        phones = self._name_phones()
        kept = [each for each in self._bound() if _mark_of(each) in phones]
        if passkey is not None:
            kept = [each for each in kept if _mark_of(each) == mark_passkey(passkey)]
        return tuple(map(self._describe, kept))

    def is_bound(self, target: str) -> bool:
        """Return whether an entry of the vault is bound to a target of this feature.

        :param target: such as C{push://key}.
        """
        return target.startswith(PUSH) and bool(self._vault.for_connector(target))

    async def open_key(self) -> EllipticCurvePrivateKey:
        """Return the daemon's key, and make it if there is none.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed, StoreUnavailable: if the key cannot be read or stored.
        """
        return await self._turn.run(self._open_key)

    async def read_public_key(self) -> str:
        """Return the daemon's public key in base64url, as a browser needs it to subscribe.

        Make the key if there is none.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed, StoreUnavailable: if the key cannot be read or stored.
        """
        return encode_base64url(encode_point(await self.open_key()))

    async def register(
        self, told: Mapping[str, Any], name: str, actor: Actor, pages: str = "", passkey: str | None = None
    ) -> PushBrowser:
        """Register a browser, in place of an earlier registration of the same endpoint.

        :param told: the members C{endpoint}, C{p256dh} and C{auth} of the browser's subscription.
        :param pages: the origin of the page that registers it.
        :param passkey: the ID of the passkey that logged a phone's page in. The registration ends with the passkey.
            None for a page on the computer.
        :raises InvalidRequest: if the endpoint or a key is not allowed.
        :raises Conflict: if there are L{MOST_BROWSERS} already.
        :raises LimitExceeded: if too many were registered within an hour.
        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed, StoreUnavailable: if it cannot be stored.
        """
        given = {**{each: told[each] for each in ("endpoint", "p256dh", "auth")}, "pages": pages}
        account = f"{_plain(name)} ({self._read(given)[1]})"
        mark = "" if passkey is None else mark_passkey(passkey)
        return await self._turn.run(self._register, given, account, mark, actor)

    async def open(self, browser_id: str) -> Subscription:
        """Decrypt the subscription of a browser for one message.

        :raises NotFound: if no such browser is registered.
        :raises VaultLocked, BindingFailed: if it cannot be decrypted.
        """
        kept = await self._reveal(self._find(browser_id))
        return self._read(json.loads(kept))[0]

    async def remove(self, browser_id: str, actor: Actor = DAEMON, why: str = "", passkey: str | None = None) -> None:
        """Remove a browser, so that it is notified no more, and record that in the audit log.

        :param why: the reason, if the daemon removes it.
        :param passkey: the ID of the passkey of the phone that asks, or None if a page on the computer asks.
        :raises NotFound: if no such browser is registered, or not by the phone or computer that asks.
        :raises VaultLocked: if the vault is not unlocked.
        """
        found = self._find(browser_id)
        # guard of the phone: a phone removes its own browsers alone -> push.test_phone.OwnTests.test_others
        if passkey is not None and _mark_of(found) != mark_passkey(passkey):
            raise _unknown()
        await self._remove(found, actor, why)

    async def remove_orphans(self) -> None:
        """Remove the browsers of phones whose passkey was removed. If the vault is locked, do nothing.

        Such browsers are not notified in any case.
        """
        phones = self._name_phones()
        for each in self._bound():
            if _mark_of(each) not in phones:
                try:
                    await self._remove(each, DAEMON, "Its phone was removed.")
                except VaultLocked:
                    return

    async def _remove(self, binding: Binding, actor: Actor, why: str) -> None:
        removed = self._describe(binding)
        await self._vault.revoke(binding.name)
        self._deliveries.pop(removed.id, None)
        await self._record("push.removed", actor, removed, {"why": why} if why else {})

    def _read(self, told: Mapping[str, Any]) -> tuple[Subscription, str]:
        try:
            # guard against attack: a browser's endpoint is https at a public address
            #    -> test_push.WorkerTests.test_endpoints, instead host = ""
            host = self._check(told["endpoint"])
        except ValueError as error:
            raise InvalidRequest.listing("This browser cannot be notified.", ("/endpoint", str(error))) from None
        try:
            keys = decode_base64url(told["p256dh"]), decode_base64url(told["auth"])
            subscription = Subscription(told["endpoint"], *keys, pages=str(told.get("pages", "")))
            check_keys(subscription)
        except ValueError:
            problem = "are not the keys of a push subscription"
            raise InvalidRequest.listing("This browser cannot be notified.", ("/p256dh", problem)) from None
        return subscription, host

    async def _open_key(self) -> EllipticCurvePrivateKey:
        found = self._vault.for_connector(KEY)
        if found:
            return read_key((await self._reveal(found[0])).decode("ascii"))
        made = make_key()
        new = NewBinding(DEFAULT_KIND, _SERVICE, _KEY_IDENTITY, KEY, made.encode("ascii"), scope=SCOPE)
        await self._vault.set_up(new)
        return read_key(made)

    async def _register(self, given: Mapping[str, Any], account: str, mark: str, actor: Actor) -> PushBrowser:
        browser_id = identify(given["endpoint"])
        self._limit(browser_id)
        if self._vault.get(_name(browser_id)) is not None:
            await self._vault.revoke(_name(browser_id))
        kept = json.dumps(given, separators=(",", ":"))
        new = NewBinding(
            DEFAULT_KIND,
            _SERVICE,
            browser_id,
            _target(browser_id, mark),
            kept.encode("ascii"),
            account=account,
            scope=SCOPE,
        )
        added = self._describe(await self._vault.set_up(new))
        self._deliveries.pop(browser_id, None)
        await self._record("push.registered", actor, added, {})
        return added

    def _limit(self, browser_id: str) -> None:
        others = [each for each in self._bound() if each.identity != browser_id]
        # guard against attack: no more than sixteen browsers are registered -> test_push.WorkerTests.test_endpoints
        if len(others) >= MOST_BROWSERS:
            raise Conflict(f"{MOST_BROWSERS} browsers are registered already. Remove one first, under Settings.")
        now = self._clock.seconds()
        self._times = [each for each in self._times if 0 <= now - each < _HOUR]
        if len(self._times) >= _MOST_AN_HOUR:
            raise LimitExceeded(
                f"{_MOST_AN_HOUR} browsers were registered within an hour. Try again later.",
                {"retry_after": round(self._times[0] + _HOUR - now)},
            )
        self._times.append(now)

    def _bound(self) -> Sequence[Binding]:
        """Return the entries of all browsers, also of those whose phone was removed."""
        of_browsers = (each for each in self._vault.list() if each.connector == _target(each.identity, _mark_of(each)))
        return tuple(each for each in of_browsers if each.connector != KEY and each.name == _name(each.identity))

    def _find(self, browser_id: str) -> Binding:
        phones = self._name_phones()
        for each in self._bound():
            # guard of the phone: a removed phone's browser is sent nothing -> push.test_phone.OwnTests.test_lost
            if each.identity == browser_id and _mark_of(each) in phones:
                return each
        raise _unknown()

    def _name_phones(self) -> Mapping[str, str | None]:
        """Return the name of each registered passkey, by the id that L{mark_passkey} makes.

        The empty id stands for the computer's own pages.
        """
        return {"": None, **{mark_passkey(each.id): each.name for each in self._passkeys()}}

    def _describe(self, binding: Binding) -> PushBrowser:
        name, _, host = (binding.account or "").removesuffix(")").rpartition(" (")
        delivery = self._deliveries.get(binding.identity, BrowserDelivery())
        sent_at = None if delivery.sent_at is None else utc(delivery.sent_at)
        phone = self._name_phones().get(_mark_of(binding))
        return PushBrowser(binding.identity, name, host, binding.created_at, sent_at, delivery.problem, phone)

    async def _reveal(self, binding: Binding) -> bytes:
        return await self._vault.credential(binding, SCOPE).reveal()

    async def _record(self, type_: str, actor: Actor, browser: PushBrowser, more: Mapping[str, str]) -> None:
        phone = {} if browser.phone is None else {"phone": browser.phone}
        payload = {"browser": browser.id, "name": browser.name, "service": browser.service, **phone, **more}
        await self._audit.append(Event(self._ids(), type_, utc(self._clock.seconds()), actor, payload))


def mark_passkey(passkey: str) -> str:
    """Return a short id of a passkey, which names a phone in the targets of the browsers that it registered."""
    return sha256(passkey.encode()).hexdigest()[:_ID_CHARACTERS]


def _target(browser_id: str, mark: str) -> str:
    return f"{PUSH}{browser_id}/{mark}" if mark else f"{PUSH}{browser_id}"


def _mark_of(binding: Binding) -> str:
    return binding.connector.removeprefix(PUSH).partition("/")[2]


def _unknown() -> NotFound:
    return NotFound("No such browser is registered.")


def _name(browser_id: str) -> str:
    return f"{DEFAULT_KIND}/{_SERVICE}/{browser_id}"


def _plain(name: str) -> str:
    """Return a browser's name in visible ASCII, shortened and without parentheses, which would confuse its label."""
    text = "".join(each for each in visible(name) if each.isascii() and each.isprintable() and each not in "()")
    return " ".join(text[:_MOST_NAME].split()) or "Browser"

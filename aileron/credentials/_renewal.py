"""Credentials that expire: an access token and the means to renew it."""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, TypeVar

from attrs import AttrsInstance, evolve, field, frozen

from aileron.base.converter import JsonConverter, Member
from aileron.base.json import JSON, canonical, loads_strict
from aileron.model.errors import NetworkError
from aileron.model.vault import Authorization, CredentialState, CredentialStatus

from ._kind import CredentialKind, CredentialUse, NeedsYou

_RENEWED_BEFORE = timedelta(seconds=60)
_BELIEVED_FOR = timedelta(seconds=60)
_MOST_BYTES = 32 * 1024
_OVER = "It has expired and cannot be renewed."
_REFUSED = "The service does not accept the token any more, and it cannot be renewed."

FORM = JsonConverter()
"""The JSON of a stored credential.  Members with their default are omitted."""


@frozen(kw_only=True)
class Renewable:
    """An access token, with the state of its renewal.

    :ivar expires_at: the time of expiry, or None if it is unknown.
    :ivar obtained_at: the time at which Aileron obtained the token, or None if it was stored with the credential.
    :ivar spent: whether the service refused the token.
    :ivar needs_you: the reason why a person must act, or None. If set, no renewal is tried.
    """

    access_token: str | None = field(default=None, repr=False)
    expires_at: datetime | None = None
    obtained_at: datetime | None = None
    spent: bool = False
    needs_you: str | None = None


D = TypeVar("D", bound=Renewable)
T = TypeVar("T")


class RenewedKind(CredentialKind, Generic[D]):
    """The base of kinds that expire: when to renew, and storing the renewed credential before its use."""

    exchanges: ClassVar[bool] = True
    document: type[D]

    @abstractmethod
    def problem(self, found: D) -> str | None:
        """Return the fault of a document, as the end of a sentence, or None if the document is valid."""

    @abstractmethod
    def is_renewable(self, found: D) -> bool:
        """Return True if a new token can be obtained without a person."""

    @abstractmethod
    async def renew(self, found: D, use: CredentialUse) -> D:
        """Obtain a new token, and return the document with the new token.

        :raises NeedsYou: if a person must act first.
        :raises NetworkError, BindingFailed: if the token cannot be renewed this time.
        """

    def read(self, kept: bytes) -> D:
        """Parse the stored document.

        :raises ValueError: if the document is invalid.
        """
        return read_document(self.document, kept)

    def check(self, kept: bytes) -> None:
        """Raise C{ValueError} if C{kept} is not a valid document of this kind."""
        if len(kept) > _MOST_BYTES:
            raise ValueError(f"must have at most {_MOST_BYTES} bytes")
        found = self.read(kept)
        problem = _token_problem(found.access_token) or self.problem(found)
        if problem is not None:
            raise ValueError(problem)

    async def reveal(self, use: CredentialUse) -> bytes:
        """Return the access token, renewed if due.

        :raises NeedsYou: if a person must act first.
        :raises NetworkError: if the token has expired and could not be renewed this time.
        :raises BindingFailed: if the stored credential cannot be read.
        """
        found = await self._current(use)
        return (found.access_token or "").encode("ascii")

    async def make_ready(self, use: CredentialUse) -> None:
        """Renew the token if it is due.

        :raises NeedsYou: if a person must act first.
        :raises NetworkError: if the token has expired and could not be renewed this time.
        :raises BindingFailed: if the stored credential cannot be read.
        """
        await self._current(use)

    def refused(self, use: CredentialUse, sent: Authorization, challenge: str = "") -> bool:
        """Mark the sent token as spent, unless it was replaced already or was obtained less than a minute ago.

        A service that refuses every token therefore does not cause a renewal at each request.  If the token cannot be
        renewed and is certainly the cause of the refusal, a person must act first and no request is sent before.

        :return: True if the next use sends another token, so that a retry may succeed.
        :raises NeedsYou: if the token cannot be renewed and is certainly the cause.
        :raises ValueError: if the stored document cannot be read.
        """
        found = self.read(use.kept)
        if challenge:
            return False
        if found.access_token not in sent.secrets:
            return True
        fresh = found.obtained_at is not None and use.now() < found.obtained_at + _BELIEVED_FOR
        if fresh or found.needs_you:
            return False
        if not self.is_renewable(found):
            if not use.is_certain:
                return False
            use.keep(write(evolve(found, needs_you=_REFUSED)))
            raise NeedsYou(_REFUSED)
        use.keep(write(evolve(found, spent=True)))
        return True

    def state(self, kept: bytes, now: datetime) -> CredentialState:
        """Return the state.  A token that can be renewed is ready.

        :raises ValueError: if the stored document cannot be read.
        """
        found = self.read(kept)
        ended = found.needs_you or self._find_end(found, now)
        if ended is not None:
            return CredentialState(CredentialStatus.NEEDS_YOU, found.expires_at, ended)
        renews = self.is_renewable(found) or found.expires_at is None
        return CredentialState(CredentialStatus.READY if renews else CredentialStatus.EXPIRES, found.expires_at)

    def _find_end(self, found: D, now: datetime) -> str | None:
        """Return the reason why an expired token cannot be used any more, or None if it can."""
        over = found.expires_at is not None and found.expires_at <= now
        return _OVER if over and not self.is_renewable(found) else None

    async def _current(self, use: CredentialUse) -> D:
        """Return the document with a token that can be sent.

        A renewed document is stored first, and so is the reason why a person must act. If the token is still valid and
        cannot be renewed this time, it is returned.

        :raises NeedsYou: if a person must act first.
        :raises NetworkError: if the token has expired and could not be renewed this time.
        :raises ValueError: if the stored document cannot be read.
        """
        found = self.read(use.kept)
        if found.needs_you:
            raise NeedsYou(found.needs_you, is_new=False)
        ended = self._find_end(found, use.now())
        if ended is None and not (self.is_renewable(found) and _is_due(found, use.now())):
            return found
        try:
            renewed = await self._renew(found, use)
        except NeedsYou as needs:
            use.keep(write(evolve(found, needs_you=needs.reason)))
            raise
        except NetworkError:
            if _is_due(found, use.now(), timedelta()):
                raise
            return found  # the token has not expired yet
        use.keep(write(renewed))
        return renewed

    async def _renew(self, found: D, use: CredentialUse) -> D:
        if not self.is_renewable(found):
            raise NeedsYou(_OVER)
        return await self.renew(found, use)


def read_document(document: type[T], kept: bytes) -> T:
    """Parse the JSON of a stored credential.

    :raises ValueError: if the document is invalid. The message repeats nothing of it.
    """
    try:
        return FORM.from_json(document, loads_strict(kept))
    except ValueError as error:
        problem = str(error).partition(": ")[0]  # the rest may contain values entered in the place of names
    raise ValueError(f"must be the JSON of such a credential: {problem}")


def _is_due(found: Renewable, now: datetime, before: timedelta = _RENEWED_BEFORE) -> bool:
    if found.access_token is None or found.spent:
        return True
    return found.expires_at is not None and found.expires_at - before <= now


def write(found: AttrsInstance) -> bytes:
    """Return the JSON that the vault stores for a credential."""
    return canonical(FORM.to_json(found))


def _token_problem(token: str | None) -> str | None:
    visible = token is None or (token != "" and all("!" <= each <= "~" for each in token))
    return None if visible else "must have an access token of visible ASCII"


def token_of(told: JSON) -> str:
    """Return the token in a response.

    :raises ValueError: if the value is not a token that a header can carry.
    """
    if not isinstance(told, str) or _token_problem(told):
        raise ValueError("gave no token that can be sent")
    return told


def optional_members(*names: str) -> Any:
    """Return a converter's rule for attributes that are omitted from the JSON if they have their default."""
    return dict.fromkeys(
        (*names, "access_token", "expires_at", "obtained_at", "spent", "needs_you"), Member(optional=True)
    )

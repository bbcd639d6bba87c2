"""The file C{spending.toml} of a home: limits set by commands, and raises of limits for a session or a day.

The file counts only as the operator trusts it. A version on disk that is not trusted changes nothing: the last trusted
one that this process has read stays in force.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import evolve, frozen

from aileron.base.tables import FileTable, TextRule
from aileron.home.trusted_toml import TrustedToml
from aileron.model.errors import InvalidRequest
from aileron.model.interfaces.authority import ITrust
from aileron.model.trust import Candidate

from .settings import MODEL, MOST_LIMITS, PROVIDER, read_dollars
from .values import MICRODOLLARS, MOST, Per, Raise, SpendLimit, Unit

NAME = "spending.toml"
MOST_RAISES = 200
_PROVIDER = TextRule(PROVIDER.fullmatch, "must be the name of a provider")
_MODEL = TextRule(MODEL.fullmatch, "must be the name of a model, which may end in *")
_DOLLARS = TextRule(read_dollars, "must be an amount in US dollars, such as 20 or 0.50")
_ID = TextRule.shape(r"[0-9a-f]{8}", "must be the ID of a limit")
_WINDOW = TextRule.shape(r"[A-Za-z0-9-]{1,64}", "must be the ID of a session, or a day")
_UNTRUSTED = (
    "it is not trusted as it is now, so the limits that were trusted before hold; read and trust it: "
    "aileron config trust"
)
_UNCHANGED = f"{NAME} is not trusted as it is now, so nothing was changed. Run: aileron config trust."


@frozen
class OwnLimits:
    """The contents of the file.

    :ivar limits: the limits, in the file's order.
    :ivar raises: the raises of limits, in the file's order.
    """

    limits: tuple[SpendLimit, ...] = ()
    raises: tuple[Raise, ...] = ()


class SpendingFile(TrustedToml[OwnLimits]):
    """C{spending.toml} of one home.

    :param trust: the digests that the operator trusts.
    """

    def __init__(self, path: Path, trust: ITrust) -> None:
        super().__init__(path, trust, _parse, OwnLimits(), _UNTRUSTED)
        self._in_force: OwnLimits | None = None
        self._digest: str | None = None

    def read_own(self) -> OwnLimits | None:
        """Return the limits in force, or None if a trusted version exists but was never read by this process."""
        trusted = self.find_trusted_digest()
        if trusted is None:
            self._digest, self._in_force = None, None
            return OwnLimits()
        if trusted != self._digest:
            found = self.read_version()
            # guard of spending: limits on disk count only as trusted -> test_file.FileTests.test_untrusted
            if self.is_trusted(found):
                self._digest, self._in_force = trusted, found.contents
        return self._in_force

    @contextmanager
    def changing(self, own: OwnLimits) -> Iterator[Candidate]:
        """Write the file anew, and yield it as a candidate, for the caller to trust in the context.

        If the context raises, the earlier file is restored.

        :raises Conflict: if the file on disk has errors or is not trusted.
        :raises InvalidRequest: if the file cannot express the limits.
        """
        before = self.require_trusted(_UNCHANGED)
        after = self.parse_version(_write(own))
        if after.candidate is None or after.contents != own:
            raise InvalidRequest(f"{NAME} cannot express this limit. Nothing was changed.")
        with self.replacing(before, after):
            yield after.candidate


def _parse(table: FileTable) -> OwnLimits:
    limits = tuple(map(_read_limit, table.tables("limit", MOST_LIMITS, required=False)))
    raises = tuple(map(_read_raise, table.tables("raise", MOST_RAISES, required=False)))
    if len({each.id for each in limits}) != len(limits):
        table.fault("limit", "must not limit the same twice")
    return OwnLimits(limits, raises)


def _read_limit(entry: FileTable) -> SpendLimit:
    per = Per(entry.choice("per", list(Per), Per.DAY))
    tokens, requests = entry.integer("tokens", 1, MOST), entry.integer("requests", 1, MOST)
    money = read_dollars(entry.text("money", _DOLLARS, required=False))
    found = {Unit.TOKENS: tokens, Unit.REQUESTS: requests, Unit.MONEY: money}
    given = {unit: most for unit, most in found.items() if most is not None}
    if len(given) != 1:
        entry.fault("tokens", f"must be given, or one of the others: {', '.join(Unit)}")
    unit, most = next(iter(given.items()), (Unit.TOKENS, 1))
    if unit is Unit.REQUESTS and per is Per.REQUEST:
        entry.fault("per", "cannot be request for a limit of requests")
    provider = entry.text("provider", _PROVIDER, required=False) or None
    model = entry.text("model", _MODEL, required=False) or None
    entry.close()
    return SpendLimit(unit, per, most, provider, model)


def _read_raise(entry: FileTable) -> Raise:
    found = Raise(entry.text("limit", _ID), entry.text("window", _WINDOW), entry.integer("by", 1, MOST) or 1)
    if "by" not in entry.values:
        entry.fault("by", "must be given")
    entry.close()
    return found


def _write(own: OwnLimits) -> bytes:
    """Return the bytes of the file. Names need no escapes in TOML: their patterns exclude quotes and backslashes."""
    lines = ["# Written by: aileron gateway limit"]
    for limit in own.limits:
        lines += ["", "[[limit]]", f'per = "{limit.per.value}"', _write_most(limit)]
        lines += [f'{name} = "{value}"' for name, value in _narrowing(limit) if value is not None]
    for each in own.raises:
        lines += ["", "[[raise]]", f'limit = "{each.limit_id}"', f'window = "{each.window}"', f"by = {each.by}"]
    return "\n".join([*lines, ""]).encode()


def _write_most(limit: SpendLimit) -> str:
    if limit.unit is Unit.MONEY:
        return f'money = "{limit.most // MICRODOLLARS}.{limit.most % MICRODOLLARS:06}"'
    return f"{limit.unit.value} = {limit.most}"


def _narrowing(limit: SpendLimit) -> Sequence[tuple[str, str | None]]:
    return ("provider", limit.provider), ("model", limit.model)


def set_limit(own: OwnLimits, limit: SpendLimit) -> OwnLimits:
    """Return C{own} with C{limit} added. It replaces a limit with the same ID."""
    others = tuple(each for each in own.limits if each.id != limit.id)
    return evolve(own, limits=(*others, limit))

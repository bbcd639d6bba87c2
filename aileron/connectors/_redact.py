"""What a service sends back, without the secret that was sent to it, in whatever usual form it returns."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote, quote_plus

from attrs import define, evolve

from aileron.values import JSON, Fault, Outcome, plain

REDACTED = "[redacted]"

_LONG_ENOUGH = 8


@define
class Echo:
    """Replaces every form of some secrets in whatever passes it.

    :ivar heard: whether one was met.
    """

    _pattern: re.Pattern[str] | None
    heard: bool = False

    @classmethod
    def of(cls, *secrets: str) -> Echo:
        """One that knows these secrets; it shows none."""
        forms = sorted({form for secret in secrets for form in _forms(secret)}, key=len, reverse=True)
        return cls(re.compile("|".join(map(_spelled, forms))) if forms else None)

    def outcome(self, outcome: Outcome) -> Outcome:
        """The same outcome without an echo; C{notes["echoed"]} tells that there was one."""
        fault = outcome.fault and self._fault(outcome.fault)
        cleaned = evolve(outcome, output=self.value(outcome.output), fault=fault, notes=self._table(outcome.notes))
        return evolve(cleaned, notes={**cleaned.notes, "echoed": True}) if self.heard else cleaned

    def value(self, value: JSON) -> JSON:
        """The same value, keys as well."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self._table(value)
        if isinstance(value, Sequence):
            return [self.value(each) for each in value]
        return self._number(value)

    def text(self, text: str) -> str:
        """The same text."""
        if self._pattern is None:
            return text
        cleaned, found = self._pattern.subn(REDACTED, text)
        self.heard = self.heard or found > 0
        return cleaned

    def _number(self, value: JSON) -> JSON:
        """A secret of digits may come back as a number."""
        if value is None or isinstance(value, bool):
            return value
        written = str(plain(value))
        cleaned = self.text(written)
        return value if cleaned == written else cleaned

    def _table(self, value: Mapping[str, JSON]) -> dict[str, JSON]:
        return {self.text(key): self.value(each) for key, each in value.items()}

    def _fault(self, fault: Fault) -> Fault:
        return evolve(fault, message=self.text(fault.message), details=self._table(fault.details))

    def __repr__(self) -> str:
        """Nothing of the secrets."""
        return f"<Echo heard={self.heard}>"


def _forms(secret: str) -> Iterator[str]:
    """The secret as it is and as JSON, URLs, hexadecimal and base64 (at each of three alignments) write it."""
    if not secret:
        return
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret)[1:-1].replace("/", "\\/")
    yield from {quote(secret, safe=""), quote(secret), quote_plus(secret)}
    if len(secret) >= _LONG_ENOUGH:
        raw = secret.encode("utf-8")
        yield from (raw.hex(), raw.hex().upper())
        yield from _base64(raw)


def _base64(secret: bytes) -> Iterator[str]:
    for shift in range(3):
        whole = base64.b64encode(bytes(shift) + secret).decode("ascii").rstrip("=")
        # The first characters mix with what stands before the secret, the last with what follows it.
        inside = whole[(0, 2, 3)[shift] : len(whole) - bool((shift + len(secret)) % 3)]
        yield inside
        yield inside.translate(str.maketrans("+/", "-_"))


def _spelled(form: str) -> str:
    """A pattern for C{form}: the digits of a percent escape may be of either case."""
    parts = re.split(r"(%[0-9A-Fa-f]{2})", form)
    return "".join(f"(?i:{each})" if at % 2 else re.escape(each) for at, each in enumerate(parts))

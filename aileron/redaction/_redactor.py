"""Replaces the secret that was sent to a service in the responses of that service, in every common encoding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from attrs import define, evolve, field

from aileron.base.json import JSON
from aileron.model.connectors import Finding, Outcome
from aileron.model.faults import Fault

from ._escapes import MOST_LAYERS, Undone, may_be_escaped, undone
from ._forms import BASE64_CHARACTERS, SecretForm, forms, written_forms
from ._shape import REDACTED

_BLOT = "█" * len(REDACTED)  # headers cannot carry it, so no secret contains it

_LONGEST_NUMBER = 25  # the maximum length of a parsed number

_Answered = TypeVar("_Answered", Outcome, Finding)

_SIGNS = (("%", "url"), ("\\", "json"), ("&", "html"))


@define
class Redactor:
    """A redactor that replaces every form of some secrets in texts and values.

    It decodes up to three layers of escapes, which may be mixed, and searches for the forms in each layer.  A service
    can leak the secret in an uncommon encoding, but the service has the secret anyway.

    :ivar heard: the kinds of the forms found so far.
    """

    _forms: Mapping[str, SecretForm]
    _instead: str
    heard: set[str] = field(factory=set)
    _shortest: int = field(default=0, kw_only=True)

    @classmethod
    def of(cls, *secrets: str) -> Redactor:
        """Return a redactor of these secrets.  Its replacement text contains none of them."""
        sought: dict[str, SecretForm] = {}
        for secret in secrets:
            looks_escaped = undone(secret) is not None  # decoding the text decodes the secret's own escapes too
            for form in written_forms(secret) if looks_escaped else forms(secret):
                sought.setdefault(form.text, form)
        shortest = min(map(len, sought), default=0)
        return cls(sought, REDACTED if all(map(_fits, sought)) else _BLOT, shortest=shortest)

    def outcome(self, outcome: _Answered) -> _Answered:
        """Return C{outcome} with all secrets replaced. C{notes["echoed"]} lists the kinds of the forms found.

        :raises TypeError: if the output or the notes hold an object that JSON does not have.
        """
        fault = outcome.fault and self._fault(outcome.fault)
        notes: dict[str, JSON] = self._table(outcome.notes)
        cleaned = evolve(outcome, output=self.value(outcome.output), fault=fault, notes=notes)
        heard = sorted({*map(str, _list(notes.get("echoed"))), *self.heard})
        return evolve(cleaned, notes={**notes, "echoed": heard}) if heard else cleaned

    def value(self, value: JSON) -> JSON:
        """Return C{value} with all secrets replaced, in keys too.

        :raises TypeError: if C{value} holds an object that JSON does not have.
        """
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, (int, float)):  # first, because the check for a mapping is slow
            return value if self._shortest > _LONGEST_NUMBER else self._number(value)
        if isinstance(value, Mapping):
            return self._table(value)
        if isinstance(value, Sequence):
            return [self.value(each) for each in value]
        raise TypeError(f"{type(value).__name__} is no JSON")

    def text(self, text: str) -> str:
        """Return C{text} with all secrets replaced. C{heard} gets the kinds of the forms found."""
        if not self._may_hold(text):
            return text
        spans, pieces, done = _merge(self._spans(text)), list[str](), 0
        for start, end in spans:
            pieces += (text[done:start], self._instead)
            done = end
        return "".join((*pieces, text[done:]))

    def holds(self, content: bytes) -> bool:
        """Return True if binary C{content} holds a secret: plain, in UTF-16, hexadecimal or base64.

        Escapes are not decoded. C{heard} gets the kinds of the forms found.
        """
        texts = (content.decode("latin-1"), content.replace(b"\0", b"").decode("latin-1"))
        kinds = {form.kind for form in self._forms.values() if any(form.text in text for text in texts)}
        self.heard |= kinds
        return bool(kinds)

    def listen(self, texts: Iterable[str]) -> None:
        """Search C{texts} for the secrets, and record the kinds of the forms found in C{heard}. Nothing is replaced."""
        for text in texts:
            self.text(text)

    def _may_hold(self, text: str) -> bool:
        """Return False if C{text} certainly holds no secret: most texts contain neither a form nor an escape."""
        if len(text) < self._shortest:  # escapes never shorten a text
            return False
        return any(form in text for form in self._forms) or (bool(self._forms) and may_be_escaped(text))

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each secret in C{text}, in all layers of escapes."""
        layers: list[Undone] = []
        layer = text
        for _ in range(MOST_LAYERS + 1):
            for form in (each for each in self._forms.values() if each.text in layer):
                yield from self._find(form, text, layer, layers)
            deeper = undone(layer)
            if deeper is None:
                return
            layers.append(deeper)
            layer = deeper.text

    def _find(self, form: SecretForm, text: str, layer: str, layers: Sequence[Undone]) -> Iterator[tuple[int, int]]:
        start = layer.find(form.text)
        while start >= 0:
            end = start + len(form.text)
            first, last = _widen(layer, start, end) if form.cut else (start, end)
            for each in reversed(layers):
                first, last = each.source(first), each.source(last)
            self.heard.add(self._kind(form, text[first:last]))
            yield first, last
            start = layer.find(form.text, end)

    def _kind(self, form: SecretForm, written: str) -> str:
        """Return the kind of a found form, determined by the escapes in C{written}."""
        form = self._forms.get(written, form)
        if form.kind != "plain" or written == form.text:
            return form.kind
        return next((kind for sign, kind in _SIGNS if written.count(sign) > form.text.count(sign)), "split")

    def _number(self, value: float | None) -> JSON:
        """Return C{value}, or the redacted text if its digits hold a secret."""
        if value is None or isinstance(value, bool):
            return value
        written = str(value)
        cleaned = self.text(written)
        return value if cleaned == written else cleaned

    def _table(self, value: Mapping[str, JSON]) -> dict[str, JSON]:
        return {self.text(key): self.value(each) for key, each in value.items()}

    def _fault(self, fault: Fault) -> Fault:
        return evolve(fault, message=self.text(fault.message), details=self._table(fault.details))

    def __repr__(self) -> str:
        """Return a representation without the secrets."""
        return f"<Redactor heard={sorted(self.heard)}>"


def _list(value: JSON) -> Sequence[JSON]:
    return value if isinstance(value, (list, tuple)) else ()


def _fits(form: str) -> bool:
    """Return True if the text L{REDACTED} in place of C{form} cannot make up a secret again with the text around it."""
    return not {"[", "]"} & set(form) and form not in REDACTED


def _widen(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the start and end of a found secret, extended by neighbouring base64 characters.

    These may hold bits of the secret, or be padding.
    """
    start -= start > 0 and text[start - 1] in BASE64_CHARACTERS
    end += end < len(text) and text[end] in BASE64_CHARACTERS
    while end < len(text) and text[end] == "=":
        end += 1
    return start, end


def _merge(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged

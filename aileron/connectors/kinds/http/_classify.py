"""Judges a response by the connector's declaration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from attrs import evolve, frozen

from aileron.base.attachments import media_type_of
from aileron.base.json import JSON
from aileron.base.retry_after import MOST_RETRY_AFTER_SECONDS, read_retry_after
from aileron.connectors._answer import ServiceAnswer, may_pass
from aileron.connectors._decode import decode, show_safely
from aileron.connectors._forwarding import judge_forwarded
from aileron.model.connectors import READ, Outcome
from aileron.model.errors import AileronError, BindingFailed, ExternalApiError
from aileron.model.faults import Fault
from aileron.redaction import Redactor

from ._forward import WHOLE
from ._message import MOST_MESSAGE, find_message
from ._result import attachment, chosen, lifted
from ._spec import HttpOperation
from ._when import ABSENT, MissingPath, at
from ._xml import decode_xml

MOST_KEPT = 64 * 1024
"""The characters that are stored of an unsuccessful response."""

_EXPECTED = {"json": "JSON", "xml": "XML", "text": "UTF-8 text"}
_PREFIXES = ("x-ratelimit-", "x-rate-limit-", "ratelimit-")
_RATE_LIMITS = (
    "ratelimit",
    *(f"{prefix}{name}" for prefix in _PREFIXES for name in ("remaining", "reset", "reset-after")),
)
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")
_LEFT = re.compile(r"(?:remaining=|;\s?r=)0\s{0,9}[,;]\s{0,9}(?:reset|t)=([0-9]{1,12})")
_UNIX_TIME = 1e9  # larger numbers are Unix times, not seconds to wait
_REQUEST_TIMEOUT = 408
_PRECONDITION_FAILED = 412


@frozen
class Reader:
    """The reader of responses to one operation.

    :ivar name: the connector's name, for messages.
    :ivar echo: redacts the secret, before a part of the response is cut or selected.
    """

    name: str
    operation: HttpOperation
    echo: Redactor

    def outcome(self, answer: ServiceAnswer, now: datetime) -> Outcome:
        """Return the outcome that a response means.

        The notes of an unsuccessful outcome contain the body, for the operator.

        :param now: the current time, to compare with a date in C{Retry-After}.
        """
        self.echo.listen(answer.head)
        if self.operation.answer == WHOLE:
            wait = self._patience(answer, now)
            return judge_forwarded(self.name, self.operation.operation.effect, answer, self.echo, wait)
        if self.operation.answer == "auto":
            form = find_form(answer.headers.get("content-type", ""), answer.body)
            return evolve(self, operation=evolve(self.operation, answer=form)).outcome(answer, now)
        accepted = 200 <= answer.status <= 299
        judged = self._judge_accepted(answer, now) if accepted else self._judge_rejected(answer, now)
        if judged.fault is None or not answer.body:
            return judged
        return evolve(judged, notes={**judged.notes, "answer": self._keep(answer)})

    def _keep(self, answer: ServiceAnswer) -> JSON:
        """Return the media type and the text of an unsuccessful response, for the operator.

        The secret is redacted before a long text is cut. A body that is not UTF-8 is replaced by its size.
        """
        try:
            text = self.echo.text(answer.body.decode("utf-8"))
        except ValueError:
            text = f"({len(answer.body)} bytes that are not text in UTF-8)"
        kept = text if len(text) <= MOST_KEPT else f"{text[:MOST_KEPT]}\n… ({len(text)} characters in all)"
        return {"type": self._type(answer), "text": kept}

    def _type(self, answer: ServiceAnswer) -> str:
        """Return the media type of a response, or an empty text if it names none."""
        named = self.echo.text(answer.headers.get("content-type", "")).partition(";")[0].strip().lower()
        return show_safely(named, 100)

    def _judge_accepted(self, answer: ServiceAnswer, now: datetime) -> Outcome:
        """Judge a response with status 2xx: a success, a declared failure, or an unreadable body.

        An unreadable body leaves the effect in doubt.
        """
        try:
            content = self._content(answer)
        except ValueError:
            self._listen(answer)
            message = f"{self.name} returned {self._unexpected(answer)} (status {answer.status})."
            return Outcome(fault=_fault(message, answer.status), classified=False, status=answer.status)
        rule = self.operation.error
        if rule.when is not None and rule.when.holds(content):
            return self._judge_declared(content, answer)
        wait = self._exhausted(answer, now)
        return Outcome(output=self._output(content, answer), status=answer.status, retry_after_seconds=wait)

    def _unexpected(self, answer: ServiceAnswer) -> str:
        """Return a description of a body that does not match the declaration."""
        expected = _EXPECTED.get(self.operation.answer, "JSON")
        encoding = answer.headers.get("content-encoding", "identity").lower()
        if encoding != "identity":
            return f"a body in the encoding {show_safely(self.echo.text(encoding), 40)}, which was not requested"
        if not answer.body:
            return f"an empty body; {expected} was expected"
        found = self._type(answer)
        if not found or expected.lower() in found:
            return f"a body that is not valid {expected}"
        return f"{found}; {expected} was expected"

    def _content(self, answer: ServiceAnswer) -> JSON:
        if self.operation.answer == "none":
            self._listen(answer)
            return None
        if answer.headers.get("content-encoding", "identity").lower() != "identity":
            raise ValueError("encoded, although nobody asked for it")
        if self.operation.answer == "file":
            return self._attachment(answer)
        if self.operation.answer == "text":
            return self.echo.text(answer.body.decode("utf-8"))
        if not answer.body and self._may_be_empty():
            return None
        return self.echo.value(self._decode(answer.body))

    def _decode(self, body: bytes) -> JSON:
        return decode_xml(body, self.operation.lists) if self.operation.answer == "xml" else decode(body)

    def _attachment(self, answer: ServiceAnswer) -> JSON:
        if not answer.body:
            return None
        media_type = media_type_of(self.echo.text(answer.headers.get("content-type", "")))
        return attachment(media_type, answer.body, self.echo)

    def _may_be_empty(self) -> bool:
        return self.operation.result is None and self.operation.error.when is None

    def _output(self, content: JSON, answer: ServiceAnswer) -> JSON:
        named, headers = self.operation.result, self.operation.answer_headers
        if named is None and not headers:
            return content
        return {**chosen(named or {}, content, self.echo), **lifted(headers, answer)}

    def _judge_declared(self, content: JSON, answer: ServiceAnswer) -> Outcome:
        """Judge a response with status 2xx that C{error.when} declares a failure.

        Unless L{_is_refusal} holds, the effect is in doubt.
        """
        status = answer.status
        kind, code = _KINDS[self.operation.error.kind], self._code(content)
        if self._is_refusal(content, code):
            said = self._said(content, answer) if code is None else code
            return Outcome(fault=_fault(f"{self.name} refused{_because(said)}.", status, code, kind), status=status)
        said = self._said(content, answer) if code is None else code
        message = f"{self.name} reported a failure{_because(said)}. It does not say that nothing was done."
        return Outcome(fault=_fault(message, status, code, kind), classified=False, status=status)

    def _is_refusal(self, content: JSON, code: str | None) -> bool:
        """Return whether it is certain that nothing was done, for a response that C{error.when} declares a failure.

        It is certain for a read, and if the member that C{error.when} compares has a value. Otherwise:

        - In GraphQL, a field may fail after the mutation was carried out. So it is certain only if the response has
          C{errors} and no C{data}.
        - Elsewhere, it is certain if the member is null or the response has an error code.
        """
        when = self.operation.error.when
        found = ABSENT if when is None else at(content, when.path)
        if self.operation.operation.effect == READ or not (found is None or isinstance(found, MissingPath)):
            return True
        if not self.operation.is_graphql:
            return found is None or code is not None
        return isinstance(content, Mapping) and "data" not in content and bool(content.get("errors"))

    def _judge_rejected(self, answer: ServiceAnswer, now: datetime) -> Outcome:
        """Judge a response with a status other than 2xx."""
        content = self._lenient(answer)
        code = self._code(content)
        said = self._said(content, answer) if code is None else code
        fault = _fault(f"{self._is_answered(answer.status)}{_because(said)}.", answer.status, code)
        return Outcome(
            fault=evolve(fault, retriable=may_pass(answer.status)),
            classified=self._is_classified(answer.status),
            retry_after_seconds=self._patience(answer, now),
            status=answer.status,
        )

    def _is_answered(self, status: int) -> str:
        if status == _PRECONDITION_FAILED and self.operation.operation.precondition:
            return f"{self.name} refused this request, because what it acts on has changed since it was shown"
        return f"{self.name} answered with status {status}"

    def _is_classified(self, status: int) -> bool:
        if status in self.operation.refused:
            return True
        return 400 <= status <= 499 and status != _REQUEST_TIMEOUT

    def _patience(self, answer: ServiceAnswer, now: datetime) -> float | None:
        """Return the seconds to wait: those of C{Retry-After}, or else of the rate limit headers; None if unknown."""
        said = read_retry_after(self.echo.text(answer.headers.get("retry-after", "")), now)
        return self._exhausted(answer, now) if said is None else said

    def _exhausted(self, answer: ServiceAnswer, now: datetime) -> float | None:
        """Return the seconds until the rate limit resets, or None if requests are left, it is unknown or over a day."""
        return rate_limit({name: self.echo.text(answer.headers.get(name, "")) for name in _RATE_LIMITS}, now)

    def _lenient(self, answer: ServiceAnswer) -> JSON | MissingPath:
        for read in (self._decode, decode):  # errors are mostly JSON, even if a success is not
            with suppress(ValueError):
                return self.echo.value(read(answer.body))
        self._listen(answer)
        return ABSENT

    def _said(self, content: JSON | MissingPath, answer: ServiceAnswer) -> str | None:
        """Return the service's error message, cut if it is long, or None if none is found.

        If the body is neither decoded nor plain text, return its media type instead.
        """
        if not isinstance(content, MissingPath):
            found = find_message(content)
        elif self._type(answer) == "text/plain":
            found = find_message(self.echo.text(answer.body.decode("utf-8", "replace")))
        else:
            return self._type(answer) or None
        return None if found is None else show_safely(found, MOST_MESSAGE)

    def _listen(self, answer: ServiceAnswer) -> None:
        """Search a body for the secret, and record whether it contains the secret. The body itself is not returned."""
        self.echo.listen([answer.body.decode("latin-1")])

    def _code(self, content: JSON | MissingPath) -> str | None:
        """Return the service's error code, or None if there is none."""
        path = self.operation.error.message
        found = ABSENT if path is None or isinstance(content, MissingPath) else at(content, path)
        return show_safely(str(found)) if isinstance(found, str | int | float) and found != "" else None


def find_form(media_type: str, body: bytes) -> str:
    """Return the form in which to read a response declared as C{auto}.

    An empty body is C{none}. A body that parses as its media type says is C{json} or C{xml}; without a media type, JSON
    is tried. Any other textual body in UTF-8 is C{text}, and the rest is C{file}.
    """
    plain = media_type.partition(";")[0].strip().lower()
    is_json, is_xml = plain.endswith(("/json", "+json")), plain.endswith(("/xml", "+xml"))
    if not body:
        return "none"
    for form, read in (("json", decode), ("xml", lambda body: decode_xml(body, ()))):
        if (form == "json" and (is_json or not plain)) or (form == "xml" and is_xml):
            try:
                read(body)
            except ValueError:
                continue
            return form
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return "file"
    return "text" if plain.startswith("text/") or is_json or is_xml or not plain else "file"


def rate_limit(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds until requests are left again, or None if some are left, it is unknown, or it is over a day.

    C{RateLimit} and C{RateLimit-Reset} (IETF drafts) hold seconds. Some services send a Unix time in
    C{X-RateLimit-Reset}.
    """
    found = _LEFT.search(headers["ratelimit"])
    resets = [found[1]] if found else []
    for prefix in _PREFIXES:
        if headers[f"{prefix}remaining"].strip() == "0":
            resets += [headers[f"{prefix}reset-after"].strip(), headers[f"{prefix}reset"].strip()]
    seconds = [float(each) for each in resets if _NUMBER.fullmatch(each)]
    left = max((each - now.timestamp() if each > _UNIX_TIME else each for each in seconds[:1]), default=-1.0)
    return left if 0.0 <= left <= MOST_RETRY_AFTER_SECONDS else None


_KINDS: Mapping[str, type[AileronError]] = {
    "external_api_error": ExternalApiError,
    "binding_failed": BindingFailed,
}


def _because(code: str | None) -> str:
    return "" if code is None else f": {code}"


def _fault(message: str, status: int, code: str | None = None, kind: type[AileronError] = ExternalApiError) -> Fault:
    details: dict[str, JSON] = {"status": status}
    if code is not None:
        details["code"] = code
    return kind(message, details).fault()

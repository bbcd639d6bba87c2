"""The review of an approval, read for the page: every argument, and every request that will leave.

Tolerant of a review that lacks something: what is missing is shown as missing, and hides nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from attrs import frozen

from aileron.values import JSON, Approval

_Object: TypeAlias = Mapping[str, JSON]


@frozen
class Argument:
    """One argument.

    :ivar label: the name that a person reads.
    """

    name: str
    label: str
    value: JSON


@frozen
class SentRequest:
    """A request as it will leave, but for the credential.

    :ivar headers: in order; the last stands for the credential, where there is one.
    :ivar changes: whether the connector declares that it may change something.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: JSON
    changes: bool


@frozen
class SentStep:
    """One step.

    :ivar account: by which credential, in words.
    :ivar request: L{None}: built when an earlier step has answered; it goes to C{base_url}.
    """

    connector: str
    operation: str
    account: str
    base_url: str
    request: SentRequest | None


@frozen
class SeenLine:
    """One line of a preview.

    :ivar value: L{None}: there is none.
    :ivar cut: how many bytes the whole has, where C{value} is only its beginning; else L{None}.
    """

    label: str
    value: str | None
    cut: str | None


@frozen
class Seen:
    """The service's side as it is shown, or why nothing is.

    :ivar trouble: a sentence for the person, where there is something to say.
    :ivar lacking: why it cannot be approved, if that is so.
    :ivar awaited: whether it is being fetched.
    """

    connector: str
    lines: tuple[SeenLine, ...]
    trouble: str
    lacking: str
    awaited: bool


def seen(approval: Approval) -> Seen | None:
    """Read the preview; L{None} where the action has none."""
    preview = approval.review.get("preview")
    if not isinstance(preview, Mapping):
        return None
    lines = tuple(_line(field) for field in _objects(preview.get("fields")))
    awaited = preview.get("status") == "fetching"
    return Seen(_text(preview, "connector"), lines, _trouble(preview), _text(preview, "lacking"), awaited)


def _line(field: _Object) -> SeenLine:
    cut = field.get("cut")
    whole = _text(cut, "bytes") if isinstance(cut, Mapping) else None
    return SeenLine(_text(field, "label"), None if field.get("missing") else _text(field, "value"), whole)


def _trouble(preview: _Object) -> str:
    fault = preview.get("fault")
    if isinstance(fault, Mapping):
        return f"It could not be fetched: {_text(fault, 'message')} ({_text(fault, 'class')})"
    return "It is being fetched; this page shows it when it is there." if preview.get("status") == "fetching" else ""


def arguments(approval: Approval) -> tuple[Argument, ...]:
    """Every argument of the run, labelled by the review, and whatever else the review adds to them."""
    given = dict(approval.run.arguments)
    shown = [
        Argument(name, _text(field, "label") or name, given.pop(name, field.get("value")))
        for field in _objects(approval.review.get("fields"))
        if (name := _text(field, "name"))
    ]
    return (*shown, *(Argument(name, name, value) for name, value in given.items()))


def steps(approval: Approval) -> tuple[SentStep, ...]:
    """Every step, in order."""
    return tuple(_step(planned) for planned in _objects(approval.review.get("steps")))


def _step(planned: _Object) -> SentStep:
    request = planned.get("request")
    return SentStep(
        connector=f"{_text(planned, 'connector')} {_text(planned, 'version')}".strip(),
        operation=_text(planned, "operation"),
        account=_account(planned.get("binding")),
        base_url=_text(planned, "base_url"),
        request=_request(request) if isinstance(request, Mapping) else None,
    )


def _request(request: _Object) -> SentRequest:
    credential = _text(request, "credential")
    filled_in = [(credential, "(the credential, filled in by the daemon)")] if credential else []
    return SentRequest(
        method=_text(request, "method"),
        url=_text(request, "url"),
        headers=(*_headers(request.get("headers")), *filled_in),
        body=request.get("body"),
        changes=request.get("effect") != "read",
    )


def _headers(value: JSON) -> Iterator[tuple[str, str]]:
    for pair in value if isinstance(value, (list, tuple)) else ():
        if isinstance(pair, (list, tuple)) and len(pair) == 2:
            yield str(pair[0]), str(pair[1])


def _account(binding: JSON) -> str:
    if not isinstance(binding, Mapping):
        return "without a credential"
    account = _text(binding, "account")
    return f"with the credential {_text(binding, 'name')}" + (f" of {account}" if account else "")


def _objects(value: JSON) -> Iterator[_Object]:
    for each in value if isinstance(value, (list, tuple)) else ():
        if isinstance(each, Mapping):
            yield each


def _text(value: _Object, name: str) -> str:
    found = value.get(name)
    return "" if found is None else str(found)

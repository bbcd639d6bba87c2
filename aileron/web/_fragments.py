"""Approvals as HTML: every argument in full, and the request that will leave.

Whatever came from outside goes through L{visible} and is escaped by the template: nothing in it acts or hides.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.web.iweb import IRequest
from twisted.web.template import Element, Tag, XMLString, flattenString, renderer, tags

from aileron.values import JSON, Approval, RunState, Session, timestamp, visible

_TEMPLATES = Path(__file__).with_name("templates")
_WORDS = {
    RunState.PENDING: "waits for you",
    RunState.APPROVED: "approved, about to start",
    RunState.AWAITING_VAULT: "approved, waits for the vault to be unlocked",
    RunState.EXECUTING: "is being done",
    RunState.COMPLETED: "done",
    RunState.FAILED: "failed; nothing happened",
    RunState.UNKNOWN: "may have happened: nobody here can say",
    RunState.DENIED: "denied",
    RunState.CANCELLED: "taken back",
    RunState.EXPIRED: "expired",
}
_Rendered = Generator[Tag, None, None]


def _template(name: str) -> XMLString:
    return XMLString((_TEMPLATES / name).read_text(encoding="utf-8"))


def shown(value: JSON) -> str:
    """Any value as text for a person: strings as they are, the rest as JSON."""
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=dict)
    return visible(text, multiline=True)


class ApprovalList(Element):
    """What waits, oldest first."""

    loader = _template("approvals.xml")

    def __init__(self, approvals: Iterable[Approval], sessions: Mapping[str, Session]) -> None:
        super().__init__()
        self._approvals = list(approvals)
        self._sessions = sessions

    @renderer
    def root(self, request: IRequest | None, tag: Tag) -> Tag:
        """How many there are, for the title."""
        return tag(**{"data-pending": str(len(self._approvals))})

    @renderer
    def empty(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """A sentence where nothing waits."""
        return "" if self._approvals else tag

    @renderer
    def items(self, request: IRequest | None, tag: Tag) -> _Rendered:
        """One line each."""
        for approval in self._approvals:
            run = approval.run
            yield tag.clone().fillSlots(
                href=f"/approvals/{run.id}",
                action=visible(run.action),
                summary=visible(_summary(approval)),
                asked_by=_who(run.session_id, self._sessions),
                asked_at=timestamp(approval.requested_at),
                stale="changed since it was asked" if approval.stale else "",
            )


class ApprovalPage(Element):
    """One approval, whole."""

    loader = _template("approval.xml")

    def __init__(self, approval: Approval, session: Session | None) -> None:
        super().__init__()
        self._approval = approval
        self._session = session

    @renderer
    def root(self, request: IRequest | None, tag: Tag) -> Tag:
        """What the script needs to decide: the id, and the digest of what is on this page."""
        run = self._approval.run
        marks = {"data-id": run.id, "data-digest": self._approval.digest, "data-state": run.state.value}
        return tag(**marks).fillSlots(
            action=visible(run.action),
            version=visible(run.action_version),
            state=_WORDS.get(run.state, run.state.value),
            asked_by=_who(run.session_id, {self._session.id: self._session} if self._session else {}),
            directory=visible(self._session.working_dir) if self._session else "unknown",
            asked_at=timestamp(self._approval.requested_at),
            digest=self._approval.digest,
        )

    @renderer
    def stale(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """Why it is asked anew."""
        return tag(visible(self._approval.stale)) if self._approval.stale else ""

    @renderer
    def fields(self, request: IRequest | None, tag: Tag) -> _Rendered:
        """Every argument, in full."""
        for given in _mappings(self._approval.review.get("fields")):
            yield tag.clone().fillSlots(label=visible(str(given["label"])), value=shown(given["value"]))

    @renderer
    def steps(self, request: IRequest | None, tag: Tag) -> _Rendered:
        """Every request as it will leave."""
        for planned in _mappings(self._approval.review.get("steps")):
            request_ = planned.get("request")
            yield tag.clone().fillSlots(
                connector=visible(f"{planned['connector']} {planned['version']}: {planned['operation']}"),
                binding=visible(_binding(planned.get("binding"))),
                request=_request(request_) if isinstance(request_, Mapping) else "depends on an earlier step's answer",
            )

    @renderer
    def outcome(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """What became of it, once it is decided."""
        run = self._approval.run
        if run.state is RunState.PENDING:
            return ""
        rows: list[tuple[str, JSON]] = [
            ("Reason", run.reason),
            ("Result", run.result),
            ("Failure", None if run.fault is None else run.fault.message),
            ("On record as", run.audit_id),
        ]
        return tag([[tags.dt(name), tags.dd(shown(value))] for name, value in rows if value is not None])

    @renderer
    def decide(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """The buttons, while it waits."""
        return tag if self._approval.run.state is RunState.PENDING else ""


def html(element: Element) -> Deferred[bytes]:
    """The fragment as bytes."""
    return flattenString(None, element)


def _mappings(value: JSON) -> Iterable[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _summary(approval: Approval) -> str:
    fields = _mappings(approval.review.get("fields"))
    text = ", ".join(f"{each['label']}: {each['value']}" for each in fields)
    return text if len(text) <= 160 else f"{text[:160]}… (open it to see all)"


def _who(session_id: str | None, sessions: Mapping[str, Session]) -> str:
    session = sessions.get(session_id or "")
    return "you, without an agent" if session_id is None else visible(session.agent) if session else session_id


def _binding(value: JSON) -> str:
    if not isinstance(value, Mapping):
        return "no credential"
    account = value.get("account")
    return f"{value['name']} ({account})" if account else str(value["name"])


def _request(request: Mapping[str, Any]) -> str:
    """A request the way it goes over the wire, the credential a placeholder."""
    headers = [f"{name}: {value}" for name, value in request["headers"]]
    if request["credential"]:
        headers.append(f"{request['credential']}: (the credential, filled in by the daemon)")
    lines = [visible(line) for line in (f"{request['method']} {request['url']}", *headers)]
    body = request["body"]
    return "\n".join(lines if body is None else [*lines, "", shown(_readable(body))])


def _readable(body: JSON) -> JSON:
    """A JSON body is indented; any other is shown as it is."""
    if not isinstance(body, str):
        return body
    try:
        parsed = json.loads(body)
    except ValueError:
        return body
    return cast(JSON, parsed) if isinstance(parsed, (dict, list)) else body

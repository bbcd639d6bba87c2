"""How each value stands in an answer: frozen, member by member, in the file beside this one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import AttrsInstance, evolve, fields, has
from twisted.trial.unittest import SynchronousTestCase

from aileron.api.shapes.values import ANSWERS, approval_json, listed_run_json, operator_json, session_json, to_json
from aileron.base.json import JSON, utc
from aileron.base.load_error import LoadError
from aileron.features.gateway.shapes import totals_json
from aileron.features.gateway.values import Dialect, Ending, GatewayTotals, Histogram, Provider, Traffic, UpstreamSource
from aileron.model.actions import Action, ApprovalRule, Cap, ConnectorPin, Input, Offer, Offering, PreviewRule, Step
from aileron.model.audit import Actor, Event, Record
from aileron.model.authority import (
    Grant,
    GrantState,
    OwnCap,
    Passkey,
    PasskeyRule,
    Pause,
    Predicate,
    PredicateKind,
    StandingGrant,
)
from aileron.model.connectors import ConnectorDescription, CredentialNeed, Operation
from aileron.model.faults import Fault
from aileron.model.people import AccountLogin, ApproverRule, Role
from aileron.model.reviews import Card, Review, ReviewedArgument
from aileron.model.runs import Approval, AttemptRow, Change, Run, RunState, StepRow, Vote
from aileron.model.sessions import OperatorSession, Process, Session, SessionEnding
from aileron.model.trust import Candidate, Trusted, TrustItem, TrustKind, TrustState
from aileron.model.usage import Usage, UsageSum
from aileron.model.vault import Binding, BindingFlag, Scope
from aileron.review import ReviewWarning

_FROZEN = Path(__file__).with_name("answers.json")
_NOON = utc(1_700_000_000.25)
_FAULT = Fault("network_error", "Nobody is there.", "external", True, {"host": "slack.com"})
_RUN = Run(
    id="run-1",
    action="ship",
    action_version="1.0.0",
    manifest_digest="sha256:a",
    arguments={"to": "you"},
    state=RunState.APPROVED,
    gated=True,
    effect_key="effect-1",
    received_at=_NOON,
    changed_at=_NOON,
    session_id="session-1",
    idempotency_key="key-1",
    result={"output": {"media_type": "text/csv", "text": "a,b"}, "steps": {}},
    fault=_FAULT,
    reason="It is so.",
    audit_id="audit-1",
    asked={"to": "me"},
    parent_id="run-0",
    start_after=_NOON,
)
_ADA = AccountLogin("per_1", "ada", Role.APPROVER, "canary")
_APPROVAL = Approval(
    run=_RUN,
    digest="sha256:b",
    review=Review(unread={"fields": []}),
    requested_at=_NOON,
    expires_at=_NOON,
    stale="It is another.",
    approved=True,
    decided_at=_NOON,
    decided_by="operator-1",
    reason="Yes.",
    not_before=_NOON,
    not_after=_NOON,
    mark=b"mark",
    changes=(Change("/preview", "added", None, 1),),
    grant_id="grant-1",
)
_VOTED = evolve(
    _APPROVAL,
    approvers=ApproverRule((("group:finance", "ada"),), not_requester=True, count=2),
    votes=(Vote("run-1", "per_1", "sha256:b", "ada.ab12", _NOON, _NOON, "Seen.", mark=b"mark", account=_ADA),),
)
_GRANT = Grant(
    id="grant-1",
    action="ship",
    predicates=(Predicate("to", PredicateKind.ONE_OF, ["you", "me"]),),
    exact={"count": 1.0},
    uses=3,
    not_after=_NOON,
    bound={"the action's file": "sha256:a"},
    run_id="run-1",
    made_at=_NOON,
    made_by="operator-1",
    session_id="session-1",
    used=1,
    used_at=_NOON,
    revoked_at=_NOON,
)
_ACTION = Action(
    name="ship-it",
    version="1.0.0",
    source="local",
    intent="Ship",
    description="# Ship",
    tool_name="ship_it",
    connectors=(ConnectorPin("builtin://slack", "1.0.0", ("post",), "sha256:c"),),
    inputs=(Input("to", "string", "Whom", ask=True), Input("count", "integer", "How many")),
    steps=(Step("first", "builtin://slack", "post"),),
    approval=ApprovalRule(
        gated=True,
        expires_after_seconds=60.0,
        preview=PreviewRule("builtin://slack", "look", {"a": 1}, (("Title", "a.b"),), ("Title",)),
        undo_seconds=5.0,
        cool_down_seconds=7.0,
        withdrawn_on_cancel=True,
    ),
    timeout_seconds=30.0,
    input_schema={"type": "object"},
    digest="sha256:d",
    path="/home/me/ship-it.md",
    text="canary",
    limits=(Cap(3, 3600.0, "to", True),),
    output_schema={"type": "array"},
)
_OFFER = Offer(_ACTION, True, False, True, False, True, {"type": "array"})
_ERROR = LoadError("parse_error", "It is none.", "ship-it.md", 3, "action")
_BINDING = Binding(
    name="api_key/slack/me",
    kind="api_key",
    service="slack",
    identity="me",
    connector="builtin://slack",
    created_at=_NOON,
    revision=2,
    base_url="https://slack.com",
    account="T1",
    scope=Scope(("slack.com:443",), "https://slack.com", "Authorization", "Bearer {key}"),
)
_CONNECTOR = ConnectorDescription(
    name="builtin://slack",
    version="1.0.0",
    content_hash="sha256:e",
    base_url="https://slack.com",
    bindable=True,
    hosts=("slack.com:443",),
    operations={"post": Operation("post", "write", False, "Posts.", 7.0, ("etag",), True, False, {"type": "object"})},
    credential=CredentialNeed("api_key", "Authorization", "Bearer {key}"),
)
_SESSION = Session(
    id="session-1",
    agent="claude",
    working_dir="/home/me",
    started_at=_NOON,
    seen_at=_NOON,
    ended_at=_NOON,
    exit_code=1,
    peer=Process(7, "/bin/agent", "/home/me"),
    leased=True,
    ends_at=_NOON,
    ending=SessionEnding.ORPHANED,
)
_EVENT = Event(
    id="audit-1",
    type="run.failed",
    at=_NOON,
    actor=Actor("agent", "session-1"),
    payload={"failure": {"message": "Nobody is there.", "retriable": False}},
    run_id="run-1",
    session_id="session-1",
    action="ship",
    connector="builtin://slack",
    failure_class="network_error",
)
_FILE = Candidate(TrustKind.ACTION, "ship-it", "sha256:d", "/home/me/ship-it.md", "one\ntwo", ("builtin://slack",))
_WORD = Trusted(TrustKind.ACTION, "ship-it", "sha256:0", _NOON, "operator-1", False)
_WAITS = Histogram((1.0,), (1, 0), 0.5)
_TRAFFIC = Traffic(
    3,
    {"2xx": 1},
    {Ending.COMPLETE: 1, Ending.CUT: 1},
    4,
    5,
    Usage(6, 7, 8),
    1,
    2,
    _WAITS,
    _WAITS,
    _WAITS,
)
_LOGIN = OperatorSession("operator-1", _NOON, _NOON, _NOON, _NOON, True)
_TRUST = TrustItem(TrustState.CHANGED, TrustKind.ACTION, "ship-it", _FILE, _WORD, "one\n")
_PROVIDER = Provider(
    "claude",
    "https://api.example.com",
    "/claude",
    Dialect.ANTHROPIC,
    "api_key/claude/me",
    UpstreamSource.CONFIG,
)
_EXAMPLES: Mapping[str, tuple[AttrsInstance, Callable[[], Mapping[str, JSON]] | None]] = {
    "run": (_RUN, None),
    "run in a list": (_RUN, lambda: listed_run_json(_RUN)),
    "step": (StepRow("run-1", "first", 0, "succeeded", [1]), None),
    "attempt": (AttemptRow("run-1", "first", 2, "failed", _NOON, _NOON, _FAULT, True), None),
    "approval": (_APPROVAL, lambda: approval_json(_APPROVAL, "http://localhost/{}".format)),
    "approval of several": (_VOTED, lambda: approval_json(_VOTED, "http://localhost/{}".format)),
    "grant": (StandingGrant(_GRANT, GrantState.LIVE, "The file has changed."), None),
    "action": (_OFFER, None),
    "load error": (_ERROR, None),
    "offering": (Offering(5, {"ship-it": _OFFER}, (_ERROR,)), None),
    "card": (Card("first", "mail", (("to", ("you", "me")), ("subject", ("x",)))), None),
    "warning": (ReviewWarning.of("letters", "It looks like another.", "/run/arguments/to"), None),
    "connector": (_CONNECTOR, None),
    "binding": (_BINDING, None),
    "binding flag": (BindingFlag("api_key/slack/me", 2, _NOON, "It came back."), None),
    "session": (_SESSION, lambda: session_json(_SESSION, _NOON)),
    "login": (_LOGIN, lambda: operator_json(_LOGIN, _LOGIN)),
    "record": (Record(4, _EVENT, "sha256:f", "sha256:0", "sha256:1", "salt", True), None),
    "trust item": (_TRUST, None),
    "trust item of no file": (TrustItem(TrustState.GONE, *_FILE.key, trusted=_WORD), None),
    "pause": (Pause(_NOON, "operator-1", "look", "session-1"), None),
    "cap": (OwnCap(Cap(3, 3600.0, "to", True), _NOON, "operator-1", "ship"), None),
    "passkey": (Passkey("key-1", "laptop", b"canary", _NOON, 3), None),
    "passkey rule": (PasskeyRule(True, ("ship*",)), None),
    "provider": (_PROVIDER, None),
    "calls": (UsageSum(Usage(6, 7, 8), 3), None),
    "costly calls": (UsageSum(Usage(6, 7, 8, 140), 3), None),
    "traffic": (_TRAFFIC, lambda: totals_json(GatewayTotals({"claude": _TRAFFIC}))),
}


class AnswerTests(SynchronousTestCase):
    """What clients read."""

    maxDiff = None

    def test_frozen(self) -> None:
        """Each value has the members that it always had in answers, and nothing of it that is kept back is there."""
        frozen = json.loads(_FROZEN.read_text(encoding="utf-8"))
        self.assertEqual(frozen.keys(), _EXAMPLES.keys())
        for name, (value, write) in _EXAMPLES.items():
            found = json.dumps(to_json(value) if write is None else write())
            self.assertEqual(json.loads(found), frozen[name], name)
            self.assertNotIn("canary", found)

    def test_order_of_arguments(self) -> None:
        """Arguments of an approval are in the order of the action's inputs; the database keeps them by name."""
        run = evolve(_RUN, arguments={"body": "b", "channel": "#eng", "removed": 1, "to": "you"})
        shown = tuple(ReviewedArgument(name, name, None) for name in ("to", "channel", "body", "absent"))
        review = Review(arguments=shown)
        found: Any = approval_json(evolve(_APPROVAL, run=run, review=review), str)["run"]
        self.assertEqual(list(found["arguments"]), ["to", "channel", "body", "removed"])
        self.assertEqual(found["arguments"], run.arguments)

    def test_every_form(self) -> None:
        """No class has a form of its own in answers that is not frozen here."""
        shown = {type(each) for value, _ in _EXAMPLES.values() for each in _parts(value)}
        self.assertEqual(ANSWERS.forms.maps[0].keys() - shown, set())


def _parts(value: Any) -> Iterator[Any]:
    """The values that C{value} is made of, itself among them."""
    if has(type(value)):
        yield value
        within: Any = [getattr(value, each.name) for each in fields(type(value))]
    else:
        within = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else ()
    for each in within:
        yield from _parts(each)

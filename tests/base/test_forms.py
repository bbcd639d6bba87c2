"""The JSON of each value that is kept, signed, put on record or sent by a webhook: frozen, member by member."""

from __future__ import annotations

from attrs import AttrsInstance, evolve
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.converter import OWN, from_json, to_json
from aileron.base.json import JSON, utc
from aileron.features.notices.rules import FLOOD
from aileron.features.notices.values import ChannelState, Message, Notice
from aileron.model.audit import Break, Checkpoint, Verdict
from aileron.model.authority import Pause, Predicate, PredicateKind
from aileron.model.connectors import Request
from aileron.model.faults import Fault
from aileron.model.people import AccountLogin, Invitation, Owner, Role, Verifier
from aileron.model.reviews import (
    Cut,
    Preview,
    PreviewFault,
    PreviewField,
    PreviewStatus,
    Review,
    ReviewedAction,
    ReviewedArgument,
    ReviewedBinding,
    ReviewedPreview,
    ReviewedRequest,
    ReviewedStep,
)
from aileron.model.runs import Change
from aileron.model.sessions import OperatorSession, Process, SessionTally
from aileron.model.signing import KeyKind, SignedDecisions
from aileron.model.vault import (
    Binding,
    CredentialState,
    CredentialStatus,
    KeySource,
    KeySourceKind,
    Scope,
    SecurityKey,
)

_NOON = utc(1_700_000_000.25)
_AT = "2023-11-14T22:13:20.250000Z"
_SCOPE = Scope(("slack.com:443",), "https://slack.com", "Authorization", "Bearer {key}")
_BINDING = Binding("api_key/slack/me", "api_key", "slack", "me", "builtin://slack", _NOON, 2, None, "T1", _SCOPE)
_BINDING_JSON: dict[str, JSON] = {
    "name": "api_key/slack/me",
    "kind": "api_key",
    "service": "slack",
    "identity": "me",
    "connector": "builtin://slack",
    "created_at": _AT,
    "revision": 2,
    "base_url": None,
    "account": "T1",
    "scope": {
        "hosts": ["slack.com:443"],
        "base_url": "https://slack.com",
        "header": "Authorization",
        "format": "Bearer {key}",
    },
}
_REVIEWED_BINDING_JSON: dict[str, JSON] = {
    "name": "api_key/slack/me",
    "kind": "api_key",
    "connector": "builtin://slack",
    "revision": 2,
    "base_url": None,
    "account": "T1",
}
_REQUEST = Request(
    "builtin://slack",
    "post",
    "write",
    False,
    "POST",
    "https://slack.com/x",
    (("A", "b"),),
    b"\xc3\xa4",
    "Authorization",
)
_REQUEST_JSON: dict[str, JSON] = {
    "connector": "builtin://slack",
    "operation": "post",
    "effect": "write",
    "method": "POST",
    "url": "https://slack.com/x",
    "headers": [["A", "b"]],
    "body": "ä",
    "credential": "Authorization",
}
_LOOK = ReviewedStep("preview", "builtin://slack", "1.0.0", "sha256:c", "get", "https://slack.com", None, None)
_LOOK_JSON: dict[str, JSON] = {
    "id": "preview",
    "connector": "builtin://slack",
    "version": "1.0.0",
    "content_hash": "sha256:c",
    "operation": "get",
    "base_url": "https://slack.com",
    "binding": None,
    "request": None,
}
_CUT = Cut(9, "sha256:t")
_CUT_JSON: dict[str, JSON] = {"bytes": 9, "digest": "sha256:t"}
_OWNER = PreviewField("Owner", None, missing=True, multiline=False)
_OWNER_JSON: dict[str, JSON] = {"label": "Owner", "value": None, "missing": True, "multiline": False}
_FAULT = PreviewFault("network_error", "Gone.")
_FAULT_JSON: dict[str, JSON] = {"class": "network_error", "message": "Gone."}
_PREVIEW = ReviewedPreview(
    connector="builtin://slack",
    operation="get",
    shown=Preview(PreviewStatus.UNAVAILABLE, (evolve(_OWNER, cut=_CUT), _OWNER), _FAULT, {"etag": "v1"}),
    read=_LOOK,
    lacking="It cannot be approved.",
)
_PREVIEW_JSON: dict[str, JSON] = {
    "connector": "builtin://slack",
    "operation": "get",
    "status": "unavailable",
    "fields": [{**_OWNER_JSON, "cut": _CUT_JSON}, _OWNER_JSON],
    "fault": _FAULT_JSON,
    "carried": {"etag": "v1"},
    "read": _LOOK_JSON,
    "lacking": "It cannot be approved.",
}
_REVIEW = Review(
    action=ReviewedAction("ship", "1.0.0", "local://me/ship@1.0.0"),
    manifest_digest="sha256:m",
    arguments=(ReviewedArgument("to", "To whom", ["you"], multiline=True),),
    steps=(evolve(_LOOK, binding=ReviewedBinding.of(_BINDING), request=ReviewedRequest.of(_REQUEST)),),
    preview=_PREVIEW,
)
_REVIEW_JSON: dict[str, JSON] = {
    "action": {"name": "ship", "version": "1.0.0", "source": "local://me/ship@1.0.0"},
    "manifest_digest": "sha256:m",
    "fields": [{"name": "to", "label": "To whom", "value": ["you"], "multiline": True}],
    "steps": [
        {
            **_LOOK_JSON,
            "binding": {
                "name": "api_key/slack/me",
                "kind": "api_key",
                "connector": "builtin://slack",
                "revision": 2,
                "base_url": None,
                "account": "T1",
            },
            "request": _REQUEST_JSON,
        }
    ],
    "preview": _PREVIEW_JSON,
}
_NOTICE = Notice(FLOOD, _NOON, "ship", "session-1", "run-1", "It asks.", "claude", "to=you")
_VERIFIER_JSON: dict[str, JSON] = {"salt": "00", "key": "01", "iterations": 3, "memory_kib": 65536, "lanes": 4}
_NOTICE_JSON: dict[str, JSON] = {
    "kind": "session_floods",
    "at": _AT,
    "action": "ship",
    "session": "session-1",
    "run_id": "run-1",
    "reason": "It asks.",
    "agent": "claude",
    "arguments": "to=you",
}
_READ: tuple[tuple[AttrsInstance, dict[str, JSON]], ...] = (
    (
        SignedDecisions(KeyKind.PASSKEY, "-----BEGIN", "[1]", "c2ln", "aWQ", "e30", "AAA"),
        {
            "kind": "passkey",
            "public_key": "-----BEGIN",
            "statement": "[1]",
            "signature": "c2ln",
            "passkey": "aWQ",
            "client_data": "e30",
            "authenticator_data": "AAA",
        },
    ),
    (
        SignedDecisions(KeyKind.SSH, "ssh-ed25519 AAAA", "[1]", "-----BEGIN", text="Delete it."),
        {
            "kind": "ssh",
            "public_key": "ssh-ed25519 AAAA",
            "statement": "[1]",
            "signature": "-----BEGIN",
            "passkey": None,
            "client_data": None,
            "authenticator_data": None,
            "text": "Delete it.",
        },
    ),
    (
        Fault("conflict", "Look again.", "user", True, {"revision": 2}),
        {
            "class": "conflict",
            "message": "Look again.",
            "boundary": "user",
            "retriable": True,
            "details": {"revision": 2},
        },
    ),
    (Change("/to", "changed", None, [1]), {"path": "/to", "kind": "changed", "before": None, "after": [1]}),
    (Process(7, "/bin/agent"), {"pid": 7, "executable": "/bin/agent", "working_dir": None}),
    (
        Pause(_NOON, "operator-1", "look", "session-1"),
        {"since": _AT, "by": "operator-1", "reason": "look", "session_id": "session-1"},
    ),
    (
        Predicate("count", PredicateKind.RANGE, {"minimum": 1.0}),
        {"argument": "count", "kind": "range", "given": {"minimum": 1.0}},
    ),
    (
        _SCOPE,
        {
            "hosts": ["slack.com:443"],
            "base_url": "https://slack.com",
            "header": "Authorization",
            "format": "Bearer {key}",
        },
    ),
    (
        Checkpoint("vault-1", 3, "sha256:a", _AT, "sha256:b", "00", "ff"),
        {
            "vault": "vault-1",
            "sequence": 3,
            "head": "sha256:a",
            "at": _AT,
            "previous": "sha256:b",
            "key": "00",
            "signature": "ff",
        },
    ),
    (ReviewedRequest.of(_REQUEST), _REQUEST_JSON),
    (
        ReviewedRequest.of(evolve(_REQUEST, credential_header=None, credential_query="key")),
        {**_REQUEST_JSON, "credential": None, "credential_query": "key"},
    ),
    (
        ReviewedRequest.of(evolve(_REQUEST, credential_header=None, credential_path="/bot{key}")),
        {**_REQUEST_JSON, "credential": None, "credential_path": "/bot{key}"},
    ),
    (
        evolve(_SCOPE, header="", settings={"query": "key"}),
        {
            "hosts": ["slack.com:443"],
            "base_url": "https://slack.com",
            "header": "",
            "format": "Bearer {key}",
            "settings": {"query": "key"},
        },
    ),
    (ReviewedRequest.of(evolve(_REQUEST, body=b"\xff")), {**_REQUEST_JSON, "body": {"base64": "/w=="}}),
    (_CUT, _CUT_JSON),
    (_OWNER, _OWNER_JSON),
    (_FAULT, _FAULT_JSON),
    (_PREVIEW, _PREVIEW_JSON),
    (_REVIEW, _REVIEW_JSON),
    (_BINDING, _BINDING_JSON),
    (
        evolve(_BINDING, owner=Owner("per_1", "alice")),
        {**_BINDING_JSON, "owner": {"account": "per_1", "name": "alice"}},
    ),
    (ReviewedBinding.of(_BINDING), _REVIEWED_BINDING_JSON),
    (
        ReviewedBinding.of(evolve(_BINDING, owner=Owner("per_1", "alice"))),
        {**_REVIEWED_BINDING_JSON, "owner": {"account": "per_1", "name": "alice"}},
    ),
    (
        AccountLogin("per_1", "alice", Role.VIEWER, "ab", ("board",)),
        {"account": "per_1", "name": "alice", "role": "viewer", "digest": "ab", "groups": ["board"]},
    ),
    (Invitation("ab", _NOON), {"code_digest": "ab", "ends_at": _AT}),
    (Verifier("00", "01", 3, 65536, 4), _VERIFIER_JSON),
)
"""What is read back as well."""

_WRITTEN: tuple[tuple[AttrsInstance, dict[str, JSON]], ...] = (
    (
        # The credential of a security key stands in the vault's file alone, and in no answer.
        KeySource("S", KeySourceKind.SECURITY_KEY, "blue", "ab", _NOON, SecurityKey(b"id", bytes(32), verified=True)),
        {"id": "S", "kind": "security_key", "name": "blue", "public_key": "ab", "made_at": _AT},
    ),
    (
        # The account of a login stands in the login's id, and in no answer of its own.
        OperatorSession(
            "S", _NOON, _NOON, _NOON, _NOON, account=AccountLogin("per_1", "alice", Role.VIEWER, "ab" * 32)
        ),
        {
            "id": "S",
            **dict.fromkeys(("started_at", "used_at", "expires_at", "ends_at", "proved_at"), _AT),
            "browser": False,
            "decides": True,
            "passkey": None,
        },
    ),
    (_NOTICE, _NOTICE_JSON),
    (evolve(_NOTICE, arguments=None), {name: value for name, value in _NOTICE_JSON.items() if name != "arguments"}),
    (
        Message("m", _NOON, "Two calls", ("one", "two"), "http://localhost/", (_NOTICE,), True, ("to=you",), 1),
        {
            "id": "m",
            "at": _AT,
            "title": "Two calls",
            "text": "one\ntwo\nto=you",
            "url": "http://localhost/",
            "urgent": True,
            "count": 2,
            "notices": [_NOTICE_JSON],
        },
    ),
    (
        ChannelState("phone", "apprise", 1, 2, 3, "It is busy.", _NOON),
        {
            "name": "phone",
            "kind": "apprise",
            "sent": 1,
            "failed": 2,
            "waiting": 3,
            "problem": "It is busy.",
            "problem_at": _AT,
            "sent_at": None,
        },
    ),
    (
        CredentialState(CredentialStatus.NEEDS_YOU, None, "It lacks a scope.", None, ("write",)),
        {
            "status": "needs_you",
            "expires_at": None,
            "reason": "It lacks a scope.",
            "surplus": None,
            "wanted": ["write"],
        },
    ),
    (
        CredentialState(CredentialStatus.READY),
        {"status": "ready", "expires_at": None, "reason": None, "surplus": None},
    ),
    (
        SessionTally(1, 2, 3, 4, 5, 6),
        {"calls": 1, "waiting": 2, "approvals": 3, "denials": 4, "effects": 5, "in_doubt": 6},
    ),
    (
        Verdict(1, 9, "sha256:a", 2, 3, 4, 5, ("00",), True, 6, Break("altered", 9, "It is another.")),
        {
            "first": 1,
            "last": 9,
            "head": "sha256:a",
            "pruned": 2,
            "checkpoints": 3,
            "signed": 4,
            "covered": 5,
            "keys": ["00"],
            "compared": True,
            "anchored": 6,
            "broken": {"kind": "altered", "sequence": 9, "why": "It is another."},
            "proved": 0,
            "sound": False,
        },
    ),
)


class FormTests(SynchronousTestCase):
    """What stands in rows, in the record, under digests and in messages."""

    maxDiff = None

    def test_written(self) -> None:
        """Each value is the JSON that it always was: no member more, and none of another name."""
        for value, written in (*_READ, *_WRITTEN):
            self.assertEqual(to_json(value), written)

    def test_read(self) -> None:
        """What is kept is read back as the value that it was."""
        for value, written in _READ:
            self.assertEqual(from_json(type(value), written), value)

    def test_review_in_another_form(self) -> None:
        """A review that is in any part none of ours is kept as it is, and written as it was."""
        deep: list[JSON] = []
        for _ in range(10_000):
            deep = [deep]
        others: tuple[tuple[str, JSON], ...] = (
            ("fields", [{"name": "to", "label": "To whom", "value": 1, "multiline": True, "more": 1}]),
            ("steps", [{**_LOOK_JSON, "request": {**_REQUEST_JSON, "headers": [["A", "b", "c"]]}}]),
            ("preview", {**_PREVIEW_JSON, "status": "odd"}),
            ("preview", {**_PREVIEW_JSON, "carried": {"a": 2**60}}),
            ("preview", {**_PREVIEW_JSON, "carried": {"a": deep}}),
            ("more", 1),
        )
        for name, wrong in others:
            other = {**_REVIEW_JSON, name: wrong}
            found = from_json(Review, other)
            self.assertEqual((found, to_json(found)), (Review(unread=other), other))
            self.assertTrue(found.may_have_preview)
        self.assertRaises(ValueError, from_json, Review, [])

    def test_every_form(self) -> None:
        """No class has a form of its own that is not frozen here."""
        self.assertEqual(OWN.forms.keys() - {type(value) for value, _ in (*_READ, *_WRITTEN)}, set())
